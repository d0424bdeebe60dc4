"""Everything that an algorithm drives: env runners, engines, learners and their tasks."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ray.rllib.env.env_runner_group import EnvRunnerGroup
from torch import Tensor

from rllm_agents import Episode, RolloutRequest
from rllm_agents.loop_thread import LoopThread
from rllm_agents.models import resolve_model_path
from rllm_agents.rollout_engines.base import RolloutEngine
from rllm_agents.rollout_engines.pool import EnginePool
from rllm_learn.assembly import (
    check_engine,
    context_length,
    engine_arguments,
    let_sleep,
    policy_engine,
    publishes_adapters,
)
from rllm_learn.config import TrainerConfig
from rllm_learn.core.model import PolicySpec, adapter_config
from rllm_learn.players import choose_tasks
from rllm_learn.rllib.env_runner import LLMEnvRunner, LLMEnvRunnerGroup, PlaySetting, play
from rllm_learn.rllib.learner_group import LLMLearnerGroup
from rllm_learn.rllib.placement import engine_options, learner_options, resources
from rllm_learn.rllib.readiness import wait_until_ready
from rllm_learn.roles import RolePlan, run_algorithm
from rllm_learn.sampler import push_weights
from rllm_learn.settings import (
    apply_torch_threads,
    load_tokenizer,
    policy_spec,
    teacher_spec,
    update_rule,
)


class RLlibParts:
    """Starts all parts of an `LLMAlgorithm` and moves episodes and weights between them."""

    def __init__(
        self, config: Any, settings: TrainerConfig, *, logdir: str | None, trial_id: str | None
    ) -> None:
        """Start actors and wait until they are there.

        Args:
            config: An `LLMAlgorithmConfig`, checked.
            settings: What it says in the words of `rllm train`.
            logdir: Where RLlib's env runners may write.
            trial_id: Of Tune, or None.

        Raises:
            ConfigError: Settings do not go together, or Ray has not the resources.
            StartError: An actor could not be started.
        """
        self._config = config
        self._settings = settings
        self._names: dict[str, Any] = {"logdir": logdir, "tune_trial_id": trial_id}
        check_engine(settings)
        self._players = config.chosen_players()
        self.roles = self._players.roles or RolePlan()
        """Who learns from whom."""
        self.algorithm = run_algorithm(settings, self._players.roles)
        """What training runs."""
        self.sets = choose_tasks(settings, self._players, config.datasets())
        """Training and held-out tasks."""
        apply_torch_threads(settings.torch_threads, settings.model.path)
        spec = policy_spec(
            settings.model, resolve_model_path(settings.model.path), seed=settings.seed
        )
        self.tokenizer = load_tokenizer(spec.path)
        """Of the model."""
        self._publishes_adapter = publishes_adapters(settings, self.roles)
        self._peft_config = adapter_config(spec) if self._publishes_adapter else None
        self._torch_threads = 1 if settings.model.path.startswith("tiny") else None
        arguments = engine_arguments(settings, spec, self.roles)

        self.env_runner_group = self._runners(config, config.num_env_runners, offset=0)
        """Plays episodes."""
        self.eval_env_runner_group: EnvRunnerGroup | None = None
        """Plays evaluation's episodes, where it has runners of its own."""
        if config.evaluation_num_env_runners:
            self.eval_env_runner_group = self._runners(
                config.get_evaluation_config_object(),
                config.evaluation_num_env_runners,
                offset=config.num_env_runners,
            )
        self._pool = self._start_engines(spec, arguments) if config.num_engines else None
        self._wait_for_actors()
        self.learner_group = self._start_learners(spec)
        """Holds the policy."""
        self._engine = self._pool or policy_engine(settings.engine.name, arguments, self.roles.sets)
        self._pushing = LoopThread("publish")
        self._play_settings = {
            "training": self._play_setting("training", self.sets.training_env_args),
            "evaluation": self._play_setting("evaluation", self.sets.held_out_env_args),
        }

    def play(self, requests: Sequence[RolloutRequest], name: str) -> list[Episode]:
        """Run one episode of each request, of "training" or "evaluation", in their order."""
        group = self.env_runner_group
        if name == "evaluation" and self.eval_env_runner_group is not None:
            group = self.eval_env_runner_group
        return play(
            group,
            requests,
            self._play_settings[name],
            hang_timeout=self._config.hang_timeout_s,
        )

    def push(self, weights: Mapping[str, Tensor], version: int) -> None:
        """Sample from these weights from now on, on every engine."""
        self._pushing.run(
            push_weights(self._engine, weights, version=version, adapter_config=self._peft_config)
        )

    def rest(self) -> None:
        """Let engines that share their GPUs with learners leave them the memory."""
        let_sleep(self._settings, self._engine, self._pushing)

    def close(self) -> None:
        """End engines; RLlib ends runners and learners."""
        self._engine.close()
        self._pushing.close()

    def _runners(self, config: Any, num_env_runners: int, *, offset: int) -> EnvRunnerGroup:
        runnable = config.copy(copy_frozen=False)
        runnable.env_runner_cls = LLMEnvRunner
        return LLMEnvRunnerGroup(
            env_creator=None,
            validate_env=None,
            default_policy_class=None,
            config=runnable,
            num_env_runners=num_env_runners,
            local_env_runner=num_env_runners == 0,
            pg_offset=offset,
            **self._names,
        )

    def _start_engines(self, spec: PolicySpec, arguments: Mapping[str, Any]) -> EnginePool:
        config = self._config
        return EnginePool(
            functools.partial(_pooled_engine, self._settings.engine.name, self.roles.sets)
            if self.roles.sets
            else self._settings.engine.name,
            num_engines=config.num_engines,
            engine_args=arguments,
            max_model_length=context_length(spec.path, self._settings),
            torch_threads=self._torch_threads,
            hang_timeout=config.hang_timeout_s,
            start_timeout=config.init_timeout_s,
            wait=False,
            **engine_options(config),
        )

    def _start_learners(self, spec: PolicySpec) -> LLMLearnerGroup:
        config, settings = self._config, self._settings
        return LLMLearnerGroup(
            config=config,
            spec=spec,
            rule=update_rule(
                settings.learner,
                settings.model,
                settings.num_steps,
                seed=settings.seed,
                temperature=settings.rollout.temperature,
                critic=settings.algorithm.critic,
            ),
            exports_adapter=self._publishes_adapter,
            keeps_reference="reference" in self.algorithm.scores,
            plan=replace(self.roles.learners, teacher=teacher_spec(settings.algorithm, spec)),
            torch_threads=self._torch_threads,
            actor_options=[learner_options(config)] * config.num_learners,
        )

    def _wait_for_actors(self) -> None:
        pending: dict[str, list[Any]] = {}
        for name, group in (
            ("env runners", self.env_runner_group),
            ("evaluation env runners", self.eval_env_runner_group),
        ):
            if group is not None:
                actors = group._worker_manager.actors().values()
                pending[name] = [actor.ping.remote() for actor in actors]
        pending["engines"] = self._pool.readiness() if self._pool else []
        if any(pending.values()):
            wait_until_ready(pending, resources(self._config), timeout=self._config.init_timeout_s)

    def _play_setting(self, name: str, env_args: Mapping[str, Any]) -> PlaySetting:
        return PlaySetting(
            name,
            self._settings,
            self._players,
            env_args,
            self.tokenizer,
            self._pool.client if self._pool else self._engine,
        )


def _pooled_engine(name: str, sets: Mapping[str, str | None], **arguments: Any) -> RolloutEngine:
    """Make an engine of the pool; keyword arguments as the pool passes them."""
    return policy_engine(name, arguments, sets)
