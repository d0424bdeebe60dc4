"""PPO, GRPO and ReMax on four tasks with several seeds, beside controls that must not learn.

    uv run python benchmarks/learning_curves/matrix.py run --algorithm ppo --task retry --seed 0
    uv run python benchmarks/learning_curves/matrix.py all        # every row that is not there yet
    uv run python benchmarks/learning_curves/matrix.py table      # docs/learning.md and its plots

A row is one training run, written as `benchmarks/results/learning_curves/rows/NAME.json` when it is
complete; `all` may be stopped and started at will. Controls: `--control sft` imitates the teacher
of the base model for as many conversations as the algorithms play, `--control wrong_sign` makes
what was rewarded less likely.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from pathlib import Path

from learning_page import write_page
from plan import ALGORITHMS, CONTROLS, TASKS, Row, all_rows


def main() -> int:
    """Run a row, all rows, or write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="Make one row.")
    run.add_argument("--algorithm", choices=ALGORITHMS)
    run.add_argument("--task", choices=TASKS, required=True)
    run.add_argument("--seed", type=int, default=0)
    run.add_argument("--control", choices=CONTROLS, default="")
    commands.add_parser("all", help="Make every row that is not there yet.")
    commands.add_parser("table", help="Write docs/learning.md and the plots from the rows.")
    arguments = parser.parse_args()
    if arguments.command == "table":
        write_page()
        return 0
    if arguments.command == "all":
        return run_all()
    if (arguments.algorithm is None) != (arguments.control == "sft"):
        parser.error("name an --algorithm, or --control sft, which has none")
    algorithm = arguments.algorithm or "sft"
    make_row(Row(arguments.task, algorithm, arguments.control, arguments.seed))
    return 0


def make_row(row: Row) -> None:
    """Make one row and write its file."""
    from rows import run_row  # torch and the rest take seconds, and the table needs none of it

    run_row(row)


def run_all() -> int:
    """Make the rows that are missing, one process each; return 1 where one failed."""
    # Each process is a copy of one that has imported everything, which takes seconds, and which
    # finds the modules of this directory by the environment alone.
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["bases", "rows"])
    failed = []
    rows = all_rows()
    for number, row in enumerate(rows, start=1):
        if row.path.exists():
            continue
        process = context.Process(target=make_row, args=(row,))
        process.start()
        process.join()
        done = "done" if row.path.exists() else f"failed ({process.exitcode})"
        print(f"{time.strftime('%H:%M:%S')} {number}/{len(rows)} {row.name}: {done}", flush=True)
        if not row.path.exists():
            failed.append(row.name)
    print(f"failed: {', '.join(failed) or 'none'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
