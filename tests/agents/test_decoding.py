from __future__ import annotations

from agents_fakes import IM_END, IM_START, ByteTokenizer
from chat_families import encode, family_tokenizer

from rllm_agents.rollout_engines.decoding import completion_text


def test_the_stop_token_and_other_control_tokens_are_left_out() -> None:
    ids = [*b"fo", IM_START, *b"ur", IM_END]
    assert completion_text(ByteTokenizer(), ids, "stop") == "four"


def test_of_a_completion_cut_short_the_last_token_is_text() -> None:
    assert completion_text(ByteTokenizer(), b"four", "length") == "four"


def test_without_a_tokenizer_there_is_no_text() -> None:
    assert completion_text(None, [1, 2], "stop") == ""


def test_a_thought_in_a_channel_stands_between_tags() -> None:
    raw = (
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>four"
        "<|return|>"
    )
    text = completion_text(family_tokenizer("harmony"), encode("harmony", raw), "stop")
    assert text == "<think>\nhm\n</think>\n\nfour"
