"""Rollouts of four turns over an OpenAI-compatible server, beside those of verifiers.

    uv run python benchmarks/performance/verifiers_rollouts.py --write

The server, the turns and the bare loop are those of `openai_client.py`: 512 rollouts in flight, an
answer after 20 ms, in a process of its own. verifiers is installed with uv into an environment of
its own and plays a `MultiTurnEnv` by `Environment.generate`, with ids and logprobs recorded on both
sides. Laps take turns; the table has medians and ranges over laps, those of ratios within a lap.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from openai_client import ANSWER, LATENCY_SECONDS, NUM_TURNS, PARALLEL, QUESTION, Ways
from peers.installation import python_with, version_in
from peers.lap_process import LapProcess
from transformers import PreTrainedTokenizerFast

from results import Table, installed, with_range, write_result
from rllm_agents.models import TINY

SCRIPT = Path(__file__).with_name("peers") / "verifiers_rollouts.py"
REQUIREMENT = "verifiers<0.2"
"""The last series whose environments are played in process; later ones start a program each."""


def server(ids: list[int]) -> subprocess.Popen[str]:
    """Start the server; it prints its port."""
    script = Path(__file__).with_name("loopback_server.py")
    return subprocess.Popen(
        [sys.executable, str(script), ANSWER, json.dumps(ids), str(LATENCY_SECONDS)],
        stdout=subprocess.PIPE,
        text=True,
    )


def timed(work: Callable[[], Any]) -> dict[str, float]:
    """Return the seconds and the CPU seconds of what an event loop does."""
    wall, cpu = time.perf_counter(), time.process_time()
    asyncio.run(work())
    return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


Laps = dict[str, list[dict[str, float]]]


def compare(python: Path, rollouts: int, laps: int, log: Path) -> Laps:
    """Return rollouts per second and CPU milliseconds of a rollout, by way and lap.

    Args:
        python: The interpreter that has verifiers.
        rollouts: Of a lap.
        laps: Of each way, besides the first, which warms up.
        log: Where what verifiers prints goes.
    """
    tokenizer = PreTrainedTokenizerFast.from_pretrained(TINY)
    ids = [*tokenizer(ANSWER)["input_ids"], tokenizer.eos_token_id]
    serving = server(ids)
    found: Laps = {}
    try:
        assert serving.stdout is not None
        base_url = f"http://127.0.0.1:{int(serving.stdout.readline())}/v1"
        requests = rollouts * NUM_TURNS
        arguments = [base_url, str(rollouts), str(PARALLEL), str(NUM_TURNS), QUESTION]
        ours, theirs = Ways(base_url, tokenizer), LapProcess([python, SCRIPT, *arguments], log)
        ways: dict[str, Callable[[], dict[str, float]]] = {
            "bare aiohttp": lambda: timed(lambda: ours.bare(requests, NUM_TURNS)),
            "ours": lambda: timed(lambda: ours.rollouts(requests)),
            "verifiers": theirs.lap,
        }
        try:
            for lap in range(laps + 1):
                for name, work in ways.items():
                    spent = work()
                    if lap:  # the first one warms up
                        rate, cpu_ms = rollouts / spent["wall"], spent["cpu"] / rollouts * 1e3
                        figures = {"per_second": rate, "cpu_ms": cpu_ms}
                        found.setdefault(name, []).append(figures)
        finally:
            theirs.close()
    finally:
        serving.kill()
        serving.wait()
    return found


def table(figures: Laps) -> Table:
    """Return medians and ranges over laps, and of how many times ours within a lap."""
    columns = ("way", "rollouts per second", "CPU ms a rollout", "CPU time, times ours")
    rows = []
    for name, laps in figures.items():
        spent = [lap["cpu_ms"] for lap in laps]
        ratios = [a / lap["cpu_ms"] for a, lap in zip(spent, figures["ours"], strict=True)]
        rate = with_range([lap["per_second"] for lap in laps], ",.0f")
        times = "1.00" if name == "ours" else with_range(ratios, ".2f")
        rows.append((name, rate, with_range(spent, ".2f"), times))
    return Table.of(columns, rows)


def main() -> None:
    """Print a Markdown table, and write the result where it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rollouts", type=int, default=1024)
    parser.add_argument("--laps", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="Write the result file.")
    options = parser.parse_args()
    python = python_with("verifiers", [REQUIREMENT])
    with tempfile.TemporaryDirectory(prefix="rllm-peers-") as folder:
        figures = compare(python, options.rollouts, options.laps, Path(folder) / "verifiers.log")
    shown = table(figures)
    print(shown.markdown())
    if options.write:
        settings = {
            "parallel": PARALLEL, "latency_seconds": LATENCY_SECONDS, "turns": NUM_TURNS,
            "rollouts": options.rollouts, "laps": options.laps,
        }  # fmt: skip
        versions = {"verifiers": version_in(python, "verifiers"), **installed("aiohttp")}
        print(write_result("verifiers_rollouts", settings, figures, {"rollouts": shown}, versions))


if __name__ == "__main__":
    main()
