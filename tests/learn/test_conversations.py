from __future__ import annotations

import json

import pytest

from rllm_agents import Renderer
from rllm_agents.models import TINY
from rllm_learn.conversations import conversation_sequences, read_conversations
from rllm_learn.errors import ConfigError
from rllm_learn.settings import load_tokenizer

TWO_TURNS = [
    {"role": "user", "content": "What is 2 * 3?"},
    {"role": "assistant", "content": "<calc>2 * 3</calc>"},
    {"role": "user", "content": "Result: 6"},
    {"role": "assistant", "content": "\\boxed{6}"},
]


@pytest.mark.parametrize(
    ("given", "imitated"),
    [
        (0, "<calc>2 * 3</calc><|im_end|>\\boxed{6}<|im_end|>"),
        (1, "<calc>2 * 3</calc><|im_end|>\\boxed{6}<|im_end|>"),
        (3, "\\boxed{6}<|im_end|>"),
    ],
)
def test_what_is_given_is_a_prompt_whoever_said_it(given, imitated):
    tokenizer = load_tokenizer(TINY)
    (sequence,) = conversation_sequences(Renderer(tokenizer), TWO_TURNS, given=given)
    marked = zip(sequence.token_ids, sequence.action_mask, strict=True)
    assert tokenizer.decode([i for i, is_marked in marked if is_marked]) == imitated
    whole = tokenizer.apply_chat_template(TWO_TURNS, tokenize=False)
    assert tokenizer.decode(sequence.token_ids) == whole.removesuffix("\n")


def test_rows_are_read_and_a_wrong_one_is_named(tmp_path):
    path = tmp_path / "chats.jsonl"
    path.write_text(json.dumps({"messages": TWO_TURNS}) + "\n")
    assert read_conversations(path) == [TWO_TURNS]
    with path.open("a") as file:
        file.write(json.dumps({"messages": [{"role": "robot", "content": "x"}]}) + "\n")
    with pytest.raises(ConfigError, match=r"row 2: role must be .* got 'robot'"):
        read_conversations(path)
