"""Tool parsers of vLLM, for model families that have none of ours."""

# ruff: noqa: RUF001  (a control string holds a full-width bar)

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from rllm_agents.errors import UserError
from rllm_agents.tool_parsers.base import (
    MAX_CALLS,
    MalformedCall,
    ParsedResponse,
    ToolCall,
    ToolParser,
    after_thought,
    call_of,
    present_tools,
    too_many_calls,
)
from rllm_agents.tool_parsers.qwen import QwenToolParser

_FORM = "the one that you were trained on"
# Attributes in which parsers of vLLM keep the string that opens a call, and openings of those that
# keep none.
_MARK_NAME = re.compile(r"(?i)(?:tool.*(?:start|begin)(?:_token)?|bot_(?:token|string)|tc_start)")
_USUAL_MARKS = ("<tool_call", "<|tool_call", "<｜tool", "<function", "<invoke", "[TOOL_CALLS]")


class VLLMToolParser(ToolParser):
    """Reads calls with a parser of vLLM, over whole texts.

    vLLM gives back a call that it cannot read as plain text. Where that text holds the string by
    which the parser knows calls, it is a malformed call. How long reading takes is vLLM's affair:
    some of its parsers are slow on hostile text, which ours are not.

    Args:
        name: A name of `vllm.tool_parsers.ToolParserManager`, "kimi_k2" for example.

    Raises:
        UserError: vLLM is not installed, has no parser of that name, or one that needs more than
            text.
    """

    def __init__(self, name: str) -> None:
        if importlib.util.find_spec("vllm") is None:
            raise UserError(
                f"parser_name='vllm:{name}' needs vLLM: install rllm-agents[gpu] or "
                "rllm-agents[cpu], or choose a parser of ours"
            )
        from vllm.tool_parsers import ToolParserManager

        try:
            make: Any = ToolParserManager.get_tool_parser(name)
        except KeyError:
            known = ", ".join(ToolParserManager.list_registered())
            raise UserError(f"vLLM has no tool parser {name!r}; it has {known}") from None
        self._make = make
        self._name = name
        self._request: Any = None
        self._parser: Any = None
        try:
            self._use(())
            self._parser.extract_tool_calls("text", self._request)
        except Exception as error:
            raise UserError(
                f"vLLM's tool parser {name!r} cannot read text alone: "
                f"{type(error).__name__}: {error}"
            ) from error
        self._marks = (*_call_marks(self._parser), *_USUAL_MARKS)

    def _use(self, schemas: Sequence[Mapping[str, Any]]) -> None:
        """Make the parser for tools; some read arguments by the tools' schemas."""
        from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest

        request = {"model": "any", "messages": [{"role": "user", "content": ""}]}
        tools = {"tools": [dict(schema) for schema in schemas]} if schemas else {}
        self._request = ChatCompletionRequest.model_validate(request | tools)
        self._parser = self._make(_AnyTokenizer(), self._request.tools)

    def parse(self, text: str) -> ParsedResponse:
        """Take a response apart, after its last thought."""
        said = after_thought(text)
        try:
            found = self._parser.extract_tool_calls(said, self._request)
        except Exception as error:
            problem = f"the tool call could not be read: {type(error).__name__}: {error}"
            return ParsedResponse(content="", calls=(MalformedCall(said, problem[:300]),))
        if not found.tools_called or not found.tool_calls:
            at = min((said.find(mark) for mark in self._marks if mark in said), default=-1)
            if at < 0 and not found.tools_called:
                return ParsedResponse(content=said.strip(), calls=())
            at = max(at, 0)
            malformed = MalformedCall(said[at:], "the tool call could not be read")
            return ParsedResponse(content=said[:at].strip(), calls=(malformed,))
        calls = [_checked(call.function) for call in found.tool_calls[:MAX_CALLS]]
        if len(found.tool_calls) > MAX_CALLS:
            calls.append(too_many_calls(said))
        return ParsedResponse(content=(found.content or "").strip(), calls=tuple(calls))

    def tool_prompt(self, schemas: Sequence[Mapping[str, Any]]) -> str:
        """Present tools, one JSON schema per line; calls are read by these schemas from then on."""
        self._use(schemas)
        return present_tools(schemas, f"To call one, write it in the form of calls that is {_FORM}")

    def call_text(self, *calls: ToolCall) -> str:
        """Write calls as Hermes models do, where the parser reads that.

        Raises:
            UserError: It does not.
        """
        text = QwenToolParser().call_text(*calls)
        if self.parse(text).calls != calls:
            raise UserError(
                f"vLLM's tool parser {self._name!r} reads another form of calls, which is not "
                "known here: calls that the model did not write itself cannot be shown to it"
            )
        return text


def _checked(function: Any) -> ToolCall | MalformedCall:
    value = {"name": function.name, "arguments": function.arguments or "{}"}
    written = json.dumps(value, ensure_ascii=False)
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", str(function.name)):
        return MalformedCall(written, "the name of the tool call could not be read")
    return call_of(value, written, _FORM)


def _call_marks(parser: Any) -> tuple[str, ...]:
    """Strings by which a parser of vLLM knows that calls begin."""
    named = (getattr(parser, name, None) for name in dir(parser) if _MARK_NAME.fullmatch(name))
    return tuple(mark for mark in named if isinstance(mark, str) and mark.strip())


class _AnyVocabulary(dict[str, int]):
    """Has every token: parsers look up their control strings when they are made."""

    def __contains__(self, token: object) -> bool:
        return True

    def __missing__(self, token: str) -> int:
        self[token] = len(self)
        return self[token]

    def get(self, token: str, default: Any = None) -> Any:
        return self[token]


class _AnyTokenizer:
    """What parsers of vLLM need of a tokenizer where whole texts are read."""

    def __init__(self) -> None:
        self._vocabulary = _AnyVocabulary()

    def get_vocab(self) -> dict[str, int]:
        return self._vocabulary

    @property
    def vocab(self) -> dict[str, int]:
        return self._vocabulary

    def encode(self, text: str, **arguments: Any) -> list[int]:
        return [self._vocabulary[text]]

    def convert_tokens_to_ids(self, token: str) -> int:
        return self._vocabulary[token]
