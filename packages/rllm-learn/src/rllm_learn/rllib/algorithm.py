"""RLlib's `Algorithm`, whose `training_step` is the same `train_step` as everywhere."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from time import perf_counter, time
from typing import Any

from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.callbacks.utils import make_callback
from ray.rllib.env.env_runner_group import EnvRunnerGroup
from ray.rllib.utils import force_list
from ray.rllib.utils.checkpoints import Checkpointable
from ray.rllib.utils.metrics import (
    ENV_RUNNER_RESULTS,
    EPISODE_RETURN_MEAN,
    LEARNER_RESULTS,
    NUM_ENV_STEPS_SAMPLED,
    NUM_ENV_STEPS_SAMPLED_LIFETIME,
    NUM_EPISODES,
)
from ray.tune.execution.placement_groups import PlacementGroupFactory

from rllm_agents import SamplingParams
from rllm_agents.evaluation import EvaluationResult, evaluation_requests, summarize
from rllm_agents.metrics import Estimate
from rllm_learn.errors import TrainingError
from rllm_learn.evaluator import opponent_scores
from rllm_learn.records import learned_reward
from rllm_learn.rllib.config import LLMAlgorithmConfig
from rllm_learn.rllib.learner_group import LearnersLost
from rllm_learn.rllib.parts import RLlibParts
from rllm_learn.rllib.placement import bundles
from rllm_learn.rllib.run_record import RunRecord
from rllm_learn.sampler import PlanSampler
from rllm_learn.step import Progress, StepReport, train_step

logger = logging.getLogger(__name__)
_POLICY_RESULTS = (LEARNER_RESULTS, "default_policy")

LEARNER_GROUP = "learner_group"


class LLMAlgorithm(Algorithm):
    """Trains a language agent's policy over RLlib's env runners, learners and engines.

    Made by `LLMAlgorithmConfig.build_algo()`. `train`, `evaluate`, `save_to_path`,
    `restore_from_path`, `from_checkpoint`, `stop` and Tune work as with any RLlib algorithm.
    """

    config: Any
    """An `LLMAlgorithmConfig`."""
    learner_group: Any
    """An `LLMLearnerGroup`."""

    @classmethod
    def get_default_config(cls) -> AlgorithmConfig:
        """Return the configuration that `tune.Tuner(GRPO, ...)` starts from."""
        return LLMAlgorithmConfig(cls)

    def setup(self, config: Any) -> None:
        """Start env runners, engines and learners, and wait until all are there.

        Raises:
            ConfigError: Settings do not go together, or Ray has not the resources.
            StartError: An actor could not be started.
        """
        if not isinstance(config, LLMAlgorithmConfig):
            config = self.get_default_config().update_from_dict(config)
        self.config = config
        logging.getLogger("ray.rllib").setLevel(config.log_level or "WARN")
        self.callbacks = [callback() for callback in force_list(config.callbacks_class)]
        self.spaces = self.env_to_module_connector = self.module_to_env_connector = None
        self.offline_data = self.evaluation_dataset = self._aggregator_actor_manager = None
        self.reward_estimators = {}
        self._restarts_in_a_row = 0
        self._progress = Progress()

        self._settings = settings = config.trainer_config()
        self._parts = RLlibParts(config, settings, logdir=self.logdir, trial_id=self.trial_id)
        self._algorithm = self._parts.algorithm
        # Under the names by which RLlib's own methods know them.
        self.env_runner_group: Any = self._parts.env_runner_group
        self.eval_env_runner_group: Any = self._parts.eval_env_runner_group
        self.learner_group = self._parts.learner_group
        self._sampler = PlanSampler(
            play=lambda requests: self._parts.play(requests, "training"),
            push=self._parts.push,
            temperature=settings.rollout.temperature,
            seed=settings.seed,
            max_failure_share=settings.rollout.max_failure_share,
            adapters=self._parts.roles.learns,
            rest=self._parts.rest,
        )
        self._run_record = self._make_run_record()
        self._set_up_metrics()
        _call_back(self, "on_algorithm_init")

    def training_step(self) -> None:
        """Plan, sample, give credit, update, publish. A lost learner costs the update.

        Raises:
            TrainingError: Too many episodes failed, or learners are lost again and again.
        """
        if self._run_record is not None:
            self._run_record.open(self._progress)
        try:
            report = train_step(
                self._sampler,
                self.learner_group,
                self._algorithm,
                self._parts.sets.training,
                self._progress,
                num_tasks=self._settings.tasks_per_step,
            )
        except LearnersLost as error:
            self._go_on_after(error)
            return
        self._restarts_in_a_row = 0
        if self._run_record is not None:
            self._run_record.step(self._progress.step, report)
        self._log(report)

    def evaluate(self, parallel_train_future: Any = None) -> dict[str, Any]:
        """Play held-out tasks with the newest weights, sampled and greedy.

        Returns:
            `{"env_runners": {"episode_return_mean": ..., "pass_at_1": ..., ...}}`.
        """
        if self._run_record is not None:
            self._run_record.open(self._progress)
        _call_back(self, "on_evaluate_start")
        began, started = time(), perf_counter()
        rollout = self._settings.rollout
        results: dict[str, Any] = {}
        played: dict[str, EvaluationResult] = {}
        kinds = [("", rollout.temperature, self._settings.eval.samples_per_task)]
        if self._settings.eval.greedy:
            kinds.append(("greedy_", 0.0, 1))
        for prefix, temperature, samples in kinds:
            requests = evaluation_requests(
                self._parts.sets.held_out,
                samples_per_task=samples,
                sampling=SamplingParams(temperature=temperature),
                seed=self._settings.seed,
            )
            result = summarize(
                self._parts.play(requests, "evaluation"), num_tasks=len(self._parts.sets.held_out)
            )
            played[prefix] = result
            rewards = [learned_reward(e) for e in result.episodes if not e.failed]
            scores = opponent_scores(result)
            results |= {f"{prefix}score/{name}": score for name, score in scores.items()}
            results |= {
                f"{prefix}{EPISODE_RETURN_MEAN}": sum(rewards) / max(len(rewards), 1),
                f"{prefix}pass_at_1": result.pass_at_1,
                **{f"{prefix}pass_at_{k}": e.value for k, e in _estimates(result).items()},
                f"{prefix}{NUM_EPISODES}": len(result.episodes),
                f"{prefix}num_failed_episodes": result.num_failed,
            }
        if self._run_record is not None:
            seconds = perf_counter() - started
            self._run_record.evaluation(self._progress.step, played, began=began, seconds=seconds)
        compiled = {ENV_RUNNER_RESULTS: results}
        _call_back(self, "on_evaluate_end", evaluation_metrics=compiled)
        return compiled

    def save_policy(self, path: str | Path) -> Path:
        """Write the trained adapter (as plain peft reads it), or the whole model without LoRA.

        Args:
            path: A directory that the learners' machine can write to.

        Returns:
            The directory with weights and tokenizer.
        """
        target = Path(path).absolute() / ("adapter" if self._settings.model.lora_rank else "model")
        self.learner_group.save_policy(target)
        self._parts.tokenizer.save_pretrained(target)
        return target

    def restore_env_runners(self, env_runner_group: EnvRunnerGroup) -> list[int]:
        """Note which runners are back; they need no state."""
        return env_runner_group.probe_unhealthy_env_runners() or []

    def get_module(self, module_id: Any = None) -> Any:
        """Refuse: there is no RLModule.

        Raises:
            NotImplementedError: With what to use instead.
        """
        raise NotImplementedError(
            "the policy is a transformers model, no RLModule: write it with save_policy(path) and "
            "act with rllm_agents.LLMPolicy, or reach it with learner_group.foreach_learner"
        )

    # Checkpoints: the learners' state, where the run is, and RLlib's metrics.

    def get_checkpointable_components(self) -> list[tuple[str, Checkpointable]]:
        """Return the learner group: runners and engines have no state of their own."""
        return [(LEARNER_GROUP, self.learner_group)]

    def get_state(
        self, components: Any = None, *, not_components: Any = None, **kwargs: Any
    ) -> dict[str, Any]:
        """Return what a checkpoint holds beside its components."""
        state = {
            "progress": asdict(self._progress),
            "metrics_logger": self.metrics.get_state(),
            "training_iteration": self.training_iteration,
        }
        if self._check_component(LEARNER_GROUP, components, not_components):
            state[LEARNER_GROUP] = self.learner_group.get_state()
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what `get_state` returned; learners publish their weights."""
        if "progress" in state:
            if self._run_record is not None:
                self._run_record.close(self._progress)  # what comes replaces what came after
            self._progress = Progress(**state["progress"])
        if "metrics_logger" in state:
            self.metrics.set_state(state["metrics_logger"])
        if "training_iteration" in state:
            self._iteration = state["training_iteration"]
        if LEARNER_GROUP in state:
            self.learner_group.set_state(state[LEARNER_GROUP])
            self._publish_again()

    def restore_from_path(self, path: Any, *args: Any, **kwargs: Any) -> None:
        """Go on from what `save_to_path` wrote, with any number of learners, runners, engines."""
        Checkpointable.restore_from_path(self, path, *args, **kwargs)
        self._publish_again()

    def cleanup(self) -> None:
        """End every actor; `stop` calls it."""
        super().cleanup()
        if hasattr(self, "_parts"):  # not where setup failed
            self._parts.close()
        record: RunRecord | None = getattr(self, "_run_record", None)
        if record is not None:
            record.close(self._progress)

    @classmethod
    def default_resource_request(cls, config: Any) -> PlacementGroupFactory:
        """Return what Tune reserves: the algorithm itself, runners, learners and engines."""
        checked: Any = cls.get_default_config().update_from_dict(config)
        checked.validate()
        return PlacementGroupFactory(bundles(checked), strategy=checked.placement_strategy)

    def _make_run_record(self) -> RunRecord | None:
        if self.config.run_dir is None:
            return None
        path = Path(self.config.run_dir).expanduser().absolute()
        if self.trial_id != "default":  # in Tune
            path /= self.trial_id
        count = self.config.run_dir_episodes
        return RunRecord(path, self._settings, self._parts.tokenizer, count)

    def _publish_again(self) -> None:
        """Publish under a version that engines, which may have seen any other, take as newer."""
        self._progress.weights_version += 1
        self._parts.push(self.learner_group.export_weights(), self._progress.weights_version)

    def _go_on_after(self, error: LearnersLost) -> None:
        self._restarts_in_a_row += 1
        if self._restarts_in_a_row > self.config.max_learner_restarts:
            raise TrainingError(
                f"learners were lost {self._restarts_in_a_row} times in a row: {error}"
            ) from error
        self._publish_again()
        logger.warning("step %d is played again after learners were lost", self._progress.step)
        self.metrics.log_value("num_learner_restarts", 1, reduce="lifetime_sum")

    def _log(self, report: StepReport) -> None:
        """Put a step's figures where RLlib's users look for them."""
        figures = report.metrics
        steps = sum(len(t.steps) for e in report.episodes for t in e.trajectories)
        runners = {k.removeprefix("train/"): v for k, v in figures.items() if "train/" in k}
        runners[EPISODE_RETURN_MEAN] = runners["reward"]
        learners = {k.removeprefix("learner/"): v for k, v in figures.items() if "learner/" in k}
        for key, named in (((ENV_RUNNER_RESULTS,), runners), (_POLICY_RESULTS, learners)):
            for name, value in named.items():
                self.metrics.log_value((*key, *name.split("/")), value, window=1)
        for name, value in figures.items():
            if name.partition("/")[0] in ("weights_version", "time", "reward", "ended"):
                self.metrics.log_value(tuple(name.split("/", 1)), value, window=1)
        for name, value in ((NUM_ENV_STEPS_SAMPLED, steps), (NUM_EPISODES, len(report.episodes))):
            self.metrics.log_value((ENV_RUNNER_RESULTS, name), value, reduce="sum")
        lifetime = (ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME)
        self.metrics.log_value(lifetime, steps, reduce="lifetime_sum")
        if report.skipped is not None:
            logger.warning("step %d: %s; no update", self._progress.step, report.skipped)


def _estimates(result: EvaluationResult) -> Mapping[int, Estimate]:
    return {} if result.pass_at_k is None else result.pass_at_k.estimates


def _call_back(algorithm: LLMAlgorithm, name: str, **more: Any) -> None:
    """Call the user's callbacks of one event, as RLlib does."""
    make_callback(
        name,
        algorithm.callbacks,
        getattr(algorithm.config, f"callbacks_{name}"),
        kwargs={"algorithm": algorithm, "metrics_logger": algorithm.metrics, **more},
    )
