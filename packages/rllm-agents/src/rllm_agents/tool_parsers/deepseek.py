"""Tool calls as DeepSeek models (R1, V3, V3.1) write them, between control strings."""

# ruff: noqa: RUF001, RUF002  (the control strings hold full-width bars)

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rllm_agents.tool_parsers.base import (
    MAX_CALLS,
    MalformedCall,
    ParsedResponse,
    ToolCall,
    ToolParser,
    after_thought,
    call_of,
    json_text,
    load_json,
    present_tools,
    too_many_calls,
)

_BEGIN, _END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
_OPEN, _CLOSE, _SEPARATOR = "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>"
_FORM = f"{_OPEN}function{_SEPARATOR}<function-name>\n```json\n<args-json-object>\n```{_CLOSE}"
_FENCE = re.compile(r"\A```(?:json)?|```\Z")


class DeepSeekToolParser(ToolParser):
    """Reads calls of R1 and V3, and those of V3.1, which have neither a type nor a fence.

    R1 and V3 write ``function<｜tool▁sep｜>name`` and the arguments in a fence of JSON; V3.1 writes
    ``name<｜tool▁sep｜>{...}``.
    """

    def parse(self, text: str) -> ParsedResponse:
        """Take a response apart.

        Calls inside a thought (before the last ``</think>``) are only thought of. A last call may
        lack its end. At most 64 calls are read; the rest is one malformed call.
        """
        content, *parts = after_thought(text).split(_OPEN)
        calls: list[ToolCall | MalformedCall] = []
        for part in parts[:MAX_CALLS]:
            body, _, rest = part.partition(_CLOSE)
            calls.append(_parse_call(body.replace(_END, "").strip()))
            content += rest
        if len(parts) > MAX_CALLS:
            calls.append(too_many_calls(_OPEN + _OPEN.join(parts[MAX_CALLS:])))
        if not parts and _BEGIN in content:
            content, _, rest = content.partition(_BEGIN)
            calls.append(MalformedCall(rest, f"a tool call must be of the form {_FORM}"))
        content = content.replace(_BEGIN, "").replace(_END, "")
        return ParsedResponse(content=content.strip(), calls=tuple(calls))

    def tool_prompt(self, schemas: Sequence[Mapping[str, Any]]) -> str:
        """Present tools, one JSON schema per line, and the form of a call."""
        return present_tools(schemas, f"To call one, write:\n{_BEGIN}{_FORM}{_END}")

    def call_text(self, *calls: ToolCall) -> str:
        """Write calls as R1 and V3 do, with a type and a fence."""
        marks = (_BEGIN, _END, _OPEN, _CLOSE, _SEPARATOR)
        written = [
            f"{_OPEN}function{_SEPARATOR}{call.name}\n"
            f"```json\n{json_text(dict(call.arguments), marks)}\n```{_CLOSE}"
            for call in calls
        ]
        return _BEGIN + "\n".join(written) + _END


def _parse_call(body: str) -> ToolCall | MalformedCall:
    head, found, tail = body.partition(_SEPARATOR)
    name, written = head.strip(), tail.strip()
    if name == "function":
        name, _, written = written.partition("\n")
        name = name.strip()
    if not found or not name or "\n" in name:
        return MalformedCall(body, f"a tool call must be of the form {_FORM}")
    try:
        arguments = load_json(_FENCE.sub("", written.strip()).strip() or "{}")
    except (ValueError, RecursionError) as error:
        problem = f"the arguments of the tool call are not valid JSON: {error}"
        return MalformedCall(body, problem[:300])
    return call_of({"name": name, "arguments": arguments}, body, _FORM)
