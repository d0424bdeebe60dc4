from __future__ import annotations

import pytest

from rllm_agents.tool_parsers import LlamaToolParser, MalformedCall, ToolCall

ADD = '{"name": "add", "parameters": {"a": 1}}'


def parse(text: str) -> tuple[str, tuple[ToolCall | MalformedCall, ...]]:
    parsed = LlamaToolParser().parse(text)
    return parsed.content, parsed.calls


@pytest.mark.parametrize(
    "text",
    [
        ADD,
        f"<|python_tag|>{ADD}",
        '{"type": "function", "name": "add", "parameters": {"a": 1}}',
        '{"parameters": {"a": 1}, "name": "add"}',
        '{"name": "add", "arguments": {"a": 1}}',
        '{"name": "add", "parameters": "{\\"a\\": 1}"}',
    ],
)
def test_one_call_may_be_written_in_several_ways(text: str) -> None:
    assert parse(text) == ("", (ToolCall("add", {"a": 1}),))


def test_calls_follow_one_another_with_or_without_a_mark_between() -> None:
    stop = '{"name": "stop"}'
    expected = (ToolCall("add", {"a": 1}), ToolCall("stop", {}), ToolCall("stop", {}))
    assert parse(f"{ADD}; {stop}\n{stop}") == ("", expected)


def test_a_call_amid_prose_needs_parameters() -> None:
    assert parse(f"I call {ADD} for that.") == ("I call for that.", (ToolCall("add", {"a": 1}),))
    quoting = 'The record is {"name": "Bob", "age": 3}.'
    assert parse(quoting) == (quoting, ())


def test_an_answer_that_quotes_broken_json_stays_an_answer() -> None:
    quoting = 'In JavaScript: {"name": name}.'
    assert parse(quoting) == (quoting, ())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"name": "add", "parameters": {"a": }}', "not valid JSON"),
        ('{"name": "add", "parameters": {"a": 1}', "not valid JSON"),
        ('{"name": 3, "parameters": {}}', "must be of the form"),
        ('{"function": "add", "parameters": {}}', "must be of the form"),
        ('{"name": "add", "parameters": [1]}', "must be a JSON object"),
        ('{"name": "add", "parameters": "{"}', "not valid JSON"),
        ('{"name": ' + "[" * 100_000, "not valid JSON"),
    ],
)
def test_what_cannot_be_read_is_a_malformed_call_with_the_problem(text: str, problem: str) -> None:
    (call,) = parse(text)[1]
    assert isinstance(call, MalformedCall)
    assert problem in call.error
    assert call.text == text


def test_what_follows_the_tag_must_be_a_call() -> None:
    content, (call,) = parse('Now. <|python_tag|>search.call(query="x")')
    assert content == "Now."
    assert isinstance(call, MalformedCall)
    assert call.text == 'search.call(query="x")'


def test_a_broken_call_after_a_whole_one_is_told_beside_it() -> None:
    content, calls = parse(f'Both: {ADD} and {{"name": "stop", "parameters": {{')
    assert content == "Both: and"
    assert calls[0] == ToolCall("add", {"a": 1})
    assert isinstance(calls[1], MalformedCall)
    assert calls[1].text == '{"name": "stop", "parameters": {'
