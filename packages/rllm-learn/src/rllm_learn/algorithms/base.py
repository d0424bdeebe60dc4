"""What an algorithm is: who plays, who gets credit, and what is minimised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import ClassVar, Protocol

from omegaconf import MISSING

from rllm_learn.core.batch import Rollout, TokenBatch, TokenSequence
from rllm_learn.core.logprobs import PolicyOutput
from rllm_learn.core.losses import LossSum
from rllm_learn.errors import ConfigError


@dataclass(frozen=True, slots=True)
class CriticSettings:
    """Which critic an algorithm has. Read where the learner is put together."""

    shares_trunk: bool
    """Whether it is a head on the policy's trunk."""
    learning_rate: float | None
    """Peak rate; None for the default that suits the model."""


@dataclass
class AlgorithmConfig:
    """Base of the algorithms' settings; not frozen, since OmegaConf makes frozen ones read-only."""

    name: str = MISSING
    """A key of `rllm_learn.algorithms.ALGORITHMS`."""

    title: ClassVar[str] = ""
    """The name that people write."""
    needs_fresh_samples: ClassVar[bool] = False
    """Whether the loss is right only for the weights that sampled, so that a batch serves one
    optimizer step."""

    def __post_init__(self) -> None:
        """Refuse the settings of one algorithm under the name of another.

        Raises:
            ConfigError: With how an algorithm is chosen.
        """
        own = next(f.default for f in fields(self) if f.name == "name")
        if self.name != own:
            raise ConfigError(
                f"algorithm.name is {own!r} with these settings and cannot be {self.name!r}: "
                f"choose an algorithm with algorithm={self.name}"
            )

    @property
    def critic(self) -> CriticSettings | None:
        """Which critic learns beside the policy; None for none."""
        return None

    @property
    def plays_further_tasks(self) -> bool:
        """Whether `Algorithm.refill` may ask for tasks in the middle of a step."""
        return False

    @property
    def teacher_path(self) -> str | None:
        """The model that the learner holds beside the policy and scores with; None for none.

        Raises:
            ConfigError: The algorithm needs one, and none is named.
        """
        return None

    def refuse_changed(self, names: Sequence[str], reason: str) -> None:
        """Refuse settings that would have no effect.

        Args:
            names: Fields that must be as their defaults are.
            reason: Completes "does nothing ...".

        Raises:
            ConfigError: A field was changed.
        """
        for setting in fields(self):
            value = getattr(self, setting.name)
            if setting.name in names and value != setting.default:
                raise ConfigError(f"algorithm.{setting.name}={value!r} does nothing {reason}")


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
    memory: dict[str, float] = field(default_factory=dict)
    """What the algorithm wants to be told at the next step; kept with each checkpoint."""


class Algorithm(Protocol):
    """One algorithm, one file. The training loop never asks which one it runs."""

    @property
    def scores(self) -> frozenset[str]:
        """What the learner must say of sampled sequences before credit: fields of `Scores`."""
        ...

    def plan(self, num_tasks: int) -> list[PlannedRollout]:
        """Return the rollouts to make for a step's tasks."""
        ...

    def refill(self, rollouts: Sequence[Rollout], num_tasks: int, num_refills: int) -> int:
        """Return how many tasks more to play before credit is given.

        Args:
            rollouts: All that the step has so far.
            num_tasks: Tasks that the step began with.
            num_refills: How often more were asked for in this step.
        """
        ...

    def credit(self, rollouts: Sequence[Rollout], memory: Mapping[str, float]) -> Credit:
        """Give each sampled token its advantage; failed rollouts are not among them.

        Args:
            rollouts: Greedy ones included, scored where `scores` asks for it.
            memory: What the step before left in `Credit.memory`; empty at the first.
        """
        ...

    def loss(self, output: PolicyOutput, batch: TokenBatch) -> LossSum:
        """Return the sum to be minimised over one micro-batch, and its count."""
        ...
