"""From settings to the parts that a run needs: engines, learner, tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor
from transformers import AutoConfig

from rllm_agents import AgentExecutionEngine
from rllm_agents.loop_thread import LoopThread
from rllm_agents.models import resolve_model_path
from rllm_agents.named_weights import NamedWeightsEngine
from rllm_agents.rollout_engines import RolloutEngine, build_rollout_engine, find_engine
from rllm_learn.algorithms import Algorithm
from rllm_learn.async_sampler import AheadRule, AsyncSampler
from rllm_learn.config import TrainerConfig
from rllm_learn.core.learner_set import save_policies
from rllm_learn.core.model import PolicySpec, adapter_config
from rllm_learn.errors import ConfigError
from rllm_learn.learners import load_learners
from rllm_learn.players import Players, choose_tasks
from rllm_learn.roles import RolePlan, run_algorithm
from rllm_learn.sampler import PlanSampler, push_weights
from rllm_learn.settings import (
    apply_torch_threads,
    load_tokenizer,
    policy_spec,
    teacher_spec,
    update_rule,
)
from rllm_learn.step import Progress, Sampler
from rllm_learn.task_sources import TaskSource

ENGINES = ("transformers", "vllm")
"""Rollout engines whose completions can be learned from."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything a run drives. Made by `assemble`, closed by the trainer."""

    sampler: PlanSampler
    learner: Any
    """A Learner, or a LearnerSet."""
    algorithm: Algorithm
    tasks: TaskSource
    eval_tasks: Sequence[dict[str, Any]]
    eval_engine: AgentExecutionEngine
    train_engine: AgentExecutionEngine
    runner: asyncio.Runner | LoopThread
    tokenizer: Any
    has_adapters: bool

    def save_policy(self, path: Path) -> Path:
        """Write the trained adapter (as plain peft reads it), or the whole model without LoRA.

        Several policies are written to directories of their names under it.
        """
        target = path / ("adapter" if self.has_adapters else "model")
        save_policies(self.learner, target)
        self.tokenizer.save_pretrained(target)
        return target

    def close(self) -> None:
        """Free engines and threads."""
        self.eval_engine.close()
        self.train_engine.close()
        self.train_engine.rollout_engine.close()


