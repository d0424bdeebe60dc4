"""The table of faults of training of docs/reliability.md, small: see benchmarks/reliability."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "reliability" / "training_faults.py"


@pytest.mark.slow
@pytest.mark.parametrize("part", ["driver", "actors", "nodes"])
def test_every_row_holds(part: str) -> None:
    # In a process of its own: it forks, which one with threads must not.
    command = [sys.executable, str(SCRIPT), "--only", part, "--moments", "6", "--times", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("holds |") >= {"driver": 5, "actors": 7, "nodes": 2}[part]
