"""Settings of a run that do not go with each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rllm_learn.algorithms import AlgorithmConfig
from rllm_learn.config.players import player_algorithm
from rllm_learn.errors import ConfigError

if TYPE_CHECKING:
    from rllm_learn.config.schema import TrainerConfig


def check_combinations(config: TrainerConfig) -> None:
    """Refuse settings that would learn something else than they say.

    Args:
        config: Each of its settings has been checked alone.

    Raises:
        ConfigError: Naming the settings, their values and what to do.
    """
    own = [player_algorithm(config.algorithm, player) for player in config.players.values()]
    algorithms = [config.algorithm, *own]
    _check_updates(config, algorithms)
    _check_staleness(config.rollout.max_staleness, algorithms)
    _check_deterministic(config)
    if config.engine.sleep and config.rollout.max_staleness:
        raise ConfigError(
            f"rollout.max_staleness={config.rollout.max_staleness} samples while the learner is at "
            "work, so that engine.sleep=true hands nothing back: set one of them back"
        )


def _check_updates(config: TrainerConfig, algorithms: Sequence[AlgorithmConfig]) -> None:
    learner = config.learner
    fresh = next((a for a in algorithms if a.needs_fresh_samples), None)
    if fresh is not None and (learner.num_epochs != 1 or learner.minibatch_sequences):
        raise ConfigError(
            f"algorithm={fresh.name} has no probability ratio, so its gradient holds "
            "only for the weights that sampled: set learner.num_epochs=1 and "
            f"learner.minibatch_sequences=0, got {learner.num_epochs} and "
            f"{learner.minibatch_sequences}, or take an algorithm that clips, such as grpo"
        )


def _check_staleness(max_staleness: int, algorithms: Sequence[AlgorithmConfig]) -> None:
    """Refuse losses that are not right for samples of older weights."""
    for algorithm in algorithms if max_staleness else ():
        weighs = getattr(algorithm, "importance", "none") != "none"
        if algorithm.needs_fresh_samples and not weighs:
            raise ConfigError(
                f"algorithm={algorithm.name} has no probability ratio, so its gradient holds only "
                f"for the weights that sampled, and rollout.max_staleness={max_staleness} learns "
                "from older ones: set it to 0, or algorithm.importance=truncated where the "
                "algorithm has it, or take an algorithm that clips, such as grpo"
            )
        if algorithm.plays_further_tasks:
            raise ConfigError(
                f"algorithm={algorithm.name} plays further tasks in the middle of a step, when "
                f"rollout.max_staleness={max_staleness} has begun those of later steps: set "
                "algorithm.max_refills=0, or rollout.max_staleness=0"
            )


def _check_deterministic(config: TrainerConfig) -> None:
    if not config.deterministic:
        return
    if config.rollout.max_staleness:
        raise ConfigError(
            f"rollout.max_staleness={config.rollout.max_staleness} leaves to chance at which token "
            "weights are exchanged, so that deterministic=true does not hold: set one of them back"
        )
    if config.engine.name != "transformers":
        raise ConfigError(
            f"engine.name={config.engine.name!r} forms its batches as requests reach another "
            "process, so that deterministic=true does not hold: take engine.name=transformers"
        )
