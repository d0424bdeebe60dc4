r"""What becomes of training when its processes are killed, hang, or have no room to save.

    OMP_NUM_THREADS=1 uv run python benchmarks/reliability/training_faults.py
    OMP_NUM_THREADS=1 uv run python benchmarks/reliability/training_faults.py --moments 100 \
        --write docs/reliability.md --results benchmarks/results/reliability/training.json

`--only driver`, `actors` or `nodes` makes some of the rows; with `--results` those of the others
that the file has stay. `--write` puts the table between the two marks of that document.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from training_driver import DriverFaults, FaultRow

BEGIN, END = "<!-- table of faults of training -->", "<!-- end of table of training -->"
PARTS = ("driver", "actors", "nodes")


def main() -> None:
    """Print or write the table; exit code 1 where a row does not hold."""
    parser = argparse.ArgumentParser(description="Training under faults.")
    parser.add_argument("--moments", type=int, default=100, help="kill -9 of `rllm train`")
    parser.add_argument("--times", type=int, default=17, help="losses of each kind of actor")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=PARTS, action="append")
    parser.add_argument("--write", type=Path, metavar="FILE", help="document to put the table in")
    parser.add_argument("--results", type=Path, metavar="FILE", help="JSON file of all figures")
    options = parser.parse_args()
    parts = options.only or list(PARTS)
    found = _saved(options.results)
    for part in parts:
        found[part] = {"machine": _machine(), "rows": []}
        with tempfile.TemporaryDirectory(prefix="rllm-training-faults-") as scratch:
            for row in _rows(part, options, Path(scratch)):
                print(("holds " if row.holds else "FAILS ") + _line(row), row.problems, flush=True)
                found[part]["rows"].append(dataclasses.asdict(row))
                if options.results:
                    options.results.parent.mkdir(parents=True, exist_ok=True)
                    options.results.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    if options.write:
        document = options.write.read_text("utf-8")
        start, _, rest = document.partition(BEGIN)
        _, _, end = rest.partition(END)
        text = f"{start}{BEGIN}\n\n{table(found)}\n\n{END}{end}"
        options.write.write_text(text, "utf-8")
    rows = [FaultRow(**row) for part in parts for row in found[part]["rows"]]
    sys.exit(0 if rows and all(row.holds for row in rows) else 1)


def _rows(part: str, options: argparse.Namespace, scratch: Path) -> Iterator[FaultRow]:
    if part == "driver":
        yield from DriverFaults(scratch, options.seed).rows(options.moments)
        return
    # Ray starts threads; the driver's lives are forked before.
    from training_actors import actor_rows, node_rows

    yield from actor_rows(options.times, options.seed) if part == "actors" else node_rows(scratch)


def table(found: dict[str, Any]) -> str:
    """Return the table in Markdown, of what `--results` holds."""
    lines = [
        "| fault | struck | went on from the last save | runs | ends equal "
        "| found after s, at most | bound s | processes left | seconds |",
        "|---|" + "---:|" * 8,
    ]
    for part in PARTS:
        lines += [_line(FaultRow(**row)) for row in found.get(part, {"rows": []})["rows"]]
    machines = []
    for part in PARTS:
        if part in found:
            m = found[part]["machine"]
            machines.append(
                f"{part}: {m['date']}, {m['system']}, Python {m['python']}, {m['cores']} cores "
                f"shared with other work (load {m['load']})"
            )
    return "; ".join(machines) + ".\n\n" + "\n".join(lines)


def _line(row: FaultRow) -> str:
    def seconds(value: float | None) -> str:
        return "" if value is None else f"{value:.1f}"

    name = row.name if row.holds else f"**{row.name}**"
    cells = [
        *(name, row.struck, row.from_last_save, row.runs, row.equal_runs),
        *(seconds(row.found_seconds), seconds(row.bound_seconds), row.processes_left),
        f"{row.seconds:.0f}",
    ]
    return "| " + " | ".join(map(str, cells)) + " |"


def _saved(path: Path | None) -> dict[str, Any]:
    return json.loads(path.read_text("utf-8")) if path is not None and path.exists() else {}


def _machine() -> dict[str, Any]:
    return {
        "date": time.strftime("%Y-%m-%d"),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[2], 1),
    }


if __name__ == "__main__":
    main()
