"""Tool parsers: how a model family writes tool calls, by name."""

from __future__ import annotations

from rllm_agents.errors import UserError
from rllm_agents.tool_parsers.base import MalformedCall, ParsedResponse, ToolCall, ToolParser
from rllm_agents.tool_parsers.qwen import QwenToolParser

__all__ = [
    "TOOL_PARSERS",
    "MalformedCall",
    "ParsedResponse",
    "QwenToolParser",
    "ToolCall",
    "ToolParser",
    "get_tool_parser",
]

TOOL_PARSERS: dict[str, type[ToolParser]] = {
    "hermes": QwenToolParser,
    "qwen": QwenToolParser,
}


def get_tool_parser(name: str) -> ToolParser:
    """Make the parser of a name.

    Raises:
        UserError: When there is none of that name; lists those there are.
    """
    if name not in TOOL_PARSERS:
        raise UserError(f"parser_name must be one of {', '.join(TOOL_PARSERS)}; got {name!r}")
    return TOOL_PARSERS[name]()
