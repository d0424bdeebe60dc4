"""``python -m rllm_envs list``: the table of all environments, of Gymnasium and of PettingZoo."""

import argparse
import dataclasses
import json
import sys
from dataclasses import dataclass
from typing import Any, Literal

from rllm_envs.catalog import CATALOG
from rllm_envs.errors import UnknownEnvError
from rllm_envs.multi_agent.catalog import GAMES

Kind = Literal["gymnasium", "aec", "parallel"]
KINDS = ("gymnasium", "aec", "parallel")


@dataclass(frozen=True, slots=True)
class EnvRow:
    """One environment. Written by ``all_rows``, read by the commands and the documents."""

    id: str
    """Its id in Gymnasium's or PettingZoo's registry."""
    kind: Kind
    """"gymnasium": one agent; "aec" and "parallel": PettingZoo's, in turns and all at once."""
    category: str
    """The folder that it is in: "reasoning", "puzzles", "tool_use", ..."""
    summary: str
    """What the agent does, in a few words."""
    offline: bool
    """Whether it runs without a network."""
    extra: str
    """The extra of rllm-envs that it needs; empty where it needs none."""
    reward_threshold: float | None
    """Mean reward at which it counts as solved; None where none is defined."""


def all_rows() -> tuple[EnvRow, ...]:
    """Return all environments of this package, whether their extras are installed or not."""
    envs = [
        EnvRow(
            entry.id,
            "gymnasium",
            entry.category,
            entry.summary,
            entry.offline,
            entry.extra,
            entry.reward_threshold,
        )
        for entry in CATALOG
    ]
    games = [
        EnvRow(
            entry.id, entry.kind, entry.category, entry.summary, entry.offline, entry.extra, None
        )
        for entry in GAMES
    ]
    return (*envs, *games)


def add_command(commands: Any) -> None:
    """Add ``list`` to the parser."""
    parser = commands.add_parser("list", help="list all environments (the default)")
    parser.add_argument("--json", action="store_true", help="one JSON list, for programs")
    parser.add_argument("--category", help="only this category, such as reasoning")
    parser.add_argument("--kind", choices=KINDS, help="only this kind")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the rows that are asked for.

    Raises:
        UnknownEnvError: No environment is of the category and kind.
    """
    categories = list(dict.fromkeys(row.category for row in all_rows()))
    if options.category is not None and options.category not in categories:
        raise UnknownEnvError(
            f"there is no category {options.category!r:.80}; there are {', '.join(categories)}"
        )
    rows = [
        row
        for row in all_rows()
        if options.category in (None, row.category) and options.kind in (None, row.kind)
    ]
    if options.json:
        sys.stdout.write(json.dumps([dataclasses.asdict(row) for row in rows], indent=2) + "\n")
        return 0
    if not rows:
        raise UnknownEnvError(f"category {options.category!r} has no {options.kind} environment")
    sys.stdout.write(_table(rows))
    sys.stdout.write("\npython -m rllm_envs show ID | play ID | check MODULE:ENV | new NAME\n")
    return 0


def _table(rows: list[EnvRow]) -> str:
    head = ("id", "kind", "needs", "summary")
    lines = [(row.id, row.kind, needs(row) or "-", row.summary) for row in rows]
    widths = [max(len(line[column]) for line in (head, *lines)) for column in range(3)]

    def aligned(cells: tuple[str, ...]) -> str:
        padded = [f"{cell:<{width}}" for cell, width in zip(cells[:3], widths, strict=True)]
        return "  ".join([*padded, cells[3]]) + "\n"

    text = aligned(head)
    for category in dict.fromkeys(row.category for row in rows):
        text += f"\n[{category}]\n"
        pairs = zip(rows, lines, strict=True)
        text += "".join(aligned(line) for row, line in pairs if row.category == category)
    return text


def needs(row: EnvRow) -> str:
    """Return what a row needs beyond the package: an extra, a network; empty where nothing."""
    return " ".join(filter(None, [row.extra, "" if row.offline else "network"]))
