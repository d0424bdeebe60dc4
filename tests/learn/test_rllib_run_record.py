"""What an algorithm of RLlib leaves for `rllm view`, without Ray."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rllm_agents.evaluation import summarize
from rllm_agents.types import Episode, TerminationReason, Trajectory
from rllm_agents.viewer.run_files import RunFiles
from rllm_learn.config import TrainerConfig, to_settings
from rllm_learn.errors import ConfigError
from rllm_learn.rllib import GRPOConfig
from rllm_learn.rllib.run_record import RunRecord
from rllm_learn.step import Progress, StepReport
from rllm_learn.tracking import read_metrics


class Letters:
    """A tokenizer whose ids are code points."""

    def decode(self, ids: list[int], **options: object) -> str:
        return "".join(map(chr, ids))


def record(path: Path) -> RunRecord:
    settings = to_settings(None, TrainerConfig, config_name="grpo_trainer")
    return RunRecord(path, settings, Letters(), 2)  # pyright: ignore[reportArgumentType]


def episode(task: int, reward: float) -> Episode:
    return Episode(
        id=f"{task}-0",
        task={"seed": task},
        trajectories=[Trajectory(task={"seed": task}, reward=reward)],
        termination_reason=TerminationReason.ENV_DONE,
        is_correct=reward > 0,
    )


def report(reward: float) -> StepReport:
    episodes = [episode(task, reward) for task in range(3)]
    return StepReport({"train/reward": reward}, episodes, [], "all rewards are equal")


def rewards(path: Path) -> list[tuple[int, float]]:
    rows = read_metrics(path / "metrics.jsonl")
    return [(row["step"], row["train/reward"]) for row in rows if "train/reward" in row]


def test_steps_and_evaluations_are_what_the_viewer_reads(tmp_path: Path) -> None:
    run = tmp_path / "run"
    kept = record(run)
    kept.open(Progress())
    kept.step(1, report(0.25))
    found = summarize([episode(0, 1.0), episode(1, 0.0)], num_tasks=2)
    kept.evaluation(1, {"": found, "greedy_": found}, began=1000.0, seconds=2.0)
    kept.close(Progress(step=1, weights_version=1))
    files = RunFiles(run)
    assert [(f.kind, f.step) for f in files.episode_files()] == [
        ("eval", 1),
        ("eval-greedy", 1),
        ("train", None),
    ]
    lines = (run / "episodes" / "train.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["0-0", "1-0"]  # two of three
    row = read_metrics(run / "metrics.jsonl")[1]
    assert (row["eval/pass_at_1"], row["eval/greedy_pass_at_1"], row["eval/tasks"]) == (0.5, 0.5, 2)
    assert (row["time/eval_began"], row["time/eval_seconds"]) == (1000.0, 2.0)
    assert files.summary()["pass_at_1_after"] == 0.5
    assert "group_size" in files.settings_text()


def test_what_came_after_a_checkpoint_is_dropped_when_a_run_goes_on_from_it(
    tmp_path: Path,
) -> None:
    kept = record(tmp_path)
    kept.open(Progress())
    for step in (1, 2, 3):
        kept.step(step, report(step / 4))
    kept.close(Progress(step=3))
    kept.open(Progress(step=1))
    kept.step(2, report(0.875))
    kept.close(Progress(step=2))
    assert rewards(tmp_path) == [(1, 0.25), (2, 0.875)]


def test_a_directory_with_another_run_is_refused_before_anything_is_played(tmp_path: Path) -> None:
    first = record(tmp_path)
    first.open(Progress())
    with pytest.raises(ConfigError, match="in use by another process"):
        record(tmp_path).open(Progress(step=1))
    first.close(Progress())
    with pytest.raises(ConfigError, match=r"holds a run already.*restore_from_path"):
        record(tmp_path).open(Progress())
    assert (tmp_path / "config.yaml").is_file()


def test_reporting_takes_a_directory_and_refuses_nonsense() -> None:
    config = GRPOConfig().environment("rllm/Calculator-v0")
    assert config.run_dir is None
    assert config.reporting(run_dir=Path("runs/mine"), run_dir_episodes=3).run_dir == "runs/mine"
    assert (config.copy().run_dir, config.run_dir_episodes) == ("runs/mine", 3)
    config.validate()
    for wrong in (-1, True, "8"):
        with pytest.raises(ConfigError, match="run_dir_episodes must be 0 or more"):
            config.copy().reporting(run_dir_episodes=wrong).validate()  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match="run_dir must be a directory"):
        config.reporting(run_dir="").validate()
