"""What a run survives: a full disk, an interrupt, rewards that are no numbers."""

from __future__ import annotations

import math
import resource
from pathlib import Path

import pytest
import torch
from trainer_runs import SMALL, adapter_weights, trainer

from rllm_envs import BaseEnv
from rllm_learn import AgentTrainer
from rllm_learn.core.checkpoint import latest_checkpoint
from rllm_learn.errors import TrainingError
from rllm_learn.tracking import read_metrics


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("finished") / "run"
    trainer(path).train()
    return path


class OddRewardEnv(BaseEnv):
    """Rewards answers by their length; every third task's reward is no number."""

    blocking = False

    def __init__(self, number: int):
        self.number = number

    def reset(self):
        return {"question": "?"}, {}

    def step(self, action):
        reward = math.nan if self.number % 3 == 0 else float(len(action) % 2)
        return {}, reward, True, {}

    @staticmethod
    def from_dict(info):
        return OddRewardEnv(info["number"])


def test_a_full_disk_is_one_error_and_costs_only_the_steps_after_the_save(finished, tmp_path):
    path = tmp_path / "run"
    trainer(path, num_steps=2).train()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Room for the rows of a step, not for the weights.
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file(path) - 1, hard))
    try:
        with pytest.raises(TrainingError, match=r"step 4 .*File too large.*--resume") as caught:
            trainer(path, resume=True).train()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "\n" not in str(caught.value)
    newest, rejected = latest_checkpoint(path / "checkpoints")
    assert newest is not None and (newest.step, rejected) == (2, [])
    trainer(path, resume=True).train()
    assert_equal_runs(finished, path)


def largest_file(path: Path) -> int:
    return max(file.stat().st_size for file in (path / "checkpoints").rglob("*.pt"))


def assert_equal_runs(one: Path, other: Path) -> None:
    """Weights bit for bit; all figures but those of the clock; the same evaluations."""
    first, second = adapter_weights(one), adapter_weights(other)
    assert all(torch.equal(first[name], second[name]) for name in first)
    rows = [
        [
            {k: v for k, v in row.items() if not k.startswith("time/")}
            for row in read_metrics(path / "metrics.jsonl")
        ]
        for path in (one, other)
    ]
    assert rows[0] == rows[1]


def test_an_evaluation_that_was_interrupted_is_made_when_the_run_goes_on(finished, tmp_path):
    path = tmp_path / "run"
    trainer(path, num_steps=2).train()
    metrics = path / "metrics.jsonl"
    lines = metrics.read_text().splitlines(keepends=True)
    assert "eval/pass_at_1" in lines[-1]
    # As an interrupt leaves it: step 2 is complete and saved, not yet judged; a line half written.
    metrics.write_text("".join(lines[:-1]) + lines[-1][:40])
    trainer(path, resume=True).train()
    assert_equal_runs(finished, path)


def test_rewards_that_are_no_numbers_never_reach_the_weights(tmp_path):
    path = tmp_path / "run"
    AgentTrainer(
        env_class=OddRewardEnv,
        config={
            **SMALL,
            "num_steps": 2,
            "rollout": {"max_response_length": 64, "max_failure_share": 1.0},
        }
        | {"run_dir": str(path)},
        train_dataset=[{"number": i} for i in range(16)],
    ).train()
    rows = [r for r in read_metrics(path / "metrics.jsonl") if "train/failed_episodes" in r]
    assert sum(row["train/failed_episodes"] for row in rows) > 0
    assert all(bool(torch.isfinite(tensor).all()) for tensor in adapter_weights(path).values())
