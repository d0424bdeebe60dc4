"""Rows of a leaderboard: one small JSON file for a policy on a suite, its actions beside it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rllm_agents.errors import UserError
from rllm_agents.leaderboard.suites import Suite

FORMAT = 1
"""Of the files; raised when older readers would misread them."""
REFERENCES = ("random", "oracle")
"""The rows between which scores are normalised."""
MAX_SEED = 1_000_000

_MAX_BYTES = 4_000_000
_REQUIRED: dict[str, type | tuple[type, ...]] = {
    "format": int,
    "suite": str,
    "suite_version": int,
    "suite_digest": str,
    "name": str,
    "policy": dict,
    "seed": int,
    "total": dict,
    "seconds": (int, float),
    "versions": dict,
    "environment_digest": str,
    "hardware": dict,
    "commit": str,
    "date": str,
    "actions_sha256": str,
    "entries": list,
}


def row_path(results: Path, suite: str, name: str) -> Path:
    """Return where the row of a policy is."""
    return results / suite / f"{name}.json"


def actions_path(row: Path) -> Path:
    """Return where the recorded actions of a row are: beside it."""
    return row.with_name(f"{row.stem}.actions.xz")


def write_row(path: Path, row: Mapping[str, Any]) -> None:
    """Write a row, one line for each field and each entry."""
    fields = [f" {json.dumps(k)}: {json.dumps(v)}" for k, v in row.items() if k != "entries"]
    entries = ",\n".join(f"  {json.dumps(entry)}" for entry in row["entries"])
    text = "{\n" + ",\n".join([*fields, f' "entries": [\n{entries}\n ]']) + "\n}\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8", newline="\n")


def read_row(path: Path) -> dict[str, Any]:
    """Read a row that anybody may have written.

    Raises:
        UserError: There is none, or it lacks a field, or one has a wrong type.
    """
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise UserError(f"{path} has over {_MAX_BYTES} bytes, which no row has")
        row = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"the row {path} cannot be read: {error}") from error
    if not isinstance(row, dict):
        raise UserError(f"{path} holds no row")
    for name, kind in _REQUIRED.items():
        if not isinstance(row.get(name), kind) or isinstance(row[name], bool):
            raise UserError(f"{path}: the field {name!r} is missing or of a wrong type")
    if row["format"] != FORMAT:
        raise UserError(f"{path} is of format {row['format']}; this version reads {FORMAT}")
    for entry in row["entries"]:
        _check_entry(entry, path)
    _check_figures(row["total"], f"{path}: total")
    if not 0 <= row["seed"] <= MAX_SEED:
        raise UserError(f"{path}: seed must be in [0, {MAX_SEED}], got {row['seed']}")
    return row


def read_rows(results: Path, suite: Suite) -> list[dict[str, Any]]:
    """Read all rows of a suite in its present version, the best normalised score first.

    Raises:
        UserError: A file holds no row of the suite.
    """
    rows = [read_row(path) for path in sorted((results / suite.name).glob("*.json"))]
    mine = [row for row in rows if row["suite_digest"] == suite.digest]
    names = [entry.name for entry in suite.entries]
    for row in mine:
        if [entry["name"] for entry in row["entries"]] != names:
            raise UserError(f"the row {row['name']!r:.80} has other entries than {suite.name}")
    return sorted(mine, key=lambda row: (-_rank(row), row["name"]))


def reference_scores(results: Path, suite: Suite) -> dict[str, dict[str, float]]:
    """Return the scores of random play and of the oracle by entry, where their rows are there."""
    found: dict[str, dict[str, float]] = {}
    for name in REFERENCES:
        path = row_path(results, suite.name, name)
        if path.is_file():
            row = read_row(path)
            if row["suite_digest"] == suite.digest:
                found[name] = {entry["name"]: entry["score"][0] for entry in row["entries"]}
    return found


def _rank(row: Mapping[str, Any]) -> float:
    scaled = row["total"]["normalised"]
    return row["total"]["score"][0] if scaled is None else scaled[0]


def _check_entry(entry: Any, path: Path) -> None:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise UserError(f"{path}: an entry has no name")
    place = f"{path}: {entry['name']:.80}"
    _check_figures(entry, place)
    if entry.get("references") is not None and not _are_numbers(entry["references"], 2):
        raise UserError(f"{place}: references must be two numbers, or null")
    results = entry.get("results", {})
    if not isinstance(results, dict) or not all(_are_numbers(r, 3) for r in results.values()):
        raise UserError(f"{place}: results must be wins, draws and losses by opponent")


def _check_figures(figures: Mapping[str, Any], place: str) -> None:
    for name in ("score", "solved", "normalised"):
        value = figures.get(name)
        if not _are_numbers(value, 3) and not (value is None and name == "normalised"):
            raise UserError(f"{place}: {name} must be [value, low, high], got {value!r:.80}")
    for name in ("episodes", "tokens", "turns"):
        if type(figures.get(name)) is not int:
            raise UserError(f"{place}: {name} must be a whole number")


def _are_numbers(value: Any, count: int) -> bool:
    return (
        isinstance(value, list)
        and len(value) == count
        and all(type(one) in (int, float) and math.isfinite(one) for one in value)
    )
