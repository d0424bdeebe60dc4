"""Models that tasks start from: the bundled one, or one fine-tuned on a teacher of the task.

The teacher of `retry` is that of the bundled model, which mostly forgets its carries, and forgets
them as often when it is told that its answer is wrong; it is imitated until more of the same raises
nothing (60 updates on 2,000 demonstrations leave 0.03 to be gained that way). `dilemma` knows only
how a move is written (`self_play.py`).
"""

from __future__ import annotations

import json
from pathlib import Path

import gymnasium
import numpy as np
from self_play import GAMES, RUNS, base_model

import rllm_envs
from rllm_learn.config import SFTConfig, load_config, to_settings
from rllm_learn.sft import train_supervised
from rllm_learn.tiny_model import work_in_columns

gymnasium.register_envs(rllm_envs)

RETRY_TASKS = {split: RUNS / f"retry-{split}.jsonl" for split in ("train", "test")}
NUM_TASKS = {"train": 4000, "test": 192}
DEMONSTRATIONS = 8000
SFT = (
    "model.path=tiny",
    "model.lora_rank=0",
    "learner.learning_rate=1e-3",
    "learner.warmup_updates=10",
    "learner.decay=cosine",
    "tracking.to=[]",
    "num_updates=300",
    "batch_sequences=32",
)


def base_of(task: str) -> tuple[str, str]:
    """Return the model that a task starts from and the conversations it imitated.

    Both are made if absent, from fixed seeds.

    Args:
        task: A key of `plan.TASKS`.
    """
    if task == "dilemma":
        model = base_model(task, GAMES[task])
        return str(model), str(RUNS / "dilemma-random-games.jsonl")
    if task == "retry":
        return _retry_base()
    return "tiny", "tiny"


def _retry_base() -> tuple[str, str]:
    directory, data = RUNS / "retry-base", RUNS / "retry-demonstrations.jsonl"
    if not (directory / "summary.json").exists():
        RUNS.mkdir(exist_ok=True)
        for split in RETRY_TASKS:
            _write_retry_tasks(split)
        _write_retry_demonstrations(data)
        given = [f"data={data}", f"run_dir={directory}", *SFT]
        train_supervised(to_settings(load_config("sft", given), SFTConfig, config_name="sft"))
    return str(directory / "model"), str(data)


def _write_retry_tasks(split: str) -> None:
    """Write different sums and differences of the arithmetic environment's split, a row each."""
    env = gymnasium.make("rllm/Arithmetic-v0", split=split)
    questions: dict[str, str] = {}
    env.reset(seed=0)
    while len(questions) < NUM_TASKS[split]:
        question, _ = env.reset()
        left, sign, right = question.removeprefix("What is ").partition("?")[0].split()
        exact = int(left) + int(right) if sign == "+" else int(left) - int(right)
        questions[question] = str(exact)
    rows = [json.dumps({"question": q, "answer": a}) + "\n" for q, a in questions.items()]
    RETRY_TASKS[split].write_text("".join(rows), encoding="utf-8")


def _write_retry_demonstrations(path: Path) -> None:
    """Let the teacher answer training tasks, again where it is told that it was wrong."""
    rng = np.random.default_rng(0)
    env = gymnasium.make("rllm/MathRetry-v0", dataset=str(RETRY_TASKS["train"]), max_turns=2)
    env.reset(seed=0)
    rows = []
    for _ in range(DEMONSTRATIONS):
        question, _ = env.reset()
        observation, done = question, False
        messages: list[dict[str, str]] = []
        while not done:
            action = work_in_columns(question, rng)
            messages.append({"role": "user", "content": observation})
            messages.append({"role": "assistant", "content": action})
            observation, _, terminated, truncated, _ = env.step(action)
            done = terminated or truncated
        rows.append(json.dumps({"messages": messages}) + "\n")
    path.write_text("".join(rows), encoding="utf-8")
