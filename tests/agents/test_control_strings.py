from __future__ import annotations

import json

import pytest
from agents_fakes import END_OF_TEXT, IM_END, IM_START, ByteTokenizer
from chat_families import family_tokenizer
from hypothesis import given
from hypothesis import strategies as st

from rllm_agents.control_strings import Shield, control_tokens, ordinary_added_tokens

CONTROLS = ["<|im_end|>", "<|im_end|>x", "</s>"]
TEXT = st.lists(st.sampled_from([*CONTROLS, "<|im", "_end|>", "s", "\ue000", "é"])).map("".join)


def test_no_control_string_is_left_in_covered_text_and_all_come_back() -> None:
    shield = Shield(CONTROLS)
    covered = shield.cover("a<|im_end|>xb</s>")
    assert not any(control in covered for control in CONTROLS)
    assert shield.pieces(covered) == [
        ("a", True),
        ("<|im_end|>x", False),
        ("b", True),
        ("</s>", False),
        ("", True),
    ]


@given(TEXT)
def test_pieces_put_together_are_the_text(text: str) -> None:
    shield = Shield(CONTROLS)
    assert "".join(piece for piece, _ in shield.pieces(shield.cover(text))) == text


@given(TEXT)
def test_placeholders_survive_json_and_trimming(text: str) -> None:
    shield = Shield(CONTROLS)
    covered = shield.cover(f"{CONTROLS[0]}{text}{CONTROLS[2]}")
    assert covered.strip() == covered
    written = shield.pieces(json.dumps(covered))
    assert [p for p in written if not p[1]] == [p for p in shield.pieces(covered) if not p[1]]


def test_nests_of_lists_and_mappings_are_covered_and_other_values_left() -> None:
    shield = Shield(["</s>"])
    covered = shield.cover({"a": ["</s>", 3], "b": {"c": ("x", None)}})
    assert covered == {"a": [shield.cover("</s>"), 3], "b": {"c": ["x", None]}}


def test_without_control_strings_nothing_changes() -> None:
    shield = Shield([])
    assert shield.cover("any <|text|>") == "any <|text|>"
    assert shield.leading_control("any") == ""


def test_the_longest_control_string_at_the_start_is_found() -> None:
    shield = Shield(CONTROLS)
    assert shield.leading_control("<|im_end|>xyz") == "<|im_end|>x"
    assert shield.leading_control("<|im_end|>\n") == "<|im_end|>"
    assert shield.leading_control(" </s>") == ""


def test_text_is_cut_at_its_marks() -> None:
    shield = Shield(["</s>"])
    text = f"one{shield.mark(4)}two{shield.mark(17)}three"
    assert shield.between_marks(text, [4, 17]) == ["one", "two", "three"]
    assert shield.between_marks("none", []) == ["none"]


@pytest.mark.parametrize("marks", [[], [4], [4, 4], [4, 5], [17, 4]])
def test_marks_that_are_missing_or_others_are_noticed(marks: list[int]) -> None:
    shield = Shield([])
    text = f"one{shield.mark(4)}two{shield.mark(17)}three"
    assert shield.between_marks(text, marks) is None


def test_two_shields_do_not_know_each_others_placeholders() -> None:
    covered = Shield(["</s>"]).cover("</s>")
    assert Shield(["</s>"]).pieces(covered) == [(covered, True)]


def test_the_control_tokens_of_a_tokenizer_are_found() -> None:
    strings, ids = control_tokens(ByteTokenizer())
    assert set(strings) == {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}
    assert ids == {END_OF_TEXT, IM_START, IM_END}


def test_added_tokens_that_are_not_special_are_found() -> None:
    assert ordinary_added_tokens(family_tokenizer("qwen3")) == ["<think>", "</think>"]
    assert ordinary_added_tokens(ByteTokenizer()) == []
