"""Leaderboards as the site shows them: suites, their rows, and facts of each environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rllm_agents.errors import UserError
from rllm_agents.leaderboard.figures import task_means
from rllm_agents.leaderboard.records import EpisodeRecord, unpack_records
from rllm_agents.leaderboard.rows import actions_path, read_row
from rllm_agents.leaderboard.suites import Suite, SuiteEntry
from rllm_agents.leaderboard.table import suite_ratings, threshold
from rllm_envs.catalog import CATALOG
from rllm_envs.multi_agent import GAMES

_MAX_SHOWN = 5
_DIGITS = 4


@dataclass(frozen=True)
class PlayedRow:
    """A row, and its episodes where they lie beside it."""

    row: Mapping[str, Any]
    """As `read_row` gives it."""
    records: Mapping[str, Sequence[EpisodeRecord]] | None
    """By entry, in the order of the episodes; None where the recorded actions are elsewhere."""


@dataclass(frozen=True)
class Board:
    """The rows of a suite. Made by `read_boards`."""

    suite: Suite
    played: tuple[PlayedRow, ...]
    """At least one; the best normalised score first."""
    left_out: tuple[str, ...]
    """Names of rows of another version of the suite."""


def read_boards(results: Path, suites: Sequence[Suite]) -> list[Board]:
    """Read the rows of suites; a suite without a row is left out.

    Raises:
        UserError: There is no row at all, or files hold none: each of them is named.
    """
    boards, broken = [], []
    for suite in suites:
        rows: list[PlayedRow] = []
        others: list[str] = []
        for path in sorted((results / suite.name).glob("*.json")):
            try:
                played = _read_played(path, suite)
            except UserError as error:
                broken.append(str(error))
                continue
            if played is None:
                others.append(path.stem)
            elif any(played.row["name"] == one.row["name"] for one in rows):
                broken.append(f"{path}: another row is called {played.row['name']!r:.80} too")
            else:
                rows.append(played)
        if rows:
            rows.sort(key=lambda one: (-_rank(one.row), one.row["name"]))
            boards.append(Board(suite, tuple(rows), tuple(others)))
    if broken:
        shown = "; ".join(broken[:_MAX_SHOWN])
        rest = f"; and {len(broken) - _MAX_SHOWN} more" if len(broken) > _MAX_SHOWN else ""
        raise UserError(f"{len(broken)} files hold no row: {shown}{rest}; mend or remove them")
    if not boards:
        names = ", ".join(suite.name for suite in suites)
        raise UserError(
            f"there are no rows of {names} under {results}; make one: rllm bench run --suite quick "
            "--policy random"
        )
    return boards


def board_facts(board: Board) -> dict[str, Any]:
    """Return a leaderboard as the page reads it: entries, and rows with a list for each entry."""
    rated = suite_ratings([played.row for played in board.played])
    return {
        "name": board.suite.name,
        "version": board.suite.version,
        "summary": board.suite.summary,
        "entries": [_entry_facts(entry) for entry in board.suite.entries],
        "rows": [_row_facts(played.row, rated) for played in board.played],
    }


def task_scores(board: Board) -> dict[str, list[list[float]]]:
    """Return by policy and entry the mean reward of each task, where the episodes are there."""
    return {
        played.row["name"]: [
            [round(value, _DIGITS) for value in task_means(records, entry.attempts, "reward")]
            for entry in board.suite.entries
            for records in [played.records[entry.name]]
        ]
        for played in board.played
        if played.records is not None
    }


def environment_facts(boards: Sequence[Board]) -> list[dict[str, Any]]:
    """Return what the gallery says of each environment and game that suites have, by id."""
    known = {entry.id: (entry.category, entry.summary) for entry in CATALOG}
    games = {entry.id: ("multi_agent", entry.summary) for entry in GAMES}
    found: dict[tuple[str, bool], dict[str, Any]] = {}
    for number, board in enumerate(boards):
        for place, entry in enumerate(board.suite.entries):
            is_match = bool(entry.match)
            category, summary = (games if is_match else known).get(entry.id, ("other", ""))
            env = found.setdefault(
                (entry.id, is_match),
                {
                    "id": entry.id,
                    "is_match": is_match,
                    "category": category,
                    "summary": summary,
                    "threshold": threshold(entry),
                    "entries": [],
                },
            )
            env["entries"].append([number, place])
    return [found[key] for key in sorted(found)]


def _read_played(path: Path, suite: Suite) -> PlayedRow | None:
    """Read a row and its episodes; None where it played another version of the suite."""
    row = read_row(path)
    if row["suite_digest"] != suite.digest:
        return None
    names = [entry.name for entry in suite.entries]
    if [entry["name"] for entry in row["entries"]] != names:
        raise UserError(f"{path} has other entries than the suite {suite.name}")
    actions = actions_path(path)
    if not actions.is_file():
        return PlayedRow(row, None)
    records, digest = unpack_records(actions)
    if digest != row["actions_sha256"]:
        raise UserError(f"{actions} is not what {path} was made of (SHA-256)")
    counts = [entry["episodes"] for entry in row["entries"]]
    if set(records) != set(names) or [len(records[name]) for name in names] != counts:
        raise UserError(f"{actions} holds other episodes than {path} says")
    return PlayedRow(row, records)


def _rank(row: Mapping[str, Any]) -> float:
    scaled = row["total"]["normalised"]
    return row["total"]["score"][0] if scaled is None else scaled[0]


def _entry_facts(entry: SuiteEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "id": entry.id,
        "is_match": bool(entry.match),
        "threshold": threshold(entry),
        "num_tasks": entry.num_tasks,
        "attempts": entry.attempts,
    }


def _row_facts(row: Mapping[str, Any], rated: Mapping[str, Any]) -> dict[str, Any]:
    total, rating = row["total"], rated.get(row["name"])
    return {
        "name": row["name"],
        "seed": row["seed"],
        "date": row["date"],
        "commit": row["commit"],
        "seconds": row["seconds"],
        "policy": row["policy"],
        "hardware": row["hardware"],
        "versions": row["versions"],
        "rating": None if rating is None else [rating.value, rating.low, rating.high],
        **{key: total[key] for key in ("normalised", "score", "solved", "episodes", "tokens")},
        "entries": [[e["score"], e["solved"][0], e["normalised"]] for e in row["entries"]],
    }
