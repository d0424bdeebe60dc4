"""Training over workflows and games, whole: who learns, what is published, what is resumed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from rllm_agents import Workflow
from rllm_learn import AgentTrainer
from rllm_learn.errors import ConfigError
from rllm_learn.tracking import read_metrics

SMALL = {
    "tasks_per_step": 2,
    "algorithm": {"group_size": 2},
    "checkpoint": {"every_steps": 1},
    "tracking": {"to": []},
    "rollout": {"max_response_length": 24},
}
GAME = {
    **SMALL,
    "env": {"id": "rllm/RockPaperScissors-v0", "kwargs": {"num_rounds": 1}},
    "eval": {"num_tasks": 2, "every_steps": 9, "greedy": False},
}


class LongerIsBetter(Workflow):
    """A writer is paid for the length of what it says, a reader for shortness."""

    async def run(self, task: Any, uid: str, **kwargs: Any) -> None:
        for name, sign in (("writer", 1.0), ("reader", -1.0)):
            trajectory = self.new_trajectory(name)
            messages = [{"role": "user", "content": task["question"]}]
            output = await self.rollout_engine.get_model_response(
                messages, trajectory=trajectory, max_tokens=6
            )
            trajectory.reward = sign * len(output.completion_ids)


def rows(path: Path) -> list[dict[str, Any]]:
    return [row for row in read_metrics(path / "metrics.jsonl") if "train/reward" in row]


def test_a_workflow_is_trained_role_by_role(tmp_path: Path) -> None:
    questions = [{"question": f"Say {n}"} for n in range(16)]
    run = tmp_path / "run"
    AgentTrainer(
        workflow_class=LongerIsBetter,
        train_dataset=questions,
        config={
            **SMALL,
            "num_steps": 1,
            "players": {"reader": {"opponent": "base"}},
            "eval": {"num_tasks": 1, "every_steps": 1, "greedy": False},
            "run_dir": str(run),
        },
    ).train()
    (row,) = rows(run)
    assert row["train/failed_episodes"] == 0.0
    # Of the frozen reader nothing is learned, and nothing counted as earned.
    assert row["train/reward"] == row["train/writer/reward"] > 0.0
    assert not any("reader" in key for key in row if not key.startswith("reward/"))


def test_two_players_with_adapters_of_their_own_learn_apart(tmp_path: Path) -> None:
    run = tmp_path / "run"
    AgentTrainer(
        config={**GAME, "num_steps": 1, "run_dir": str(run)},
        players={
            "player_0": {"adapter": "red", "algorithm": {"name": "reinforce", "baseline": "none"}},
            "player_1": {"adapter": "blue"},
        },
    ).train()
    (row,) = rows(run)
    red, blue = (
        load_file(run / "adapter" / name / "adapter_model.safetensors") for name in ("red", "blue")
    )
    assert red.keys() == blue.keys()
    changed = any("red/loss" in key for key in row)
    assert changed == any(not torch.equal(red[name], blue[name]) for name in red)


def test_a_run_that_plays_its_snapshot_goes_on_as_without_the_stop(tmp_path: Path) -> None:
    def train(name: str, num_steps: int, *, resume: bool = False) -> Path:
        run = tmp_path / name
        AgentTrainer(
            config={
                **GAME,
                "players": {"player_1": {"opponent": ["snapshot", "self"]}},
                "snapshot_every": 1,
                "algorithm": {"name": "reinforce", "baseline": "none", "rollouts_per_task": 2},
                "num_steps": num_steps,
                "run_dir": str(run),
            },
            resume=resume,
        ).train()
        return run

    whole = train("whole", 3)
    train("parts", 2)
    parts = train("parts", 3, resume=True)
    trained = [load_file(r / "adapter" / "adapter_model.safetensors") for r in (whole, parts)]
    assert all(torch.equal(trained[0][name], trained[1][name]) for name in trained[0])
    kept = [r["train/player_0/reward"] for r in rows(whole)]
    assert [r["train/player_0/reward"] for r in rows(parts)] == kept


def test_the_policy_is_judged_against_named_opponents_from_its_seats(tmp_path: Path) -> None:
    run = tmp_path / "run"
    AgentTrainer(
        config={
            **GAME,
            "num_steps": 1,
            "players": {"player_0": {}},
            "eval": {"num_tasks": 4, "opponents": ["random", "base"], "greedy": False},
            "run_dir": str(run),
        }
    ).train()
    first = read_metrics(run / "metrics.jsonl")[0]
    scores = {key for key in first if key.startswith("eval/score/")}
    assert scores == {
        f"eval/score/{opponent}{seat}"
        for opponent in ("random", "base")
        for seat in ("", "/player_0", "/player_1")
    }
    lines = (run / "episodes" / "eval-000000.jsonl").read_text("utf-8").splitlines()
    assert len([json.loads(line) for line in lines]) >= 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"workflow_args": {"a": 1}}, "workflow_class"),
        ({"workflow_class": LongerIsBetter, "agent_args": {"a": 1}}, "workflow_args"),
        ({"config": {"eval": {"opponents": ["expert"]}}}, "players"),
        ({"players": {"player_0": "random"}}, "mapping"),
    ],
)
def test_what_does_not_go_together_is_refused_at_once(
    arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        AgentTrainer(**arguments)
