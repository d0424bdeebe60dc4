# ruff: noqa: RUF001  (the control strings hold full-width bars)
from __future__ import annotations

import pytest

from rllm_agents.tool_parsers import DeepSeekToolParser, MalformedCall, ToolCall, get_tool_parser

BEGIN, END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
OPEN, CLOSE, SEP = "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>"


def parse(text: str) -> tuple[str, tuple[ToolCall | MalformedCall, ...]]:
    parsed = DeepSeekToolParser().parse(text)
    return parsed.content, parsed.calls


def test_calls_of_r1_and_v3_are_read_with_the_text_around_them() -> None:
    assert parse(
        f'hm</think>Let me see.\n{BEGIN}{OPEN}function{SEP}add\n```json\n{{"a": 1}}\n```{CLOSE}\n'
        f"{OPEN}function{SEP}stop\n```json\n{{}}\n```{CLOSE}{END}"
    ) == ("Let me see.", (ToolCall("add", {"a": 1}), ToolCall("stop", {})))


def test_calls_of_v31_are_read() -> None:
    assert parse(f'{BEGIN}{OPEN}add{SEP}{{"a": 1}}{CLOSE}{OPEN}stop{SEP}{{}}{CLOSE}{END}') == (
        "",
        (ToolCall("add", {"a": 1}), ToolCall("stop", {})),
    )


def test_a_last_call_may_lack_its_end_and_any_its_arguments() -> None:
    assert parse(f"{OPEN}function{SEP}stop")[1] == (ToolCall("stop", {}),)
    assert parse(f'{BEGIN}{OPEN}add{SEP}{{"a": 1}}{END}')[1] == (ToolCall("add", {"a": 1}),)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("add", "must be of the form"),
        (f"function{SEP}", "must be of the form"),
        (f'{SEP}{{"a": 1}}', "must be of the form"),
        (f"two\nlines{SEP}{{}}", "must be of the form"),
        (f"function{SEP}add\n```json\nnope\n```", "not valid JSON"),
        (f"function{SEP}add\n```json\n[1]\n```", "must be a JSON object"),
        (f"add{SEP}" + "[" * 100_000, "not valid JSON"),
    ],
)
def test_what_cannot_be_read_is_a_malformed_call_with_the_problem(body: str, problem: str) -> None:
    (call,) = parse(f"{OPEN}{body}{CLOSE}")[1]
    assert isinstance(call, MalformedCall)
    assert problem in call.error
    assert call.text == body


def test_an_opening_without_any_call_is_malformed() -> None:
    content, (call,) = parse(f'Now. {BEGIN}add {{"a": 1}}{END}')
    assert content == "Now."
    assert isinstance(call, MalformedCall)
    assert 'add {"a": 1}' in call.text


def test_it_goes_by_two_names() -> None:
    assert type(get_tool_parser("r1")) is type(get_tool_parser("deepseek")) is DeepSeekToolParser
