"""What a run in the sandbox costs, beside a plain subprocess, in one run of this script.

    OMP_NUM_THREADS=1 uv run python benchmarks/performance/sandbox.py

For each way: processor time of one `print` (median), wall-clock time of one `print` and of a
NumPy inverse (median and 95th percentile, one at a time), and runs per second from 16 threads.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable

from rllm_envs.errors import SandboxUnavailableError
from rllm_envs.sandbox import Sandbox

PRINT = "print(6 * 7)"
INVERSE = "import numpy as np\nprint(np.linalg.inv(np.eye(20)).sum())"
Run = Callable[[str], tuple[str, float]]


def main() -> None:
    """Print one row for each way to run a program."""
    parser = argparse.ArgumentParser(description="Cost of a run in the sandbox.")
    parser.add_argument("--runs", type=int, default=100, help="runs of each kind (default 100)")
    runs = parser.parse_args().runs
    print(f"{'way':<28}{'CPU ms':>8}{'print ms':>16}{'inverse ms':>16}{'runs/s':>8}")
    report("plain subprocess", plain, runs)
    for level in ("process", "lockdown", "bwrap"):
        for fork_server in (False, True):
            name = f"{level}{', fork server' if fork_server else ''}"
            try:
                sandbox = Sandbox(level, fork_server=fork_server, allow_unsafe=True)
            except SandboxUnavailableError as error:
                print(f"{name:<28} {error}")
                continue
            with sandbox:
                report(name, in_sandbox(sandbox), runs)


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


def report(name: str, run: Run, runs: int) -> None:
    """Measure one way and print its row."""
    run(PRINT)
    spent, printing = times(run, PRINT, runs)
    _, inverse = times(run, INVERSE, max(10, runs // 5))
    print(
        f"{name:<28}{1000 * statistics.median(spent):>8.1f}{shown(printing):>16}"
        f"{shown(inverse):>16}{per_second(run, 4 * runs):>8.0f}",
        flush=True,
    )


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


def shown(seconds: list[float]) -> str:
    """Return median and 95th percentile in milliseconds."""
    ordered = sorted(1000 * value for value in seconds)
    return f"{statistics.median(ordered):.0f} / {ordered[int(0.95 * (len(ordered) - 1))]:.0f}"


def per_second(run: Run, count: int) -> float:
    """Return runs per second from 16 threads."""
    left = threading.BoundedSemaphore(count)

    def work() -> None:
        while left.acquire(blocking=False):
            run(PRINT)

    threads = [threading.Thread(target=work) for _ in range(16)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return count / (time.perf_counter() - start)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
