"""A process that does one lap of work for each line that it is sent, and answers with figures."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path


class LapProcess:
    """One side of a comparison. `laps.py` is the other end of its two pipes."""

    def __init__(self, command: Sequence[str | Path], log: Path) -> None:
        """Start it and wait until it is ready.

        Args:
            command: Interpreter, script and arguments.
            log: Where what it prints beside its answers goes.
        """
        self._command = [str(part) for part in command]
        self._log = log
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log.open("w", encoding="utf-8"),
            env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
            text=True,
        )
        self.ready = self._answer()
        """Its figures before the first lap."""

    def lap(self) -> dict[str, float]:
        """Ask for a lap and return its figures."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()

    def _answer(self) -> dict[str, float]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            said = self._log.read_text(encoding="utf-8")[-2000:]
            raise SystemExit(f"it ended: {' '.join(self._command)}\n{said}")
        return json.loads(line)
