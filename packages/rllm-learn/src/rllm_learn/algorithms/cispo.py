"""CISPO: importance weights are bounded, so that no token loses its gradient.

MiniMax 2025, "MiniMax-M1: Scaling Test-Time Compute Efficiently with Lightning Attention".
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from rllm_learn.algorithms.step_credit import GroupConfig, GroupCredit
from rllm_learn.core.advantages import group_relative
from rllm_learn.core.losses import TokenLosses, clipped_weight
from rllm_learn.errors import require


@dataclass
class CISPOConfig(GroupConfig):
    """Settings of CISPO."""

    name: str = "cispo"
    max_ratio: float = 5.0
    """Largest weight of a token, at least 1; there is no smallest. 5 is that of Khatri et al. 2025,
    "The Art of Scaling Reinforcement Learning Compute for LLMs"."""

    title: ClassVar[str] = "CISPO"
    of_own_loss: ClassVar[tuple[str, ...]] = ("max_ratio",)

    def __post_init__(self) -> None:
        """Refuse settings that cannot work; raises ConfigError."""
        super().__post_init__()
        require(self.max_ratio >= 1, "algorithm.max_ratio", self.max_ratio, "at least 1")


class CISPO(GroupCredit[CISPOConfig]):
    """Clipped Importance Sampling Policy Optimization."""

    def advantages(self, values: Sequence[float], keys: Sequence[Hashable]) -> list[float]:
        """Return deviations from the group's mean, in its standard deviations."""
        return group_relative(values, keys)

    def token_losses(
        self, logprobs: Tensor, log_ratio: Tensor, advantages: Tensor, mask: Tensor
    ) -> TokenLosses:
        """Return -A log p of each token, times its bounded ratio."""
        return clipped_weight(logprobs, log_ratio, advantages, max_ratio=self.config.max_ratio)
