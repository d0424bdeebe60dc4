"""What a tool parser does: text of the model to tool calls, and tools to a prompt."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rllm_agents.conversation import THOUGHT_CLOSE

MAX_CALLS = 64
"""Most calls that are read of one response: a hostile one must not become a million answers."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that the model wrote. Made by a ToolParser, read by ToolAgent."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MalformedCall:
    """A call that could not be read. Made by a ToolParser, read by ToolAgent."""

    text: str
    """What the model wrote in place of a call."""
    error: str
    """What is wrong with it, for the model to read."""


@dataclass(frozen=True, slots=True)
class ParsedResponse:
    """A response taken apart. Made by a ToolParser, read by ToolAgent."""

    content: str
    """The text outside of calls."""
    calls: tuple[ToolCall | MalformedCall, ...]
    """In the order written."""


class ToolParser(ABC):
    """How one family of models is told of tools and writes calls."""

    @abstractmethod
    def parse(self, text: str) -> ParsedResponse:
        """Take a response apart. Never raises: what cannot be read is a MalformedCall."""

    @abstractmethod
    def tool_prompt(self, schemas: Sequence[Mapping[str, Any]]) -> str:
        """Text for the system message that presents tools.

        Args:
            schemas: One ``{"type": "function", "function": {...}}`` for each tool.
        """

    @abstractmethod
    def call_text(self, *calls: ToolCall) -> str:
        """Write calls as a model of this family would; `parse` reads them back.

        A name or an argument that the family's form has no place for stands there all the same.

        Args:
            calls: At least one, with arguments that are JSON.
        """


def after_thought(text: str) -> str:
    """Return what follows the last thought: calls inside one are only thought of."""
    return text.rpartition(THOUGHT_CLOSE)[2]


def present_tools(schemas: Sequence[Mapping[str, Any]], how: str) -> str:
    """Present tools to a model, one JSON schema per line.

    Args:
        schemas: As `ToolParser.tool_prompt` takes them.
        how: What a call looks like, in words and by an example.
    """
    lines = "\n".join(json.dumps(schema, ensure_ascii=False) for schema in schemas)
    return (
        "# Tools\n\nYou can call these functions. Their signatures, one per line:\n"
        f"<tools>\n{lines}\n</tools>\n\n{how}\n"
        "You may write several calls. An answer without a call is your final one."
    )


def json_text(value: Any, marks: Sequence[str]) -> str:
    """Write JSON that spells no mark of a family, so that it reads back as it was.

    Args:
        value: Anything that JSON has.
        marks: Strings by which the family's calls are found, which no JSON holds outside of its
            strings. ``</think>`` is always one.
    """
    text = json.dumps(value, ensure_ascii=False)
    for mark in (*marks, THOUGHT_CLOSE):
        text = text.replace(mark, f"\\u{ord(mark[0]):04x}{mark[1:]}")
    return text


def too_many_calls(rest: str) -> MalformedCall:
    """Answer for all calls after the first `MAX_CALLS`, so that the model learns of them."""
    return MalformedCall(rest, f"at most {MAX_CALLS} tool calls are read of one response")


def parse_json_call(body: str, form: str) -> ToolCall | MalformedCall:
    """Read one call that is a JSON object.

    Args:
        body: The object.
        form: What a call looks like, for the model to read when it does not.
    """
    try:
        return call_of(load_json(body), body, form)
    except (ValueError, RecursionError) as error:
        return MalformedCall(body, f"the tool call is not valid JSON: {error}"[:300])


def call_of(value: Any, body: str, form: str) -> ToolCall | MalformedCall:
    """Make a call of a decoded JSON object with a name and arguments, or say what it lacks.

    Args:
        value: The object; its arguments may be named ``parameters``, be missing, or be an object
            written as a string of JSON once more.
        body: What the model wrote.
        form: What a call looks like, for the model to read when this one does not.
    """
    if not isinstance(value, dict) or not isinstance(value.get("name"), str) or not value["name"]:
        return MalformedCall(body, f"a tool call must be of the form {form}")
    arguments = value.get("arguments", value.get("parameters", {}))
    if isinstance(arguments, str):
        try:
            arguments = load_json(arguments)
        except (ValueError, RecursionError) as error:
            problem = f"the arguments of the tool call are not valid JSON: {error}"
            return MalformedCall(body, problem[:300])
    if not isinstance(arguments, dict):
        return MalformedCall(body, "the arguments of a tool call must be a JSON object")
    return ToolCall(name=value["name"], arguments=arguments)


def load_json(text: str) -> Any:
    """Decode JSON, and nothing that only Python takes for it.

    Raises:
        ValueError: It is not JSON, or holds a number that is not finite.
        RecursionError: It is nested too deeply.
    """
    return json.loads(text, parse_constant=_refuse, parse_float=_finite)


def json_decoder() -> json.JSONDecoder:
    """Make a decoder that reads as `load_json` does, for JSON with other text after it."""
    return json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:40]} is too large for a number")
    return number
