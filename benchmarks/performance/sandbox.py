"""What a run in the sandbox costs, beside a plain subprocess, in one run of this script.

    OMP_NUM_THREADS=1 uv run python benchmarks/performance/sandbox.py --write

For each way: processor time of one `print` (median), wall-clock time of one `print` and of a
NumPy inverse (median and 95th percentile, one at a time), and runs per second from 16 threads.
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from results import Table, installed, write_result
from rllm_envs.errors import SandboxUnavailableError
from rllm_envs.sandbox import Sandbox

PRINT = "print(6 * 7)"
INVERSE = "import numpy as np\nprint(np.linalg.inv(np.eye(20)).sum())"
NUM_THREADS = 16
DEFAULT = "`lockdown`, fork server"
Run = Callable[[str], tuple[str, float]]


def main() -> None:
    """Print a Markdown table, and write the result where it is asked for."""
    parser = argparse.ArgumentParser(description="Cost of a run in the sandbox.")
    parser.add_argument("--runs", type=int, default=100, help="runs of each kind (default 100)")
    parser.add_argument("--write", action="store_true", help="Write the result file.")
    options = parser.parse_args()
    figures = {"plain `subprocess.run`": measure(plain, options.runs)}
    for level in ("process", "lockdown", "bwrap"):
        for fork_server in (False, True):
            name = f"`{level}`{', fork server' if fork_server else ''}"
            try:
                sandbox = Sandbox(level, fork_server=fork_server, allow_unsafe=True)
            except SandboxUnavailableError as error:
                print(f"{name} is left out: {error}", file=sys.stderr)
                continue
            with sandbox:
                figures[name] = measure(in_sandbox(sandbox), options.runs)
            print(f"measured {name}", file=sys.stderr)
    shown = table(figures)
    print(shown.markdown())
    if options.write:
        settings = {"runs": options.runs, "threads": NUM_THREADS}
        print(write_result("sandbox", settings, figures, {"runs": shown}, installed("numpy")))


def plain(code: str) -> tuple[str, float]:
    """Run a program by a bare subprocess."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout, spent


def in_sandbox(sandbox: Sandbox) -> Run:
    """Return a function that runs a program in a sandbox."""

    def run(code: str) -> tuple[str, float]:
        result = sandbox.run(code, timeout_seconds=60)
        return result.stdout, result.cpu_seconds

    return run


def measure(run: Run, runs: int) -> dict[str, Any]:
    """Return seconds of each run of one way, and its runs per second."""
    run(PRINT)
    spent, printing = times(run, PRINT, runs)
    _, inverse = times(run, INVERSE, max(10, runs // 5))
    return {
        "cpu_seconds": spent,
        "print_seconds": printing,
        "inverse_seconds": inverse,
        "per_second": per_second(run, 4 * runs),
    }


def table(figures: dict[str, dict[str, Any]]) -> Table:
    """Return medians, and of what is timed one at a time the 95th percentile."""
    columns = (
        "way", "CPU ms", "`print`, ms: median / 95 %", "inverse, ms: median / 95 %", "runs/s"
    )  # fmt: skip
    rows = []
    for name, row in figures.items():
        # bubblewrap starts the process itself, so that its time is not seen.
        unseen = name == "`bwrap`"
        cpu = "not seen" if unseen else f"{1000 * statistics.median(row['cpu_seconds']):.1f}"
        timed = (median_and_95(row[key]) for key in ("print_seconds", "inverse_seconds"))
        title = f"{name} (the default)" if name == DEFAULT else name
        rows.append((title, cpu, *timed, f"{row['per_second']:.0f}"))
    return Table.of(columns, rows)


def times(run: Run, code: str, count: int) -> tuple[list[float], list[float]]:
    """Return processor and wall-clock seconds of each run."""
    spent, wall = [], []
    for _ in range(count):
        start = time.perf_counter()
        output, seconds = run(code)
        wall.append(time.perf_counter() - start)
        spent.append(seconds)
        assert output, "a run failed"
    return spent, wall


def median_and_95(seconds: list[float]) -> str:
    """Return median and 95th percentile in milliseconds."""
    ordered = sorted(1000 * value for value in seconds)
    return f"{statistics.median(ordered):.0f} / {ordered[math.ceil(0.95 * len(ordered)) - 1]:.0f}"


def per_second(run: Run, count: int) -> float:
    """Return runs per second from `NUM_THREADS` threads."""
    left = threading.BoundedSemaphore(count)

    def work() -> None:
        while left.acquire(blocking=False):
            run(PRINT)

    threads = [threading.Thread(target=work) for _ in range(NUM_THREADS)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return count / (time.perf_counter() - start)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
