"""Tiny models that are made for one task: fine-tuned on a teacher that leaves much to be found.

`guess` halves no range: 7 of 10 of its guesses are any number that is still possible, the others
any number at all. `dilemma` knows only how a move is written (`self_play.py`).
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import gymnasium
import numpy as np
from self_play import GAMES, RUNS, SFT, base_model

import rllm_envs
from rllm_learn.config import SFTConfig, load_config, to_settings
from rllm_learn.sft import train_supervised

gymnasium.register_envs(rllm_envs)

GUESS_ENV = "rllm/GuessNumber-v0"
GUESS_KWARGS = {"width": 15, "max_low": 50, "max_turns": 4}
GUESS_GAMES = 6000
GUESS_UPDATES = 400


def base_of(task: str) -> tuple[str, str]:
    """Return the model that a task starts from and the conversations it imitated.

    Made if absent, from fixed seeds.

    Args:
        task: arithmetic, calculator, guess or dilemma.
    """
    if task == "dilemma":
        model = base_model(task, GAMES[task])
        return str(model), str(RUNS / "dilemma-random-games.jsonl")
    if task == "guess":
        return _guess_base()
    return "tiny", "tiny"


def _guess_base() -> tuple[str, str]:
    directory, data = RUNS / "guess-base", RUNS / "guess-demonstrations.jsonl"
    if not (directory / "summary.json").exists():
        _write_guess_demonstrations(data)
        given = [f"data={data}", f"run_dir={directory}", *SFT, "learner.betas=[0.9,0.98]"]
        given += [f"num_updates={GUESS_UPDATES}", "batch_sequences=32"]
        train_supervised(to_settings(load_config("sft", given), SFTConfig, config_name="sft"))
    return str(directory / "model"), str(data)


def _write_guess_demonstrations(path: Path) -> None:
    """Play training tasks with the teacher and write a conversation a line."""
    rng = np.random.default_rng(0)
    env = gymnasium.make(GUESS_ENV, **GUESS_KWARGS)
    observation, _ = env.reset(seed=0)
    rows = []
    for _ in range(GUESS_GAMES):
        messages: list[dict[str, str]] = []
        low, high = map(int, re.findall(r"from (\d+) to (\d+)", observation)[0])
        possible = low, high
        done = False
        while not done:
            first, last = possible if rng.random() < 0.7 else (low, high)
            guess = int(rng.integers(first, last + 1))
            action = f"\\boxed{{{guess}}}"
            messages.append({"role": "user", "content": observation})
            messages.append({"role": "assistant", "content": action})
            observation, _, terminated, truncated, _ = env.step(action)
            if "higher" in observation:
                possible = max(possible[0], guess + 1), possible[1]
            elif "lower" in observation:
                possible = possible[0], min(possible[1], guess - 1)
            done = terminated or truncated
        rows.append(json.dumps({"messages": messages}) + "\n")
        observation, _ = env.reset()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(rows), encoding="utf-8")
