"""Tool parsers: how a model family writes tool calls, by name."""

from __future__ import annotations

from rllm_agents.errors import UserError
from rllm_agents.tool_parsers.base import MalformedCall, ParsedResponse, ToolCall, ToolParser
from rllm_agents.tool_parsers.deepseek import DeepSeekToolParser
from rllm_agents.tool_parsers.llama import LlamaToolParser
from rllm_agents.tool_parsers.mistral import MistralToolParser
from rllm_agents.tool_parsers.pythonic import PythonicToolParser
from rllm_agents.tool_parsers.qwen import QwenToolParser
from rllm_agents.tool_parsers.vllm import VLLMToolParser

__all__ = [
    "TOOL_PARSERS",
    "DeepSeekToolParser",
    "LlamaToolParser",
    "MalformedCall",
    "MistralToolParser",
    "ParsedResponse",
    "PythonicToolParser",
    "QwenToolParser",
    "ToolCall",
    "ToolParser",
    "VLLMToolParser",
    "get_tool_parser",
]

TOOL_PARSERS: dict[str, type[ToolParser]] = {
    "deepseek": DeepSeekToolParser,
    "hermes": QwenToolParser,
    "llama3_json": LlamaToolParser,
    "mistral": MistralToolParser,
    "pythonic": PythonicToolParser,
    "qwen": QwenToolParser,
    "r1": DeepSeekToolParser,
}

_VLLM = "vllm:"


def get_tool_parser(name: str) -> ToolParser:
    """Make the parser of a name.

    Args:
        name: A key of `TOOL_PARSERS`, or ``vllm:`` and the name of a parser of vLLM.

    Raises:
        UserError: When there is none of that name; lists those there are.
    """
    if isinstance(name, str) and name.startswith(_VLLM):
        return VLLMToolParser(name.removeprefix(_VLLM))
    if name not in TOOL_PARSERS:
        known = ", ".join(TOOL_PARSERS)
        raise UserError(f"parser_name must be one of {known} or {_VLLM}<name>; got {name!r}")
    return TOOL_PARSERS[name]()
