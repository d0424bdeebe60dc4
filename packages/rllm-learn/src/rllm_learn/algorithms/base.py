"""What an algorithm is: who plays, who gets credit, and what is minimised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from omegaconf import MISSING
from torch import Tensor

from rllm_learn.core.batch import Rollout, TokenBatch, TokenSequence
from rllm_learn.core.losses import LossSum


@dataclass
class AlgorithmConfig:
    """Base of the algorithms' settings; not frozen, since OmegaConf makes frozen ones read-only."""

    name: str = MISSING
    """A key of `rllm_learn.algorithms.ALGORITHMS`."""


@dataclass(frozen=True, slots=True)
class PlannedRollout:
    """One rollout to be made. Made by a sampling plan, read by the sampler."""

    task_index: int
    """Which of the step's tasks is played."""
    group: int
    """Equal for rollouts that are compared with each other."""
    greedy: bool = False
    """Decode greedily: a baseline, not to be learned from."""


@dataclass(frozen=True, slots=True)
class Credit:
    """What a step learns from. Made by an algorithm, read by the learner and the tracker."""

    sequences: list[TokenSequence]
    """Empty when nothing can be learned from the rollouts."""
    metrics: dict[str, float]
    """How the credit came about, for example the share of groups left out."""


class Algorithm(Protocol):
    """One algorithm, one file. The training loop never asks which one it runs."""

    def plan(self, num_tasks: int) -> list[PlannedRollout]:
        """Return the rollouts to make for a step's tasks."""
        ...

    def credit(self, rollouts: Sequence[Rollout]) -> Credit:
        """Give each sampled token its advantage; failed rollouts are not among them."""
        ...

    def loss(self, logprobs: Tensor, batch: TokenBatch) -> LossSum:
        """Return the sum to be minimised over one micro-batch, and its count."""
        ...
