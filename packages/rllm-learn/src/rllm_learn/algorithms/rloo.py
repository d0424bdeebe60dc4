"""RLOO: REINFORCE whose baseline is the mean reward of the task's other rollouts.

Ahmadian et al. 2024, "Back to Basics: Revisiting REINFORCE-Style Optimization for Learning from
Human Feedback in LLMs"; Kool et al. 2019, "Buy 4 REINFORCE Samples, Get a Baseline for Free!".
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from rllm_learn.algorithms.step_credit import GroupConfig, GroupCredit
from rllm_learn.core.advantages import leave_one_out
from rllm_learn.core.losses import TokenLosses, score_function


@dataclass
class RLOOConfig(GroupConfig):
    """Settings of RLOO."""

    name: str = "rloo"

    title: ClassVar[str] = "RLOO"
    needs_fresh_samples: ClassVar[bool] = True


class RLOO(GroupCredit[RLOOConfig]):
    """REINFORCE Leave-One-Out."""

    def advantages(self, values: Sequence[float], keys: Sequence[Hashable]) -> list[float]:
        """Return deviations from the mean of the others of the group."""
        return leave_one_out(values, keys)

    def token_losses(
        self, logprobs: Tensor, log_ratio: Tensor, advantages: Tensor, mask: Tensor
    ) -> TokenLosses:
        """Return -A log p of each token."""
        return score_function(logprobs, advantages)
