from __future__ import annotations

import ast
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rllm_agents.tool_parsers import MalformedCall, PythonicToolParser, ToolCall
from rllm_agents.tool_parsers.pythonic import MAX_CHARACTERS, MAX_DEPTH


def parse(text: str) -> tuple[str, tuple[ToolCall | MalformedCall, ...]]:
    parsed = PythonicToolParser().parse(text)
    return parsed.content, parsed.calls


def only(text: str) -> ToolCall | MalformedCall:
    (call,) = parse(text)[1]
    return call


def test_calls_are_read_in_order_with_the_text_after_them() -> None:
    assert parse('[add(a=1, b=-2.5), fs.read(path="x"), stop()] Done.') == (
        "Done.",
        (ToolCall("add", {"a": 1, "b": -2.5}), ToolCall("fs.read", {"path": "x"}), STOP),
    )


STOP = ToolCall("stop", {})


def test_calls_may_stand_between_tags() -> None:
    assert parse("Now <|python_start|>[stop()]<|python_end|> wait") == ("Now  wait", (STOP,))


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("[1, [2, 3], ()]", [1, [2, 3], []]),
        ('{"a": {"b": [True, None]}, "c": 1,}', {"a": {"b": [True, None]}, "c": 1}),
        ("true", True),
        ("[false, null]", [False, None]),
        ("+1", 1),
        ("-1e3", -1000.0),
        (".5", 0.5),
        ("'it\\'s'", "it's"),
        ('"a" "b"', "ab"),
        ('"tab\\tnew\\nline \\\\ \\x41 \\u00e9 \\101"', "tab\tnew\nline \\ A é A"),
        ('"\\d+ \\. \\400"', "\\d+ \\. \\400"),
        ('"[f(x=1)] # lambda: 0"', "[f(x=1)] # lambda: 0"),
        ('""', ""),
    ],
)
def test_arguments_are_literals(literal: str, value: object) -> None:
    assert only(f"[f(x={literal})]") == ToolCall("f", {"x": value})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[f(1)]", "must be named"),
        ("[f(x=1, x=2)]", "given twice"),
        ("[f(x=g())]", "must be a literal"),
        ("[f(x=y)]", "must be a literal"),
        ("[f(x=y.z)]", "must be a literal"),
        ("[f(x={1, 2})]", "set is no JSON value"),
        ("[f(x={1: 2})]", "keys must be text"),
        ("[f(x=1e999)]", "too large"),
        ("[f(), 3]", "must be of the form"),
        ("[f()", "not closed"),
        ("[f(x=1", "not closed"),
        ("[f(x=1]", "unexpected ']'"),
        ("[f(x=1)(2)]", "unexpected '(2)"),
        ("[f(x=1 + 2)]", "unexpected '+ 2)]'"),
        ("[f(x=2**9)]", "unexpected '**9)]'"),
        ("[f(x=[1][0])]", "unexpected '[0])]'"),
        ("[f(x=--1)]", "unexpected '-1)]'"),
        ("[f(x=lambda: 0)]", "unexpected 'lambda"),
        ("[f(x=not 1)]", "unexpected 'not"),
        ("[f(x=1 if 1 else 2)]", "unexpected 'if"),
        ("[f(x=[i for i in y])]", "unexpected 'for"),
        ("[f(*y)]", "unexpected '*y"),
        ("[f(x=0x1f)]", "unexpected 'x1f"),
        ("[f(x=1j)]", "unexpected 'j"),
        ('[f(x=f"a")]', 'unexpected \'"a"'),
        ('[f(x="""a""")]', "unexpected"),
        ('[f(x="no end)]', "unexpected"),
        ("[f(x=a:=1)]", "unexpected ':=1"),
        ("[f(x={**y})]", "unexpected '**y"),
        ("[f(x=01)]", "not valid Python"),
        ('[f(x="\\N{no such name}")]', "not valid Python"),
        ("[f(x=1) g(y=2)]", "unexpected 'g(y=2)]'"),
        ("[f(x=\x00)]", "unexpected"),
    ],
)
def test_what_cannot_be_read_is_a_malformed_call_with_the_problem(text: str, problem: str) -> None:
    calls = [c for c in parse(text)[1] if isinstance(c, MalformedCall)]
    assert len(calls) == 1
    assert problem in calls[0].error


