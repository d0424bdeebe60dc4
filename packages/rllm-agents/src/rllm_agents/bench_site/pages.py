"""The site on disk: the page, and beside it scripts with what it shows."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rllm_agents.bench_site.boards import Board, board_facts, environment_facts, task_scores
from rllm_agents.bench_site.transcripts import entry_transcripts
from rllm_agents.errors import UserError
from rllm_agents.leaderboard.provenance import commit, versions

ASSETS = Path(__file__).parent / "assets"
"""The page as scripts/build_viewer.sh makes it."""
FILES = ("index.html", "site.js", "site.css", "LICENSES.txt")
SCORES = "_scores"
"""File of a suite's scores by task; no entry has this name."""
DATA = "data"
"""Directory of a site for what it shows; it is replaced as a whole."""


@dataclass(frozen=True)
class SiteWritten:
    """What came of writing a site."""

    page: Path
    """To be opened in a browser."""
    num_bytes: int
    """Of all files together."""
    problems: tuple[str, ...]
    """What is not shown, or otherwise than rows say, one sentence each."""


def write_site(
    out: Path,
    boards: Sequence[Board],
    curves: Sequence[dict[str, Any]],
    *,
    tasks: int,
    on_entry: Callable[[str], None] = lambda name: None,
) -> SiteWritten:
    """Write the page and its data; what an earlier one left in ``OUT/data`` is removed.

    Args:
        out: A directory; made where it is not there.
        boards: As `read_boards` gives them.
        curves: As `read_curves` gives them.
        tasks: Of each entry and seed, shown with transcripts; 0 shows none.
        on_entry: Called with the name of each entry before its transcripts are made.

    Raises:
        UserError: ``out`` cannot be written, or holds something that is no such site.
    """
    problems = _stale_rows(boards)
    try:
        data = _empty_data(out)
        for name in FILES:
            shutil.copyfile(ASSETS / name, out / name)
        for board in boards:
            _write(data, f"{board.suite.name}/{SCORES}", task_scores(board))
            problems += _write_transcripts(data, board, tasks, on_entry)
        _write(data, "index", _index(boards, curves, tasks))
    except OSError as error:
        raise UserError(f"--out {str(out)!r} cannot be written: {error}") from error
    files = [path for path in out.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    return SiteWritten(out / "index.html", size, tuple(problems))


def script_text(key: str, value: Any) -> str:
    """Return a script that hands a value over to the page.

    The value is JSON inside a JavaScript string, in ASCII: no text of it can end the string or be
    code, and ``__proto__`` is a key like any other.
    """
    text = json.dumps(json.dumps(value, separators=(",", ":"), allow_nan=False))
    return f"rllmSite({json.dumps(key)},{text});\n"


def _index(boards: Sequence[Board], curves: Sequence[dict[str, Any]], tasks: int) -> dict[str, Any]:
    return {
        "made": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": commit(),
        "version": versions().get("rllm-agents", ""),
        "suites": [board_facts(board) for board in boards],
        "environments": environment_facts(boards),
        "curves": list(curves),
        "has_transcripts": tasks > 0,
    }


def _write_transcripts(
    data: Path, board: Board, tasks: int, on_entry: Callable[[str], None]
) -> list[str]:
    problems: list[str] = []
    if tasks == 0:
        return problems
    for entry in board.suite.entries:
        place = f"{board.suite.name} {entry.name}"
        on_entry(place)
        found = entry_transcripts(board, entry, tasks=tasks)
        _write(data, f"{board.suite.name}/{entry.name}", found)
        if found["problem"]:
            problems.append(f"{place}: no transcripts: {found['problem']}")
        problems += [
            f"{place}: {played['policy']}, episode {task['id']}: {played['problem']}"
            for task in found["tasks"]
            for played in task["played"]
            if played["problem"]
        ]
    return problems


def _stale_rows(boards: Sequence[Board]) -> list[str]:
    return [
        f"{board.suite.name}: the row {name!r:.80} is of another version of the suite"
        for board in boards
        for name in board.left_out
    ]


def _empty_data(out: Path) -> Path:
    """Return the empty directory for data, made anew where an earlier site is."""
    if out.is_dir() and any(out.iterdir()) and not (out / "site.js").is_file():
        raise UserError(f"--out {str(out)!r} is not empty and holds no site; choose another one")
    data = out / DATA
    if data.is_dir():
        shutil.rmtree(data)
    data.mkdir(parents=True)
    return data


def _write(data: Path, key: str, value: Any) -> None:
    path = data / f"{key}.js"  # suites let no name through that leads elsewhere
    path.parent.mkdir(exist_ok=True)
    path.write_text(script_text(key, value), "ascii", newline="\n")
