"""Which episodes are shown: filters over all of them, text search, order."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from rllm_agents.errors import UserError
from rllm_agents.viewer.episode_index import Columns, EpisodeIndex
from rllm_agents.viewer.json_lines import parse_object

OUTCOMES = ("", "solved", "unsolved", "failed")
ORDERS = ("", "reward", "step", "task")
_MAX_NEEDLE = 1000


@dataclass(frozen=True, slots=True)
class Selection:
    """What is looked for. Made of a request's parameters, read by `select`."""

    kind: str = ""
    """``train``, ``eval`` and so on; empty for all."""
    outcome: str = ""
    """One of `OUTCOMES`; failed episodes are neither solved nor unsolved."""
    termination: str = ""
    """A `TerminationReason`; empty for all."""
    reward_min: float | None = None
    reward_max: float | None = None
    """Both bounds are included; failed episodes have no reward and are left out."""
    step_min: int | None = None
    step_max: int | None = None
    task: str = ""
    """Part of the task's label; the case of ASCII letters is ignored."""
    task_number: int | None = None
    """Exactly this task."""
    text: str = ""
    """Part of anything that was said; the case of ASCII letters is ignored."""
    order: str = ""
    """One of `ORDERS`; empty is the order of the files."""
    descending: bool = False

    @classmethod
    def parse(cls, parameters: Mapping[str, str]) -> Selection:
        """Read the parameters of an address.

        Raises:
            UserError: A value is out of its range.
        """
        values: dict[str, Any] = {}
        for name in (field.name for field in fields(cls)):
            text = parameters.get(name, "")
            if text:
                values[name] = _READERS.get(name, _text)(name, text)
        return cls(**values)


def select(index: EpisodeIndex, wanted: Selection, search: TextSearch | None) -> np.ndarray:
    """Return the numbers of the episodes that match, in the order that was asked for.

    Args:
        index: Of all episodes.
        wanted: Filters and order.
        search: For `wanted.text`, as far as it has come; None without a text.
    """
    columns = index.columns()
    mask = np.ones(len(columns), np.bool_)
    if wanted.kind:
        mask &= columns.kind == _position(index.kinds.texts, wanted.kind)
    if wanted.termination:
        mask &= columns.termination == _position(index.terminations.texts, wanted.termination)
    if wanted.task_number is not None:
        mask &= columns.task == wanted.task_number
    if wanted.task:
        mask &= np.isin(columns.task, _labelled(index.tasks.texts, wanted.task))
    mask &= _outcome(columns, wanted.outcome)
    for value, low, high in (
        (columns.reward, wanted.reward_min, wanted.reward_max),
        (columns.step, wanted.step_min, wanted.step_max),
    ):
        if low is not None:
            mask &= value >= low
        if high is not None:
            mask &= value <= high
    if search is not None:
        mask[search.num_scanned :] = False
        mask &= search.matches(len(columns))
    return _ordered(columns, np.flatnonzero(mask), wanted)


class TextSearch:
    """Looks for a text in all episodes, a little at a time; goes on as files grow.

    Args:
        text: Looked for in strings, not in names of members.
    """

    def __init__(self, text: str) -> None:
        self.num_scanned = 0
        """Episodes that were looked at."""
        self._text = _ascii_lower(text)
        forms = {json.dumps(text, ensure_ascii=ascii)[1:-1] for ascii in (True, False)}
        self._needles = [f.encode("utf-8", "backslashreplace").lower() for f in forms]
        self._found = bytearray()

    def advance(self, index: EpisodeIndex, seconds: float) -> None:
        """Look on for about so long."""
        end = time.monotonic() + seconds
        for line in index.lines(self.num_scanned, len(index)):
            self._found.append(self._is_in(line))
            self.num_scanned += 1
            if time.monotonic() > end:
                return

    def matches(self, num_rows: int) -> np.ndarray:
        """Return whether each of the first episodes holds the text; False where not looked at."""
        known = np.frombuffer(bytes(self._found[:num_rows]), np.bool_)
        return np.concatenate([known, np.zeros(num_rows - len(known), np.bool_)])

    def _is_in(self, line: bytes) -> bool:
        lowered = line.lower()
        if not any(needle in lowered for needle in self._needles):
            return False
        # Only now is it worth parsing: the text may be that of a member's name.
        return any(self._text in _ascii_lower(said) for said in _strings(parse_object(line)))


def _strings(value: Any) -> Iterator[str]:
    """Yield the strings of an episode; its tokens say what its messages say."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            stack.extend(part for key, part in item.items() if key != "token_records")
        elif isinstance(item, list):
            stack.extend(item)


def _outcome(columns: Columns, outcome: str) -> np.ndarray:
    failed = np.isnan(columns.reward)
    if outcome == "solved":
        return columns.is_correct & ~failed
    if outcome == "unsolved":
        return ~columns.is_correct & ~failed
    return failed if outcome == "failed" else np.ones(len(columns), np.bool_)


def _ordered(columns: Columns, numbers: np.ndarray, wanted: Selection) -> np.ndarray:
    """Sort; equal ones stay in the order of the files, failed episodes come last."""
    if not wanted.order:
        return numbers[::-1] if wanted.descending else numbers
    keys = getattr(columns, wanted.order)[numbers].astype(np.float64)
    return numbers[np.argsort(-keys if wanted.descending else keys, kind="stable")]


def _labelled(labels: list[str], part: str) -> list[int]:
    part = _ascii_lower(part)
    return [n for n, label in enumerate(list(labels)) if part in _ascii_lower(label)]


def _position(texts: list[str], text: str) -> int:
    return texts.index(text) if text in texts else -1


def _ascii_lower(text: str) -> str:
    """Lower A to Z alone, as the search over bytes does."""
    return text.lower() if text.isascii() else text.translate(_LOWER)


_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def _text(name: str, text: str) -> str:
    if len(text) > _MAX_NEEDLE:
        raise UserError(f"{name} has more than {_MAX_NEEDLE} characters")
    return text


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if value != value:
        raise UserError(f"{name} must be a number, got {text[:80]!r}")
    return value


def _whole(name: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise UserError(f"{name} must be a whole number from 0, got {text[:80]!r}")
    return int(text)


def _one_of(name: str, text: str) -> str:
    allowed = OUTCOMES if name == "outcome" else ORDERS
    if text not in allowed:
        words = ", ".join(word for word in allowed if word)
        raise UserError(f"{name} must be one of {words}, got {text[:80]!r}")
    return text


_READERS = {
    "outcome": _one_of,
    "order": _one_of,
    "reward_min": _number,
    "reward_max": _number,
    "step_min": _whole,
    "step_max": _whole,
    "task_number": _whole,
    "descending": lambda name, text: text == "1",
}
