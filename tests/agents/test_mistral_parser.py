from __future__ import annotations

import pytest

from rllm_agents.tool_parsers import MalformedCall, MistralToolParser, ToolCall

ADD = ToolCall("add", {"a": 1})
STOP = ToolCall("stop", {})


def parse(text: str) -> tuple[str, tuple[ToolCall | MalformedCall, ...]]:
    parsed = MistralToolParser().parse(text)
    return parsed.content, parsed.calls


@pytest.mark.parametrize("mark", ["[TOOL_CALLS]", "[TOOL_CALLS] ", ""])
def test_a_list_of_calls_is_read_with_and_without_its_mark(mark: str) -> None:
    text = '[{"name": "add", "arguments": {"a": 1}}, {"name": "stop", "arguments": {}}]'
    assert parse(mark + text) == ("", (ADD, STOP))


@pytest.mark.parametrize(
    "text",
    [
        '[TOOL_CALLS]add[ARGS]{"a": 1}[TOOL_CALLS]stop[ARGS]{}',
        '[TOOL_CALLS]add{"a": 1}[TOOL_CALLS]stop{}',
        'add{"a": 1}stop{}',
    ],
)
def test_calls_by_name_are_read_with_and_without_their_marks(text: str) -> None:
    assert parse(text) == ("", (ADD, STOP))


def test_the_text_around_the_calls_is_kept() -> None:
    assert parse('See: [TOOL_CALLS][{"name": "add", "arguments": {"a": 1}}] Done.') == (
        "See:  Done.",
        (ADD,),
    )


def test_lists_and_sets_in_an_answer_are_no_calls() -> None:
    for answer in ('[{"x": 1}]', "[1, 2]", "S = {1, 2}", 'as in "f{x}"'):
        assert parse(answer) == (answer, ())


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('[{"name": "add", "arguments": {"a": }}]', "not valid JSON"),
        ('[{"name": "add"', "not valid JSON"),
        ("[]", "is empty"),
        ("[1]", "must be of the form"),
        ('[{"arguments": {}}]', "must be of the form"),
        ('[{"name": "add", "arguments": [1]}]', "must be a JSON object"),
        ("add(1)", "must be of the form"),
        ('add[ARGS]{"a":', "not valid JSON"),
        ("", "must be of the form"),
    ],
)
def test_what_cannot_be_read_is_a_malformed_call_with_the_problem(body: str, problem: str) -> None:
    (call,) = parse(f"[TOOL_CALLS]{body}")[1]
    assert isinstance(call, MalformedCall)
    assert problem in call.error
    assert call.text == body


def test_one_wrong_call_of_a_list_leaves_the_others() -> None:
    first, second = parse('[TOOL_CALLS][{"name": "stop"}, {"nom": "add"}]')[1]
    assert first == STOP
    assert isinstance(second, MalformedCall)
