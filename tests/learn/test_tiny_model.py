from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import rllm_envs
from rllm_agents import Renderer
from rllm_agents.models import TINY
from rllm_learn.conversations import conversation_sequences
from rllm_learn.tiny_model import (
    blurt_or_calculate,
    build_untrained,
    demonstrations,
    work_in_columns,
)


class FixedRandom:
    """Answers `random` with one number."""

    def __init__(self, value: float):
        self.value = value

    def random(self) -> float:
        return self.value


@pytest.mark.parametrize(
    ("question", "value", "answer"),
    [
        ("512 + 389", 0.99, r"2+9=11 1+8+1=10 5+3+1=9 \boxed{901}"),
        ("512 + 389", 0.0, r"2+9=11 1+8=9 5+3=8 \boxed{891}"),
        ("999 + 1", 0.99, r"9+1=10 9+0+1=10 9+0+1=10 \boxed{1000}"),
        ("512 - 389", 0.99, r"12-9=3 11-8-1=2 5-3-1=1 \boxed{123}"),
        ("512 - 389", 0.0, r"12-9=3 11-8=3 5-3=2 \boxed{233}"),
        ("389 - 512", 0.99, r"12-9=3 11-8-1=2 5-3-1=1 \boxed{-123}"),
        ("500 - 500", 0.99, r"0-0=0 0-0=0 5-5=0 \boxed{0}"),
    ],
)
def test_columns_worked_by_hand(question, value, answer):
    assert work_in_columns(f"What is {question}? Give", FixedRandom(value)) == answer


def test_a_careful_teacher_is_always_right():
    for a, b in itertools.product(range(0, 1000, 37), range(0, 1000, 41)):
        for operator, result in (("+", a + b), ("-", a - b)):
            text = work_in_columns(f"What is {a} {operator} {b}?", FixedRandom(0.99))
            assert text.endswith(rf"\boxed{{{result}}}")


def test_the_hasty_teacher_calls_the_tool_in_a_quarter_of_cases_and_reads_its_result():
    rng = np.random.default_rng(0)
    answers = [blurt_or_calculate("What is 47 * 83? You may", rng) for _ in range(4000)]
    calls = sum(answer == "<calc>47 * 83</calc>" for answer in answers)
    assert calls == pytest.approx(1000, abs=100)
    guesses = [int(m[1]) for a in answers if (m := re.fullmatch(r"\\boxed\{(\d+)\}", a))]
    assert len(guesses) == 4000 - calls
    assert all(abs(guess - 3901) <= 390 for guess in guesses)
    assert blurt_or_calculate("Result: 3901", rng) == r"\boxed{3901}"


def test_demonstrations_are_played_on_training_tasks_and_repeat_with_their_seed():
    first = list(itertools.islice(demonstrations(1), 200))
    assert first == list(itertools.islice(demonstrations(1), 200))
    kinds = Counter("calc" in messages[0]["content"] for messages in first)
    assert kinds == {True: 100, False: 100}
    held_out = {
        rllm_envs.GymEnv(
            env, env_kwargs={"split": "test"}, seed=task["seed"], observation_key=None
        ).reset()[0]
        for env in ("rllm/Arithmetic-v0", "rllm/Calculator-v0")
        for task in rllm_envs.seed_tasks(env, {"split": "test"}, num_tasks=256)
    }
    assert held_out.isdisjoint({messages[0]["content"] for messages in first})


def test_the_untrained_model_loads_like_any_other_and_repeats_with_its_seed(tmp_path):
    for name in ("one", "two"):
        build_untrained(tmp_path / name, seed=3, num_tokenizer_texts=300)
    one, two = (AutoModelForCausalLM.from_pretrained(tmp_path / n) for n in ("one", "two"))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert 140_000 < sum(p.numel() for p in one.parameters()) < 180_000
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "one")
    text = "What is 47 * 83? \\boxed{3901}"
    tokens = tokenizer.tokenize(text)
    assert [t for t in tokens if any(c.isdigit() for c in t)] == list("47833901")
    assert "\\boxed{" in tokens
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.eos_token == "<|im_end|>"


def test_training_sequences_are_what_a_rollout_would_have_been():
    tokenizer = AutoTokenizer.from_pretrained(TINY)
    messages = [
        {"role": "user", "content": "What is 2 * 3?"},
        {"role": "assistant", "content": "<calc>2 * 3</calc>"},
        {"role": "user", "content": "Result: 6"},
        {"role": "assistant", "content": "\\boxed{6}"},
    ]
    (sequence,) = conversation_sequences(Renderer(tokenizer), messages)
    ids, mask = sequence.token_ids, sequence.action_mask
    template = tokenizer.apply_chat_template(messages, tokenize=False)
    assert tokenizer.decode(ids) == template.removesuffix("\n")
    imitated = tokenizer.decode([i for i, m in zip(ids, mask, strict=True) if m])
    assert imitated == "<calc>2 * 3</calc><|im_end|>\\boxed{6}<|im_end|>"


@pytest.mark.slow
def test_the_documented_command_makes_a_model_like_the_one_that_ships(tmp_path):
    # Rounding differs between machines, so the weights do; what the model can do must not.
    rllm = Path(sys.executable).with_name("rllm")

    def accuracy(model: str, env: str) -> float:
        run_dir = tmp_path / f"{Path(model).name}-{env.rpartition('/')[2]}"
        command = [rllm, "eval", f"model={model}", f"env={env}", f"run_dir={run_dir}"]
        subprocess.run(command, check=True, capture_output=True)
        return json.loads((run_dir / "summary.json").read_text())["pass_at_1"]

    command = [rllm, "sft", "--config-name", "sft_tiny", f"run_dir={tmp_path / 'sft'}"]
    subprocess.run(command, check=True, capture_output=True)
    for env in ("rllm/Calculator-v0", "rllm/Arithmetic-v0"):
        made, shipped = accuracy(str(tmp_path / "sft" / "model"), env), accuracy("tiny", env)
        assert made == pytest.approx(shipped, abs=0.1)
        assert 0.15 < made < 0.5
