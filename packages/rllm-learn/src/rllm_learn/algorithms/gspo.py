"""GSPO: GRPO whose ratio is that of the whole sequence.

Zheng et al. 2025, "Group Sequence Policy Optimization".
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from rllm_learn.algorithms.grpo import ClippedGroup, ClippedGroupConfig
from rllm_learn.core.advantages import group_relative
from rllm_learn.core.losses import TokenLosses, sequence_log_ratio


@dataclass
class GSPOConfig(ClippedGroupConfig):
    """Settings of GSPO."""

    name: str = "gspo"
    aggregation: str = "sequence_mean"
    clip_low: float = 3e-4
    """How far the sequence's ratio may fall below 1 and still earn, in [0, 1]."""
    clip_high: float = 4e-4
    """How far the sequence's ratio may rise above 1 and still earn; at least 0."""

    title: ClassVar[str] = "GSPO"


class GSPO(ClippedGroup[GSPOConfig]):
    """Group Sequence Policy Optimization."""

    def advantages(self, values: Sequence[float], keys: Sequence[Hashable]) -> list[float]:
        """Return deviations from the group's mean, in its standard deviations."""
        return group_relative(values, keys)

    def token_losses(
        self, logprobs: Tensor, log_ratio: Tensor, advantages: Tensor, mask: Tensor
    ) -> TokenLosses:
        """Return the clipped surrogate of the sequence's ratio, at each of its tokens."""
        of_sequence = sequence_log_ratio(log_ratio, mask)
        return super().token_losses(logprobs, of_sequence, advantages, mask)
