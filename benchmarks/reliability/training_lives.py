"""Lives of one `rllm train`: each is a process that ends by itself or is killed, and goes on.

A life is forked from this process, which has imported what training imports: its start costs what
it would cost `rllm train` without the imports, so that a hundred lives take minutes. Whatever a
life does after that, it does as the command does.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import resource
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from rllm_agents.cli import main as rllm
from rllm_learn.core.checkpoint import latest_checkpoint
from rllm_learn.tracking import read_metrics

NUM_STEPS = 8
SETTINGS = (
    f"num_steps={NUM_STEPS}",
    "tasks_per_step=2",
    "algorithm.group_size=4",
    "rollout.max_response_length=48",
    "eval.num_tasks=2",
    "eval.every_steps=4",
    "checkpoint.every_steps=1",
    "tracking.to=[]",
)
LONGEST_LIFE = 600.0
"""Seconds after which a life that does not end is an error."""
_LOOK = 0.002
_PROCESSES_END_IN = 5.0


class Life:
    """One process that trains in a run directory, from the start or from the last save."""

    def __init__(self, run_dir: Path, *, file_bytes: int | None = None) -> None:
        """Fork it.

        Args:
            run_dir: Of the run; resumed where it holds one.
            file_bytes: Longest file that it may write, as a stand-in for a full disk; None for any.
        """
        self.run_dir = run_dir
        self.checkpoints = run_dir / "checkpoints"
        self.log = run_dir.with_suffix(".log")
        resumes = (run_dir / "config.yaml").exists()
        arguments = ["train", *(["--resume"] if resumes else SETTINGS), f"run_dir={run_dir}"]
        sys.stdout.flush()
        self.began = time.monotonic()
        self.pid = os.fork()
        if self.pid == 0:
            _live(arguments, self.log, file_bytes)

    def wait_until(self, condition: Any) -> bool:
        """Return True when a condition holds, False when the process has ended before."""
        deadline = time.monotonic() + LONGEST_LIFE
        while time.monotonic() < deadline:
            if condition():
                return True
            if psutil.Process(self.pid).status() == psutil.STATUS_ZOMBIE:
                return False
            time.sleep(_LOOK)
        raise TimeoutError(f"a life of {LONGEST_LIFE:g} s is too long; see {self.log}")

    def newest(self) -> int:
        """Return the step of the newest checkpoint directory, -1 where there is none."""
        names = [] if not self.checkpoints.exists() else os.listdir(self.checkpoints)
        steps = [int(name[5:]) for name in names if re.fullmatch(r"step-\d{8}", name)]
        return max(steps, default=-1)

    def is_writing(self) -> bool:
        """Whether a checkpoint is being written."""
        return self.checkpoints.exists() and any(self.checkpoints.glob(".writing-*"))

    def end(self, number: int = signal.SIGKILL) -> tuple[int, int]:
        """Send a signal; return the exit code (negative: the signal) and processes left behind."""
        children = psutil.Process(self.pid).children(recursive=True)
        os.kill(self.pid, number)
        code = self.join()
        _, left = psutil.wait_procs(children, timeout=_PROCESSES_END_IN)
        return code, len(left)

    def join(self) -> int:
        """Wait until it has ended; return its exit code, negative for a signal."""
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status)

    def output(self) -> str:
        """Return what it has written."""
        return self.log.read_text("utf-8", errors="replace")


def _live(arguments: Sequence[str], log: Path, file_bytes: int | None) -> None:
    """Run the command in this process and end it."""
    os.setsid()
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(target, 1)
    os.dup2(target, 2)
    if file_bytes is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
    sys.stdout.reconfigure(line_buffering=True)  # pyright: ignore[reportAttributeAccessIssue]
    code = 1
    try:
        rllm.main(args=list(arguments))
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    finally:
        with suppress(OSError):
            log.with_suffix(".modules").write_text("\n".join(sys.modules), "utf-8")
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def import_what_was_imported(log: Path) -> None:
    """Import here what a life has imported, so that the next ones find it."""
    for name in log.with_suffix(".modules").read_text("utf-8").split("\n"):
        if name not in sys.modules and not name.startswith(("ray", "__")):
            with suppress(Exception):  # some of them are only found by their parents
                importlib.import_module(name)


def resumed_at(life: Life) -> int:
    """Return the step that a life's output says it went on from; 0 where it began anew."""
    found = re.search(r"resumed at step (\d+)", life.output())
    return int(found.group(1)) if found else 0


def last_save(run_dir: Path) -> int:
    """Return the step of the newest checkpoint that verifies, 0 where there is none."""
    newest, _ = latest_checkpoint(run_dir / "checkpoints")
    return 0 if newest is None else newest.step


def outcome(run_dir: Path) -> dict[str, Any]:
    """Return all that a finished run has left that must not depend on its interruptions."""
    rows = [
        {name: value for name, value in row.items() if not name.startswith("time/")}
        for row in read_metrics(run_dir / "metrics.jsonl")
    ]
    episodes = {
        path.name: [_timeless(json.loads(line)) for line in path.read_text("utf-8").splitlines()]
        for path in sorted((run_dir / "episodes").iterdir())
    }
    weights = (run_dir / "adapter" / "adapter_model.safetensors").read_bytes()
    return {"weights": weights, "rows": rows, "episodes": episodes}


def _timeless(record: Any) -> Any:
    """Return a record without its seconds."""
    if isinstance(record, dict):
        return {k: _timeless(v) for k, v in record.items() if not _is_time(k)}
    return [_timeless(item) for item in record] if isinstance(record, list) else record


def _is_time(name: str) -> bool:
    return name.startswith("time") or "seconds" in name or name.endswith(("_at", "began"))


def undisturbed(run_dir: Path) -> tuple[float, float]:
    """Run to the end without a fault; return the seconds to the first save and of a step.

    Raises:
        RuntimeError: The run failed.
    """
    life = Life(run_dir)
    life.wait_until(lambda: life.newest() >= 1)
    first = time.monotonic() - life.began
    life.wait_until(lambda: life.newest() >= NUM_STEPS)
    step = (time.monotonic() - life.began - first) / (NUM_STEPS - 1)
    if life.join() != 0:
        raise RuntimeError(f"the run without faults failed: {life.output()[-2000:]}")
    return first, step
