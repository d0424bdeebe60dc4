"""Messages of a request: checked, compared with what was said before, put as the template wants."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rllm_agents.errors import UserError
from rllm_agents.gateway.refusals import refused
from rllm_agents.tool_parsers import ToolCall, ToolParser
from rllm_agents.types import Message

MAX_MESSAGES = 4096
MAX_TOOLS = 256
_ROLES = ("system", "developer", "user", "assistant", "tool")
_FIELDS = frozenset({"role", "content", "name", "tool_calls", "tool_call_id"})
# Clients send back what a server gave them; where it is null or empty it says nothing.
_EMPTY_FIELDS = frozenset(
    {"refusal", "audio", "annotations", "function_call", "reasoning", "reasoning_content"}
)
# Made by a client from the rest of the message.
_DERIVED_FIELDS = frozenset({"parsed"})
_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,128}")


@dataclass(frozen=True, slots=True)
class SentCall:
    """A tool call inside a message of the client. Made by `read_messages`."""

    id: str
    name: str
    arguments: str
    """JSON text."""


@dataclass(frozen=True, slots=True)
class SentMessage:
    """One checked message of a request. Made by `read_messages`, read by a session."""

    role: str
    content: str
    calls: tuple[SentCall, ...] = ()
    """Of an assistant's message."""
    call_id: str | None = None
    """Of a tool's message: which call it answers."""
    name: str | None = None


def read_messages(given: Any) -> tuple[SentMessage, ...]:
    """Check the messages of a request.

    Raises:
        RequestError: They are no list of messages, or have parts that are no text.
    """
    if not isinstance(given, list) or not 0 < len(given) <= MAX_MESSAGES:
        raise refused(f"messages must be a list of 1 to {MAX_MESSAGES} messages", "messages")
    return tuple(_read_message(f"messages[{i}]", value) for i, value in enumerate(given))


def read_tools(given: Any) -> tuple[dict[str, Any], ...]:
    """Check the tools of a request.

    `strict` is dropped: nothing constrains what a model writes as arguments.

    Raises:
        RequestError: They are no list of functions.
    """
    if not isinstance(given, list) or len(given) > MAX_TOOLS:
        raise refused(f"tools must be a list of at most {MAX_TOOLS} functions", "tools")
    tools = []
    for index, tool in enumerate(given):
        place = f"tools[{index}]"
        if not isinstance(tool, dict) or tool.get("type") != "function":
            raise refused(f'{place} must be {{"type": "function", "function": ...}}', place)
        function = tool.get("function")
        if not isinstance(function, dict) or not _is_name(function.get("name")):
            raise refused(f"{place} must have a function with a name", place)
        schema = {key: value for key, value in function.items() if key != "strict"}
        tools.append({"type": "function", "function": schema})
    return tuple(tools)


def conversation_keys(messages: Sequence[SentMessage], before: bytes = b"") -> list[bytes]:
    """Return a key of the conversation up to and with each message.

    Two conversations have the same key where they say the same. What the assistant said is compared
    without the space around it, and arguments of its calls as values: clients write both anew.
    """
    keys = []
    for message in messages:
        is_reply = message.role == "assistant"
        facts = (
            message.role,
            message.content.strip() if is_reply else message.content,
            [(call.id, call.name, _canonical(call.arguments)) for call in message.calls],
            message.call_id,
        )
        text = json.dumps(facts).encode()
        before = hashlib.blake2b(before + text, digest_size=16).digest()
        keys.append(before)
    return keys


