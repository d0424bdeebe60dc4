"""Lines of JSON that anybody may have written."""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from typing import Any

_HEAD_BYTES = 16 * 1024
_SPACE = " \t\r\n"
_DECODER = json.JSONDecoder(parse_constant=lambda _: None)


def parse_object(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object of a line, NaN and infinity as None; None where it is none."""
    try:
        value = json.loads(line.decode("utf-8", "replace"), parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def parse_head(
    line: bytes, stops: Collection[str], needed: Collection[str] = ()
) -> dict[str, Any] | None:
    """Return the members of an object that stand before the first of some keys.

    The head of an episode is small, its conversation and tokens are not: reading the head alone is
    some twenty times faster.

    Args:
        line: A JSON object.
        stops: Keys that end the head.
        needed: Keys that the head should have; where one is missing the whole line is read, and
            all members but the stops are returned.
    """
    text = line[:_HEAD_BYTES].decode("utf-8", "replace")
    try:
        head = _head(text, stops)
        if all(key in head for key in needed):
            return head
    except (ValueError, IndexError, RecursionError):
        pass  # cut off, or no JSON at all: the whole line says which
    whole = parse_object(line)
    return whole and {key: value for key, value in whole.items() if key not in stops}


def finite(value: Any) -> Any:
    """Return JSON values with numbers that are not finite as None, for `json.dumps`."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    return value


def _head(text: str, stops: Collection[str]) -> dict[str, Any]:
    """Read members one by one; ValueError or IndexError where the text ends before the head."""
    members: dict[str, Any] = {}
    position = _after(text, _skip(text, 0), "{")
    while True:
        key, position = _DECODER.raw_decode(text, _skip(text, position))
        if not isinstance(key, str):
            raise ValueError("a key is no string")
        if key in stops:
            return members
        position = _skip(text, _after(text, _skip(text, position), ":"))
        members[key], position = _DECODER.raw_decode(text, position)
        position = _skip(text, position)
        if text[position] == "}":
            return members
        position = _after(text, position, ",")


def _skip(text: str, position: int) -> int:
    while text[position] in _SPACE:
        position += 1
    return position


def _after(text: str, position: int, mark: str) -> int:
    if text[position] != mark:
        raise ValueError(f"{mark!r} is missing")
    return position + 1
