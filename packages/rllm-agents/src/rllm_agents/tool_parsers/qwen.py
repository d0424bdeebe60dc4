"""Tool calls as Qwen and Hermes models write them: JSON between ``<tool_call>`` tags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rllm_agents.tool_parsers.base import (
    MAX_CALLS,
    MalformedCall,
    ParsedResponse,
    ToolCall,
    ToolParser,
    after_thought,
    json_text,
    parse_json_call,
    present_tools,
    too_many_calls,
)

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_FORM = '{"name": <function-name>, "arguments": <args-json-object>}'


class QwenToolParser(ToolParser):
    """Reads ``<tool_call>{"name": ..., "arguments": {...}}</tool_call>``."""

    def parse(self, text: str) -> ParsedResponse:
        """Take a response apart.

        Calls inside a thought (before the last ``</think>``) are only thought of. A last call may
        lack its closing tag. At most 64 calls are read; the rest is one malformed call.
        """
        content, *parts = after_thought(text).split(_OPEN)
        calls: list[ToolCall | MalformedCall] = []
        for part in parts[:MAX_CALLS]:
            body, _, rest = part.partition(_CLOSE)
            calls.append(parse_json_call(body.strip(), _FORM))
            content += rest
        if len(parts) > MAX_CALLS:
            calls.append(too_many_calls(_OPEN + _OPEN.join(parts[MAX_CALLS:])))
        return ParsedResponse(content=content.strip(), calls=tuple(calls))

    def tool_prompt(self, schemas: Sequence[Mapping[str, Any]]) -> str:
        """Present tools, one JSON schema per line, and the form of a call."""
        return present_tools(
            schemas,
            "To call one, write its name and arguments as a JSON object between tags:\n"
            f"{_OPEN}\n{_FORM}\n{_CLOSE}",
        )

    def call_text(self, *calls: ToolCall) -> str:
        """Write each call between tags."""
        bodies = [{"name": call.name, "arguments": dict(call.arguments)} for call in calls]
        return "\n".join(
            f"{_OPEN}\n{json_text(body, (_OPEN, _CLOSE))}\n{_CLOSE}" for body in bodies
        )