def test_one_wrong_call_leaves_the_others() -> None:
    first, second, third = parse("[stop(), f(1), stop()]")[1]
    assert first == third == STOP
    assert isinstance(second, MalformedCall)
    assert second.text == "f(1)"


def test_text_that_only_resembles_a_list_of_calls_is_an_answer() -> None:
    for answer in ("[1, 2]", "[f]", "f(x=1)", "[(1)]", "so [f(x=1)]", "[]"):
        assert parse(answer) == (answer, ())


def test_brackets_may_be_nested_as_deep_as_allowed_and_no_deeper() -> None:
    free = MAX_DEPTH - 2
    call = only(f"[f(x={'[' * free}{']' * free})]")
    assert isinstance(call, ToolCall)
    deeper = only(f"[f(x={'[' * (free + 1)}{']' * (free + 1)})]")
    assert isinstance(deeper, MalformedCall)


@pytest.mark.parametrize(
    "bomb",
    [
        *("[", "(", "{", "-", "- ", "not ", "lambda:", "f(", "x=", "a.", "1-", "1,", '"a" ', "()"),
        *("[0]", "{0:", "x if y else ", "await ", "*", "**", "~", "1<", "a and ", "{'a':", "y:="),
    ],
)
def test_text_that_would_exhaust_the_stack_of_a_parser_is_harmless(bomb: str) -> None:
    start = time.process_time()
    for opening in ("[f(x=", "[f(", "[f(x=1)", "[f(x={"):
        for length in (1_000, MAX_CHARACTERS - 100, 10 * MAX_CHARACTERS):
            parse(opening + bomb * (length // len(bomb)))
            parse(opening + bomb * (length // len(bomb)) + "1)]")
    assert time.process_time() - start < 3.0


def test_longer_lists_than_allowed_are_malformed_and_say_so() -> None:
    call = only(f'[f(x="{"a" * (MAX_CHARACTERS + 1)}"), g()]')
    assert isinstance(call, MalformedCall)
    assert str(MAX_CHARACTERS) in call.error
    assert isinstance(only(f'[f(x="{"a" * (MAX_CHARACTERS - 100)}")]'), ToolCall)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False)
    # repr writes infinities as names, which are no literals.
    .filter(lambda x: abs(x) < 1e300)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(JSON)
def test_what_python_writes_of_a_value_is_read_back(value: object) -> None:
    assert only(f"[f(x={value!r})]") == ToolCall("f", {"x": value})


PIECES = st.sampled_from(
    [*"[](){},:='\"\\-+.01 \n#*", "f", "x=", "None", "lambda", "'a'", '"b"', '"""', "[f(x=", ")]"]
)


@settings(deadline=None, max_examples=500)
@given(st.lists(PIECES, max_size=25).map("".join))
def test_what_is_accepted_means_what_python_says(text: str) -> None:
    """Each call that is read is one of the list that Python itself finds in the text."""
    source = f"[f(x={text})]"
    content, calls = parse(source)
    if all(isinstance(call, ToolCall) for call in calls) and not content:
        spelled = ast.parse(source, mode="eval").body
        assert isinstance(spelled, ast.List)
        assert len(spelled.elts) == len(calls)
        for node, call in zip(spelled.elts, calls, strict=True):
            assert isinstance(node, ast.Call)
            found = {str(k.arg): ast.literal_eval(k.value) for k in node.keywords}
            assert json.dumps(found) == json.dumps(dict(call.arguments))  # type: ignore[union-attr]
