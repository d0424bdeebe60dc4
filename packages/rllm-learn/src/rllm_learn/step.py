"""One training step, the same wherever the sampler and the learner live."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol

from torch import Tensor

from rllm_agents import Episode
from rllm_learn.algorithms import Algorithm, PlannedRollout
from rllm_learn.core.batch import Rollout, TokenSequence
from rllm_learn.core.learner import LossFunction, UpdateReport
from rllm_learn.interrupts import interrupt_deferred


@dataclass(frozen=True, slots=True)
class Sample:
    """What a plan's rollouts came to. Made by a Sampler, read by train_step."""

    rollouts: list[Rollout]
    """Those with an outcome."""
    episodes: list[Episode]
    """All of them, failed ones included, in the plan's order."""
    metrics: dict[str, float]


class Sampler(Protocol):
    """Plays rollouts with the newest weights."""

    def sample(
        self, plan: Sequence[PlannedRollout], tasks: Sequence[dict[str, Any]], step: int
    ) -> Sample:
        """Play every planned rollout."""
        ...

    def publish(self, weights: Mapping[str, Tensor], version: int) -> None:
        """Sample from these weights from now on."""
        ...


class PolicyLearner(Protocol):
    """One learner, or a group of them."""

    def update(self, sequences: Sequence[TokenSequence], loss: LossFunction) -> UpdateReport:
        """Learn from sequences."""
        ...

    def export_weights(self) -> Mapping[str, Tensor]:
        """Return what differs from the model as loaded."""
        ...


@dataclass(slots=True)
class Progress:
    """How far a run is. Advanced by train_step alone, saved with each checkpoint."""

    step: int = 0
    """Complete steps."""
    weights_version: int = 0
    """Version of the weights that are published: updates so far."""


@dataclass(frozen=True, slots=True)
class StepReport:
    """What one step did. Made by train_step, read by the training loop."""

    metrics: dict[str, float]
    episodes: list[Episode]
    skipped: str | None
    """Why nothing was learned; None when something was."""


def train_step(
    sampler: Sampler,
    learner: PolicyLearner,
    algorithm: Algorithm,
    tasks: Sequence[dict[str, Any]],
    progress: Progress,
) -> StepReport:
    """Sample, give credit, update, publish; then the step counts.

    An interrupt is delivered while sampling or after the step counts, never between, so that
    weights and `progress` always belong together.

    Args:
        sampler: Plays the rollouts.
        learner: Holds the policy.
        algorithm: Says who plays, who gets credit and what is minimised.
        tasks: The tasks of this step.
        progress: Where the run is; moved on to the next step.
    """
    started = perf_counter()
    sample = sampler.sample(algorithm.plan(len(tasks)), tasks, progress.step)
    sampled = perf_counter()
    credit = algorithm.credit(sample.rollouts)
    metrics = {**sample.metrics, **{f"train/{k}": v for k, v in credit.metrics.items()}}
    skipped = None if credit.sequences else _why_nothing_to_learn(sample)
    with interrupt_deferred():
        if credit.sequences:
            update = learner.update(credit.sequences, algorithm.loss)
            progress.weights_version += 1
            sampler.publish(learner.export_weights(), progress.weights_version)
            metrics |= {f"learner/{name}": value for name, value in update.metrics.items()}
            metrics["learner/skipped_steps"] = float(update.num_skipped_steps)
            if not update.num_optimizer_steps:
                skipped = "the gradient was not finite"
        progress.step += 1
    metrics["time/sample_seconds"] = sampled - started
    metrics["time/learn_seconds"] = perf_counter() - sampled
    metrics["weights_version"] = float(progress.weights_version)
    return StepReport(metrics, sample.episodes, skipped)


def _why_nothing_to_learn(sample: Sample) -> str:
    """Say in one line what left an algorithm without anything to learn from."""
    rewards = {rollout.reward for rollout in sample.rollouts}
    ends = Counter(str(e.termination_reason) for e in sample.episodes).most_common(2)
    ended = ", ".join(f"{count} x {reason}" for reason, count in ends)
    if len(rewards) == 1:
        return f"all rewards are {rewards.pop():g} ({ended})"
    return f"no two rollouts of a task have different rewards ({ended})"
