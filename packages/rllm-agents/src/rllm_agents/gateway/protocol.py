"""Requests to the gateway: hostile until they are checked, plain records afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rllm_agents.gateway.messages import SentMessage, read_messages, read_tools
from rllm_agents.gateway.parameters import (
    CHAT,
    TEXT,
    AskedSampling,
    check_known,
    flag,
    read_sampling,
    whole_number,
)
from rllm_agents.gateway.refusals import refused

_MAX_TOKEN_ID = 2**31
# Padding against eavesdroppers, which some clients ask for, is left out.
_STREAM_OPTIONS = frozenset({"include_usage", "include_obfuscation"})
_MAX_MODEL_CHARACTERS = 256


@dataclass(frozen=True, slots=True)
class ReplyForm:
    """How an answer is to be written. Made by the readers of requests, read by `replies`."""

    model: str
    is_stream: bool = False
    has_usage: bool = True
    """Whether a stream ends with the numbers of tokens; other answers always have them."""
    has_logprobs: bool = False
    has_token_ids: bool = False


@dataclass(frozen=True, slots=True)
class ChatCall:
    """A checked request to /chat/completions. Made by `read_chat_call`."""

    form: ReplyForm
    user: str | None
    messages: tuple[SentMessage, ...]
    tools: tuple[dict[str, Any], ...]
    may_call_tools: bool
    sampling: AskedSampling


@dataclass(frozen=True, slots=True)
class TextCall:
    """A checked request to /completions. Made by `read_text_call`."""

    form: ReplyForm
    user: str | None
    prompt: str | tuple[int, ...]
    """Template text, in which control strings are control tokens; or the exact ids."""
    sampling: AskedSampling


def read_chat_call(
    body: Mapping[str, Any], stop_token_ids: tuple[int, ...] | None = None
) -> ChatCall:
    """Check a request to /chat/completions.

    Args:
        body: Decoded JSON.
        stop_token_ids: Those that end every completion; None where there is no tokenizer.

    Raises:
        RequestError: Something in it is wrong, unknown or not offered.
    """
    given = check_known(body, CHAT)
    tools = read_tools(given.get("tools", []))
    choice = given.get("tool_choice", "auto")
    if choice not in ("auto", "none"):
        raise refused(
            'tool_choice must be "auto" or "none": a call cannot be forced without changing what '
            "the model samples",
            "tool_choice",
            code="unsupported_parameter",
        )
    return ChatCall(
        form=_read_form(given, has_logprobs=flag(given, "logprobs")),
        user=_read_user(given),
        messages=read_messages(given.get("messages")),
        tools=tools,
        may_call_tools=bool(tools) and choice == "auto",
        sampling=read_sampling(given, stop_token_ids),
    )


def read_text_call(
    body: Mapping[str, Any], stop_token_ids: tuple[int, ...] | None = None
) -> TextCall:
    """Check a request to /completions.

    Args:
        body: Decoded JSON.
        stop_token_ids: Those that end every completion; None where there is no tokenizer.

    Raises:
        RequestError: Something in it is wrong, unknown or not offered.
    """
    given = check_known(body, TEXT)
    logprobs = whole_number(given, "logprobs", 0, 1)
    return TextCall(
        form=_read_form(given, has_logprobs=logprobs is not None),
        user=_read_user(given),
        prompt=_read_prompt(given.get("prompt")),
        sampling=read_sampling(given, stop_token_ids),
    )


def read_reward(body: Mapping[str, Any]) -> tuple[float, bool | None]:
    """Check what ends a session: its reward, and whether the task is solved.

    Raises:
        RequestError: The reward is no finite number, or there are other fields.
    """
    for name in body:
        if name not in ("reward", "is_correct"):
            raise refused(f"unknown field {name[:64]!r}; there are reward and is_correct")
    reward: Any = body.get("reward")
    is_correct = body.get("is_correct")
    if type(reward) not in (int, float) or not -1e300 < reward < 1e300:
        raise refused("reward must be a finite number", "reward")
    if is_correct is not None and type(is_correct) is not bool:
        raise refused("is_correct must be true or false", "is_correct")
    return float(reward), is_correct


def _read_form(given: Mapping[str, Any], *, has_logprobs: bool) -> ReplyForm:
    model = given.get("model")
    if not isinstance(model, str) or not 0 < len(model) <= _MAX_MODEL_CHARACTERS:
        raise refused("model must be the name of a model", "model")
    is_stream = flag(given, "stream")
    options = given.get("stream_options", {})
    if not isinstance(options, dict) or not set(options) <= _STREAM_OPTIONS:
        raise refused("stream_options may have include_usage and nothing else", "stream_options")
    return ReplyForm(
        model=model,
        is_stream=is_stream,
        has_usage=not is_stream or flag(options, "include_usage"),
        has_logprobs=has_logprobs,
        has_token_ids=flag(given, "return_token_ids"),
    )


def _read_user(given: Mapping[str, Any]) -> str | None:
    user = given.get("user")
    if user is not None and not isinstance(user, str):
        raise refused("user must be a text", "user")
    return user or None


def _read_prompt(given: Any) -> str | tuple[int, ...]:
    if isinstance(given, list) and len(given) == 1 and isinstance(given[0], str | list):
        given = given[0]
    if isinstance(given, str) and given:
        return given
    ids: list[Any] = given if isinstance(given, list) else []
    if ids and all(type(i) is int and 0 <= i < _MAX_TOKEN_ID for i in ids):
        return tuple(ids)
    raise refused("prompt must be one text, or one list of token ids; not empty", "prompt")
