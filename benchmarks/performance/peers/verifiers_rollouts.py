"""Rollouts of a `MultiTurnEnv` of verifiers, one batch a lap. Runs where verifiers is installed.

    python verifiers_rollouts.py BASE_URL NUM_ROLLOUTS PARALLEL NUM_TURNS QUESTION

A line on standard input asks for a lap; the answer has its seconds and CPU seconds. All rollouts
must have all turns, with the token ids and logprobs that the server sent.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from typing import Any

import verifiers as vf  # pyright: ignore[reportMissingImports]
from datasets import Dataset

KEY_VARIABLE = "LOOPBACK_KEY"


class CountingEnv(vf.MultiTurnEnv):
    """Asks the same at every turn."""

    def __init__(self, question: str, **kwargs: Any) -> None:
        """Take the question and what the base wants."""
        super().__init__(**kwargs)
        self._question = question

    async def env_response(self, messages: Any, state: Any, **kwargs: Any) -> Any:
        """Ask again."""
        return [vf.UserMessage(content=self._question)]


async def full_marks(completion: Any) -> float:
    """Reward every rollout alike."""
    return 1.0


def silent(*_: Any) -> None:
    """Show no progress: drawing it is no part of a rollout."""


def check(output: Any, num_turns: int) -> None:
    """Fail where a rollout is not what was asked for."""
    trajectory = output["trajectory"]
    if output["error"] or len(trajectory) != num_turns:
        raise SystemExit(f"a rollout of {len(trajectory)} turns: {output['error']}")
    if not all(turn["tokens"] and turn["tokens"]["completion_ids"] for turn in trajectory):
        raise SystemExit("a turn has no token ids")


def main() -> None:
    """Play until nobody asks."""
    base_url, num_rollouts, parallel, num_turns, question = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    os.environ[KEY_VARIABLE] = "none"
    config = vf.ClientConfig(api_key_var=KEY_VARIABLE, api_base_url=base_url)
    rows = [{"question": question, "answer": ""} for _ in range(int(num_rollouts))]
    env = CountingEnv(
        question,
        max_turns=int(num_turns),
        dataset=Dataset.from_list(rows),
        rubric=vf.Rubric(funcs=[full_marks]),
    )
    inputs = env.get_dataset().to_list()
    sampling = {"max_tokens": 64, "temperature": 1.0, "logprobs": True}
    print(json.dumps({"ready": True}), file=answers)
    while sys.stdin.readline():
        wall, cpu = time.perf_counter(), time.process_time()
        found = asyncio.run(
            env.generate(
                inputs,
                config,
                "served",
                sampling_args=sampling,
                max_concurrent=int(parallel),
                state_columns=["trajectory"],
                independent_scoring=True,
                on_start=silent,
                on_progress=silent,
            )
        )
        figures = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        for output in found["outputs"]:
            check(output, int(num_turns))
        print(json.dumps(figures), file=answers)


if __name__ == "__main__":
    main()
