"""From settings to the parts that a run needs: engines, learner, tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer

from rllm_agents import AgentExecutionEngine
from rllm_agents.evaluation import env_takes
from rllm_agents.models import resolve_model_path
from rllm_envs import Dataset, GymEnv, load_rows, seed_tasks
from rllm_learn.config import TrainerConfig
from rllm_learn.core.learner import Learner
from rllm_learn.core.model import load_policy
from rllm_learn.errors import ConfigError
from rllm_learn.sampler import EngineSampler
from rllm_learn.settings import apply_torch_threads, policy_spec, update_rule
from rllm_learn.task_sources import DatasetTasks, SeedTasks, TaskSource, hold_out

ENGINES = ("transformers",)
"""Rollout engines whose completions can be learned from."""


@dataclass(frozen=True, slots=True)
class Players:
    """Who plays, as AgentTrainer was given it."""

    agent_class: type
    env_class: type
    agent_args: Mapping[str, Any] | None
    env_args: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class TaskSets:
    """What is played. Made by `choose_tasks`."""

    training: TaskSource
    held_out: Sequence[dict[str, Any]]
    training_env_args: dict[str, Any]
    held_out_env_args: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything a run drives. Made by `assemble`, closed by the trainer."""

    sampler: EngineSampler
    learner: Learner
    tasks: TaskSource
    eval_tasks: Sequence[dict[str, Any]]
    eval_engine: AgentExecutionEngine
    train_engine: AgentExecutionEngine
    runner: asyncio.Runner
    tokenizer: Any

    def save_policy(self, path: Path) -> Path:
        """Write the trained adapter (as plain peft reads it), or the whole model without LoRA."""
        policy: Any = self.learner.policy
        target = path / ("adapter" if hasattr(policy, "peft_config") else "model")
        policy.save_pretrained(target)
        self.tokenizer.save_pretrained(target)
        return target

    def close(self) -> None:
        """Free engines and threads."""
        self.eval_engine.close()
        self.train_engine.close()


def assemble(
    config: TrainerConfig,
    players: Players,
    datasets: tuple[Any, Any],
    runner: asyncio.Runner,
) -> Parts:
    """Load data, model and engines.

    Args:
        config: Checked settings.
        players: Agent and environment.
        datasets: Training and held-out tasks, or None for those that `config.env` names.
        runner: The event loop of both engines.

    Raises:
        ConfigError: Settings do not go together.
        UserError: A model, a data set or an environment is not there.
    """
    if config.engine.name not in ENGINES:
        raise ConfigError(
            f"engine.name must be one of {', '.join(ENGINES)} to learn from, "
            f"got {config.engine.name!r}"
        )
    # What is cheap to get wrong is looked at before the model is loaded.
    sets = choose_tasks(config, players, datasets)
    apply_torch_threads(config.torch_threads, config.model.path)
    model_path = resolve_model_path(config.model.path)
    spec = policy_spec(config.model, model_path, seed=config.seed)
    tokenizer = AutoTokenizer.from_pretrained(model_path)
    rule = update_rule(
        config.learner,
        config.model,
        config.num_steps,
        seed=config.seed,
        temperature=config.rollout.temperature,
    )
    learner = Learner(load_policy(spec), rule)

    def execution_engine(env_args: dict[str, Any], **engine: Any) -> AgentExecutionEngine:
        rollout = config.rollout
        return AgentExecutionEngine(
            agent_class=players.agent_class,
            agent_args=_agent_args(config, players),
            env_class=players.env_class,
            env_args=env_args,
            tokenizer=tokenizer,
            max_prompt_length=rollout.max_prompt_length,
            max_response_length=rollout.max_response_length,
            max_steps=rollout.max_steps,
            n_parallel_agents=rollout.n_parallel_agents,
            step_timeout=rollout.step_timeout,
            trajectory_timeout=rollout.trajectory_timeout,
            **engine,
        )

    train_engine = execution_engine(
        sets.training_env_args,
        engine_name=config.engine.name,
        rollout_engine_args={
            "model": str(model_path),
            "max_batch_size": config.engine.max_batch_size,
            "dtype": spec.dtype,
            "device": spec.device,
        },
    )
    rollout_engine = train_engine.rollout_engine
    eval_engine = execution_engine(sets.held_out_env_args, rollout_engine=rollout_engine)
    sampler = EngineSampler(
        train_engine,
        rollout_engine,
        runner,
        temperature=config.rollout.temperature,
        seed=config.seed,
        max_failure_share=config.rollout.max_failure_share,
    )
    return Parts(
        sampler=sampler,
        learner=learner,
        tasks=sets.training,
        eval_tasks=sets.held_out,
        eval_engine=eval_engine,
        train_engine=train_engine,
        runner=runner,
        tokenizer=tokenizer,
    )


def choose_tasks(config: TrainerConfig, players: Players, datasets: tuple[Any, Any]) -> TaskSets:
    """Decide what is trained on and what is held out.

    Data sets win over the environment's own tasks. Held-out tasks are the given ones, else rows
    kept apart from the training rows, else different tasks of the environment's test split, the
    same ones for every seed of a run.

    Raises:
        ConfigError: There is no way to get tasks, or held-out ones.
    """
    train_rows = _rows(datasets[0], config.env.dataset, "train")
    held_out = _rows(datasets[1], config.env.eval_dataset, "test")
    if held_out is not None:
        held_out = [dict(row) for row in held_out][: config.eval.num_tasks]
    elif train_rows is not None:
        train_rows, held_out = hold_out(train_rows, config.eval.num_tasks)
    env_args = dict(players.env_args or {})
    if not issubclass(players.env_class, GymEnv):
        if train_rows is None or held_out is None:
            raise ConfigError(
                f"train_dataset is needed with env_class={players.env_class.__name__}: only "
                "registered environments draw tasks of their own"
            )
        return TaskSets(DatasetTasks(train_rows, config.seed), held_out, env_args, env_args)

    env_args.setdefault("env_id", config.env.id)
    kwargs = {**config.env.kwargs, **env_args.pop("env_kwargs", {})}
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


def _rows(given: Any, named: str | None, split: str) -> Dataset | Sequence[dict[str, Any]] | None:
    if given is not None:
        return given
    return None if named is None else load_rows(named, split)


def _agent_args(config: TrainerConfig, players: Players) -> dict[str, Any]:
    if players.agent_args is not None:
        return dict(players.agent_args)
    prompt = config.agent.system_prompt
    return {} if prompt is None else {"system_prompt": prompt}
