"""Dr. GRPO: GRPO without its two divisions, by the standard deviation and by the length.

Liu et al. 2025, "Understanding R1-Zero-Like Training: A Critical Perspective".
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from omegaconf import II

from rllm_learn.algorithms.grpo import ClippedGroup, ClippedGroupConfig
from rllm_learn.core.advantages import group_relative


@dataclass
class DrGRPOConfig(ClippedGroupConfig):
    """Settings of Dr. GRPO."""

    name: str = "dr_grpo"
    aggregation: str = "sequence_sum"
    length_constant: int | None = II("rollout.max_response_length")

    title: ClassVar[str] = "Dr. GRPO"


class DrGRPO(ClippedGroup[DrGRPOConfig]):
    """Group Relative Policy Optimization Done Right."""

    def advantages(self, values: Sequence[float], keys: Sequence[Hashable]) -> list[float]:
        """Return deviations from the group's mean."""
        return group_relative(values, keys, divide_by_std=False)
