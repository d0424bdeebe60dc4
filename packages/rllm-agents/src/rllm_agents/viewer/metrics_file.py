"""The numbers of a run as they are written, row by row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rllm_agents.viewer.growing_file import FileReplacedError, GrowingFile
from rllm_agents.viewer.json_lines import finite, parse_object


class MetricsFile:
    """Rows of `metrics.jsonl`.

    Args:
        path: Need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.generation = 0
        """Goes up when the file was written anew, as a run does that is resumed."""
        self._clear()

    def _clear(self) -> None:
        self._growing = GrowingFile(self._path)
        self.rows: list[dict[str, Any]] = []
        """Each with ``step`` and numbers by name; None where a number was not finite."""

    def read_on(self) -> None:
        """Read the rows that were added meanwhile."""
        try:
            for _, line in self._growing.lines():
                row = parse_object(line)
                if row is not None and type(row.get("step")) is int:
                    self.rows.append(_numbers(row))
        except FileReplacedError:
            self.generation += 1
            self._clear()
            self.read_on()


def _numbers(row: dict[str, Any]) -> dict[str, Any]:
    kept = {k: v for k, v in row.items() if v is None or type(v) in (int, float)}
    return finite(kept)
