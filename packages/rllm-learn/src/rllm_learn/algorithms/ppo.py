"""PPO: each action is reinforced by how much better it turned out than a critic expected.

Schulman et al. 2017, "Proximal Policy Optimization Algorithms"; advantages of Schulman et al. 2015,
"High-Dimensional Continuous Control Using Generalized Advantage Estimation".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import ClassVar

from torch import Tensor

from rllm_learn.algorithms.base import Credit, CriticSettings, PlannedRollout
from rllm_learn.algorithms.policy_gradient import (
    PolicyGradient,
    PolicyGradientConfig,
    asked_for,
    repeated,
)
from rllm_learn.core.advantages import explained_variance, generalized_advantages, standardized
from rllm_learn.core.batch import Rollout, TokenBatch, ValueTargets
from rllm_learn.core.logprobs import PolicyOutput
from rllm_learn.core.losses import (
    LossSum,
    TokenLosses,
    clipped_surrogate,
    squared_value_error,
)
from rllm_learn.errors import ConfigError, require


@dataclass
class PPOConfig(PolicyGradientConfig):
    """Settings of PPO."""

    name: str = "ppo"
    rollouts_per_task: int = 8
    """Rollouts of each task; at least 1."""
    gae_over: str = "tokens"
    """What an action is to gamma, lambda_ and the critic: tokens, each sampled token; or turns, all
    that was sampled in one step. The environment's tokens between turns are never actions."""
    gamma: float = 1.0
    """Discount of an action, in [0, 1]."""
    use_gae: bool = True
    """Whether advantages are generalised advantage estimates; false takes the discounted return
    less the value, which is lambda_=1."""
    lambda_: float = 1.0
    """With use_gae: share of what is learned from actions further ahead, in [0, 1]; below 1 it
    trusts the critic more."""
    whiten_advantages: bool = True
    """Normalise advantages to mean 0 and standard deviation 1 over all sampled tokens of the
    batch."""
    clip_low: float = 0.2
    """How far the probability ratio may fall below 1 and still earn, in [0, 1]."""
    clip_high: float = 0.2
    """How far the probability ratio may rise above 1 and still earn; at least 0."""
    vf_share_layers: bool = False
    """Whether the critic is a head on the policy's own trunk; false makes it a model of its own,
    with LoRA a second set of adapters on the same frozen weights."""
    vf_loss_coeff: float = 1.0
    """Weight of the critic's squared error; above 0."""
    vf_clip_param: float | None = None
    """Largest squared error of a value, beyond which it has no gradient; null for no bound."""
    value_clip: float | None = 0.2
    """How far a value may move from what it was before the update, above 0; null for any
    distance."""
    critic_learning_rate: float | None = None
    """Peak rate of the critic, a head's too; null is 3e-3 for the tiny model, and for any other
    1e-4 for a head or adapters and 1e-5 for all parameters of a critic of its own."""

    title: ClassVar[str] = "PPO"
    of_own_loss: ClassVar[tuple[str, ...]] = ("clip_low", "clip_high")

    def __post_init__(self) -> None:
        """Refuse settings that cannot work, and those without an effect; raises ConfigError."""
        super().__post_init__()
        times, unit = self.rollouts_per_task, self.gae_over
        require(times >= 1, "algorithm.rollouts_per_task", times, "at least 1")
        require(unit in ("tokens", "turns"), "algorithm.gae_over", unit, "tokens or turns")
        for name in ("gamma", "lambda_", "clip_low"):
            value = getattr(self, name)
            require(0.0 <= value <= 1.0, f"algorithm.{name}", value, "in [0, 1]")
        if not self.use_gae:
            self.refuse_changed(("lambda_",), "where algorithm.use_gae is false")
        require(self.clip_high >= 0.0, "algorithm.clip_high", self.clip_high, "at least 0")
        coefficient = self.vf_loss_coeff
        require(coefficient > 0.0, "algorithm.vf_loss_coeff", coefficient, "above 0")
        for name in ("vf_clip_param", "value_clip"):
            value = getattr(self, name)
            require(value is None or value > 0, f"algorithm.{name}", value, "above 0, or null")
        rate = self.critic_learning_rate
        require(
            rate is None or 0 < rate < 1,
            "algorithm.critic_learning_rate",
            rate,
            "in (0, 1), or null",
        )

    @property
    def critic(self) -> CriticSettings:
        """Which critic learns beside the policy."""
        return CriticSettings(self.vf_share_layers, self.critic_learning_rate)

    @property
    def has_more_terms(self) -> bool:
        """Whether a rollout without advantages teaches something: the critic, always."""
        return True


