"""How long the process took."""

from __future__ import annotations

import os
import time

import psutil


class Stopwatch:
    """Wall-clock and CPU seconds of this process since it was started by the system.

    They count everything a user waits for: the interpreter's start, imports, loading, evaluation.
    """

    def __init__(self) -> None:
        """Remember when the process started."""
        self._created = psutil.Process().create_time()

    def elapsed(self) -> dict[str, float]:
        """Return `seconds` (wall clock) and `cpu_seconds` (user and system, ended children too)."""
        used = os.times()
        cpu = used.user + used.system + used.children_user + used.children_system
        return {"seconds": round(time.time() - self._created, 2), "cpu_seconds": round(cpu, 2)}
