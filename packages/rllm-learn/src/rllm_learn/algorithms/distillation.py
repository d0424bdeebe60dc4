"""On-policy distillation: the student plays, and the teacher judges each token it chose.

Agarwal et al. 2023, "On-Policy Distillation of Language Models: Learning from Self-Generated
Mistakes" (GKD, with the student's own samples and the reverse KL divergence); Gu et al. 2023,
"MiniLLM: Knowledge Distillation of Large Language Models".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from rllm_learn.algorithms.base import Credit, PlannedRollout
from rllm_learn.algorithms.policy_gradient import PolicyGradient, PolicyGradientConfig, repeated
from rllm_learn.core.batch import Rollout, SampledSequence
from rllm_learn.core.kl import kl_estimate
from rllm_learn.core.losses import TokenLosses, score_function
from rllm_learn.errors import ConfigError, require


@dataclass
class DistillationConfig(PolicyGradientConfig):
    """Settings of on-policy distillation."""

    name: str = "distillation"
    teacher: str | None = None
    """The model that is imitated: a model directory, a hub name, or the `adapter/` of a run. Its
    tokenizer must be the student's."""
    rollouts_per_task: int = 8
    """Rollouts of each task; at least 1. Their rewards are reported, not learned from."""

    title: ClassVar[str] = "On-policy distillation"
    needs_fresh_samples: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse settings that cannot work; raises ConfigError."""
        super().__post_init__()
        times = self.rollouts_per_task
        require(times >= 1, "algorithm.rollouts_per_task", times, "at least 1")
        if self.has_kl_in_reward:
            raise ConfigError(
                "algorithm.kl_place='reward' does nothing in distillation, which learns from no "
                "reward: take algorithm.kl_place=loss"
            )

    @property
    def teacher_path(self) -> str | None:
        """The model that `teacher` names; raises ConfigError where it names none."""
        require(
            bool(self.teacher),
            "algorithm.teacher",
            self.teacher,
            "a model directory, a hub name, or the adapter/ of a run",
        )
        return self.teacher


class Distillation(PolicyGradient[DistillationConfig]):
    """Lowers the reverse KL divergence from a teacher on the student's own samples."""

    @property
    def scores(self) -> frozenset[str]:
        """Ask for the student's and the teacher's logprobs, and for what shared settings need."""
        return super().scores | {"policy", "teacher"}

    def plan(self, num_tasks: int) -> list[PlannedRollout]:
        """Return `rollouts_per_task` sampled rollouts of each task."""
        return repeated(num_tasks, self.config.rollouts_per_task)

    def credit(self, rollouts: Sequence[Rollout], memory: Mapping[str, float]) -> Credit:
        """Give each sampled token y_t the advantage log q(y_t) - log p(y_t), q being the teacher.

        The gradient of KL(p || q) = sum over v of p(v) (log p(v) - log q(v)) at one position is the
        mean over v ~ p of (log p(v) - log q(v)) grad log p(v): -A log p of the sampled token is an
        unbiased estimate of it, and whole distributions of the teacher are not needed. As in GKD
        the divergences of positions are added up, and none is charged to the tokens before.

        `teacher_kl` is the mean of the divergence's estimate k1 over sampled tokens.
        """
        learned, total, num_tokens = [], 0.0, 0
        for rollout in rollouts:
            advantages = [_advantages(sequence) for sequence in rollout.sequences]
            total -= sum(map(sum, advantages))
            num_tokens += rollout.num_actions
            learned.append((rollout, advantages))
        return Credit(self._weighed(learned), metrics={"teacher_kl": total / max(num_tokens, 1)})

    def token_losses(
        self, logprobs: Tensor, log_ratio: Tensor, advantages: Tensor, mask: Tensor
    ) -> TokenLosses:
        """Return -A log p of each token."""
        return score_function(logprobs, advantages)


def _advantages(sequence: SampledSequence) -> list[float]:
    """Return log q - log p at sampled positions, 0 elsewhere."""
    student, teacher = sequence.scores.policy, sequence.scores.teacher
    if student is None or teacher is None:
        raise ValueError("the sequences were not scored under the student and the teacher")
    divergence = kl_estimate(
        torch.tensor(student, dtype=torch.float64),
        torch.tensor(teacher, dtype=torch.float64),
        "k1",
    )
    return (-divergence * torch.tensor(sequence.action_mask)).tolist()