@dataclass(frozen=True, slots=True)
class Action:
    """What gamma and lambda count as one: a sampled token, or all sampled tokens of a turn."""

    sequence: int
    """Index of its sequence in the rollout."""
    positions: tuple[int, ...]
    """Of its tokens there; the value is that of the first, before which the state stands."""
    step: int
    """Of the rollout; -1 where steps are unknown."""


class PPO(PolicyGradient[PPOConfig]):
    """Proximal Policy Optimization with a critic."""

    @property
    def scores(self) -> frozenset[str]:
        """Ask the learner for the critic's values, and for what the settings need."""
        return super().scores | {"values"}

    def plan(self, num_tasks: int) -> list[PlannedRollout]:
        """Return `rollouts_per_task` sampled rollouts of each task."""
        return repeated(num_tasks, self.config.rollouts_per_task)

    def credit(self, rollouts: Sequence[Rollout], memory: Mapping[str, float]) -> Credit:
        """Give every sampled token its action's advantage, and the critic its targets.

        Advantages are `generalized_advantages` over the actions of each rollout alone, an action's
        reward being its step's at the step's last action, less the KL penalty of its tokens. What
        the critic should have said of an action is its advantage (before it is normalised) plus its
        value. A turn's target counts as often as the turn has tokens, so that in any aggregation
        the critic's loss weighs a turn as the policy's does.
        """
        learned, targets, raw = [], {}, []
        returns: list[float] = []
        values: list[float] = []
        for rollout in rollouts:
            actions = _actions(rollout, per_turn=self.config.gae_over == "turns")
            expected = [_value(rollout, action) for action in actions]
            advantages = generalized_advantages(
                self._rewards(rollout, actions),
                expected,
                gamma=self.config.gamma,
                lambda_=self.config.lambda_ if self.config.use_gae else 1.0,
            )
            aims = [a + v for a, v in zip(advantages, expected, strict=True)]
            raw += [a for a, x in zip(advantages, actions, strict=True) for _ in x.positions]
            returns += aims
            values += expected
            learned.append((rollout, _spread(rollout, actions, advantages)))
            for sequence, target in zip(
                rollout.sequences, _targets(rollout, actions, aims), strict=True
            ):
                targets[id(sequence)] = target
        if self.config.whiten_advantages:
            learned = _whitened(learned, raw)
        return Credit(
            [replace(s, targets=targets[id(s.sampled)]) for s in self._weighed(learned)],
            metrics=_figures(returns, values, raw),
        )

    def token_losses(
        self, logprobs: Tensor, log_ratio: Tensor, advantages: Tensor, mask: Tensor
    ) -> TokenLosses:
        """Return the clipped surrogate of each token."""
        return clipped_surrogate(
            log_ratio,
            advantages,
            clip_low=self.config.clip_low,
            clip_high=self.config.clip_high,
        )

    def loss(self, output: PolicyOutput, batch: TokenBatch) -> LossSum:
        """Add `vf_loss_coeff` times the critic's squared errors to the policy's loss.

        Schulman et al. 2017, eq. 9.
        """
        policy = super().loss(output, batch)
        weights = asked_for(batch.value_weights)
        predicts = weights > 0
        errors = squared_value_error(
            asked_for(output.values).masked_fill(~predicts, 0.0),
            asked_for(batch.values).masked_fill(~predicts, 0.0),
            asked_for(batch.returns).masked_fill(~predicts, 0.0),
            value_clip=self.config.value_clip,
            max_error=self.config.vf_clip_param,
        )
        weighed = errors.values * weights
        stats = {"value_loss": weighed.detach().sum()}
        if errors.clipped is not None:
            stats["value_clip_fraction"] = (errors.clipped * weights).sum()
        return LossSum(
            total=policy.total + self.config.vf_loss_coeff * (weighed * batch.weights).sum(),
            count=policy.count,
            stats=policy.stats | stats,
        )

    def _rewards(self, rollout: Rollout, actions: Sequence[Action]) -> list[float]:
        """Return each action's reward: its step's where it is the step's last, less its KL."""
        penalties = self._penalties(rollout)
        rewards = [-sum(penalties[a.sequence][p] for p in a.positions) for a in actions]
        if not actions:
            return rewards
        last_of: dict[int, int] = {action.step: index for index, action in enumerate(actions)}
        if not rollout.step_rewards or -1 in last_of:
            rewards[-1] += rollout.reward
            return rewards
        place = 0
        for step, reward in enumerate(rollout.step_rewards):
            # A step without a sampled token adds to the action before it.
            place = last_of.get(step, place)
            rewards[place] += reward
        return rewards


