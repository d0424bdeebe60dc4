from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rllm_agents.errors import UserError
from rllm_agents.tool_parsers import MalformedCall, ToolCall, get_tool_parser


def parse(text: str) -> tuple[str, tuple[ToolCall | MalformedCall, ...]]:
    parsed = get_tool_parser("qwen").parse(text)
    return parsed.content, parsed.calls


def test_calls_are_read_in_order_and_the_text_around_them_kept() -> None:
    content, calls = parse(
        'First. <tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call> Then '
        '<tool_call>{"name": "stop", "arguments": {}}</tool_call>'
    )
    assert content == "First.  Then"
    assert calls == (ToolCall("add", {"a": 1}), ToolCall("stop", {}))


def test_text_without_a_call_is_only_content() -> None:
    assert parse("The answer is 4.") == ("The answer is 4.", ())


def test_a_last_call_may_lack_its_closing_tag() -> None:
    assert parse('<tool_call>{"name": "f", "arguments": {}}')[1] == (ToolCall("f", {}),)


def test_calls_inside_a_thought_are_not_made() -> None:
    content, calls = parse('<think><tool_call>{"name": "f"}</tool_call></think>Done.')
    assert (content, calls) == ("Done.", ())


def test_arguments_may_be_missing_or_json_in_a_string() -> None:
    text = (
        '<tool_call>{"name": "f"}</tool_call><tool_call>{"name": "f", "arguments": "{\\"x\\": 2}"}'
    )
    assert parse(text)[1] == (ToolCall("f", {}), ToolCall("f", {"x": 2}))


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("not json", "not valid JSON"),
        ('{"name": "f", "arguments": "{"}', "not valid JSON"),
        ("[1, 2]", "must be of the form"),
        ('{"arguments": {}}', "must be of the form"),
        ('{"name": 3, "arguments": {}}', "must be of the form"),
        ('{"name": "f", "arguments": [1]}', "must be a JSON object"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
def test_what_cannot_be_read_is_a_malformed_call_with_the_problem(body: str, problem: str) -> None:
    (call,) = parse(f"<tool_call>{body}</tool_call>")[1]
    assert isinstance(call, MalformedCall)
    assert problem in call.error
    assert call.text == body


def test_a_flood_of_calls_is_cut() -> None:
    assert len(parse("<tool_call>{}" * 10_000)[1]) == 64


@given(st.lists(st.sampled_from(["<tool_call>", "</tool_call>", "</think>", '{"name"', "}", "x"])))
def test_parsing_never_raises(parts: list[str]) -> None:
    parse("".join(parts))


def test_the_prompt_presents_every_tool_and_the_form_of_a_call() -> None:
    schema = {"type": "function", "function": {"name": "look_up", "parameters": {}}}
    prompt = get_tool_parser("qwen").tool_prompt([schema])
    assert '"name": "look_up"' in prompt
    assert "<tool_call>" in prompt


def test_an_unknown_parser_lists_those_that_exist() -> None:
    with pytest.raises(UserError, match="hermes, qwen; got 'r1'"):
        get_tool_parser("r1")
