"""Tool calls as Llama 3 models write them: bare JSON objects."""

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

_TAG = "<|python_tag|>"
_FORM = '{"name": <function-name>, "parameters": <args-json-object>}'
_START = re.compile(r'\{\s*"(?:name|parameters|function|type)"\s*:')
_ARGUMENT_KEYS = ("parameters", "arguments")
_BETWEEN = re.compile(r"[\s;,]*")


class LlamaToolParser(ToolParser):
    """Reads ``{"name": ..., "parameters": {...}}``, anywhere in the text.

    An object that begins as one is a call where it opens the text or follows another call; amid
    prose it must have parameters, since answers may quote JSON too.
    """

    def parse(self, text: str) -> ParsedResponse:
        """Take a response apart.

        Calls inside a thought (before the last ``</think>``) are only thought of. What begins as
        a call and is no JSON ends the reading: all from there on is one malformed call. At most 64
        calls are read; the rest is one malformed call.
        """
        rest = after_thought(text)
        head, tag, tail = rest.partition(_TAG)
        if tag and _START.match(tail.lstrip()) is None:
            malformed = MalformedCall(tail.strip(), f"a tool call must be of the form {_FORM}")
            return ParsedResponse(content=head.strip(), calls=(malformed,))
        rest = rest.replace(_TAG, "")
        decoder, content, at = json_decoder(), "", 0
        calls: list[ToolCall | MalformedCall] = []
        is_bare = True
        while match := _START.search(rest, at):
            start, before = match.start(), rest[at : match.start()]
            is_bare = is_bare and not before.strip(" \t\r\n;,")
            try:
                value, end = decoder.raw_decode(rest, start)
            except (ValueError, RecursionError) as error:
                broken = rest[start:]
                if not is_bare and not any(f'"{key}"' in broken for key in _ARGUMENT_KEYS):
                    break
                problem = f"the tool call is not valid JSON: {error}"
                calls.append(MalformedCall(broken, problem[:300]))
                content, at = content + before, len(rest)
                break
            if not is_bare and not any(key in value for key in _ARGUMENT_KEYS):
                content, at = content + rest[at:end], end
                continue
            content += before
            if len(calls) == MAX_CALLS:
                calls.append(too_many_calls(rest[start:]))
                at = len(rest)
                break
            calls.append(call_of(value, rest[start:end], _FORM))
            is_bare, at = True, _skip(rest, end)
        return ParsedResponse(content=(content + rest[at:]).strip(), calls=tuple(calls))

    def tool_prompt(self, schemas: Sequence[Mapping[str, Any]]) -> str:
        """Present tools, one JSON schema per line, and the form of a call."""
        return present_tools(
            schemas, f"To call one, write only a JSON object, and no other text:\n{_FORM}"
        )

    def call_text(self, *calls: ToolCall) -> str:
        """Write a JSON object for each call."""
        bodies = [{"name": call.name, "parameters": dict(call.arguments)} for call in calls]
        return "\n".join(json_text(body, (_TAG,)) for body in bodies)


def _skip(text: str, at: int) -> int:
    match = _BETWEEN.match(text, at)
    return match.end() if match else at
