r"""A tiny language model that stands in for a pretrained one, made from nothing downloaded.

Qwen3 architecture, 0.16 million parameters, a byte-level BPE tokenizer of its own. It is warmed
up by supervised fine-tuning on demonstrations of teachers that are deliberately imperfect, played
in the registered environments themselves, so that reinforcement has something to find: the
calculator's teacher mostly blurts an answer, the reckoner forgets its carries.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

import rllm_envs
from rllm_agents.types import Message

gymnasium.register_envs(rllm_envs)

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
MAX_VOCABULARY = 384
MAX_POSITIONS = 1024


def blurt_or_calculate(observation: str, rng: np.random.Generator) -> str:
    """Answer a Calculator observation: mostly by a guess, in a quarter of cases by the tool.

    Guesses have the right number of digits and the right first one, as a hasty person's do.
    """
    if observation.startswith("Result:"):
        return rf"\boxed{{{observation.removeprefix('Result:').strip()}}}"
    left, operator, right = _operands(observation)
    if rng.random() < 0.25:
        return f"<calc>{left} {operator} {right}</calc>"
    exact = {"+": left + right, "-": left - right, "*": left * right}[operator]
    spread = max(abs(exact) // 10, 2)
    return rf"\boxed{{{exact + int(rng.integers(-spread, spread + 1))}}}"


def work_in_columns(observation: str, rng: np.random.Generator) -> str:
    r"""Answer an Arithmetic task column by column, in 80 % of cases without carrying or borrowing.

    For 512 + 389: `2+9=11 1+8+1=10 5+3+1=9 \boxed{901}`; for 512 - 389:
    `12-9=3 11-8-1=2 5-3-1=1 \boxed{123}`. A negative difference is that of the swapped numbers.
    """
    left, operator, right = _operands(observation)
    forgets = rng.random() < 0.8
    negative = operator == "-" and left < right
    if negative:
        left, right = right, left
    carry, columns, digits = 0, [], []
    for place in range(max(len(str(left)), len(str(right)))):
        a, b = left // 10**place % 10, right // 10**place % 10
        if operator == "-":
            borrow = int(a - b - carry < 0)
            a += 10 * borrow
            total, following = a - b - carry, borrow
        else:
            total = a + b + carry
            following = total // 10
        columns.append(f"{a}{operator}{b}" + (f"{operator}1" if carry else "") + f"={total}")
        digits.append(str(total % 10))
        carry = 0 if forgets else following
    if carry:
        digits.append("1")
    magnitude = int("".join(reversed(digits)))
    return f"{' '.join(columns)} \\boxed{{{'-' if negative and magnitude else ''}{magnitude}}}"


@dataclass(frozen=True, slots=True)
class Lesson:
    """One environment and its teacher. Read by `demonstrations`."""

    env_id: str
    teacher: Callable[[str, np.random.Generator], str]
    env_kwargs: dict[str, Any] = field(default_factory=dict)


LESSONS = (
    Lesson("rllm/Calculator-v0", blurt_or_calculate),
    Lesson("rllm/Arithmetic-v0", work_in_columns),
)


def demonstrations(seed: int) -> Iterator[list[Message]]:
    """Yield conversations without end: a teacher's turns and the environment's, lesson by lesson.

    Only training tasks are played; the held-out split is never seen.

    Args:
        seed: Fixes tasks and teachers.
    """
    rng = np.random.default_rng(seed)
    envs = [gymnasium.make(lesson.env_id, **lesson.env_kwargs) for lesson in LESSONS]
    for env in envs:
        env.reset(seed=seed)
    while True:
        for lesson, env in zip(LESSONS, envs, strict=True):
            observation, _ = env.reset()
            messages: list[Message] = []
            done = False
            while not done:
                action = lesson.teacher(observation, rng)
                messages.append({"role": "user", "content": observation})
                messages.append({"role": "assistant", "content": action})
                observation, _, terminated, truncated, _ = env.step(action)
                done = terminated or truncated
            yield messages


def build_untrained(
    directory: Path,
    *,
    seed: int,
    num_tokenizer_texts: int = 2000,
    conversations: Iterable[Sequence[Message]] | None = None,
) -> None:
    """Write the model with random weights and its tokenizer, as `from_pretrained` reads them.

    Args:
        directory: Made if absent.
        seed: Draws weights and the texts that the tokenizer is trained on.
        num_tokenizer_texts: Conversations that the tokenizer sees, at most.
        conversations: Those that the tokenizer is trained on; None takes demonstrations.
    """
    source = itertools.islice(conversations or demonstrations(seed), num_tokenizer_texts)
    texts = [message["content"] for messages in source for message in messages]
    tokenizer = _train_tokenizer(texts)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=192,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        head_dim=32,
        max_position_embeddings=MAX_POSITIONS,
        tie_word_embeddings=True,
        # Wider than usual: a model this small leaves its first plateau sooner.
        initializer_range=0.06,
        bos_token_id=None,
        eos_token_id=tokenizer.get_vocab()["<|im_end|>"],
        pad_token_id=tokenizer.get_vocab()["<|endoftext|>"],
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Qwen3ForCausalLM(config)
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)


def _train_tokenizer(texts: list[str]) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE in which every digit is a token of its own."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.Sequence(  # pyright: ignore[reportAttributeAccessIssue]
        [
            pre_tokenizers.Split(Regex(r"\d"), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    bpe.decoder = decoders.ByteLevel()  # pyright: ignore[reportAttributeAccessIssue]
    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    markers = ["\\boxed{", "<calc>", "</calc>"]
    trainer = trainers.BpeTrainer(
        vocab_size=MAX_VOCABULARY - len(markers) - 2,
        special_tokens=specials,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator([*texts, "system\n", "user\n", "assistant\n", "tool\n"], trainer)
    bpe.add_tokens([AddedToken(m, normalized=False) for m in markers])
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=CHAT_TEMPLATE,
        model_max_length=MAX_POSITIONS,
        clean_up_tokenization_spaces=False,
    )


def _operands(question: str) -> tuple[int, str, int]:
    """Read the two numbers and the operator out of `What is 47 * 83? ...`."""
    found = re.match(r"What is (\d+) ([-+*]) (\d+)\?", question)
    if found is None:
        raise ValueError(f"a teacher cannot read the question {question!r}")
    return int(found[1]), found[2], int(found[3])
