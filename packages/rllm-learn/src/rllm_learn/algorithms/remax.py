"""ReMax: REINFORCE whose baseline is the reward of a greedy rollout of the same task.

Li et al. 2023, "ReMax: A Simple, Effective, and Efficient Reinforcement Learning Method for
Aligning Large Language Models".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from rllm_learn.algorithms.base import Credit, PlannedRollout
from rllm_learn.algorithms.policy_gradient import PolicyGradient, PolicyGradientConfig
from rllm_learn.core.batch import Rollout
from rllm_learn.core.losses import TokenLosses, score_function
from rllm_learn.errors import require


@dataclass
class ReMaxConfig(PolicyGradientConfig):
    """Settings of ReMax."""

    name: str = "remax"
    group_size: int = 8
    """Rollouts of each task, of which one is greedy and is not learned from; at least 2, which is
    the paper's."""

    title: ClassVar[str] = "ReMax"
    needs_fresh_samples: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse settings that cannot work; raises ConfigError."""
        super().__post_init__()
        require(
            self.group_size >= 2,
            "algorithm.group_size",
            self.group_size,
            "at least 2 (one rollout is greedy, and only the others are learned from)",
        )


class ReMax(PolicyGradient[ReMaxConfig]):
    """REINFORCE with the greedy rollout as its baseline."""

    def plan(self, num_tasks: int) -> list[PlannedRollout]:
        """Return for each task a greedy rollout and `group_size` - 1 sampled ones."""
        return [
            PlannedRollout(task_index=task, group=task, greedy=member == 0)
            for task in range(num_tasks)
            for member in range(self.config.group_size)
        ]

    def credit(self, rollouts: Sequence[Rollout], memory: Mapping[str, float]) -> Credit:
        """Give every sampled token its rollout's reward less that of the task's greedy rollout.

        Eq. 4 of the paper. Rollouts whose greedy one failed are left out: they have no baseline.
        """
        greedy = [r for r in rollouts if r.greedy]
        sampled = [r for r in rollouts if not r.greedy]
        baselines = {(r.group, r.role): self.penalized_reward(r) for r in greedy}
        learned = []
        for rollout in sampled:
            baseline = baselines.get((rollout.group, rollout.role))
            if baseline is not None:
                advantage = self.penalized_reward(rollout) - baseline
                learned.append(
                    (rollout, [(advantage,) * len(s.token_ids) for s in rollout.sequences])
                )
        return Credit(
            self._weighed(learned),
            metrics={
                "greedy_reward": sum(r.reward for r in greedy) / max(len(greedy), 1),
                "without_baseline": float(len(sampled) - len(learned)),
            },
        )

    def token_losses(
        self, logprobs: Tensor, log_ratio: Tensor, advantages: Tensor, mask: Tensor
    ) -> TokenLosses:
        """Return -A log p of each token."""
        return score_function(logprobs, advantages)
