"""Run the hostile programs over each level that this machine reaches, and write the table.

    OMP_NUM_THREADS=1 uv run python benchmarks/security/table.py
    OMP_NUM_THREADS=1 uv run python benchmarks/security/table.py --write docs/security.md

`--write` puts the table between the two marks of that document.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from pathlib import Path

from hostile_programs import ROWS, attacked_machine

from rllm_envs.errors import SandboxUnavailableError
from rllm_envs.sandbox import LEVELS, Sandbox

BEGIN, END = "<!-- table of hostile programs -->", "<!-- end of table -->"


def main() -> None:
    """Print or write the table; exit code 1 where a row does not hold that must."""
    parser = argparse.ArgumentParser(description="Hostile programs over each sandbox level.")
    parser.add_argument("--write", type=Path, metavar="FILE", help="document to put the table in")
    options = parser.parse_args()
    verdicts = {level: outcomes(level) for level in LEVELS}
    reached = {level: found for level, found in verdicts.items() if found}
    text = table(reached)
    if options.write:
        document = options.write.read_text("utf-8")
        start, _, rest = document.partition(BEGIN)
        _, _, end = rest.partition(END)
        options.write.write_text(f"{start}{BEGIN}\n\n{text}\n\n{END}{end}", "utf-8")
    else:
        print(text)
    sys.exit(0 if all(holds(level, found) for level, found in reached.items()) else 1)


def outcomes(level: str) -> dict[str, bool]:
    """Return whether each program was stopped; nothing where the level is not reached."""
    try:
        sandbox = Sandbox(level, modules=[], allow_unsafe=True)
    except SandboxUnavailableError as error:
        print(error, file=sys.stderr)
        return {}
    with sandbox, attacked_machine() as machine:
        return {row.name: row.is_stopped(sandbox, machine) for row in ROWS}


def holds(level: str, found: dict[str, bool]) -> bool:
    """Return whether every row holds that must at this level."""
    must = [row for row in ROWS if row.must_hold_from == "process" or level != "process"]
    return all(found[row.name] for row in must)


def table(reached: dict[str, dict[str, bool]]) -> str:
    """Return the table in Markdown."""
    user = "root" if os.geteuid() == 0 else "an unprivileged user"
    counts = ", ".join(f"`{level}` {sum(f.values())}" for level, f in reached.items())
    lines = [
        f"Linux {platform.release().partition('-')[0]}, Python {platform.python_version()}, as "
        f"{user}: stopped of {len(ROWS)} programs: {counts}.",
        "",
        f"| program | {' | '.join(reached)} |",
        f"|---|{'---|' * len(reached)}",
    ]
    for row in ROWS:
        marks = ["stopped" if found[row.name] else "**not stopped**" for found in reached.values()]
        lines.append(f"| {row.name} | {' | '.join(marks)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
