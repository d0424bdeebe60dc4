"""REINFORCE++: token KL in the reward, advantages normalised over the whole batch.

Hu et al. 2025, "REINFORCE++: Stabilizing Critic-Free Policy Optimization with Global
Normalization".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import ClassVar

from torch import Tensor

from rllm_learn.algorithms.base import Credit, PlannedRollout
from rllm_learn.algorithms.policy_gradient import PolicyGradient, PolicyGradientConfig, repeated
from rllm_learn.core.advantages import discounted_returns, group_relative, standardized
from rllm_learn.core.batch import Rollout
from rllm_learn.core.losses import TokenLosses, clipped_surrogate
from rllm_learn.errors import require


@dataclass
class REINFORCEPlusPlusConfig(PolicyGradientConfig):
    """Settings of REINFORCE++."""

    name: str = "reinforce_plus_plus"
    rollouts_per_task: int = 8
    """Rollouts of each task; at least 1, or 2 with subtract_group_mean."""
    subtract_group_mean: bool = False
    """Subtract the mean reward of each task's rollouts first: the paper's variant with baseline."""
    kl_coefficient: float = 0.01
    """Weight of the KL divergence from the model as it was loaded; 0 for none."""
    kl_place: str = "reward"
    """With a kl_coefficient: reward, where each token pays for the divergence from it on; or
    loss."""
    clip_low: float = 0.2
    """How far the probability ratio may fall below 1 and still earn, in [0, 1]."""
    clip_high: float = 0.2
    """How far the probability ratio may rise above 1 and still earn; at least 0."""

    title: ClassVar[str] = "REINFORCE++"
    of_own_loss: ClassVar[tuple[str, ...]] = ("clip_low", "clip_high")

    def __post_init__(self) -> None:
        """Refuse settings that cannot work; raises ConfigError."""
        super().__post_init__()
        least = 2 if self.subtract_group_mean else 1
        times = self.rollouts_per_task
        require(times >= least, "algorithm.rollouts_per_task", times, f"at least {least}")
        require(0.0 <= self.clip_low <= 1.0, "algorithm.clip_low", self.clip_low, "in [0, 1]")
        require(self.clip_high >= 0.0, "algorithm.clip_high", self.clip_high, "at least 0")


class REINFORCEPlusPlus(PolicyGradient[REINFORCEPlusPlusConfig]):
    """REINFORCE with PPO's clipped loss and advantages normalised over the batch."""

    def plan(self, num_tasks: int) -> list[PlannedRollout]:
        """Return `rollouts_per_task` sampled rollouts of each task."""
        return repeated(num_tasks, self.config.rollouts_per_task)

    def credit(self, rollouts: Sequence[Rollout], memory: Mapping[str, float]) -> Credit:
        """Give every sampled token its own advantage.

        A_t = r - beta * sum_(s >= t) KL_s over the rollout's sampled tokens, then (A - mean) /
        standard deviation over all sampled tokens of the batch.
        """
        rewards = [r.reward for r in rollouts]
        if self.config.subtract_group_mean:
            keys = [(r.group, r.role) for r in rollouts]
            rewards = group_relative(rewards, keys, divide_by_std=False)
        raw: list[float] = []
        for rollout, reward in zip(rollouts, rewards, strict=True):
            raw += [reward - penalty for penalty in self._penalties_from_here(rollout)]
        normalized = iter(standardized(raw))
        learned = [
            (
                rollout,
                [
                    [next(normalized) if sampled else 0.0 for sampled in sequence.action_mask]
                    for sequence in rollout.sequences
                ],
            )
            for rollout in rollouts
        ]
        return Credit(self._weighed(learned), metrics={})

    def token_losses(
        self, logprobs: Tensor, log_ratio: Tensor, advantages: Tensor, mask: Tensor
    ) -> TokenLosses:
        """Return the clipped surrogate of each token."""
        return clipped_surrogate(
            log_ratio,
            advantages,
            clip_low=self.config.clip_low,
            clip_high=self.config.clip_high,
        )

    def _penalties_from_here(self, rollout: Rollout) -> list[float]:
        """Return at each sampled token, in order, the KL penalties from it on."""
        penalties: list[float] = []
        for sequence, own in zip(rollout.sequences, self._penalties(rollout), strict=True):
            penalties += compress(own, sequence.action_mask)
        return discounted_returns(penalties)
