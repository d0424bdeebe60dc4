"""Tool calls as Qwen and Hermes models write them: JSON between ``<tool_call>`` tags."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rllm_agents.tool_parsers.base import MalformedCall, ParsedResponse, ToolCall, ToolParser

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_EXAMPLE = '{"name": <function-name>, "arguments": <args-json-object>}'
# A hostile response must not become a million answers.
_MAX_CALLS = 64


class QwenToolParser(ToolParser):
    """Reads ``<tool_call>{"name": ..., "arguments": {...}}</tool_call>``."""

    def parse(self, text: str) -> ParsedResponse:
        """Take a response apart.

        Calls inside a thought (before the last ``</think>``) are only thought of. A last call may
        lack its closing tag. At most 64 calls are read.
        """
        _, _, after_thought = text.rpartition("</think>")
        content, *parts = after_thought.split(_OPEN)
        calls: list[ToolCall | MalformedCall] = []
        for part in parts[:_MAX_CALLS]:
            body, _, rest = part.partition(_CLOSE)
            calls.append(_parse_call(body.strip()))
            content += rest
        return ParsedResponse(content=content.strip(), calls=tuple(calls))

    def tool_prompt(self, schemas: Sequence[Mapping[str, Any]]) -> str:
        """Present tools, one JSON schema per line, and the form of a call."""
        lines = "\n".join(json.dumps(schema, ensure_ascii=False) for schema in schemas)
        return (
            "# Tools\n\nYou can call these functions. Their signatures, one per line:\n"
            f"<tools>\n{lines}\n</tools>\n\n"
            "To call one, write its name and arguments as a JSON object between tags:\n"
            f"{_OPEN}\n{_EXAMPLE}\n{_CLOSE}\n"
            "You may write several calls. An answer without a call is your final one."
        )

    def call_text(self, call: ToolCall) -> str:
        """Write a call between its tags."""
        body = {"name": call.name, "arguments": dict(call.arguments)}
        return f"{_OPEN}\n{json.dumps(body, ensure_ascii=False)}\n{_CLOSE}"


def _parse_call(body: str) -> ToolCall | MalformedCall:
    try:
        value = json.loads(body)
        # Some models write the arguments as a string of JSON once more.
        arguments = value.get("arguments", {}) if isinstance(value, dict) else None
        if isinstance(arguments, str):
            arguments = json.loads(arguments)
    except (ValueError, RecursionError) as error:
        return MalformedCall(body, f"the tool call is not valid JSON: {error}"[:300])
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return MalformedCall(body, f"a tool call must be of the form {_EXAMPLE}")
    if not isinstance(arguments, dict):
        return MalformedCall(body, "the arguments of a tool call must be a JSON object")
    return ToolCall(name=value["name"], arguments=arguments)
