"""Tool calls as Mistral models write them, after ``[TOOL_CALLS]``."""

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
    json_decoder,
    json_text,
    present_tools,
    too_many_calls,
)

_MARK, _ARGUMENTS = "[TOOL_CALLS]", "[ARGS]"
_FORM = '{"name": <function-name>, "arguments": <args-json-object>}'
# The mark is a control token, so that decoded text may lack it.
_BARE_LIST = re.compile(r'\[\s*\{\s*"(?:name|arguments|id)"\s*:')
_BARE_CALL = re.compile(r'[A-Za-z0-9_.-]{1,64}\{\s*["}]')
_NAME = re.compile(r"\s*([A-Za-z0-9_.-]{1,64})\s*(?:\[ARGS\])?\s*(?=\{)")


class MistralToolParser(ToolParser):
    """Reads ``[TOOL_CALLS][{"name": ..., "arguments": {...}}, ...]`` and ``name[ARGS]{...}``.

    The control strings may be missing, as in text that was decoded without them.
    """

    def parse(self, text: str) -> ParsedResponse:
        """Take a response apart.

        Calls inside a thought (before the last ``</think>``) are only thought of. At most 64 calls
        are read; the rest is one malformed call.
        """
        said = after_thought(text)
        content, mark, body = said.partition(_MARK)
        if not mark:
            body = said.strip()
            if _BARE_LIST.match(body) is None and _BARE_CALL.match(body) is None:
                return ParsedResponse(content=body, calls=())
            content = ""
        body = body.replace(_MARK, " ").strip()
        calls, rest = _parse_list(body) if body.startswith("[") else _parse_named(body)
        return ParsedResponse(content=(content + rest).strip(), calls=tuple(calls))

    def tool_prompt(self, schemas: Sequence[Mapping[str, Any]]) -> str:
        """Present tools, one JSON schema per line, and the form of a call."""
        return present_tools(schemas, f"To call some, write a list of them:\n{_MARK}[{_FORM}]")

    def call_text(self, *calls: ToolCall) -> str:
        """Write calls as one list."""
        bodies = [{"name": call.name, "arguments": dict(call.arguments)} for call in calls]
        return _MARK + json_text(bodies, (_MARK,))


def _parse_list(body: str) -> tuple[list[ToolCall | MalformedCall], str]:
    """Calls of a JSON list, and the text after it."""
    try:
        values, end = json_decoder().raw_decode(body)
    except (ValueError, RecursionError) as error:
        return [MalformedCall(body, f"the list of tool calls is not valid JSON: {error}"[:300])], ""
    if not values:
        return [MalformedCall(body[:end], f"the list of tool calls is empty; write [{_FORM}]")], ""
    calls = [call_of(value, body[:end], f"[{_FORM}]") for value in values[:MAX_CALLS]]
    if len(values) > MAX_CALLS:
        calls.append(too_many_calls(body[:end]))
    return calls, body[end:]


def _parse_named(body: str) -> tuple[list[ToolCall | MalformedCall], str]:
    """Calls that are a name and an object one after another, and the text after them."""
    decoder = json_decoder()
    calls: list[ToolCall | MalformedCall] = []
    at = 0
    while match := _NAME.match(body, at):
        if len(calls) == MAX_CALLS:
            return [*calls, too_many_calls(body[at:])], ""
        try:
            arguments, end = decoder.raw_decode(body, match.end())
        except (ValueError, RecursionError) as error:
            problem = f"the arguments of the tool call are not valid JSON: {error}"
            return [*calls, MalformedCall(body[at:], problem[:300])], ""
        call = {"name": match[1], "arguments": arguments}
        calls.append(call_of(call, body[at:end], _FORM))
        at = end
    if not calls:
        return [MalformedCall(body, f"tool calls must be of the form {_MARK}[{_FORM}]")], ""
    return calls, body[at:]
