from __future__ import annotations

import pytest
from agents_fakes import ByteTokenizer
from chat_families import encode, family_tokenizer
from hypothesis import given
from hypothesis import strategies as st

from rllm_agents.channels import channel_reader
from rllm_agents.tool_parsers import MalformedCall, ToolCall, get_tool_parser

ANALYSIS = "<|channel|>analysis<|message|>"
FINAL = "<|channel|>final<|message|>"
NEXT = "<|end|><|start|>assistant"
CALL = "<|channel|>commentary to=functions.add <|constrain|>json<|message|>"


def read(raw: str) -> str:
    reader = channel_reader(family_tokenizer("harmony"))
    assert reader is not None
    return reader.text(encode("harmony", raw))


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (f"{ANALYSIS}hm{NEXT}{FINAL}four", "<think>\nhm\n</think>\n\nfour"),
        (f"{FINAL}four<|return|>", "four"),
        (f"{ANALYSIS}a{NEXT}{ANALYSIS}b{NEXT}{FINAL}c", "<think>\na\n\nb\n</think>\n\nc"),
        (f"<|channel|>commentary<|message|>Plan.{NEXT}{FINAL}c", "Plan.\nc"),
        (f"{ANALYSIS}cut off", "<think>\ncut off\n</think>\n\n"),
        ("no frame at all", "no frame at all"),
        ("", ""),
    ],
)
def test_a_completion_in_channels_becomes_thoughts_in_tags_and_text(raw: str, text: str) -> None:
    assert read(raw) == text


def test_calls_are_read_by_the_parser_of_calls_in_tags() -> None:
    text = read(f'{ANALYSIS}hm{NEXT}{CALL}{{"a": 1}}<|call|>')
    assert get_tool_parser("qwen").parse(text).calls == (ToolCall("add", {"a": 1}),)


def test_the_recipient_may_stand_before_the_channel() -> None:
    text = read(' to=functions.add<|channel|>commentary json<|message|>{"a": 1}<|call|>')
    assert get_tool_parser("qwen").parse(text).calls == (ToolCall("add", {"a": 1}),)


def test_a_call_of_broken_json_is_malformed_and_one_without_arguments_is_none_the_worse() -> None:
    (broken,) = get_tool_parser("qwen").parse(read(f'{CALL}{{"a": <|call|>')).calls
    assert isinstance(broken, MalformedCall)
    assert get_tool_parser("qwen").parse(read(f"{CALL}<|call|>")).calls == (ToolCall("add", {}),)


def test_other_tokenizers_have_no_channels() -> None:
    assert channel_reader(ByteTokenizer()) is None
    assert channel_reader(family_tokenizer("qwen3")) is None
    assert channel_reader(object()) is None


PARTS = ["<|channel|>", "<|message|>", "<|start|>", "<|end|>", "<|return|>", "<|call|>"]


@given(st.lists(st.sampled_from([*PARTS, "analysis", "final", "to=functions.f", "x"]), max_size=12))
def test_reading_never_raises_and_shows_no_control_string(parts: list[str]) -> None:
    text = read("".join(parts))
    assert not any(part in text for part in PARTS)
