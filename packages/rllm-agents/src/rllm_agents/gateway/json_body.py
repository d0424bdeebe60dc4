"""JSON from strangers: bounded in depth and in the number of its parts before anything reads it."""

from __future__ import annotations

import json
from typing import Any

from rllm_agents.gateway.refusals import RequestError, refused

MAX_BODY_BYTES = 16 * 2**20
"""Longest body of a request."""
MAX_JSON_DEPTH = 64
"""Most lists and objects inside each other."""
# Sixteen megabytes of empty lists would keep the event loop for seconds.
_MAX_BRACKETS = 1_000_000


def read_json_object(raw: bytes) -> dict[str, Any]:
    """Decode the body of a request.

    Raises:
        RequestError: It is no JSON object, or too deep, or it has a number that JSON has not.
    """
    if raw.count(b"[") + raw.count(b"{") > _MAX_BRACKETS:
        raise refused(f"the body opens more than {_MAX_BRACKETS} lists and objects", code="json")
    try:
        value = json.loads(raw, parse_constant=_refuse_constant)
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:  # of the bytes, the syntax or the length of a number
        place = getattr(error, "pos", None)
        at = "" if place is None else f" at character {place}"
        problem = getattr(error, "msg", None) or type(error).__name__
        raise refused(f"the body is no JSON: {problem}{at}", code="json") from None
    if not isinstance(value, dict):
        raise refused(f"the body must be a JSON object, got {type(value).__name__}", code="json")
    _check_depth(value)
    return value


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_JSON_DEPTH):
        inner: list[Any] = []
        for container in level:
            items = container.values() if isinstance(container, dict) else container
            inner += [item for item in items if isinstance(item, dict | list)]
        if not inner:
            return
        level = inner
    raise _too_deep()


def _too_deep() -> RequestError:
    return refused(f"the body is nested deeper than {MAX_JSON_DEPTH} levels", code="json")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")
