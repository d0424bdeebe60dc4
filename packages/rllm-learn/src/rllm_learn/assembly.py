"""From settings to the parts that a run needs: engines, learner, tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rllm_agents import AgentExecutionEngine
from rllm_agents.models import resolve_model_path
from rllm_learn.config import TrainerConfig
from rllm_learn.core.learner import Learner
from rllm_learn.core.model import PolicySpec
from rllm_learn.errors import ConfigError
from rllm_learn.players import Players, TaskSets, choose_tasks
from rllm_learn.sampler import EngineSampler
from rllm_learn.settings import (
    apply_torch_threads,
    load_policy_of,
    load_tokenizer,
    policy_spec,
    update_rule,
)
from rllm_learn.task_sources import TaskSource

ENGINES = ("transformers",)
"""Rollout engines whose completions can be learned from."""


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
    spec = policy_spec(config.model, resolve_model_path(config.model.path), seed=config.seed)
    tokenizer = load_tokenizer(spec.path)
    rule = update_rule(
        config.learner,
        config.model,
        config.num_steps,
        seed=config.seed,
        temperature=config.rollout.temperature,
    )
    train_engine, eval_engine = _execution_engines(config, players, sets, spec, tokenizer)
    sampler = EngineSampler(
        train_engine,
        runner,
        temperature=config.rollout.temperature,
        seed=config.seed,
        max_failure_share=config.rollout.max_failure_share,
    )
    return Parts(
        sampler=sampler,
        learner=Learner(load_policy_of(spec), rule),
        tasks=sets.training,
        eval_tasks=sets.held_out,
        eval_engine=eval_engine,
        train_engine=train_engine,
        runner=runner,
        tokenizer=tokenizer,
    )


def _execution_engines(
    config: TrainerConfig, players: Players, sets: TaskSets, spec: PolicySpec, tokenizer: Any
) -> tuple[AgentExecutionEngine, AgentExecutionEngine]:
    """Return one for training and one for held-out tasks, over one rollout engine."""
    rollout = config.rollout

    def make(env_args: dict[str, Any], **engine: Any) -> AgentExecutionEngine:
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

    arguments = {
        "model": str(spec.path),
        "max_batch_size": config.engine.max_batch_size,
        "dtype": spec.dtype,
        "device": spec.device,
    }
    name = config.engine.name
    train = make(sets.training_env_args, engine_name=name, rollout_engine_args=arguments)
    return train, make(sets.held_out_env_args, rollout_engine=train.rollout_engine)


def _agent_args(config: TrainerConfig, players: Players) -> dict[str, Any]:
    if players.agent_args is not None:
        return dict(players.agent_args)
    prompt = config.agent.system_prompt
    return {} if prompt is None else {"system_prompt": prompt}
