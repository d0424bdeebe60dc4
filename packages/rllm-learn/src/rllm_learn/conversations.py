"""Given conversations: read from files, and tokenised as if the policy had said them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rllm_agents import Completion, Renderer
from rllm_agents.types import Message
from rllm_envs import Dataset
from rllm_learn.core.batch import SampledSequence
from rllm_learn.errors import ConfigError
from rllm_learn.records import to_sampled_sequence

ROLES = ("system", "user", "assistant", "tool")


def conversation_sequences(
    renderer: Renderer, messages: Sequence[Message], *, given: int = 0
) -> list[SampledSequence]:
    """Tokenise a conversation exactly as a rollout would have produced it.

    Each assistant message is taken as a completion that ended with the stop token, so prompts,
    stop tokens and the messages between have the very ids that sampling sees. Logprobs are 0:
    there was no sampler.

    Args:
        renderer: Of the model.
        messages: With an assistant's message after the given ones.
        given: How many messages are a prompt, whatever their roles.
    """
    transcript = renderer.transcript()
    for index, message in enumerate(messages):
        if message["role"] == "assistant" and index >= given:
            transcript.prompt_ids(messages[:index])
            text = renderer.cover(message["content"])
            ids = (*renderer.encode(text), renderer.stop_token_ids[0])
            transcript.add(
                Completion(
                    text=message["content"],
                    finish_reason="stop",
                    token_ids=ids,
                    logprobs=(0.0,) * len(ids),
                )
            )
    return [to_sampled_sequence(record) for record in transcript.token_records()]


def read_conversations(path: Path) -> list[list[Message]]:
    """Read the `messages` of each row of a JSONL file.

    Raises:
        ConfigError: A row has no messages, none of the assistant's, or a message without a role
            of system, user, assistant or tool, or without text; the row is named.
    """
    conversations = []
    for number, row in enumerate(Dataset.from_file(path), start=1):
        messages = row.get("messages")
        refuse_row(path, number, row, problem_of(messages, "messages"))
        conversations.append(messages)
    return conversations


def refuse_row(path: Path, number: int, row: Any, problem: str | None) -> None:
    """Refuse a row that has a problem.

    Raises:
        ConfigError: Naming the file, the row's number from 1, the problem, and the row's beginning.
    """
    if problem is not None:
        raise ConfigError(f"{path}, row {number}: {problem}: {json.dumps(row)[:80]}")


def problem_of(messages: Any, name: str, *, needs_assistant: bool = True) -> str | None:
    """Return what is wrong with messages, of which the assistant's are imitated; None for nothing.

    Args:
        messages: Anything that a row may hold.
        name: The row's key.
        needs_assistant: Whether there must be a message of the assistant.
    """
    if not isinstance(messages, list) or not messages:
        return f"`{name}` must be a list of messages"
    for message in messages:
        if not isinstance(message, dict) or not isinstance(message.get("content"), str):
            return "each message must be an object with `role` and a string `content`"
        if message.get("role") not in ROLES:
            return f"role must be system, user, assistant or tool, got {message.get('role')!r}"
    if needs_assistant and not any(m["role"] == "assistant" for m in messages):
        return "there is no assistant message to imitate"
    return None
