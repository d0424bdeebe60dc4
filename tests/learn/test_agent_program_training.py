"""A program that knows nothing but an OpenAI address is trained as any agent is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aiohttp

from rllm_agents.gateway import AgentProgram
from rllm_envs import math_reward_fn
from rllm_learn import AgentTrainer
from rllm_learn.tracking import read_metrics


async def add(base_url: str, api_key: str, task: dict[str, Any]) -> Any:
    messages = [{"role": "user", "content": task["question"]}]
    body = {"model": "gpt-of-somebody", "messages": messages, "temperature": 0.0}
    async with (
        aiohttp.ClientSession() as client,
        client.post(f"{base_url}/chat/completions", json=body) as response,
    ):
        answer = await response.json()
    return math_reward_fn(task, answer["choices"][0]["message"]["content"] or "")


def test_a_program_is_trained_on_rows_of_its_own(tmp_path: Path) -> None:
    rows = [
        {"question": f"What is {a} + {b}? Answer in \\boxed{{}}.", "answer": a + b}
        for a in range(2, 6)
        for b in range(2, 6)
    ]
    summary = AgentTrainer(
        agent_class=AgentProgram(add),
        env_class=None,
        config={
            "num_steps": 2,
            "tasks_per_step": 4,
            "algorithm": {"group_size": 4},
            "eval": {"num_tasks": 2, "every_steps": 2},
            "checkpoint": {"every_steps": 2},
            "rollout": {"max_response_length": 24},
            "tracking": {"to": []},
            "run_dir": str(tmp_path / "run"),
        },
        train_dataset=rows,
    ).train()
    assert summary["steps"] == 2
    steps = [
        row for row in read_metrics(tmp_path / "run" / "metrics.jsonl") if "train/reward" in row
    ]
    assert [row["train/episodes"] for row in steps] == [16.0, 16.0]
    assert [row["train/failed_episodes"] for row in steps] == [0.0, 0.0]
    # The program asked for greedy decoding, and a group was sampled all the same.
    lines = (tmp_path / "run" / "episodes" / "train.jsonl").read_text("utf-8").splitlines()
    episodes = [json.loads(line) for line in lines]
    assert {e["steps"][0]["info"]["overridden"]["temperature"] for e in episodes} == {0.0}
    assert len({e["messages"][-1]["content"] for e in episodes[:4]}) > 1
