r"""What becomes of 1,000 episodes under every kind of fault, over HTTP on this machine.

    OMP_NUM_THREADS=1 uv run python benchmarks/reliability/faults.py
    OMP_NUM_THREADS=1 uv run python benchmarks/reliability/faults.py --write docs/reliability.md \
        --results benchmarks/results/reliability/faults.json

Each kind alone strikes 5 % of the episodes; then all together do, drawn independently; then runs
are cancelled. `--write` puts the table between the two marks of that document.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fault_plan import FURTHER_KINDS, KINDS, SHARE, Deadlines, Kind, draw_faults, wall_bound
from fault_runs import Row, RunSetting, is_grading, run_row

BEGIN, END = "<!-- table of faults -->", "<!-- end of table -->"
PROCESS_TOO = ("synchronous hang", "grader hangs")
"""Kinds that leave stuck threads, and that are run in processes as well, where they do not."""


def main() -> None:
    """Print or write the table; exit code 1 where a row does not hold."""
    parser = argparse.ArgumentParser(description="Episodes under faults of every kind.")
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--parallel", type=int, default=128)
    parser.add_argument("--write", type=Path, metavar="FILE", help="document to put the table in")
    parser.add_argument("--results", type=Path, metavar="FILE", help="JSON file of all figures")
    options = parser.parse_args()
    rows = []
    for row in _rows(options.episodes, options.parallel):
        rows.append(row)
        print(_line(row), flush=True)
    if options.write:
        document = options.write.read_text("utf-8")
        start, _, rest = document.partition(BEGIN)
        _, _, end = rest.partition(END)
        text = table(rows, options.parallel)
        options.write.write_text(f"{start}{BEGIN}\n\n{text}\n\n{END}{end}", "utf-8")
    if options.results:
        options.results.parent.mkdir(parents=True, exist_ok=True)
        options.results.write_text(json.dumps(_as_json(rows, options.parallel), indent=1) + "\n")
    sys.exit(0 if all(row.holds for row in rows) else 1)


def _rows(num_episodes: int, num_parallel: int) -> Iterator[Row]:
    """Run the rows, one after the other."""
    clean: dict[str, float] = {}
    deadlines = Deadlines()

    def run(name: str, kinds: Sequence[Kind], isolation: str = "thread", **changes: Any) -> Row:
        plan = draw_faults(kinds, num_episodes)
        bound = wall_bound(plan, deadlines, num_parallel, clean.get(isolation, float("inf")))
        reasons = frozenset(reason for kind in kinds for reason in kind.reasons)
        together = frozenset({"env_protocol"}) if len(kinds) > 1 else frozenset[str]()
        return run_row(
            name,
            plan,
            RunSetting(isolation, num_parallel, deadlines),
            bound_seconds=bound,
            allowed=reasons | together,
            **changes,
        )

    for isolation in ("thread", "process"):
        row = run("none", [], isolation)
        clean[isolation] = row.wall_seconds
        yield dataclasses.replace(row, bound_seconds=3.0 * row.wall_seconds)
    for kind in KINDS:
        yield run(kind.name, [kind], "process" if kind.needs_process else "thread")
        if kind.name in PROCESS_TOO:
            yield run(kind.name, [kind], "process")
    harmless = [kind for kind in KINDS if not kind.needs_process]
    yield run(f"{len(harmless)} kinds together", harmless)
    yield run(f"all {len(KINDS)} kinds together", KINDS, "process")
    tenth, half = num_episodes // 10, num_episodes // 2
    for kind in FURTHER_KINDS:
        yield run(kind.name, [kind])
    yield run("server restarts in the middle", [], restart_server_at=half)
    yield run("cancelled at 10 %, all kinds", harmless, stop=lambda ended: len(ended) >= tenth)
    yield run("cancelled at 50 %, all kinds", KINDS, "process", stop=lambda e: len(e) >= half)
    yield run("cancelled during grading", [], stop=is_grading, grade_seconds=0.5)


def table(rows: Sequence[Row], num_parallel: int) -> str:
    """Return the table in Markdown."""
    machine = _machine()
    lines = [
        f"{machine['date']}, {machine['system']}, Python {machine['python']}, {machine['cores']} "
        f"cores shared with other work (load {machine['load']}); {rows[0].submitted} episodes, "
        f"{num_parallel} in flight, each kind at {SHARE:.0%}: {sum(r.holds for r in rows)} of "
        f"{len(rows)} rows hold.",
        "",
        "| fault | env in | returned | lost | twice | complete | failed | cancelled | false reward "
        "| unlabelled | envs open | tasks | files | processes | stuck threads | retries "
        "| wall s | bound s |",
        "|---|---|" + "---:|" * 16,
    ]
    return "\n".join(lines + [_table_line(row) for row in rows])


def _table_line(row: Row) -> str:
    bound = f"{row.bound_seconds:.1f}"
    if row.cancel_seconds is not None:
        bound = f"stopped in {row.cancel_seconds:.2f}"
    cells = [
        *(row.name, row.isolation, row.returned, row.lost, row.duplicated, row.completed),
        *(row.failed, row.cancelled, row.false_rewards, row.unlabelled, row.envs_open),
        *(row.tasks_left, f"{row.descriptors_left:+d}" if row.descriptors_left else 0),
        *(row.processes_left, row.stuck_threads, row.retried, f"{row.wall_seconds:.1f}", bound),
    ]
    text = "| " + " | ".join(map(str, cells)) + " |"
    return text if row.holds else text.replace(row.name, f"**{row.name}**", 1)


def _line(row: Row) -> str:
    verdict = "holds" if row.holds else "FAILS"
    return f"{verdict} {_table_line(row)} {row.reasons} threads left {row.threads_left}"


def _machine() -> dict[str, Any]:
    return {
        "date": time.strftime("%Y-%m-%d"),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[2], 1),
    }


def _as_json(rows: Sequence[Row], num_parallel: int) -> dict[str, Any]:
    kinds = [dataclasses.asdict(kind) for kind in (*KINDS, *FURTHER_KINDS)]
    found = [dataclasses.asdict(row) | {"holds": row.holds} for row in rows]
    return {"machine": _machine(), "parallel": num_parallel, "kinds": kinds, "rows": found}


if __name__ == "__main__":
    main()
