"""Leaderboards as Markdown: one table of policies, one of entries, and pages that hold them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium

from rllm_agents.errors import UserError
from rllm_agents.leaderboard.figures import Interval
from rllm_agents.leaderboard.ratings import ratings
from rllm_agents.leaderboard.suites import Suite, SuiteEntry

_EXPERT = "oracle"
"""The row of those who sit opposite as experts."""


def leaderboard(suite: Suite, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the leaderboard of a suite as Markdown.

    Args:
        suite: What was played.
        rows: The best first, as `read_rows` gives them.
    """
    rated = suite_ratings(rows)
    heads = ["policy", *(["rating"] if rated else []), "score", "raw", "solved", "tokens",
             "seconds", "seed", "made"]  # fmt: skip
    lines = []
    for row in rows:
        total, name = row["total"], row["name"]
        rating = [_rating(rated.get(name))] if rated else []
        lines.append(
            [
                _code(name),
                *rating,
                _interval(total["normalised"]),
                f"{total['score'][0]:.3f}",
                f"{total['solved'][0]:.3f}",
                f"{total['tokens']:,}",
                f"{row['seconds']:,.0f}",
                str(row["seed"]),
                _made(row),
            ]
        )
    title = f"{suite.summary} {len(suite.entries)} entries, version {suite.version}."
    return f"{title}\n\n{_table(heads, lines)}\n\n{entries_table(suite, rows)}\n"


def entries_table(suite: Suite, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return raw scores by entry and policy, and the environments' reward thresholds."""
    scores = [{entry["name"]: entry["score"] for entry in row["entries"]} for row in rows]
    lines = [
        [entry.name, threshold(entry), *(f"{one[entry.name][0]:.3f}" for one in scores)]
        for entry in suite.entries
    ]
    return _table(["raw score", "threshold", *(_code(row["name"]) for row in rows)], lines)


def threshold(entry: SuiteEntry) -> str:
    """Return the mean reward at which an environment counts as solved; "" where none is said."""
    value = gymnasium.spec(entry.env).reward_threshold if entry.env in gymnasium.registry else None
    return "" if value is None else f"{value:g}"


def suite_ratings(rows: Sequence[Mapping[str, Any]]) -> dict[str, Interval]:
    """Rate all policies of rows by their matches, all games together; empty without matches."""
    results: dict[tuple[str, str], tuple[int, int, int]] = {}
    for row in rows:
        for entry in row["entries"]:
            for opponent, counts in entry.get("results", {}).items():
                pair = row["name"], _EXPERT if opponent == "expert" else opponent
                before = results.get(pair, (0, 0, 0))
                won, drawn, lost = (a + b for a, b in zip(before, counts, strict=True))
                results[pair] = won, drawn, lost
    return ratings(results) if results else {}


def write_between_marks(page: Path, suite_name: str, text: str) -> None:
    """Put a leaderboard into a page, between ``<!-- leaderboard: NAME -->`` and its end mark.

    Raises:
        UserError: The page is not there, or has no such marks.
    """
    try:
        before = page.read_text("utf-8")
    except OSError as error:
        raise UserError(f"page={str(page)!r} cannot be read: {error.strerror}") from error
    after = replaced_between_marks(before, suite_name, text)
    if after is None:
        start, end = marks(suite_name)
        raise UserError(f"page={str(page)!r} has no lines {start} and {end}")
    page.write_text(after, "utf-8", newline="\n")


def replaced_between_marks(page: str, suite_name: str, text: str) -> str | None:
    """Return a page with other text between a suite's marks; None where it has none."""
    start, end = marks(suite_name)
    if page.count(start) != 1 or page.count(end) != 1:
        return None
    head, _, rest = page.partition(start)
    return f"{head}{start}\n{text.strip()}\n{end}{rest.partition(end)[2]}"


def marks(suite_name: str) -> tuple[str, str]:
    """Return the lines before and after a leaderboard in a page."""
    return f"<!-- leaderboard: {suite_name} -->", f"<!-- end of leaderboard: {suite_name} -->"


def _interval(value: Sequence[float] | None) -> str:
    return "" if value is None else f"**{value[0]:.3f}** ({value[1]:.3f} to {value[2]:.3f})"


def _rating(rating: Interval | None) -> str:
    if rating is None:
        return ""
    if rating.low == rating.high:
        return f"{rating.value:.0f}"
    return f"{rating.value:.0f} ({rating.low:.0f} to {rating.high:.0f})"


def _made(row: Mapping[str, Any]) -> str:
    commit = str(row["commit"])[:7]
    return " ".join(filter(None, (_plain(str(row["date"])), _plain(commit))))


def _code(text: str) -> str:
    return f"`{_plain(text)}`"


def _plain(text: str) -> str:
    """Return a text of somebody else's row without what would end a cell or begin markup."""
    return re.sub(r"[^\w.,:@/+ -]", "?", text)[:80]


def _table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rule = ["---", *["---:"] * (len(heads) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in [heads, rule, *lines])
