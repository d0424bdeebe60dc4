"""Messages in the forms that chat templates take: roles that one lacks, thoughts, visible text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rllm_agents.errors import RendererError
from rllm_agents.types import Message

THOUGHT_OPEN, THOUGHT_CLOSE = "<think>", "</think>"
# Fields in which agents and servers keep a thought beside the content.
_THOUGHT_FIELDS = ("reasoning_content", "reasoning", "thinking")


def check_messages(messages: Sequence[Message]) -> None:
    """Refuse what is no conversation.

    Raises:
        RendererError: When it is not a non-empty list of dicts with a role.
    """
    if not isinstance(messages, (list, tuple)) or not messages:
        raise RendererError(f"messages must be a non-empty list, got {messages!r:.120}")
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise RendererError(f"message {index} must be a dict with a role, got {message!r:.120}")


def visible_text(content: Any) -> Any:
    """Return what follows the last thought of a content; it stays whole where there is none."""
    if not isinstance(content, str) or THOUGHT_CLOSE not in content:
        return content
    return content.rpartition(THOUGHT_CLOSE)[2].lstrip("\n")


def whole_text(message: Message) -> str:
    """Return an assistant's text with its thought in tags, wherever the message has that."""
    content = message["content"]
    thought = next((message[f] for f in _THOUGHT_FIELDS if isinstance(message.get(f), str)), "")
    if not thought or THOUGHT_CLOSE in content:
        return content
    return f"{THOUGHT_OPEN}\n{thought.strip()}\n{THOUGHT_CLOSE}\n\n{content}"


def without_thoughts(message: Message) -> Message:
    """Copy an assistant message without its thought."""
    kept = {key: value for key, value in message.items() if key not in _THOUGHT_FIELDS}
    return {**kept, "content": visible_text(kept.get("content"))}


def drop_earlier_thoughts(messages: Sequence[Message]) -> list[Message]:
    """Leave thoughts out of the assistant's messages before the last of a user.

    Those after it belong to the turn in hand, in which tools may have answered.
    """
    last = max((i for i, m in enumerate(messages) if m["role"] == "user"), default=0)
    return [
        without_thoughts(m) if m["role"] == "assistant" and i < last else m
        for i, m in enumerate(messages)
    ]


def fold_system(messages: Sequence[Message]) -> list[Message]:
    """Put system messages at the head of the user message that follows, for templates without."""
    folded: list[Message] = []
    pending: list[str] = []
    for message in messages:
        if message["role"] == "system" and isinstance(message.get("content"), str):
            pending.append(message["content"])
        elif message["role"] == "user" and pending:
            folded.append(_prefixed("\n\n".join(pending), message))
            pending = []
        else:
            folded.append(message)
    if pending:
        folded.append({"role": "user", "content": "\n\n".join(pending)})
    return folded


def fold_tools(messages: Sequence[Message]) -> list[Message]:
    """Show results of tools as a user message, for templates without a role for them.

    Results that follow one another become one message, and a user message after them is joined,
    since such templates want users and assistants in turn.
    """
    folded: list[Message] = []
    results: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            results.append(f"<tool_response>\n{message.get('content', '')}\n</tool_response>")
            continue
        if results and message["role"] == "user":
            message = _prefixed("\n".join(results), message)
        elif results:
            folded.append({"role": "user", "content": "\n".join(results)})
        results = []
        folded.append(message)
    if results:
        folded.append({"role": "user", "content": "\n".join(results)})
    return folded


def _prefixed(text: str, message: Message) -> Message:
    content = message.get("content")
    if isinstance(content, list):
        return {**message, "content": [{"type": "text", "text": text}, *content]}
    return {**message, "content": f"{text}\n\n{content}"}