Spread = list[list[float]]
"""A number for each position of each sequence of a rollout."""


def _actions(rollout: Rollout, *, per_turn: bool) -> list[Action]:
    """Return what was done in a rollout, in order; what it was told in between is left out.

    Raises:
        ConfigError: Turns are asked for, but the rollout's steps are unknown.
    """
    actions: list[Action] = []
    for index, sequence in enumerate(rollout.sequences):
        steps = sequence.step_indices or (-1,) * len(sequence.token_ids)
        if per_turn and not sequence.step_indices:
            raise ConfigError(
                "algorithm.gae_over=turns needs rollouts that know their steps; take tokens"
            )
        sampled = [(steps[p], p) for p, is_sampled in enumerate(sequence.action_mask) if is_sampled]
        if per_turn:
            actions += [
                Action(index, tuple(position for _, position in own), step)
                for step, own in groupby(sampled, key=itemgetter(0))
            ]
        else:
            actions += [Action(index, (position,), step) for step, position in sampled]
    return actions


def _value(rollout: Rollout, action: Action) -> float:
    """Return what the critic expected before an action."""
    return asked_for(rollout.sequences[action.sequence].scores.values)[action.positions[0]]


def _spread(rollout: Rollout, actions: Sequence[Action], numbers: Sequence[float]) -> Spread:
    """Write each action's number at all of its tokens; 0 elsewhere."""
    spread = [[0.0] * len(sequence.token_ids) for sequence in rollout.sequences]
    for action, number in zip(actions, numbers, strict=True):
        for position in action.positions:
            spread[action.sequence][position] = number
    return spread


def _targets(
    rollout: Rollout, actions: Sequence[Action], returns: Sequence[float]
) -> list[ValueTargets]:
    """Return for each sequence what its values should have been, at each action's first token."""
    weights = [[0.0] * len(sequence.token_ids) for sequence in rollout.sequences]
    for action in actions:
        weights[action.sequence][action.positions[0]] = float(len(action.positions))
    spread = _spread(rollout, actions, returns)
    return [ValueTargets(tuple(r), tuple(w)) for r, w in zip(spread, weights, strict=True)]


def _whitened(
    learned: Sequence[tuple[Rollout, Spread]], raw: Sequence[float]
) -> list[tuple[Rollout, Spread]]:
    """Normalise the advantages of sampled tokens, which `raw` holds in order."""
    normalized = iter(standardized(raw))
    return [
        (
            rollout,
            [
                [next(normalized) if sampled else 0.0 for sampled in sequence.action_mask]
                for sequence in rollout.sequences
            ],
        )
        for rollout, _ in learned
    ]


def _figures(
    returns: Sequence[float], values: Sequence[float], raw: Sequence[float]
) -> dict[str, float]:
    """Return how well the critic, which had not seen these rollouts, foretold them."""
    num = max(len(values), 1)
    return {
        "explained_variance": explained_variance(returns, values),
        "value": sum(values) / num,
        "return": sum(returns) / num,
        "advantage": sum(raw) / max(len(raw), 1),
    }
