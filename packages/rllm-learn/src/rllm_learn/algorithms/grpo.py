"""GRPO: several rollouts of each task, each compared with its group.

Shao et al. 2024, "DeepSeekMath: Pushing the Limits of Mathematical Reasoning in Open Language
Models".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from rllm_learn.algorithms.base import AlgorithmConfig, Credit, PlannedRollout
from rllm_learn.core.advantages import group_relative, is_uniform
from rllm_learn.core.batch import Rollout, TokenBatch, TokenSequence
from rllm_learn.core.losses import LossSum, clipped_policy_loss
from rllm_learn.errors import ConfigError


@dataclass
class GRPOConfig(AlgorithmConfig):
    """Settings of GRPO."""

    name: str = "grpo"
    group_size: int = 8
    """Rollouts of each task that are compared; at least 2."""
    divide_by_std: bool = True
    """Divide advantages by the group's standard deviation; False is Dr. GRPO's estimator."""
    clip_low: float = 0.2
    """How far the probability ratio may fall below 1 and still earn, in [0, 1]."""
    clip_high: float = 0.2
    """How far the probability ratio may rise above 1 and still earn; at least 0."""

    def __post_init__(self) -> None:
        """Refuse settings that cannot work.

        Raises:
            ConfigError: With the field, its value and what is allowed.
        """
        if self.group_size < 2:
            raise ConfigError(
                f"algorithm.group_size must be at least 2, got {self.group_size}: a rollout is "
                "compared with the others of its task, and alone its advantage is always 0"
            )
        if not 0.0 <= self.clip_low <= 1.0:
            raise ConfigError(f"algorithm.clip_low must be in [0, 1], got {self.clip_low}")
        if self.clip_high < 0.0:
            raise ConfigError(f"algorithm.clip_high must be at least 0, got {self.clip_high}")


class GRPO:
    """Group Relative Policy Optimization."""

    def __init__(self, config: GRPOConfig):
        """Take the settings."""
        self.config = config

    def plan(self, num_tasks: int) -> list[PlannedRollout]:
        """Return `group_size` sampled rollouts of each task."""
        return [
            PlannedRollout(task_index=task, group=task)
            for task in range(num_tasks)
            for _ in range(self.config.group_size)
        ]

    def credit(self, rollouts: Sequence[Rollout]) -> Credit:
        """Give every sampled token of a rollout its group-relative advantage.

        Rollouts of groups whose rewards are all equal are left out: their advantages are 0, and
        in a mean over tokens they would only shrink the others. A group that lost all members but
        one to failures is such a group.
        """
        advantages = group_relative(
            [r.reward for r in rollouts],
            [r.group for r in rollouts],
            divide_by_std=self.config.divide_by_std,
        )
        rewards: dict[int, list[float]] = defaultdict(list)
        for rollout in rollouts:
            rewards[rollout.group].append(rollout.reward)
        mixed = {group for group, values in rewards.items() if not is_uniform(values)}
        sequences = [
            TokenSequence(sampled, advantages=(advantage,) * len(sampled.token_ids))
            for rollout, advantage in zip(rollouts, advantages, strict=True)
            if rollout.group in mixed
            for sampled in rollout.sequences
        ]
        uniform_share = 1.0 - len(mixed) / len(rewards) if rewards else 1.0
        return Credit(sequences, metrics={"uniform_groups": uniform_share})

    def loss(self, logprobs: Tensor, batch: TokenBatch) -> LossSum:
        """Sum the clipped policy loss over tokens; the learner's division makes it their mean."""
        return clipped_policy_loss(
            logprobs,
            batch.sampler_logprobs,
            advantages=batch.advantages,
            mask=batch.action_mask,
            clip_low=self.config.clip_low,
            clip_high=self.config.clip_high,
        )
