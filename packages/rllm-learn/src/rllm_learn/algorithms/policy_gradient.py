"""What algorithms share: the terms of the policy's loss, and how rollouts are weighed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar

import torch
from torch import Tensor

from rllm_agents import TerminationReason
from rllm_learn.algorithms.base import AlgorithmConfig, PlannedRollout
from rllm_learn.algorithms.registered import find_loss
from rllm_learn.core.batch import Rollout, TokenBatch, TokenSequence
from rllm_learn.core.importance import importance_weights
from rllm_learn.core.kl import KL_ESTIMATORS, kl_estimate
from rllm_learn.core.logprobs import PolicyOutput
from rllm_learn.core.losses import LossSum, TokenLosses
from rllm_learn.errors import ConfigError, require

AGGREGATIONS = ("token_mean", "sequence_mean", "sequence_sum")


@dataclass
class PolicyGradientConfig(AlgorithmConfig):
    """Settings that every algorithm has."""

    loss: str | None = None
    """The policy's loss at a token: one that `register_loss` registered under the name, or
    `module:name`; null is the algorithm's own."""
    aggregation: str = "token_mean"
    """How token losses become one: token_mean over all sampled tokens of the batch; sequence_mean
    over each rollout's tokens, then over rollouts; sequence_sum over each rollout's tokens, divided
    by `length_constant`, then the mean over rollouts."""
    length_constant: int | None = None
    """With aggregation=sequence_sum: what stands in place of a rollout's length."""
    kl_coefficient: float = 0.0
    """Weight of the KL divergence from the model as it was loaded; 0 for none."""
    kl_place: str = "loss"
    """With a kl_coefficient: loss, or reward, where it lowers the reward of what was sampled."""
    kl_estimator: str | None = None
    """With a kl_coefficient: k1, k2 or k3; null is k3 in the loss and k1 in the reward."""
    entropy_coefficient: float = 0.0
    """Weight of the entropy bonus in nats a token; 0 for none."""
    importance: str = "none"
    """Weights against a sampler whose logprobs differ from the learner's: none, truncated or
    masked. Without them the ratio is taken to the sampler's logprobs, with them to the learner's
    own before the update."""
    importance_cap: float | None = None
    """With importance: the largest weight, at least 1; null is 2."""
    importance_floor: float | None = None
    """With importance=masked: the smallest weight that is kept, in [0, 1]; null is 1 /
    importance_cap."""
    importance_level: str = "token"
    """With importance: a weight for each token, or one for each sequence, the product of them."""
    masked_endings: list[str] = field(default_factory=list)
    """Rollouts that ended so are compared but not learned from, for example
    [max_response_length_exceeded, timeout]."""

    of_own_loss: ClassVar[tuple[str, ...]] = ()
    """Settings that only the algorithm's own loss reads."""

    def __post_init__(self) -> None:
        """Refuse settings that cannot work, and those without an effect.

        Raises:
            ConfigError: With the field, its value and what is allowed.
        """
        super().__post_init__()
        if self.loss is not None:
            find_loss(self.loss)
            self.refuse_changed(self.of_own_loss, f"with algorithm.loss={self.loss}")
        self._check_aggregation()
        self._check_kl()
        entropy = self.entropy_coefficient
        require(entropy >= 0, "algorithm.entropy_coefficient", entropy, "0 or more")
        self._check_importance()
        outcomes = [reason.value for reason in TerminationReason if not reason.is_failure]
        for ending in self.masked_endings:
            require(
                ending in outcomes,
                "algorithm.masked_endings",
                ending,
                f"of {', '.join(outcomes)} (failed episodes are never learned from)",
            )

    def _check_aggregation(self) -> None:
        names = ", ".join(AGGREGATIONS)
        aggregation, constant = self.aggregation, self.length_constant
        require(
            aggregation in AGGREGATIONS, "algorithm.aggregation", aggregation, f"one of {names}"
        )
        if aggregation != "sequence_sum" and constant is not None:
            raise ConfigError(
                f"algorithm.length_constant={constant!r} does nothing with "
                f"aggregation={aggregation}: set it to null"
            )
        if aggregation == "sequence_sum":
            require(
                isinstance(constant, int) and constant >= 1,
                "algorithm.length_constant",
                constant,
                "at least 1 with aggregation=sequence_sum, usually rollout.max_response_length",
            )

    def _check_kl(self) -> None:
        coefficient, estimator = self.kl_coefficient, self.kl_estimator
        require(coefficient >= 0, "algorithm.kl_coefficient", coefficient, "0 or more")
        if not coefficient:
            self.refuse_changed(("kl_place", "kl_estimator"), "where algorithm.kl_coefficient is 0")
        require(
            self.kl_place in ("loss", "reward"),
            "algorithm.kl_place",
            self.kl_place,
            "loss or reward",
        )
        require(
            estimator is None or estimator in KL_ESTIMATORS,
            "algorithm.kl_estimator",
            estimator,
            f"one of {', '.join(KL_ESTIMATORS)}, or null",
        )
        if self.kl_place == "loss" and estimator == "k1":
            raise ConfigError(
                "algorithm.kl_estimator='k1' does nothing in the loss, where the mean of its "
                "gradient is 0: take k2 or k3, or algorithm.kl_place=reward"
            )

    def _check_importance(self) -> None:
        kind, cap, level = self.importance, self.importance_cap, self.importance_level
        require(
            kind in ("none", "truncated", "masked"),
            "algorithm.importance",
            kind,
            "none, truncated or masked",
        )
        if kind == "none":
            unused = ("importance_cap", "importance_level")
            self.refuse_changed(unused, "where algorithm.importance is none")
        if kind != "masked":
            reason = f"where algorithm.importance is {kind}"
            self.refuse_changed(("importance_floor",), reason)
        floor = self.importance_floor
        require(
            floor is None or 0 <= floor <= 1,
            "algorithm.importance_floor",
            floor,
            "in [0, 1], or null",
        )
        require(cap is None or cap >= 1, "algorithm.importance_cap", cap, "at least 1, or null")
        require(
            level in ("token", "sequence"), "algorithm.importance_level", level, "token or sequence"
        )

    @property
    def has_kl_in_loss(self) -> bool:
        """Whether the loss has a KL term."""
        return self.kl_coefficient > 0 and self.kl_place == "loss"

    @property
    def has_kl_in_reward(self) -> bool:
        """Whether rewards are lowered by the KL divergence."""
        return self.kl_coefficient > 0 and self.kl_place == "reward"

    @property
    def has_more_terms(self) -> bool:
        """Whether the loss has terms beside the policy's own, which need no advantage."""
        return self.has_kl_in_loss or self.entropy_coefficient > 0


