"""Rejection-sampling fine-tuning: sample, keep what is right, imitate it; each step is a round.

Yuan et al. 2023, "Scaling Relationship on Learning Mathematical Reasoning with Large Language
Models" (RFT: distinct right answers of the policy); in rounds from the newest policy as in Dong et
al. 2023, "RAFT: Reward rAnked FineTuning for Generative Foundation Model Alignment", and Anthony et
al. 2017, "Thinking Fast and Slow with Deep Learning and Tree Search" (expert iteration).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from rllm_learn.algorithms.base import Credit, PlannedRollout
from rllm_learn.algorithms.policy_gradient import PolicyGradient, PolicyGradientConfig, repeated
from rllm_learn.core.batch import Rollout
from rllm_learn.core.losses import TokenLosses, score_function
from rllm_learn.errors import ConfigError, require


@dataclass
class RFTConfig(PolicyGradientConfig):
    """Settings of rejection-sampling fine-tuning."""

    name: str = "rft"
    rollouts_per_task: int = 8
    """Rollouts of each task; at least 1."""
    min_reward: float = 1.0
    """Rollouts of this reward or more are imitated."""
    distinct: bool = True
    """Of rollouts of one task with the same ids only the first is imitated."""
    max_kept_per_task: int | None = None
    """Most rollouts of one task that are imitated, the first of them; null for all. With it, easy
    tasks weigh no more than hard ones."""

    title: ClassVar[str] = "RFT"

    def __post_init__(self) -> None:
        """Refuse settings that cannot work; raises ConfigError."""
        super().__post_init__()
        times, kept = self.rollouts_per_task, self.max_kept_per_task
        require(times >= 1, "algorithm.rollouts_per_task", times, "at least 1")
        require(
            kept is None or 1 <= kept <= times,
            "algorithm.max_kept_per_task",
            kept,
            "in [1, algorithm.rollouts_per_task], or null",
        )
        if self.has_kl_in_reward:
            raise ConfigError(
                "algorithm.kl_place='reward' does nothing in rft, which keeps rollouts by the "
                "environment's reward: take algorithm.kl_place=loss"
            )


class RFT(PolicyGradient[RFTConfig]):
    """Imitates the policy's own right rollouts."""

    def plan(self, num_tasks: int) -> list[PlannedRollout]:
        """Return `rollouts_per_task` sampled rollouts of each task."""
        return repeated(num_tasks, self.config.rollouts_per_task)

    def credit(self, rollouts: Sequence[Rollout], memory: Mapping[str, float]) -> Credit:
        """Keep the rollouts that are right, each token with advantage 1.

        `kept` is the share of rollouts that are imitated, `solved_tasks` the share of tasks with
        one of them.
        """
        kept: dict[Hashable, list[Rollout]] = defaultdict(list)
        seen: set[Hashable] = set()
        for rollout in rollouts:
            key = rollout.group, rollout.role
            ids = tuple(sequence.token_ids for sequence in rollout.sequences)
            is_repeated = self.config.distinct and (key, ids) in seen
            if rollout.reward >= self.config.min_reward and not is_repeated:
                seen.add((key, ids))
                kept[key].append(rollout)
        imitated = [
            r for of_task in kept.values() for r in of_task[: self.config.max_kept_per_task]
        ]
        tasks = {(rollout.group, rollout.role) for rollout in rollouts}
        learned = [(r, [(1.0,) * len(s.token_ids) for s in r.sequences]) for r in imitated]
        return Credit(
            self._weighed(learned),
            metrics={
                "kept": len(imitated) / max(len(rollouts), 1),
                "solved_tasks": len(kept) / max(len(tasks), 1),
            },
        )

    def token_losses(
        self, logprobs: Tensor, log_ratio: Tensor, advantages: Tensor, mask: Tensor
    ) -> TokenLosses:
        """Return -log p of each token, the advantage being 1."""
        return score_function(logprobs, advantages)
