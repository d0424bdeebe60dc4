"""What every side of the comparison learns from: a random model, prompts, completions, rewards.

It is written once to a folder and read by each side, in whatever environment it runs; so this file
needs nothing beyond the standard library and what all sides have.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

GROUP_SIZE = 8
NUM_TASKS = 8
MAX_POSITIONS = 4096
SIZES: dict[str, dict[str, Any]] = {
    "1M": {"hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 4},
    "10M": {"hidden_size": 320, "intermediate_size": 960, "num_hidden_layers": 8},
}
LEARNING_RATE = 1e-4
BETAS = (0.9, 0.99)
CLIP = 0.2
MAX_GRAD_NORM = 1.0
SHORT_LENGTH = 64
_LOG_SPREAD = 1.151
"""Of the log-normal lengths: with a mean of 200 it puts the 99th percentile at 1,500."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One batch of a GRPO step. Written by the driver, read by every side."""

    questions: list[str]
    """Of each rollout; those of a group are equal and stand together."""
    prompts: list[list[int]]
    """The same as token ids, of each rollout."""
    completions: list[list[int]]
    """Token ids of each rollout."""
    rewards: list[float]
    """Of each rollout."""

    @property
    def lengths(self) -> list[int]:
        """Tokens of each completion."""
        return [len(completion) for completion in self.completions]

    @property
    def advantages(self) -> list[float]:
        """Rewards less the mean of their group."""
        groups = np.array(self.rewards).reshape(-1, GROUP_SIZE)
        return (groups - groups.mean(1, keepdims=True)).flatten().tolist()


def completion_lengths(kind: str) -> list[int]:
    """Return how many tokens each completion has, in an order that is drawn once.

    Args:
        kind: "spread" for log-normal lengths with mean 200 and 99th percentile 1,500: the quantiles
            of that distribution, so that no lucky draw decides; "short" for equal ones of 64.
    """
    count = NUM_TASKS * GROUP_SIZE
    if kind == "short":
        return [SHORT_LENGTH] * count
    normal = NormalDist(np.log(200) - _LOG_SPREAD**2 / 2, _LOG_SPREAD)
    lengths = [int(np.exp(normal.inv_cdf((i + 0.5) / count))) for i in range(count)]
    return np.random.default_rng(0).permutation(lengths).tolist()


def make_workload(tokenizer: Any, kind: str) -> Workload:
    """Return prompts of about 30 tokens and random completions and rewards.

    Args:
        tokenizer: Writes the prompts.
        kind: See `completion_lengths`.
    """
    rng = np.random.default_rng(0)
    pairs = rng.integers(100, 1000, (NUM_TASKS, 2)).tolist()
    questions = [f"What is {a} + {b}? Write it in \\boxed{{}}." for a, b in pairs]
    repeated = [question for question in questions for _ in range(GROUP_SIZE)]
    first_id = max(tokenizer.all_special_ids) + 1
    return Workload(
        questions=repeated,
        prompts=[prompt_ids(tokenizer, question) for question in repeated],
        completions=[
            rng.integers(first_id, len(tokenizer), length).tolist()
            for length in completion_lengths(kind)
        ],
        rewards=rng.normal(size=len(repeated)).tolist(),
    )


def prompt_ids(tokenizer: Any, question: str) -> list[int]:
    """Return a question as a chat model sees it."""
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": question}], add_generation_prompt=True, tokenize=False
    )
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def text_reward(text: str) -> float:
    """Return a number in [0, 1) that differs from text to text: random models do nothing rightly.

    So no advantage is 0, and no side has less to learn from than another.
    """
    return zlib.crc32(text.encode()) / 2**32


def save_workload(workload: Workload, folder: Path) -> None:
    """Write it to a folder."""
    (folder / "workload.json").write_text(json.dumps(asdict(workload)), encoding="utf-8")


def load_workload(folder: Path) -> Workload:
    """Read what `save_workload` wrote."""
    return Workload(**json.loads((folder / "workload.json").read_text(encoding="utf-8")))
