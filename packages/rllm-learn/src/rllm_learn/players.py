"""Who plays what: agent and environment classes, training and held-out tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rllm_agents.evaluation import env_takes, env_tasks
from rllm_agents.player import EpisodePlayer
from rllm_envs import GymEnv, load_rows, seed_tasks
from rllm_learn.config import TrainerConfig
from rllm_learn.errors import ConfigError
from rllm_learn.task_sources import DatasetTasks, SeedTasks, TaskSource, hold_out


@dataclass(frozen=True, slots=True)
class Players:
    """Who plays, as AgentTrainer was given it."""

    agent_class: type | EpisodePlayer
    env_class: type | None
    agent_args: Mapping[str, Any] | None
    env_args: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class TaskSets:
    """What is played. Made by `choose_tasks`."""

    training: TaskSource
    held_out: Sequence[dict[str, Any]]
    training_env_args: dict[str, Any]
    held_out_env_args: dict[str, Any]


def choose_tasks(config: TrainerConfig, players: Players, datasets: tuple[Any, Any]) -> TaskSets:
    """Decide what is trained on and what is held out.

    Data sets win over the environment's own tasks. Held-out tasks are the given ones, else rows
    kept apart from the training rows, else different tasks of the environment's test split, the
    same ones for every seed of a run.

    Raises:
        ConfigError: There is no way to get tasks, or held-out ones.
    """
    env_args = dict(players.env_args or {})
    is_registered = isinstance(players.env_class, type) and issubclass(players.env_class, GymEnv)
    if is_registered:
        env_args.setdefault("env_id", config.env.id)
    kwargs = {**config.env.kwargs, **env_args.pop("env_kwargs", {})} if is_registered else {}

    def rows(given: Any, named: str | None, split: str) -> list[dict[str, Any]] | None:
        if given is not None:
            return _checked_rows(given, f"{split} data set")
        if named is None or not is_registered:
            return None if named is None else list(load_rows(named, split))
        return env_tasks(env_args["env_id"], env_kwargs=kwargs, dataset=named, split=split)[0]

    train_rows = rows(datasets[0], config.env.dataset, "train")
    held_out = rows(datasets[1], config.env.eval_dataset, "test")
    if held_out is not None:
        held_out = held_out[: config.eval.num_tasks]
    elif train_rows is not None:
        train_rows, held_out = hold_out(train_rows, config.eval.num_tasks)
    if not is_registered:
        if train_rows is None or held_out is None:
            name = getattr(players.env_class, "__name__", repr(players.env_class))
            raise ConfigError(
                f"train_dataset is needed with env_class={name}: only registered environments "
                "draw tasks of their own"
            )
        return TaskSets(DatasetTasks(train_rows, config.seed), held_out, env_args, env_args)

    # An environment without splits is held out by its seeds alone.
    splits = env_takes(env_args["env_id"], "split") and "split" not in kwargs
    train_kwargs = {**kwargs, "split": "train"} if splits and train_rows is None else kwargs
    test_kwargs = {**kwargs, "split": "test"} if splits and held_out is None else kwargs
    if held_out is None:
        num_tasks = config.eval.num_tasks
        held_out = seed_tasks(env_args["env_id"], test_kwargs, num_tasks=num_tasks)
    return TaskSets(
        training=SeedTasks(config.seed)
        if train_rows is None
        else DatasetTasks(train_rows, config.seed),
        held_out=held_out,
        training_env_args={**env_args, "env_kwargs": train_kwargs},
        held_out_env_args={**env_args, "env_kwargs": test_kwargs},
    )


def _checked_rows(given: Any, name: str) -> list[dict[str, Any]]:
    """Return rows that were passed from Python, each a task of its own.

    Raises:
        ConfigError: A row is no mapping; its number is named.
    """
    tasks = list(given)
    for number, task in enumerate(tasks, start=1):
        if not isinstance(task, Mapping):
            raise ConfigError(
                f"{name}, row {number}: a task must be a mapping, got {type(task).__name__}"
            )
    return [dict(task) for task in tasks]
