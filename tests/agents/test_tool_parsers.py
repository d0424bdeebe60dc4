# ruff: noqa: RUF001  (control strings of one family hold full-width bars)
from __future__ import annotations

import json
import time

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


def test_numbers_that_only_python_takes_for_json_are_refused() -> None:
    for number in ("NaN", "-Infinity", "1e999"):
        (call,) = parse(f'<tool_call>{{"name": "f", "arguments": {{"x": {number}}}}}</tool_call>')[
            1
        ]
        assert isinstance(call, MalformedCall)
        assert "not valid JSON" in call.error


def test_the_prompt_presents_every_tool_and_the_form_of_a_call() -> None:
    schema = {"type": "function", "function": {"name": "look_up", "parameters": {}}}
    prompt = get_tool_parser("qwen").tool_prompt([schema])
    assert '"name": "look_up"' in prompt
    assert "<tool_call>" in prompt


def test_an_unknown_parser_lists_those_that_exist() -> None:
    with pytest.raises(UserError, match=r"hermes, .*qwen, r1 or vllm:<name>; got 'nope'"):
        get_tool_parser("nope")


# What holds for every parser

CALLS = {
    "qwen": ('<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>', ""),
    "deepseek": ('<｜tool▁call▁begin｜>f<｜tool▁sep｜>{"x": 1}<｜tool▁call▁end｜>', ""),
    "llama3_json": ('{"name": "f", "parameters": {"x": 1}}', "; "),
    "mistral": ('f{"x": 1}', " "),
    "pythonic": ("f(x=1)", ", "),
}
ALL = sorted(CALLS)
TRICKS = [
    *("<tool_call>", "</tool_call>", "</think>", "<think>", '{"name"', ":", "}", "{", "[", "]"),
    *("<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"),
    *("[TOOL_CALLS]", "[ARGS]", "<|python_tag|>", "<|python_start|>", "f(", "x=", ")", ","),
    *('"', "'", "\\", "\n", "f", "1", "-", "lambda", "\ud800", '"parameters"', "function", " "),
]


def text_of(name: str, count: int) -> str:
    call, between = CALLS[name]
    text = between.join([call] * count)
    return f"[{text}]" if name == "pythonic" else text


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("count", [1, 2, 64])
def test_every_call_is_read(name: str, count: int) -> None:
    parsed = get_tool_parser(name).parse(text_of(name, count))
    assert parsed.calls == (ToolCall("f", {"x": 1}),) * count
    assert parsed.content == ""


@pytest.mark.parametrize("name", ALL)
def test_the_calls_after_the_64th_are_one_that_says_so(name: str) -> None:
    calls = get_tool_parser(name).parse(text_of(name, 100)).calls
    assert calls[:64] == (ToolCall("f", {"x": 1}),) * 64
    (last,) = calls[64:]
    assert isinstance(last, MalformedCall)
    assert "at most 64 tool calls" in last.error


@pytest.mark.parametrize("name", ALL)
def test_calls_that_are_only_thought_of_are_not_made(name: str) -> None:
    parsed = get_tool_parser(name).parse(f"<think>{text_of(name, 1)}</think>Done.")
    assert (parsed.content, parsed.calls) == ("Done.", ())


@pytest.mark.parametrize("name", ALL)
def test_a_plain_answer_holds_no_call(name: str) -> None:
    for answer in ("The answer is \\boxed{4}.", "", "[1, 2]", '{"answer": 4}', "f(x) = {1}"):
        parsed = get_tool_parser(name).parse(answer)
        assert (parsed.content, parsed.calls) == (answer, ())


@pytest.mark.parametrize("name", ALL)
def test_a_call_cut_short_is_malformed_and_says_why(name: str) -> None:
    text = text_of(name, 1)
    cut = text[: text.rindex("1")]
    (call,) = get_tool_parser(name).parse(cut).calls
    assert isinstance(call, MalformedCall)
    assert call.error and call.text


@pytest.mark.parametrize("name", ALL)
def test_the_form_that_the_prompt_shows_is_one_that_the_parser_reads(name: str) -> None:
    schema = {"type": "function", "function": {"name": "look_up", "parameters": {}}}
    prompt = get_tool_parser(name).tool_prompt([schema])
    presented, _, how = prompt.partition("</tools>")
    assert '"name": "look_up"' in presented
    form = how.partition(":\n")[2].partition("\nYou may write several")[0]
    spelled = "f" if name in ("deepseek", "pythonic") else '"f"'
    for blank, filled in (
        ("<function-name>", spelled),
        ("<args-json-object>", '{"x": 1}'),
        ("<argument>=<value>, ...", "x=1"),
    ):
        form = form.replace(blank, filled)
    assert get_tool_parser(name).parse(form).calls == (ToolCall("f", {"x": 1}),)


