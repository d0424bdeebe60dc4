"""DPO: of two rollouts of one task, make the better one more likely than the worse.

Rafailov et al. 2023, "Direct Preference Optimization: Your Language Model is Secretly a Reward
Model"; with pairs that the policy itself samples at each step, as in Guo et al. 2024, "Direct
Language Model Alignment from Online AI Feedback", where the environment's reward is the judge.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import torch

from rllm_learn.algorithms.base import AlgorithmConfig, Credit, PlannedRollout
from rllm_learn.algorithms.policy_gradient import repeated
from rllm_learn.core.batch import Rollout, TokenBatch, TokenSequence
from rllm_learn.core.logprobs import PolicyOutput
from rllm_learn.core.losses import LossSum, score_function
from rllm_learn.core.preferences import preference_terms
from rllm_learn.errors import require

Pair: TypeAlias = tuple[Rollout, Rollout]
"""What is chosen and what is rejected."""


@dataclass
class DPOConfig(AlgorithmConfig):
    """Settings of DPO."""

    name: str = "dpo"
    group_size: int = 8
    """Rollouts of each task, from which pairs are made; at least 2."""
    beta: float = 0.1
    """The larger, the closer the policy stays to the model as it was loaded; above 0."""
    max_pairs_per_task: int | None = None
    """The best with the worst first; null for as many as there are, at most group_size / 2."""

    title: ClassVar[str] = "DPO"
    needs_fresh_samples: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse settings that cannot work; raises ConfigError."""
        super().__post_init__()
        pairs = self.max_pairs_per_task
        require(self.group_size >= 2, "algorithm.group_size", self.group_size, "at least 2")
        require(self.beta > 0, "algorithm.beta", self.beta, "above 0")
        require(
            pairs is None or pairs >= 1,
            "algorithm.max_pairs_per_task",
            pairs,
            "at least 1, or null",
        )


class DPO:
    """Direct Preference Optimization.

    The gradient of a pair's loss is that of its two responses, each times one number that depends
    on all four logprobs (`preference_terms`). The learner scores the batch at the weights that the
    optimizer step starts from, so that number is exact, and the two sequences of a pair may stand
    in different micro-batches or on different ranks.
    """

    scores: frozenset[str] = frozenset({"policy", "reference"})
    """What decides the pull of a pair."""

    def __init__(self, config: DPOConfig):
        """Take the settings."""
        self.config = config

    def plan(self, num_tasks: int) -> list[PlannedRollout]:
        """Return `group_size` sampled rollouts of each task."""
        return repeated(num_tasks, self.config.group_size)

    def refill(self, rollouts: Sequence[Rollout], num_tasks: int, num_refills: int) -> int:
        """Ask for no further tasks."""
        return 0

    def credit(self, rollouts: Sequence[Rollout], memory: Mapping[str, float]) -> Credit:
        """Pair the rollouts of each task and learn from the pairs."""
        pairs = pairs_by_reward(rollouts, max_per_task=self.config.max_pairs_per_task)
        return self.credit_pairs(pairs)

    def credit_pairs(self, pairs: Sequence[Pair]) -> Credit:
        """Give every sampled token of a pair its pull: up where it was chosen, else down.

        The batch's loss is the mean over pairs. `preference_loss` is that mean, `preferred` the
        share of pairs whose margin is positive, `margin` the mean of beta times the margin.

        Args:
            pairs: Scored, with at least one sequence in each rollout.
        """
        metrics = {"pairs": float(len(pairs))}
        if not pairs:
            return Credit([], metrics)
        beta = self.config.beta
        margins = torch.tensor(
            [_log_ratio(chosen) - _log_ratio(rejected) for chosen, rejected in pairs],
            dtype=torch.float64,
        )
        losses, pulls = preference_terms(margins, beta=beta)
        metrics |= {
            "preference_loss": losses.mean().item(),
            "preferred": (margins > 0).double().mean().item(),
            "margin": beta * margins.mean().item(),
        }
        sequences = []
        for (chosen, rejected), pull in zip(pairs, pulls.tolist(), strict=True):
            for rollout, advantage in ((chosen, pull), (rejected, -pull)):
                # The two rollouts of a pair together add 1 to the divisor.
                count = 0.5 / len(rollout.sequences)
                sequences += [
                    TokenSequence(s, (advantage,) * len(s.token_ids), count=count)
                    for s in rollout.sequences
                ]
        return Credit(sequences, metrics)

    def loss(self, output: PolicyOutput, batch: TokenBatch) -> LossSum:
        """Return the sum of -A log p, whose gradient is that of the pairs' losses."""
        mask = batch.action_mask
        logprobs = output.logprobs.masked_fill(~mask, 0.0)
        values = score_function(logprobs, batch.advantages).values
        return LossSum(values.masked_fill(~mask, 0.0).sum(), count=batch.count)


def pairs_by_reward(rollouts: Sequence[Rollout], *, max_per_task: int | None = None) -> list[Pair]:
    """Pair the rollouts of each task and role: the best with the worst, the next with the next.

    Every rollout is in one pair at most, and no pair has equal rewards.

    Args:
        rollouts: In any order; equal rewards stay in it.
        max_per_task: Most pairs of one task; None for all.
    """
    groups: dict[Hashable, list[Rollout]] = defaultdict(list)
    for rollout in rollouts:
        if rollout.sequences:
            groups[rollout.group, rollout.role].append(rollout)
    pairs = []
    for group in groups.values():
        ranked = sorted(group, key=lambda rollout: -rollout.reward)
        of_task = [
            (ranked[i], ranked[-1 - i])
            for i in range(len(ranked) // 2)
            if ranked[i].reward > ranked[-1 - i].reward
        ]
        pairs += of_task[:max_per_task]
    return pairs


def _log_ratio(rollout: Rollout) -> float:
    """Return log policy / reference of everything sampled in a rollout."""
    total = 0.0
    for sequence in rollout.sequences:
        policy, reference = sequence.scores.policy, sequence.scores.reference
        if policy is None or reference is None:
            raise ValueError("the sequences were not scored under policy and reference")
        sampled = zip(sequence.action_mask, policy, reference, strict=True)
        total += sum(p - r for is_sampled, p, r in sampled if is_sampled)
    return total
