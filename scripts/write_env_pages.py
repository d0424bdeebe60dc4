"""Write docs/envs/: a table of all environments, and a page for each category.

A page holds the docstrings of its environments, their arguments and an episode that the oracle
plays at seed 0.

uv run python scripts/write_env_pages.py            # write the pages
uv run python scripts/write_env_pages.py --check    # exit 1 where one is out of date
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rllm_envs.catalog import CATALOG
from rllm_envs.cli.console import wrapped
from rllm_envs.cli.listing import EnvRow, all_rows, needs
from rllm_envs.cli.show import documentation, signature
from rllm_envs.cli.transcripts import example

FOLDER = Path(__file__).parent.parent / "docs" / "envs"
WIDTH = 100
"""Characters of a line of an example."""
MAX_LINES = 60
"""Lines of an example; longer ones are cut."""

WRITTEN = "This page is written by `scripts/write_env_pages.py` from the environments themselves."
KINDS = {
    "gymnasium": '`gymnasium.make("{id}")`',
    "aec": 'Several agents in turns: `pettingzoo.make("aec", "{id}")`',
    "parallel": 'Several agents at once: `pettingzoo.make("parallel", "{id}")`',
}


def pages() -> dict[str, str]:
    """Return the text of each page by its file name."""
    rows = all_rows()
    categories = dict.fromkeys(row.category for row in rows)
    texts = {f"{name}.md": _page(name, rows) for name in categories}
    return {"index.md": _index(rows, list(categories)), **texts}


def _index(rows: Sequence[EnvRow], categories: Sequence[str]) -> str:
    lines = [
        *("# All environments", "", WRITTEN, ""),
        "`gymnasium` is one agent; `aec` and `parallel` are PettingZoo's kinds of several agents,",
        "in turns and all at once. `python -m rllm_envs list --json` is this table for programs.",
        "The threshold is the mean reward at which an environment counts as solved; its oracle",
        "reaches it. What stands under needs is an extra: `pip install 'rllm-envs[multi]'`.",
    ]
    for category in categories:
        lines += ["", f"## {_title(category)}", "", f"[Rules and examples]({category}.md)", ""]
        lines += ["| id | kind | needs | threshold | the agents |", "|---|---|---|---|---|"]
        for row in rows:
            if row.category == category:
                threshold = "" if row.reward_threshold is None else f"{row.reward_threshold:g}"
                cells = (f"`{row.id}`", row.kind, needs(row), threshold, row.summary)
                lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _page(category: str, rows: Sequence[EnvRow]) -> str:
    lines = [f"# {_title(category)}", "", WRITTEN, "", "All ids: [index.md](index.md)."]
    first_ids: dict[str, str] = {}
    for row in rows:
        if row.category != category:
            continue
        lines += ["", f"## {_heading(row)}", "", KINDS[row.kind].format(id=row.id), ""]
        lines += [_description(row, first_ids), ""]
        lines += [f"**Signature:** `{', '.join(signature(row.id, row.kind))}`", ""]
        lines += _example(row)
    return "\n".join(line.rstrip() for line in "\n".join(lines).splitlines()) + "\n"


def _description(row: EnvRow, first_ids: dict[str, str]) -> str:
    entry = next((entry for entry in CATALOG if entry.id == row.id), None)
    if entry is not None and row.kind == "gymnasium":
        first = first_ids.setdefault(entry.entry_point, row.id)
        if first != row.id:
            chosen = ", ".join(f"{name}={value!r}" for name, value in entry.kwargs.items())
            return f"`{first}` with `{chosen}`: {row.summary}."
    # Headings of a docstring lie below that of its environment.
    return re.sub(r"^## ", "### ", documentation(row.id, row.kind), flags=re.MULTILINE)


def _example(row: EnvRow) -> Iterator[str]:
    if row.extra and row.kind == "gymnasium":
        yield f"Its tasks come from the library of the extra `{row.extra}`, so no example is here."
        return
    player = "the oracle" if row.kind == "gymnasium" else "the experts of the game"
    yield f"**Example**, played by {player} at seed 0:"
    yield ""
    lines = wrapped(example(row.id, row.kind, {}), WIDTH).splitlines()
    # Indented, because an example may hold fences.
    yield from (f"    {line}" for line in lines[:MAX_LINES])
    if len(lines) > MAX_LINES:
        yield f"    ... ({len(lines) - MAX_LINES} more lines)"


def _heading(row: EnvRow) -> str:
    return row.id if row.kind == "gymnasium" else f"{row.id} ({row.kind})"


def _title(category: str) -> str:
    return category.replace("_", " ").capitalize()


def stale(folder: Path, wanted: Mapping[str, str]) -> list[str]:
    """Return the names of pages in a folder that differ, are missing or are too many."""
    present = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}
    return sorted(name for name in {*wanted, *present} if wanted.get(name) != present.get(name))


def write(folder: Path, wanted: Mapping[str, str]) -> None:
    """Write the pages into a folder and remove those that are too many."""
    folder.mkdir(exist_ok=True)
    for name in stale(folder, wanted):
        if name in wanted:
            (folder / name).write_text(wanted[name], encoding="utf-8")
        else:
            (folder / name).unlink()


def main() -> int:
    """Write or check the pages; return the exit code."""
    if "--check" not in sys.argv[1:]:
        write(FOLDER, pages())
        return 0
    names = stale(FOLDER, pages())
    if names:
        print(f"docs/envs: {', '.join(names)} out of date: run `make docs`", file=sys.stderr)
    return 1 if names else 0


if __name__ == "__main__":
    sys.exit(main())