@given(st.sampled_from(ALL), st.lists(st.sampled_from(TRICKS), max_size=40).map("".join))
def test_no_text_makes_a_parser_raise_and_calls_are_json(name: str, text: str) -> None:
    for call in get_tool_parser(name).parse(text).calls:
        if isinstance(call, MalformedCall):
            assert call.error
        else:
            assert call.name
            json.dumps(dict(call.arguments), allow_nan=False)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("trick", TRICKS)
def test_hostile_text_costs_linear_time(name: str, trick: str) -> None:
    parser = get_tool_parser(name)
    opening = CALLS[name][0][:-3]
    texts = [start + trick * (60_000 // len(trick)) for start in ("", opening, f"[{opening}")]
    start = time.process_time()
    for text in texts:
        parser.parse(text)
    assert time.process_time() - start < 1.0  # linear: a few ms; quadratic: minutes


@pytest.mark.parametrize("name", ALL)
def test_many_whole_calls_and_many_broken_ones_cost_linear_time(name: str) -> None:
    parser = get_tool_parser(name)
    start = time.process_time()
    parser.parse(text_of(name, 20_000))
    parser.parse(CALLS[name][0][:-2] * 20_000)
    parser.parse('{"name": "f", ' * 20_000)
    assert time.process_time() - start < 2.0


# Calls that are written

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12)
    | st.lists(st.sampled_from(TRICKS), max_size=6).map("".join),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)
KEYS = st.sampled_from(["x", "city", "text_2", "name", "arguments", "parameters", "é"])


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"nested": {"list": [1, [2.5, -3, True, False, None], {}], "empty": []}},
        {"text": "grüße 東京 🙂 \u2028", "lone": "\ud800"},
        {"quoted": 'it\'s "so"', "path": "C:\\n\\", "lines": "a\n\tb\r", "json": '{"a": "\\""}'},
        {"large": 10**30, "small": 1e-300, "huge": 1.5e300},
    ],
)
def test_a_written_call_reads_back(name: str, arguments: dict[str, object]) -> None:
    parser = get_tool_parser(name)
    calls = (ToolCall("look_up", arguments), ToolCall("fs.read", {}))
    for written in (calls[:1], calls, calls * 3):
        parsed = parser.parse(parser.call_text(*written))
        assert (parsed.content, parsed.calls) == ("", written)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("trick", TRICKS)
def test_a_written_call_reads_back_whatever_marks_its_arguments_spell(
    name: str, trick: str
) -> None:
    parser = get_tool_parser(name)
    call = ToolCall("f", {"x": f"a{trick}b", "y": [trick, {trick: f"\\{trick}"}, trick * 2]})
    assert parser.parse(parser.call_text(call)).calls == (call,)


@given(st.sampled_from(ALL), st.lists(st.dictionaries(KEYS, JSON, max_size=4), min_size=1))
def test_written_calls_of_any_json_read_back(name: str, arguments: list[dict[str, object]]) -> None:
    parser = get_tool_parser(name)
    if name == "pythonic":  # its names are ASCII, as those of tools are
        arguments = [{k: v for k, v in given.items() if k.isascii()} for given in arguments]
    calls = tuple(ToolCall("f", given) for given in arguments)
    assert parser.parse(parser.call_text(*calls)).calls == calls


def test_written_calls_have_the_form_of_their_family() -> None:
    calls = (ToolCall("f", {"x": 1, "ok": True}), ToolCall("g", {}))
    assert {name: get_tool_parser(name).call_text(*calls) for name in ALL} == {
        "qwen": '<tool_call>\n{"name": "f", "arguments": {"x": 1, "ok": true}}\n</tool_call>\n'
        '<tool_call>\n{"name": "g", "arguments": {}}\n</tool_call>',
        "deepseek": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n"
        '{"x": 1, "ok": true}\n```<｜tool▁call▁end｜>\n'
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        "llama3_json": '{"name": "f", "parameters": {"x": 1, "ok": true}}\n'
        '{"name": "g", "parameters": {}}',
        "mistral": '[TOOL_CALLS][{"name": "f", "arguments": {"x": 1, "ok": true}}, '
        '{"name": "g", "arguments": {}}]',
        "pythonic": "[f(x=1, ok=True), g()]",
    }