def template_messages(
    messages: Sequence[SentMessage],
    said: Mapping[int, str],
    tools: Sequence[dict[str, Any]],
    parser: ToolParser,
) -> tuple[Message, ...]:
    """Put messages as the chat template takes them.

    Args:
        messages: Of the request.
        said: By index, what the model wrote itself; other calls are written by the parser.
        tools: Presented in the system message.
        parser: How the model's family is told of tools and writes calls.

    Raises:
        RequestError: The parser cannot write the calls of a message.
    """
    rendered: list[Message] = []
    for index, message in enumerate(messages):
        role = "system" if message.role == "developer" else message.role
        content = said.get(index)
        if content is None:
            content = _written(f"messages[{index}].tool_calls", message, parser)
        record: Message = {"role": role, "content": content}
        if message.call_id is not None:
            record["tool_call_id"] = message.call_id
        if message.name is not None:
            record["name"] = message.name
        rendered.append(record)
    if tools:
        prompt = parser.tool_prompt(tools)
        if rendered[0]["role"] == "system":
            rendered[0]["content"] = f"{rendered[0]['content']}\n\n{prompt}"
        else:
            rendered.insert(0, {"role": "system", "content": prompt})
    return tuple(rendered)


def _read_message(place: str, given: Any) -> SentMessage:
    if not isinstance(given, dict):
        raise refused(f"{place} must be an object", place)
    role = given.get("role")
    if role not in _ROLES:
        raise refused(f"{place}.role must be one of {', '.join(_ROLES)}", f"{place}.role")
    for name, value in given.items():
        is_known = name in _FIELDS or name in _DERIVED_FIELDS
        if not is_known and not (name in _EMPTY_FIELDS and not value):
            raise refused(f"{place} has {name[:64]!r}, which is not offered here", place)
    is_reply = role == "assistant"
    content = _read_content(f"{place}.content", given.get("content"), may_lack=is_reply)
    calls = given.get("tool_calls") or []
    if calls and not is_reply:
        raise refused(f"{place}: only an assistant's message has tool_calls", place)
    if not isinstance(calls, list):
        raise refused(f"{place}.tool_calls must be a list", place)
    call_id = given.get("tool_call_id")
    if (role == "tool") != isinstance(call_id, str):
        raise refused(f"{place}: a tool's message, and only that, has a tool_call_id", place)
    name = given.get("name")
    if name is not None and not _is_name(name):
        raise refused(f"{place}.name must be 1 to 128 letters, digits or _.:-", place)
    read = tuple(_read_call(f"{place}.tool_calls[{i}]", call) for i, call in enumerate(calls))
    return SentMessage(role, content, read, call_id, name)


def _read_content(place: str, given: Any, *, may_lack: bool) -> str:
    """Text of a message; several parts are lines of it."""
    if isinstance(given, str):
        return given
    if given is None and may_lack:
        return ""
    if not isinstance(given, list):
        raise refused(f"{place} must be a text or a list of parts", place)
    texts = []
    for part in given:
        is_text = isinstance(part, dict) and part.get("type") == "text"
        if not is_text or not isinstance(part.get("text"), str):
            raise refused(f"{place} has a part that is no text; the model reads text only", place)
        texts.append(part["text"])
    return "\n".join(texts)


def _read_call(place: str, given: Any) -> SentCall:
    function = given.get("function") if isinstance(given, dict) else None
    if not isinstance(function, dict) or not isinstance(given.get("id"), str):
        raise refused(f"{place} must have an id and a function", place)
    name, arguments = function.get("name"), function.get("arguments")
    if not isinstance(name, str) or not isinstance(arguments, str):
        raise refused(f"{place}.function must have a name and arguments, both texts", place)
    return SentCall(given["id"], name, arguments)


def _written(place: str, message: SentMessage, parser: ToolParser) -> str:
    """Content of a message that the model did not write, its calls in the model's form."""
    if not message.calls:
        return message.content
    try:
        calls = parser.call_text(*(_tool_call(call) for call in message.calls))
    except RecursionError as error:
        raise refused(f"{place} has arguments that are nested too deeply", place) from error
    except UserError as error:
        raise refused(f"{place}: {error}", place) from error
    return f"{message.content}\n{calls}" if message.content else calls


def _tool_call(call: SentCall) -> ToolCall:
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        arguments = None
    # What is no JSON object cannot be written as one; the text is kept.
    known = arguments if isinstance(arguments, dict) else {"text": call.arguments}
    return ToolCall(call.name, known)


def _canonical(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None
