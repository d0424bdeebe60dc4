"""Which settings go with samples of older weights, and which need those of the newest."""

from __future__ import annotations

from collections.abc import Sequence

from rllm_learn.algorithms import AlgorithmConfig
from rllm_learn.errors import ConfigError


def check_freshness(
    algorithms: Sequence[AlgorithmConfig],
    *,
    num_epochs: int,
    minibatch_sequences: int,
    max_staleness: int,
) -> None:
    """Refuse to learn from samples of older weights by a loss that is not right for them.

    Args:
        algorithms: All that learn.
        num_epochs: `learner.num_epochs`.
        minibatch_sequences: `learner.minibatch_sequences`.
        max_staleness: `rollout.max_staleness`.

    Raises:
        ConfigError: Naming the settings and what to do.
    """
    fresh = next((a for a in algorithms if a.needs_fresh_samples), None)
    if fresh is not None and (num_epochs != 1 or minibatch_sequences):
        raise ConfigError(
            f"algorithm={fresh.name} has no probability ratio, so its gradient holds "
            "only for the weights that sampled: set learner.num_epochs=1 and "
            f"learner.minibatch_sequences=0, got {num_epochs} and "
            f"{minibatch_sequences}, or take an algorithm that clips, such as grpo"
        )
    if not max_staleness:
        return
    for algorithm in algorithms:
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
