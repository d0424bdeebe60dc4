"""Tool calls written as a Python list of calls, as Llama 3.2, Llama 4 and ToolACE models do.

Nothing is evaluated. Text reaches `ast.parse` only after a pass of our own over its tokens: names,
literals and brackets in an order that literals and calls can have, of bounded length and depth, so
that no text can exhaust the interpreter's stack.
"""

from __future__ import annotations

import ast
import keyword
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from rllm_agents.conversation import THOUGHT_CLOSE
from rllm_agents.tool_parsers.base import (
    MAX_CALLS,
    MalformedCall,
    ParsedResponse,
    ToolCall,
    ToolParser,
    after_thought,
    present_tools,
    too_many_calls,
)

MAX_CHARACTERS = 50_000
"""Longest list of calls that is read."""
MAX_DEPTH = 32
"""Most brackets that may be open at once."""
_OPEN_TAG, _CLOSE_TAG = "<|python_start|>", "<|python_end|>"
_FORM = "[<function-name>(<argument>=<value>, ...)]"
_START = re.compile(r"\[\s*[A-Za-z_][A-Za-z0-9_.]*\s*\(")
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
    | (?P<string>"(?:[^"\\\n]|\\[\s\S])*" | '(?:[^'\\\n]|\\[\s\S])*')
    | (?P<number>(?:[0-9]{1,300}(?:\.[0-9]{0,300})?|\.[0-9]{1,300})(?:[eE][+-]?[0-9]{1,4})?)
    | (?P<name>[A-Za-z_][A-Za-z0-9_]{0,63}(?:\.[A-Za-z_][A-Za-z0-9_]{0,63}){0,7})
    | (?P<sign>[+-])
    | (?P<open>[\[({])
    | (?P<close>[\])}])
    | (?P<comma>,)
    | (?P<colon>:)
    | (?P<equals>=)""",
    re.VERBOSE,
)
_BEGINNING = frozenset({"start", "open", "comma", "colon", "equals"})
_MAY_FOLLOW = {
    "string": _BEGINNING | {"string"},
    "number": _BEGINNING | {"sign"},
    "name": _BEGINNING,
    "sign": _BEGINNING,
    "close": frozenset({"open", "comma", "string", "number", "name", "close"}),
    "comma": frozenset({"string", "number", "name", "close"}),
    "colon": frozenset({"string", "number", "name", "close"}),
    "equals": frozenset({"name"}),
}
# Where a colon and an equals sign belong: in a mapping, and between the parentheses of a call.
_INSIDE = {"colon": "{", "equals": "("}
_PAIRS = {")": "(", "]": "[", "}": "{"}
_CONSTANTS = {"true": "True", "false": "False", "null": "None"}
# A backslash before anything else means itself, which Python reads with a warning.
_ODD_ESCAPE = re.compile(
    r"""\\(?:[\n\\'"abfnrtvxNuU]|[0-3][0-7]{0,2}|[4-7][0-7]?(?![0-7])|([\s\S]))"""
)


class PythonicToolParser(ToolParser):
    """Reads ``[f(x=1, y="a"), g()]`` that opens or is the text, or stands between its tags."""

    def parse(self, text: str) -> ParsedResponse:
        """Take a response apart.

        Calls inside a thought (before the last ``</think>``) are only thought of. A list that
        cannot be read is one malformed call. At most 64 calls are read; the rest is another.
        """
        said = after_thought(text)
        content, tag, rest = said.partition(_OPEN_TAG)
        if not tag:
            content, rest = "", said.strip()
            if _START.match(rest) is None:
                return ParsedResponse(content=rest, calls=())
        body, _, after = rest.partition(_CLOSE_TAG)
        source, end, problem = _checked(body.strip())
        if problem:
            calls: list[ToolCall | MalformedCall] = [MalformedCall(body.strip(), problem)]
        else:
            calls = _calls(source)
            after = body.strip()[end:] + after
        return ParsedResponse(content=(content + after).strip(), calls=tuple(calls))

    def tool_prompt(self, schemas: Sequence[Mapping[str, Any]]) -> str:
        """Present tools, one JSON schema per line, and the form of a call."""
        return present_tools(
            schemas,
            "To call some, write only a Python list of calls with named arguments, whose values "
            f"are literals:\n{_FORM}",
        )

    def call_text(self, *calls: ToolCall) -> str:
        """Write calls as one list."""
        text = f"[{', '.join(map(_call_source, calls))}]"
        for mark in (_OPEN_TAG, _CLOSE_TAG, THOUGHT_CLOSE):
            # Marks stand only inside of strings, in which Python reads the escape.
            text = text.replace(mark, f"\\x{ord(mark[0]):02x}{mark[1:]}")
        return text


def _call_source(call: ToolCall) -> str:
    return f"{call.name}({', '.join(f'{k}={v!r}' for k, v in call.arguments.items())})"


def _checked(body: str) -> tuple[str, int, str]:
    """Pass over the list that `body` begins with.

    Returns:
        The list as source that is safe to parse, where it ends in `body`, and what is wrong with
        it, which is empty where nothing is.
    """
    source: list[str] = []
    opened: list[str] = []
    at, before = 0, "start"
    while at < min(len(body), MAX_CHARACTERS):
        match = _TOKEN.match(body, at)
        kind = str(match.lastgroup) if match else ""
        touches = source[-1:] != [" "]
        if match is None or not _fits(kind, match[0], before, opened, touches=touches):
            return "", 0, f"unexpected {body[at : at + 20]!r} at character {at} of the calls"
        token, at = match[0], match.end()
        if kind == "open":
            opened.append(token)
        elif kind == "close":
            opened.pop()
        source.append(_spelled(kind, token))
        if not opened:
            return "".join(source), at, ""
        before = before if kind == "space" else kind
    if len(body) > MAX_CHARACTERS:
        return "", 0, f"the calls have more than {MAX_CHARACTERS} characters"
    return "", 0, "the list of calls is not closed"


def _fits(kind: str, token: str, before: str, opened: list[str], *, touches: bool) -> bool:
    """Whether a token may stand here, in literals and calls with named arguments.

    Args:
        kind: Group of `_TOKEN`.
        token: Its text.
        before: Kind of the token before it, spaces left out.
        opened: Brackets that are open.
        touches: Whether no space stands before it.
    """
    if kind == "space":
        return True
    if kind == "open":
        # Only a list may begin; only a name is called, and a tuple stands where a value does.
        is_value = before in _BEGINNING and (bool(opened) or token == "[")
        is_call = token == "(" and before == "name"
        return (is_value or is_call) and len(opened) < MAX_DEPTH
    if not opened or before not in _MAY_FOLLOW[kind]:
        return False
    if kind == "string":
        # Three quotes in a row would begin another kind of string for Python than here.
        return before != "string" or not touches
    if kind == "name":
        return not keyword.iskeyword(token) or token in ("True", "False", "None")
    if kind == "close":
        return opened[-1] == _PAIRS[token]
    return opened[-1] == _INSIDE.get(kind, opened[-1])


def _spelled(kind: str, token: str) -> str:
    if kind == "space":
        return " "
    if kind == "string":
        return _ODD_ESCAPE.sub(lambda m: "\\" + m[0] if m[1] is not None else m[0], token)
    return _CONSTANTS.get(token, token) if kind == "name" else token


def _calls(source: str) -> list[ToolCall | MalformedCall]:
    try:
        parsed = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return [MalformedCall(source, f"the calls are not valid Python: {error}"[:300])]
    nodes = parsed.elts if isinstance(parsed, ast.List) else []
    if not nodes:
        return [MalformedCall(source, f"tool calls must be of the form {_FORM}")]
    calls = [_call(node) for node in nodes[:MAX_CALLS]]
    if len(nodes) > MAX_CALLS:
        calls.append(too_many_calls(source))
    return calls


def _call(node: ast.expr) -> ToolCall | MalformedCall:
    written = ast.unparse(node)
    if not isinstance(node, ast.Call):
        return MalformedCall(written, f"tool calls must be of the form {_FORM}")
    name = ast.unparse(node.func)
    if node.args:
        return MalformedCall(written, f"arguments of {name} must be named: {name}(argument=value)")
    arguments: dict[str, Any] = {}
    for argument in node.keywords:
        key = str(argument.arg)
        if key in arguments:
            return MalformedCall(written, f"argument {key} of {name} is given twice")
        try:
            value = ast.literal_eval(argument.value)
        except (ValueError, TypeError):
            return MalformedCall(written, f"argument {key} of {name} must be a literal")
        try:
            arguments[key] = _as_json(value)
        except ValueError as error:
            return MalformedCall(written, f"argument {key} of {name}: {error}")
    return ToolCall(name=name, arguments=arguments)


def _as_json(value: Any) -> Any:
    """Return a literal as JSON has it.

    Raises:
        ValueError: It is a set, a number that is not finite, or a mapping with other keys than
            text.
    """
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise ValueError("keys must be text")
        return {key: _as_json(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a number is too large")
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise ValueError(f"{type(value).__name__} is no JSON value")
