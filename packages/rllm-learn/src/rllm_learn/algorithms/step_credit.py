"""Credit by comparison: of whole rollouts, or of what is still earned from each step on."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from rllm_learn.algorithms.base import Credit, PlannedRollout
from rllm_learn.algorithms.policy_gradient import PolicyGradient, PolicyGradientConfig, repeated
from rllm_learn.algorithms.registered import find_advantage
from rllm_learn.core.advantages import discounted_returns, is_uniform
from rllm_learn.core.batch import Rollout, TokenSequence
from rllm_learn.errors import ConfigError, require


@dataclass
class StepCreditConfig(PolicyGradientConfig):
    """Settings of algorithms that compare rewards or returns."""

    step_credit: str = "broadcast"
    """broadcast gives all steps of a rollout the advantage of its reward; per_step gives each step
    that of its return (what is earned from it on), compared with the same step of others."""
    gamma: float | None = None
    """With step_credit=per_step: discount of a step in returns, in [0, 1]; null is 1."""

    def __post_init__(self) -> None:
        """Refuse settings that cannot work; raises ConfigError."""
        super().__post_init__()
        require(
            self.step_credit in ("broadcast", "per_step"),
            "algorithm.step_credit",
            self.step_credit,
            "broadcast or per_step",
        )
        if self.step_credit == "broadcast":
            self.refuse_changed(("gamma",), "where algorithm.step_credit is broadcast")
        require(
            self.gamma is None or 0 <= self.gamma <= 1,
            "algorithm.gamma",
            self.gamma,
            "in [0, 1], or null",
        )


@dataclass
class GroupConfig(StepCreditConfig):
    """Settings of algorithms that compare rollouts of one task."""

    group_size: int = 8
    """Rollouts of each task that are compared; at least 2."""
    advantage: str | None = None
    """How rewards become advantages: what `register_advantage` registered under the name, or
    `module:name`; null is the algorithm's own."""

    of_own_advantage: ClassVar[tuple[str, ...]] = ()
    """Settings that only the algorithm's own advantage reads."""

    def __post_init__(self) -> None:
        """Refuse settings that cannot work; raises ConfigError."""
        super().__post_init__()
        if self.group_size < 2:
            raise ConfigError(
                f"algorithm.group_size must be at least 2, got {self.group_size}: a rollout is "
                "compared with the others of its task, and alone its advantage is always 0"
            )
        if self.advantage is not None:
            find_advantage(self.advantage)
            reason = f"with algorithm.advantage={self.advantage}"
            self.refuse_changed(self.of_own_advantage, reason)


@dataclass(frozen=True, slots=True)
class Compared:
    """One value that gets an advantage: a rollout's reward, or the return from one of its steps."""

    rollout: int
    """Index of the rollout."""
    step: int | None
    """None for all of it."""
    key: Hashable
    """Equal for values that are compared: task, role and step."""
    value: float


Config = TypeVar("Config", bound=StepCreditConfig)


class StepCredit(PolicyGradient[Config]):
    """Base of algorithms whose advantages come from comparing rewards or returns."""

    def compared(self, rollouts: Sequence[Rollout]) -> list[Compared]:
        """Return the values that get advantages, less the KL penalty where rewards have one."""
        if self.config.step_credit == "broadcast":
            return [
                Compared(index, None, (r.group, r.role), self.penalized_reward(r))
                for index, r in enumerate(rollouts)
            ]
        gamma = 1.0 if self.config.gamma is None else self.config.gamma
        return [
            Compared(index, step, (r.group, r.role, step), value)
            for index, r in enumerate(rollouts)
            for step, value in enumerate(discounted_returns(self._step_rewards(r), gamma))
        ]

    def spread(
        self, rollouts: Sequence[Rollout], compared: Sequence[Compared], advantages: Sequence[float]
    ) -> list[TokenSequence]:
        """Give every sampled token the advantage of its rollout, or of its step.

        Args:
            rollouts: Those that `compared` was made from.
            compared: Values.
            advantages: One for each value.
        """
        of = {(c.rollout, c.step): a for c, a in zip(compared, advantages, strict=True)}
        if self.config.step_credit == "broadcast":
            return self._weighed(
                [
                    (r, [(of[index, None],) * len(s.token_ids) for s in r.sequences])
                    for index, r in enumerate(rollouts)
                ]
            )
        return self._weighed(
            [
                (r, [[of.get((index, step), 0.0) for step in s.step_indices] for s in r.sequences])
                for index, r in enumerate(rollouts)
            ]
        )

    def _step_rewards(self, rollout: Rollout) -> list[float]:
        rewards = list(rollout.step_rewards)
        for sequence, penalties in zip(rollout.sequences, self._penalties(rollout), strict=True):
            for position, penalty in enumerate(penalties):
                if sequence.action_mask[position]:
                    rewards[sequence.step_indices[position]] -= penalty
        return rewards


GroupSettings = TypeVar("GroupSettings", bound=GroupConfig)


class GroupCredit(StepCredit[GroupSettings]):
    """Base of algorithms that compare rollouts of one task. One of them adds `advantages`."""

    def __init__(self, config: GroupSettings):
        """Take the settings."""
        super().__init__(config)
        own = config.advantage
        self._advantages = self.advantages if own is None else find_advantage(own)

    def plan(self, num_tasks: int) -> list[PlannedRollout]:
        """Return `group_size` sampled rollouts of each task."""
        return repeated(num_tasks, self.config.group_size)

    @abstractmethod
    def advantages(self, values: Sequence[float], keys: Sequence[Hashable]) -> list[float]:
        """Return one advantage a value, exactly 0 where all values of its key are equal."""

    def credit(self, rollouts: Sequence[Rollout], memory: Mapping[str, float]) -> Credit:
        """Give every sampled token the advantage of its rollout, or of its step.

        Where all values of a group are equal its rollouts are left out. A group that lost all
        members but one to failures is such a group.
        """
        compared = self.compared(rollouts)
        values, keys = [c.value for c in compared], [c.key for c in compared]
        sequences = self.spread(rollouts, compared, self._advantages(values, keys))
        return Credit(sequences, metrics={"uniform_groups": share_of_uniform(values, keys)})


def share_of_uniform(rewards: Sequence[float], keys: Sequence[Hashable]) -> float:
    """Return the share of groups in which all values are equal; 1 where there is no group."""
    groups: dict[Hashable, list[float]] = defaultdict(list)
    for reward, key in zip(rewards, keys, strict=True):
        groups[key].append(reward)
    return sum(map(is_uniform, groups.values())) / len(groups) if groups else 1.0
