"""Vectors of environments beside GEM's: turns per second, and seconds until a vector has started.

    uv run python benchmarks/performance/gem_vectors.py

GEM (gem-llm) is installed with uv into a temporary folder. Both sides play Mastermind and a
guessing game with the same constant action and start finished episodes again. The best of three
rounds counts.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

GAMES = {
    "Mastermind": ("rllm/Mastermind-v0", "game:Mastermind-v0-easy", r"\boxed{1 2 3 4}"),
    "guessing a number": ("rllm/GuessNumber-v0", "game:GuessTheNumber-v0-easy", r"\boxed{5}"),
}
SIZES = (8, 64)
START_SIZE = 1000
ROUNDS = 3

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
    """Print a row for each game, number of environments and side."""
    with tempfile.TemporaryDirectory(prefix="rllm-gem-") as folder:
        subprocess.run(["uv", "venv", "-q", "--python", "3.11", folder], check=True)
        theirs = Path(folder) / "bin" / "python"
        install = ["uv", "pip", "install", "-q", "--python", str(theirs), "gem-llm"]
        subprocess.run(install, cwd=folder, check=True)
        for game, (our_id, their_id, action) in GAMES.items():
            for size in (*SIZES, START_SIZE):
                turns = 4_000 // size
                sides = {
                    "ours": (sys.executable, our_id),
                    "GEM sync": (str(theirs), their_id),
                    "GEM async": (str(theirs), their_id),
                }
                for side, (python, env_id) in sides.items():
                    arguments = [python, "-W", "ignore", "-c", CHILD, side, env_id, action]
                    print(f"{game:<20}{size:>6}  {side:<10}{best([*arguments, size, turns])}")


def best(command: list[Any]) -> str:
    """Run a side a few times and return its best figures as text."""
    starts, rates = [], []
    for _ in range(ROUNDS):
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        if done.returncode:
            return f"  fails: {(done.stderr.strip().splitlines() or ['?'])[-1][:80]}"
        found = json.loads(done.stdout.splitlines()[-1])
        starts.append(found["start"])
        rates.append(found["turns"])
    return f"{min(starts):>9.3f} s{max(rates):>12,.0f} turns/s"


if __name__ == "__main__":
    main()
