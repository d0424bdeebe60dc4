from __future__ import annotations

import json

import pytest

from rllm_agents import ChatAgent, UserError
from rllm_envs import BaseEnv, GymEnv, RllmEnvsError
from rllm_learn.config import TrainerConfig, to_settings
from rllm_learn.errors import ConfigError
from rllm_learn.players import Players, choose_tasks


class OwnEnv(BaseEnv):
    """An environment that is registered nowhere."""

    def reset(self):
        return {}, {}

    def step(self, action):
        return {}, 0.0, True, {}

    @staticmethod
    def from_dict(info):
        return OwnEnv()


def choose(datasets=(None, None), *, env_class=GymEnv, env_args=None, **settings):
    config = to_settings(
        {"eval": {"num_tasks": 16}, **settings}, TrainerConfig, config_name="grpo_trainer"
    )
    return choose_tasks(config, Players(ChatAgent, env_class, None, env_args), datasets)


def questions(env_args, tasks):
    return {GymEnv.from_dict({**task, **env_args}).reset()[0]["question"] for task in tasks}


def test_a_registered_environment_is_trained_on_one_split_and_judged_on_the_other():
    sets = choose(env={"id": "rllm/Arithmetic-v0", "kwargs": {"digits": 1}})
    assert sets.training_env_args["env_kwargs"]["split"] == "train"
    assert sets.held_out_env_args["env_kwargs"]["split"] == "test"
    held_out = questions(sets.held_out_env_args, sets.held_out)
    assert len(held_out) == 16
    # One-digit sums and differences are few enough to meet nearly all of them in training.
    trained = questions(sets.training_env_args, sets.training.batch(0, 800))
    assert len(trained) > 100
    assert trained.isdisjoint(held_out)


def test_held_out_tasks_are_the_same_for_every_seed_and_training_tasks_are_not():
    one, two = choose(seed=1), choose(seed=2)
    assert one.held_out == two.held_out
    assert one.training.batch(0, 8) != two.training.batch(0, 8)


def test_rows_that_are_given_win_over_the_environments_own_tasks():
    rows = [{"expression": f"{i} + 1"} for i in range(16)]
    sets = choose((rows, rows[:2]), env={"id": "rllm/Arithmetic-v0"})
    assert list(sets.held_out) == rows[:2]
    assert "split" not in sets.training_env_args["env_kwargs"]
    played = sets.training.batch(0, 16)
    assert sorted(t["expression"] for t in played) == sorted(r["expression"] for r in rows)


def test_arguments_of_the_call_win_over_the_settings():
    sets = choose(
        env={"kwargs": {"digits": 3}},
        env_args={"env_id": "rllm/Arithmetic-v0", "env_kwargs": {"digits": 2}},
    )
    assert sets.training_env_args["env_id"] == "rllm/Arithmetic-v0"
    assert sets.training_env_args["env_kwargs"]["digits"] == 2


def test_mistakes_are_said_before_anything_is_played(tmp_path):
    with pytest.raises(ConfigError, match="train_dataset is needed with env_class=OwnEnv"):
        choose(env_class=OwnEnv)
    with pytest.raises(ConfigError, match="row 2: a task must be a mapping, got str"):
        choose(([{"a": 1}, "b"], None), env_class=OwnEnv)
    with pytest.raises(RllmEnvsError, match="did you mean"):
        choose(env={"id": "rllm/Mathh-v0"})
    data = tmp_path / "rows.jsonl"
    rows = [{"question": "1 + 1", "answer": "2"}] * 8 + [{"question": "no answer"}]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises((UserError, RllmEnvsError), match="row 9"):
        choose(env={"id": "rllm/Math-v0", "dataset": str(data)})


def test_rows_that_are_all_alike_cannot_be_held_out():
    with pytest.raises(ConfigError, match="all 16 rows are equal"):
        choose(([{"expression": "1 + 1"}] * 16, None), env={"id": "rllm/Arithmetic-v0"})
