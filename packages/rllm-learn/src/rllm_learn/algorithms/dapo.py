"""DAPO: GRPO with a higher upper clip, batches filled up with mixed groups, and soft length limits.

Yu et al. 2025, "DAPO: An Open-Source LLM Reinforcement Learning System at Scale".
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from omegaconf import II

from rllm_learn.algorithms.base import Credit
from rllm_learn.algorithms.grpo import ClippedGroup, ClippedGroupConfig
from rllm_learn.core.advantages import group_relative, is_uniform, overlong_penalty
from rllm_learn.core.batch import Rollout
from rllm_learn.errors import require


@dataclass
class DAPOConfig(ClippedGroupConfig):
    """Settings of DAPO."""

    name: str = "dapo"
    clip_high: float = 0.28
    """How far the probability ratio may rise above 1 and still earn; at least 0."""
    max_refills: int = 3
    """How often a step may play further tasks in place of those whose rewards were all equal; 0
    for never."""
    overlong_buffer: int = 64
    """Tokens before max_length over which a penalty grows from 0 to 1; 0 for no penalty."""
    max_length: int = II("rollout.max_response_length")
    """Length of a response, the environment's tokens included, at which the penalty is 1."""

    title: ClassVar[str] = "DAPO"

    def __post_init__(self) -> None:
        """Refuse settings that cannot work; raises ConfigError."""
        super().__post_init__()
        length, buffer = self.max_length, self.overlong_buffer
        require(self.max_refills >= 0, "algorithm.max_refills", self.max_refills, "0 or more")
        require(isinstance(length, int) and length >= 1, "algorithm.max_length", length, ">= 1")
        require(
            0 <= buffer <= length,
            "algorithm.overlong_buffer",
            buffer,
            f"in [0, {length}], where {length} is algorithm.max_length",
        )

    @property
    def plays_further_tasks(self) -> bool:
        """Whether refills are allowed."""
        return self.max_refills > 0


class DAPO(ClippedGroup[DAPOConfig]):
    """Decoupled Clip and Dynamic Sampling Policy Optimization."""

    def refill(self, rollouts: Sequence[Rollout], num_tasks: int, num_refills: int) -> int:
        """Return how many tasks should bring the mixed groups that are missing.

        That is their number divided by the share of groups that were mixed so far, at most
        `num_tasks`.
        """
        mixed = _mixed_groups(rollouts)
        missing = num_tasks - len(mixed)
        if num_refills >= self.config.max_refills or missing <= 0:
            return 0
        share = len(mixed) / max(len({r.group for r in rollouts}), 1)
        return min(math.ceil(missing / share), num_tasks) if share else num_tasks

    def credit(self, rollouts: Sequence[Rollout], memory: Mapping[str, float]) -> Credit:
        """Give every sampled token of mixed groups the advantage of its rewards less penalties.

        Whether a group is mixed is judged by its rewards before the penalty for length.
        """
        mixed = _mixed_groups(rollouts)
        kept = [rollout for rollout in rollouts if rollout.group in mixed]
        penalties = [
            overlong_penalty(
                rollout.response_length,
                max_length=self.config.max_length,
                buffer=self.config.overlong_buffer,
            )
            for rollout in kept
        ]
        credit = super().credit(list(map(_penalized, kept, penalties)), memory)
        groups = {rollout.group for rollout in rollouts}
        metrics = {
            "uniform_groups": 1.0 - len(mixed) / len(groups) if groups else 1.0,
            "mixed_groups": float(len(mixed)),
            "overlong_penalty": sum(penalties) / max(len(penalties), 1),
        }
        return replace(credit, metrics=metrics)

    def advantages(self, values: Sequence[float], keys: Sequence[Hashable]) -> list[float]:
        """Return deviations from the group's mean, in its standard deviations."""
        return group_relative(values, keys)


def _mixed_groups(rollouts: Sequence[Rollout]) -> set[int]:
    """Return the groups in which some role's rewards differ."""
    rewards: dict[tuple[int, str], list[float]] = defaultdict(list)
    for rollout in rollouts:
        rewards[rollout.group, rollout.role].append(rollout.reward)
    return {group for (group, _), values in rewards.items() if not is_uniform(values)}


def _penalized(rollout: Rollout, penalty: float) -> Rollout:
    """Add a penalty to the reward, at the last step where steps are known."""
    rewards = rollout.step_rewards
    if rewards:
        rewards = (*rewards[:-1], rewards[-1] + penalty)
    return replace(rollout, reward=rollout.reward + penalty, step_rewards=rewards)
