"""One episode for the page: whatever the file holds becomes the one form that the page knows."""

from __future__ import annotations

import json
from typing import Any, TypeGuard

_PREVIEW_CHARACTERS = 160


def episode_view(record: dict[str, Any]) -> dict[str, Any]:
    """Return trajectories with messages, steps and token records, all of checked types.

    Args:
        record: One line of an episode file, which anybody may have written.
    """
    parts = record.get("trajectories", [record])
    parts = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return {
        "task": record.get("task"),
        "error": None if record.get("error") is None else _text(record["error"]),
        "trajectories": [_trajectory(part) for part in parts],
    }


def preview(record: dict[str, Any] | None) -> dict[str, str]:
    """Return how an episode began and ended: the first request, the last answer, both shortened."""
    parts = episode_view(record or {})["trajectories"]
    messages = [message for part in parts for message in part["messages"]]
    asked = [m["content"] for m in messages if m["role"] == "user"]
    said = [m["content"] for m in messages if m["role"] == "assistant"]
    return {
        "asked": asked[0][:_PREVIEW_CHARACTERS] if asked else "",
        "said": said[-1][:_PREVIEW_CHARACTERS] if said else "",
    }


def _trajectory(part: dict[str, Any]) -> dict[str, Any]:
    name = part.get("name")
    return {
        "name": name if isinstance(name, str) else "",
        "messages": [_message(m) for m in _dicts(part.get("messages"))],
        "steps": [_step(s) for s in _dicts(part.get("steps"))],
        "token_records": [
            tokens for t in _dicts(part.get("token_records")) if (tokens := _tokens(t)) is not None
        ],
    }


def _message(message: dict[str, Any]) -> dict[str, Any]:
    more = {k: v for k, v in message.items() if k not in ("role", "content") and v}
    return {
        "role": _text(message.get("role", "")),
        "content": _text(message.get("content")),
        "more": _text(more) if more else "",
    }


def _step(step: dict[str, Any]) -> dict[str, Any]:
    reward = step.get("reward")
    return {
        "action": _text(step.get("action")),
        "reward": reward if type(reward) in (int, float) else None,
        "info": _text(step["info"]) if step.get("info") else "",
    }


def _tokens(record: dict[str, Any]) -> dict[str, Any] | None:
    """Return a token record whose lists fit each other; None where they do not."""
    ids, logprobs = record.get("token_ids"), record.get("logprobs")
    if not _numbers(ids) or not _numbers(logprobs) or len(ids) != len(logprobs):
        return None
    turns = [
        turn
        for turn in _dicts(record.get("turns"))
        if all(type(turn.get(key)) is int for key in ("start", "stop"))
        and 0 <= turn["start"] <= turn["stop"] <= len(ids)
    ]
    advantages, texts = record.get("advantages"), record.get("texts")
    return {
        "token_ids": ids,
        "logprobs": logprobs,
        "turns": turns,
        "advantages": advantages if _numbers(advantages) and len(advantages) == len(ids) else None,
        "texts": texts if _strings(texts) and len(texts) == len(ids) else None,
    }


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _numbers(value: Any) -> TypeGuard[list[float]]:
    return isinstance(value, list) and all(type(item) in (int, float) for item in value)


def _strings(value: Any) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(type(item) is str for item in value)
