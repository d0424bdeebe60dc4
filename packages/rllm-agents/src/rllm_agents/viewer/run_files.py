"""What a run directory holds: which files are episodes, metrics, settings, results."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rllm_agents.errors import UserError
from rllm_agents.viewer.json_lines import finite

_NUMBERED = re.compile(r"(?P<kind>.+)-(?P<step>\d{1,9})")
_MAX_TEXT_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class EpisodeFile:
    """One JSONL file of episodes. Made by `RunFiles`, read by the index."""

    path: Path
    kind: str
    """What its episodes were played for: ``train``, ``eval``, ``eval-greedy``, ``episodes``."""
    step: int | None
    """Training step that its name says; None where it says none."""


class RunFiles:
    """The files of a training or evaluation run, or one file of episodes.

    Args:
        path: A run directory, or a JSONL file as `write_episodes` leaves it.

    Raises:
        UserError: There is nothing of a run at this place.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        """As it was given."""
        if not path.exists():
            raise UserError(f"{str(path)!r} does not exist; name a run directory")
        names = ("config.yaml", "metrics.jsonl", "summary.json")
        is_run = bool(self.episode_files()) or any((path / name).exists() for name in names)
        if not is_run:
            raise UserError(
                f"{str(path)!r} holds no run: no episodes.jsonl, no episodes/, no metrics.jsonl"
            )

    @property
    def name(self) -> str:
        """What the page is called."""
        return self.path.resolve().name

    @property
    def metrics(self) -> Path:
        """Numbers by step; need not exist."""
        return self.path / "metrics.jsonl"

    def episode_files(self) -> list[EpisodeFile]:
        """Return the files of episodes that there are at this moment, in a fixed order."""
        if self.path.is_file():
            return [EpisodeFile(self.path, "episodes", None)]
        paths = [self.path / "episodes.jsonl", *sorted((self.path / "episodes").glob("*.jsonl"))]
        return [_episode_file(path) for path in paths if path.is_file()]

    def settings_text(self) -> str:
        """Return the run's settings for reading; "" where it left none."""
        text = _read_text(self.path / "config.yaml") if self.path.is_dir() else ""
        settings = self.summary().get("settings")
        return text or ("" if settings is None else json.dumps(settings, indent=2))

    def summary(self) -> dict[str, Any]:
        """Return what the run came to; empty while it goes on."""
        try:
            text = _read_text(self.path / "summary.json") if self.path.is_dir() else ""
            summary = json.loads(text or "{}")
        except (ValueError, RecursionError):
            return {}
        return finite(summary) if isinstance(summary, dict) else {}


def _episode_file(path: Path) -> EpisodeFile:
    found = _NUMBERED.fullmatch(path.stem)
    if found is None:
        return EpisodeFile(path, path.stem, None)
    return EpisodeFile(path, found["kind"], int(found["step"]))


def _read_text(path: Path) -> str:
    """Return the beginning of a file; "" where it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(_MAX_TEXT_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
