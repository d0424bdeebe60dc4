"""Vectors of environments beside GEM's: turns per second, and seconds until a vector has started.

    OMP_NUM_THREADS=1 uv run python benchmarks/performance/gem_vectors.py --write

GEM (gem-llm) is installed with uv into an environment of its own. Both sides play Mastermind and a
guessing game with the same constant action and start finished episodes again. Laps of all sides
take turns; the tables have medians and ranges over laps.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from peers.installation import python_with, version_in

from results import Table, installed, with_range, write_result

GAMES = {
    "Mastermind": ("rllm/Mastermind-v0", "game:Mastermind-v0-easy", r"\boxed{1 2 3 4}"),
    "guessing a number": ("rllm/GuessNumber-v0", "game:GuessTheNumber-v0-easy", r"\boxed{5}"),
}
SIZES = (8, 64, 1000)
SIDES = ("ours", "GEM sync", "GEM async")

CHILD = """
import contextlib, io, json, sys, time
side, env_id, action, size, turns = *sys.argv[1:4], int(sys.argv[4]), int(sys.argv[5])
started = time.perf_counter()
with contextlib.redirect_stdout(io.StringIO()):
    if side == "ours":
        import gymnasium, rllm_envs
        before = time.perf_counter()
        envs = gymnasium.make_vec(env_id, num_envs=size, autoreset_mode="SameStep")
    else:
        import gem
        before = time.perf_counter()
        envs = gem.make_vec([env_id] * size, async_mode=side == "GEM async")
    envs.reset(seed=0)
    ready = time.perf_counter()
    actions = [action] * size
    for _ in range(turns):
        envs.step(actions)
    ended = time.perf_counter()
print(json.dumps({"start": ready - before, "turns": size * turns / (ended - ready)}))
"""


def main() -> None:
    """Print Markdown tables, and write the result where it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--laps", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="Write the result file.")
    options = parser.parse_args()
    theirs = python_with("gem", ["gem-llm"])
    figures = [
        measure(game, size, options.laps, theirs) for game in GAMES for size in options.sizes
    ]
    shown = {"turns": table(figures, "turns", ",.0f"), "start": table(figures, "start", ".2f")}
    print(*(table.markdown() for table in shown.values()), sep="\n\n")
    if options.write:
        settings = {"laps": options.laps}
        versions = {"gem-llm": version_in(theirs, "gem-llm"), **installed("gymnasium")}
        print(write_result("gem_vectors", settings, figures, shown, versions))


def measure(game: str, size: int, laps: int, theirs: Path) -> dict[str, Any]:
    """Return turns per second and seconds until the start, by side and lap."""
    our_id, their_id, action = GAMES[game]
    turns = max(4_000 // size, 1)
    found: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}
    for _ in range(laps):
        for side in SIDES:
            python, env_id = (sys.executable, our_id) if side == "ours" else (theirs, their_id)
            arguments = [side, env_id, action, size, turns]
            found[side].append(played([python, "-W", "ignore", "-c", CHILD, *arguments]))
    return {"game": game, "environments": size, "sides": found}


def played(command: list[Any]) -> dict[str, float]:
    """Run one side once; return its figures.

    Raises:
        SystemExit: It fails.
    """
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command[4]} fails: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def table(figures: list[dict[str, Any]], key: str, form: str) -> Table:
    """Return a column for each side of one figure of a lap."""
    rows = []
    for row in figures:
        of_sides = ([lap[key] for lap in row["sides"][side]] for side in SIDES)
        cells = (with_range(values, form) for values in of_sides)
        rows.append((row["game"], f"{row['environments']:,}", *cells))
    unit = {"turns": "turns/s", "start": "s until started"}[key]
    return Table.of(("game", "environments", *(f"{side}, {unit}" for side in SIDES)), rows)


if __name__ == "__main__":
    main()
