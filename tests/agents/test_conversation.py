from __future__ import annotations

import pytest

from rllm_agents.conversation import (
    drop_earlier_thoughts,
    fold_system,
    fold_tools,
    visible_text,
    whole_text,
    without_thoughts,
)
from rllm_agents.types import Message


def message(role: str, content: object) -> Message:
    return {"role": role, "content": content}


@pytest.mark.parametrize(
    ("content", "visible"),
    [
        ("plain", "plain"),
        ("<think>a</think>b", "b"),
        ("a</think>\n\nb", "b"),
        ("<think>a</think>b<think>c</think> d", " d"),
        ("<think>never ended", "<think>never ended"),
        (None, None),
        ([{"type": "text", "text": "a</think>b"}], [{"type": "text", "text": "a</think>b"}]),
    ],
)
def test_what_is_visible_follows_the_last_thought(content: object, visible: object) -> None:
    assert visible_text(content) == visible


def test_thoughts_in_fields_of_their_own_are_left_out_too() -> None:
    full = {**message("assistant", "<think>a</think>b"), "reasoning_content": "a", "name": "x"}
    assert without_thoughts(full) == {"role": "assistant", "content": "b", "name": "x"}
    assert full["reasoning_content"] == "a"


def test_a_thought_in_a_field_of_its_own_stands_in_tags_before_the_text() -> None:
    apart = {**message("assistant", "b"), "reasoning_content": "a\n"}
    assert whole_text(apart) == "<think>\na\n</think>\n\nb"
    both = {**message("assistant", "<think>a</think>b"), "thinking": "a"}
    assert whole_text(both) == "<think>a</think>b"
    assert whole_text(message("assistant", "b")) == "b"


def test_thoughts_after_the_last_question_stay() -> None:
    messages = [
        message("user", "q</think>"),
        message("assistant", "1</think>a"),
        message("user", "r"),
        message("assistant", "2</think>b"),
        message("tool", "t"),
    ]
    assert [m["content"] for m in drop_earlier_thoughts(messages)] == [
        "q</think>",
        "a",
        "r",
        "2</think>b",
        "t",
    ]


def test_system_messages_stand_at_the_head_of_the_next_question() -> None:
    messages = [message("system", "S"), message("system", "T"), message("user", "q")]
    assert fold_system(messages) == [message("user", "S\n\nT\n\nq")]
    later = [message("user", "q"), message("assistant", "a"), message("system", "S")]
    assert fold_system(later) == [*later[:2], message("user", "S")]


def test_a_question_of_several_parts_gets_one_more() -> None:
    parts = [{"type": "image", "image": "i"}]
    (folded,) = fold_system([message("system", "S"), message("user", parts)])
    assert folded["content"] == [{"type": "text", "text": "S"}, *parts]
    assert len(parts) == 1


def test_results_in_a_row_become_one_message_of_the_user() -> None:
    messages = [
        message("user", "q"),
        message("assistant", "call"),
        message("tool", "x"),
        message("tool", "y"),
        message("assistant", "call"),
        message("tool", "z"),
        message("user", "r"),
    ]
    wrapped = {c: f"<tool_response>\n{c}\n</tool_response>" for c in "xyz"}
    assert fold_tools(messages) == [
        *messages[:2],
        message("user", f"{wrapped['x']}\n{wrapped['y']}"),
        messages[4],
        message("user", f"{wrapped['z']}\n\nr"),
    ]
    assert fold_tools(messages[:3])[-1] == message("user", wrapped["x"])