def assemble(
    config: TrainerConfig,
    players: Players,
    datasets: tuple[Any, Any],
    runner: asyncio.Runner | LoopThread,
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
    check_engine(config, players.roles)
    sets = choose_tasks(config, players, datasets)
    threads = config.torch_threads or (1 if config.deterministic else None)
    apply_torch_threads(threads, config.model.path)
    spec = policy_spec(config.model, resolve_model_path(config.model.path), seed=config.seed)
    tokenizer = load_tokenizer(spec.path)
    roles = players.roles or RolePlan()
    plan = replace(roles.learners, teacher=teacher_spec(config.algorithm, spec))
    rule = update_rule(
        config.learner,
        config.model,
        config.num_steps,
        seed=config.seed,
        temperature=config.rollout.temperature,
        critic=config.algorithm.critic,
    )
    publishes_adapter = publishes_adapters(config, roles)
    algorithm = run_algorithm(config, players.roles)
    learner = load_learners(
        spec,
        rule,
        plan,
        exports_adapter=publishes_adapter,
        keeps_reference="reference" in algorithm.scores,
    )
    arguments = engine_arguments(config, spec, roles)
    rollout_engine = policy_engine(config.engine.name, arguments, roles.sets)
    train_engine = execution_engine(
        config, players, sets.training_env_args, tokenizer, rollout_engine=rollout_engine
    )
    peft_config = adapter_config(spec) if publishes_adapter else None

    def push(weights: Mapping[str, Tensor], version: int) -> None:
        settings: Any = {"adapter_config": peft_config, "in_flight": is_asynchronous(config)}
        runner.run(push_weights(rollout_engine, weights, version=version, **settings))

    sampler = PlanSampler(
        play=lambda requests: runner.run(train_engine.execute_requests(requests)),
        push=push,
        temperature=config.rollout.temperature,
        seed=config.seed,
        max_failure_share=config.rollout.max_failure_share,
        adapters=roles.learns,
        rest=lambda: let_sleep(config, rollout_engine, runner),
    )
    return Parts(
        sampler=sampler,
        learner=learner,
        algorithm=algorithm,
        tasks=sets.training,
        eval_tasks=sets.held_out,
        eval_engine=execution_engine(
            config, players, sets.held_out_env_args, tokenizer, rollout_engine=rollout_engine
        ),
        train_engine=train_engine,
        runner=runner,
        tokenizer=tokenizer,
        has_adapters=spec.lora_rank > 0,
    )


def let_sleep(config: TrainerConfig, engine: Any, runner: asyncio.Runner | LoopThread) -> None:
    """Let a rollout engine that shares its GPU with the learner leave it the memory.

    Args:
        config: Says whether it does.
        engine: vLLM's, where it does.
        runner: Of the engine's event loop.
    """
    if config.engine.sleep:
        runner.run(engine.sleep())


def choose_sampler(config: TrainerConfig, parts: Parts, progress: Progress) -> Sampler:
    """Return what plays the steps of a run: when they come, or ahead of them."""
    runner = parts.runner
    if not isinstance(runner, LoopThread):
        return parts.sampler
    return AsyncSampler(
        parts.sampler,
        AheadRule(config.rollout.max_staleness, config.tasks_per_step, config.num_steps),
        begin=lambda requests: runner.start(parts.train_engine.execute_requests(requests)),
        plan=parts.algorithm.plan,
        tasks=parts.tasks,
        progress=progress,
    )


def is_asynchronous(config: TrainerConfig) -> bool:
    """Return whether episodes are played while the learner is at work."""
    return config.rollout.max_staleness > 0


def check_engine(config: TrainerConfig, roles: RolePlan | None = None) -> None:
    """Refuse an engine that cannot be learned from, or not in this way.

    Raises:
        ConfigError: Naming those that can.
    """
    if config.engine.name not in ENGINES:
        raise ConfigError(
            f"engine.name must be one of {', '.join(ENGINES)} to learn from, "
            f"got {config.engine.name!r}"
        )
    if is_asynchronous(config) and roles is not None and roles.sets:
        raise ConfigError(
            f"rollout.max_staleness={config.rollout.max_staleness} exchanges the weights of one "
            f"policy while episodes go on, and {', '.join(roles.sets)} play beside it: set it to 0"
        )


def policy_engine(
    name: str, arguments: Mapping[str, Any], sets: Mapping[str, str | None]
) -> RolloutEngine:
    """Make the rollout engine of a run, with the sets of weights that its players need.

    Args:
        name: Of the engine.
        arguments: Of its class.
        sets: See `RolePlan.sets`.
    """
    engine = build_rollout_engine(name, arguments)
    return NamedWeightsEngine(engine, Path(arguments["model"]), sets) if sets else engine


def publishes_adapters(config: TrainerConfig, roles: RolePlan) -> bool:
    """Decide how weights reach the sampler.

    Raises:
        ConfigError: Adapters are asked for, but all parameters are trained, or several sets of
            weights play.
    """
    publish = config.engine.publish
    if roles.sets:
        if publish == "adapter":
            raise ConfigError(
                f"engine.publish=adapter serves one policy, and {', '.join(roles.sets)} play "
                "beside it: take engine.publish=merged"
            )
        return False
    if publish == "adapter" and not config.model.lora_rank:
        raise ConfigError("engine.publish=adapter needs adapters: set model.lora_rank above 0")
    if publish != "auto" or config.engine.name != "vllm" or not config.model.lora_rank:
        return publish == "adapter"
    return not _vllm_is_on_cpu()


def _vllm_is_on_cpu() -> bool:
    find_engine("vllm")
    from vllm.platforms import current_platform  # takes seconds, and only vllm is asked

    return current_platform.is_cpu()


def engine_arguments(config: TrainerConfig, spec: PolicySpec, roles: RolePlan) -> dict[str, Any]:
    """Return the keyword arguments of the rollout engine that samples from a policy.

    Raises:
        ConfigError: Settings are for another kind of machine.
    """
    arguments: dict[str, Any] = {
        "model": str(spec.path),
        "max_batch_size": config.engine.max_batch_size,
        "dtype": spec.dtype,
    }
    if config.engine.name != "vllm":
        return {**arguments, "device": spec.device}
    if config.engine.sleep and _vllm_is_on_cpu():
        raise ConfigError(
            "engine.sleep=true hands a GPU's memory back, and the vllm that is installed samples "
            "on the CPU, where there is none to hand back: set it to false"
        )
    return {
        **arguments,
        "max_model_length": context_length(spec.path, config),
        "kv_cache_gib": config.engine.kv_cache_gib,
        "sleep_mode": config.engine.sleep,
        "max_lora_rank": spec.lora_rank if publishes_adapters(config, roles) else 0,
        "vllm_args": config.engine.vllm_args,
    }


def execution_engine(
    config: TrainerConfig,
    players: Players,
    env_args: Mapping[str, Any],
    tokenizer: Any,
    rollout_engine: RolloutEngine,
) -> AgentExecutionEngine:
    """Make what runs episodes of one set of tasks.

    Args:
        config: Checked settings.
        players: Agent and environment.
        env_args: Of every environment.
        tokenizer: Of the model.
        rollout_engine: What samples; it stays the caller's to close.
    """
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
        isolation=rollout.isolation,
        step_timeout=rollout.step_timeout,
        call_timeout=rollout.call_timeout,
        retry_limit=rollout.retry_limit,
        trajectory_timeout=rollout.trajectory_timeout,
        lockstep=config.deterministic,
        rollout_engine=rollout_engine,
    )


def _agent_args(config: TrainerConfig, players: Players) -> dict[str, Any]:
    if players.agent_args is not None:
        return dict(players.agent_args)
    prompt = config.agent.system_prompt
    return {} if prompt is None else {"system_prompt": prompt}


def context_length(path: Path, config: TrainerConfig) -> int:
    """Return the longest context that a rollout can have: settings and model both bound it."""
    wanted = config.rollout.max_prompt_length + config.rollout.max_response_length
    model = AutoConfig.from_pretrained(path).get_text_config()
    return min(wanted, getattr(model, "max_position_embeddings", None) or wanted)
