"""REINFORCE: tokens of a rollout are reinforced by its reward, or by what exceeds a baseline.

Williams 1992, "Simple Statistical Gradient-Following Algorithms for Connectionist Reinforcement
Learning".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from rllm_learn.algorithms.base import Credit, PlannedRollout
from rllm_learn.algorithms.policy_gradient import repeated
from rllm_learn.algorithms.step_credit import Compared, StepCredit, StepCreditConfig
from rllm_learn.core.batch import Rollout
from rllm_learn.core.losses import TokenLosses, score_function
from rllm_learn.errors import ConfigError, require

_BASELINE = "baseline"
"""The running mean's name in the memory."""


@dataclass
class REINFORCEConfig(StepCreditConfig):
    """Settings of REINFORCE."""

    name: str = "reinforce"
    rollouts_per_task: int = 8
    """Rollouts of each task; at least 1."""
    baseline: str = "batch"
    """What is subtracted from rewards: none; batch, the mean over the step's rollouts (with
    step_credit=per_step, over those of the same step); running, the mean over the steps before."""
    baseline_decay: float | None = None
    """With baseline=running: weight of the past in the running mean, in [0, 1); null is 0.9."""

    title: ClassVar[str] = "REINFORCE"
    needs_fresh_samples: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse settings that cannot work; raises ConfigError."""
        super().__post_init__()
        times, baseline, decay = self.rollouts_per_task, self.baseline, self.baseline_decay
        require(times >= 1, "algorithm.rollouts_per_task", times, "at least 1")
        require(
            baseline in ("none", "batch", "running"),
            "algorithm.baseline",
            baseline,
            "none, batch or running",
        )
        if baseline != "running":
            self.refuse_changed(("baseline_decay",), f"where algorithm.baseline is {baseline}")
        elif self.step_credit != "broadcast":
            raise ConfigError(
                "algorithm.baseline=running is a mean of rewards, not of returns: take "
                "algorithm.baseline=batch with algorithm.step_credit=per_step"
            )
        require(
            decay is None or 0 <= decay < 1,
            "algorithm.baseline_decay",
            decay,
            "in [0, 1), or null",
        )


class REINFORCE(StepCredit[REINFORCEConfig]):
    """The score-function estimator of the policy gradient."""

    def plan(self, num_tasks: int) -> list[PlannedRollout]:
        """Return `rollouts_per_task` sampled rollouts of each task."""
        return repeated(num_tasks, self.config.rollouts_per_task)

    def credit(self, rollouts: Sequence[Rollout], memory: Mapping[str, float]) -> Credit:
        """Give every sampled token the reward, or return, less the baseline."""
        compared = self.compared(rollouts)
        if not compared:
            return Credit([], metrics={}, memory=dict(memory))
        values = [c.value for c in compared]
        mean = sum(values) / len(values)
        if self.config.baseline == "none":
            return Credit(self.spread(rollouts, compared, values), metrics={})
        if self.config.baseline == "batch":
            means = _means_by_step(compared)
            advantages = [c.value - means[c.step] for c in compared]
            sequences = self.spread(rollouts, compared, advantages)
            return Credit(sequences, metrics={"baseline": mean})
        # The first step has no past and takes its own mean.
        baseline = memory.get(_BASELINE, mean)
        decay = 0.9 if self.config.baseline_decay is None else self.config.baseline_decay
        return Credit(
            self.spread(rollouts, compared, [value - baseline for value in values]),
            metrics={"baseline": baseline},
            memory={_BASELINE: decay * baseline + (1 - decay) * mean},
        )

    def token_losses(
        self, logprobs: Tensor, log_ratio: Tensor, advantages: Tensor, mask: Tensor
    ) -> TokenLosses:
        """Return -A log p of each token."""
        return score_function(logprobs, advantages)


def _means_by_step(compared: Sequence[Compared]) -> dict[int | None, float]:
    values: dict[int | None, list[float]] = defaultdict(list)
    for item in compared:
        values[item.step].append(item.value)
    return {step: sum(of_step) / len(of_step) for step, of_step in values.items()}
