"""GRPO: several rollouts of each task, each compared with its group.

Shao et al. 2024, "DeepSeekMath: Pushing the Limits of Mathematical Reasoning in Open Language
Models".
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from torch import Tensor

from rllm_learn.algorithms.step_credit import GroupConfig, GroupCredit
from rllm_learn.core.advantages import group_relative
from rllm_learn.core.losses import TokenLosses, clipped_surrogate
from rllm_learn.errors import require


@dataclass
class ClippedGroupConfig(GroupConfig):
    """Settings of algorithms that compare rollouts of one task and clip the ratio."""

    clip_low: float = 0.2
    """How far the probability ratio may fall below 1 and still earn, in [0, 1]."""
    clip_high: float = 0.2
    """How far the probability ratio may rise above 1 and still earn; at least 0."""

    of_own_loss: ClassVar[tuple[str, ...]] = ("clip_low", "clip_high")

    def __post_init__(self) -> None:
        """Refuse settings that cannot work; raises ConfigError."""
        super().__post_init__()
        low, high = self.clip_low, self.clip_high
        require(0.0 <= low <= 1.0, "algorithm.clip_low", low, "in [0, 1]")
        require(high >= 0.0, "algorithm.clip_high", high, "at least 0")


@dataclass
class GRPOConfig(ClippedGroupConfig):
    """Settings of GRPO."""

    name: str = "grpo"
    divide_by_std: bool = True
    """Divide advantages by the group's standard deviation."""

    title: ClassVar[str] = "GRPO"
    of_own_advantage: ClassVar[tuple[str, ...]] = ("divide_by_std",)


Config = TypeVar("Config", bound=ClippedGroupConfig)


class ClippedGroup(GroupCredit[Config]):
    """Base of algorithms with GRPO's loss. One of them adds `advantages`."""

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


class GRPO(ClippedGroup[GRPOConfig]):
    """Group Relative Policy Optimization."""

    def advantages(self, values: Sequence[float], keys: Sequence[Hashable]) -> list[float]:
        """Return deviations from the group's mean, in its standard deviations."""
        return group_relative(values, keys, divide_by_std=self.config.divide_by_std)