Config = TypeVar("Config", bound=PolicyGradientConfig)


class PolicyGradient(ABC, Generic[Config]):
    """Base of the algorithms. One of them adds `plan`, `credit` and `token_losses`."""

    def __init__(self, config: Config):
        """Take the settings."""
        self.config: Config = config
        self._token_losses = self.token_losses if config.loss is None else find_loss(config.loss)

    @property
    def scores(self) -> frozenset[str]:
        """Ask the learner for what the settings need."""
        needed = set()
        if self.config.kl_coefficient:
            needed.add("reference")
        if self.config.has_kl_in_reward or self.config.importance != "none":
            needed.add("policy")
        return frozenset(needed)

    def refill(self, rollouts: Sequence[Rollout], num_tasks: int, num_refills: int) -> int:
        """Ask for no further tasks."""
        return 0

    @abstractmethod
    def token_losses(
        self, logprobs: Tensor, log_ratio: Tensor, advantages: Tensor, mask: Tensor
    ) -> TokenLosses:
        """Return the policy's own loss at each token.

        Args:
            logprobs: (B, T) with gradient.
            log_ratio: (B, T) logprobs minus those of the policy that sampled; 0 outside the mask.
            advantages: (B, T).
            mask: (B, T) bool, True at sampled tokens.
        """

    def loss(self, output: PolicyOutput, batch: TokenBatch) -> LossSum:
        """Sum over sampled tokens of weight x (policy's loss + KL term - entropy bonus)."""
        config, mask = self.config, batch.action_mask
        advantages, old, stats = self._corrected(batch)
        # Where nothing was sampled a logprob may be anything, and 0 times infinity is no number.
        logprobs = output.logprobs.masked_fill(~mask, 0.0)
        log_ratio = logprobs - old.masked_fill(~mask, 0.0)
        own = self._token_losses(logprobs, log_ratio, advantages, mask)
        values = own.values
        if own.clipped is not None:
            stats["clip_fraction"] = own.clipped
        if config.has_kl_in_loss:
            reference = asked_for(batch.reference_logprobs).masked_fill(~mask, 0.0)
            divergence = kl_estimate(logprobs, reference, config.kl_estimator or "k3")
            values = values + config.kl_coefficient * divergence
            stats["reference_kl"] = divergence
        if config.entropy_coefficient:
            values = values - config.entropy_coefficient * output.entropies
        stats["kl"] = log_ratio.exp() - 1.0 - log_ratio
        return LossSum(
            total=(values * batch.weights).masked_fill(~mask, 0.0).sum(),
            count=batch.count,
            stats={name: (stat.detach() * mask).sum() for name, stat in stats.items()},
        )

    def _corrected(self, batch: TokenBatch) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """Return advantages times importance weights, old logprobs, and the weights' figures."""
        config = self.config
        if config.importance == "none":
            return batch.advantages, batch.sampler_logprobs, {}
        policy = asked_for(batch.policy_logprobs)
        cap, floor = config.importance_cap or 2.0, config.importance_floor
        weights = importance_weights(
            policy,
            batch.sampler_logprobs,
            mask=batch.action_mask,
            kind=config.importance,
            level=config.importance_level,
            cap=cap,
            floor=1.0 / cap if floor is None else floor,
        )
        bounded = weights >= cap if config.importance == "truncated" else weights == 0
        figures = {"importance_weight": weights, "importance_bounded": bounded}
        return batch.advantages * weights, policy, figures

    def _penalties(self, rollout: Rollout) -> list[list[float]]:
        """Return what KL takes from the reward at each position of each sequence."""
        if not self.config.has_kl_in_reward:
            return [[0.0] * len(s.token_ids) for s in rollout.sequences]
        penalties = []
        for sequence in rollout.sequences:
            policy = torch.tensor(asked_for(sequence.scores.policy), dtype=torch.float64)
            reference = torch.tensor(asked_for(sequence.scores.reference), dtype=torch.float64)
            kl = kl_estimate(policy, reference, self.config.kl_estimator or "k1")
            mask = torch.tensor(sequence.action_mask)
            penalties.append((self.config.kl_coefficient * kl * mask).tolist())
        return penalties

    def penalized_reward(self, rollout: Rollout) -> float:
        """Return the reward less the KL penalty of everything sampled, where there is one."""
        return rollout.reward - sum(map(sum, self._penalties(rollout)))

    def _weighed(
        self, learned: Sequence[tuple[Rollout, Sequence[Sequence[float]]]]
    ) -> list[TokenSequence]:
        """Return what is learned from, each sequence with the weight of its tokens.

        Rollouts whose advantages are all 0 are left out, unless the loss has terms beside the
        policy's: in a mean they would only shrink the others.

        Args:
            learned: Rollouts that were not greedy, each with advantages for every position of each
                of its sequences.
        """
        config = self.config
        kept = [
            (rollout, advantages)
            for rollout, advantages in learned
            if rollout.sequences
            and rollout.ending not in config.masked_endings
            and (config.has_more_terms or any(map(any, advantages)))
        ]
        result = []
        for rollout, advantages in kept:
            length = rollout.num_actions
            for sequence, own in zip(rollout.sequences, advantages, strict=True):
                share = sequence.num_actions / length
                weight, count = 1.0, float(sequence.num_actions)
                if config.aggregation == "sequence_mean":
                    weight, count = 1.0 / length, share
                elif config.aggregation == "sequence_sum":
                    # Those left out count too, so that the divisor is a constant.
                    weight = 1.0 / (config.length_constant or 1)
                    count = share * len(learned) / len(kept)
                result.append(TokenSequence(sequence, tuple(own), weight=weight, count=count))
        return result


def repeated(num_tasks: int, times: int) -> list[PlannedRollout]:
    """Return a plan that plays each task as often, each task a group."""
    return [
        PlannedRollout(task_index=task, group=task)
        for task in range(num_tasks)
        for _ in range(times)
    ]


Asked = TypeVar("Asked")


def asked_for(scores: Asked | None) -> Asked:
    """Return scores, which the training loop has put there because `scores` asks for them."""
    if scores is None:
        raise ValueError("the sequences were not scored; give credit by train_step")
    return scores
