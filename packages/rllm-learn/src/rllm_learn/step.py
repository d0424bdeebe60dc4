"""One training step, the same wherever the sampler and the learner live."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from torch import Tensor

from rllm_agents import Episode
from rllm_learn.algorithms import Algorithm, PlannedRollout
from rllm_learn.core.batch import Rollout, SampledSequence, Scores, TokenSequence
from rllm_learn.core.learner import LossFunction, UpdateReport
from rllm_learn.interrupts import interrupt_deferred
from rllm_learn.step_metrics import TimeSplit, episode_metrics
from rllm_learn.task_sources import TaskSource


@dataclass(frozen=True, slots=True)
class Sample:
    """What a plan's rollouts came to. Made by a Sampler, read by train_step."""

    plan: list[PlannedRollout]
    episodes: list[Episode]
    """All of them, failed ones included, in the plan's order."""
    rollouts: list[Rollout]
    """Those with an outcome."""
    metrics: dict[str, float] = field(default_factory=dict)
    """What the sampler measured; stands in place of the step's own figures of these names."""


class Sampler(Protocol):
    """Plays rollouts with the newest weights."""

    def sample(
        self,
        plan: Sequence[PlannedRollout],
        tasks: Sequence[dict[str, Any]],
        step: int,
        *,
        first_index: int = 0,
    ) -> Sample:
        """Play every planned rollout, of which the step has played `first_index` already."""
        ...

    def publish(self, weights: Mapping[str, Tensor], version: int) -> None:
        """Sample from these weights from now on."""
        ...


class PolicyLearner(Protocol):
    """One learner, or a group of them."""

    def score(self, sequences: Sequence[SampledSequence], kinds: Collection[str]) -> list[Scores]:
        """Return what the policy, or the reference, says of sequences, in their order."""
        ...

    def update(
        self, sequences: Sequence[TokenSequence], loss: LossFunction, *, step: int | None = None
    ) -> UpdateReport:
        """Learn from sequences, at the learning rate of a step of the run."""
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
    tasks_drawn: int = 0
    """Tasks that complete steps have played: where the next step's begin."""
    memory: dict[str, float] = field(default_factory=dict)
    """What the algorithm remembers from step to step."""


@dataclass(frozen=True, slots=True)
class StepReport:
    """What one step did. Made by train_step, read by the training loop."""

    metrics: dict[str, float]
    episodes: list[Episode]
    sequences: list[TokenSequence]
    """What was learned from, with its advantages; empty when nothing was."""
    skipped: str | None
    """Why nothing was learned; None when something was."""


def train_step(
    sampler: Sampler,
    learner: PolicyLearner,
    algorithm: Algorithm,
    tasks: TaskSource,
    progress: Progress,
    *,
    num_tasks: int,
    record: Callable[[StepReport], None] = lambda report: None,
) -> StepReport:
    """Sample, give credit, update, publish; then the step counts and is recorded.

    An interrupt is delivered before the update or after the step is recorded, never between, so
    that weights, `progress` and what was recorded always belong together.

    Args:
        sampler: Plays the rollouts.
        learner: Holds the policy.
        algorithm: Says who plays, who gets credit and what is minimised.
        tasks: What is played.
        progress: Where the run is; moved on to the next step.
        num_tasks: Tasks that the step begins with; the algorithm may ask for more.
        record: Called with what the step did once it counts.
    """
    time = TimeSplit()
    with time.phase("sample"):
        sample, tasks_drawn = _play(sampler, algorithm, tasks, progress, num_tasks)
    with time.phase("score"):
        rollouts = _scored(learner, algorithm.scores, sample.rollouts)
    credit = algorithm.credit(rollouts, progress.memory)
    played = zip(sample.episodes, sample.plan, strict=True)
    metrics = episode_metrics([e for e, planned in played if not planned.greedy])
    metrics |= {f"train/{name}": value for name, value in credit.metrics.items()}
    skipped = None if credit.sequences else _why_nothing_to_learn(sample)
    with interrupt_deferred():
        if credit.sequences:
            with time.phase("learn"):
                update = learner.update(credit.sequences, algorithm.loss, step=progress.step)
            progress.weights_version += 1
            with time.phase("sync"):
                sampler.publish(learner.export_weights(), progress.weights_version)
            metrics |= {f"learner/{name}": value for name, value in update.metrics.items()}
            metrics["learner/skipped_steps"] = float(update.num_skipped_steps)
            if not update.num_optimizer_steps:
                skipped = "the gradient was not finite"
        progress.step += 1
        progress.tasks_drawn += tasks_drawn
        if all(map(math.isfinite, credit.memory.values())):
            # What is not finite would spoil every later step.
            progress.memory = credit.memory
        metrics |= time.metrics(
            episodes=sample.episodes, learned_tokens=sum(map(len, credit.sequences))
        )
        metrics |= sample.metrics
        metrics["weights_version"] = float(progress.weights_version)
        report = StepReport(metrics, sample.episodes, credit.sequences, skipped)
        record(report)
    return report


def _play(
    sampler: Sampler, algorithm: Algorithm, source: TaskSource, progress: Progress, num_tasks: int
) -> tuple[Sample, int]:
    """Play the plan, and as many further tasks as the algorithm asks for; return their number."""
    all_of_it = Sample([], [], [])
    tasks: list[dict[str, Any]] = []
    wanted, num_refills = num_tasks, 0
    while wanted:
        plan = [
            replace(p, task_index=p.task_index + len(tasks), group=p.group + len(tasks))
            for p in algorithm.plan(wanted)
        ]
        tasks += source.batch(progress.tasks_drawn + len(tasks), wanted)
        part = sampler.sample(plan, tasks, progress.step, first_index=len(all_of_it.plan))
        all_of_it.plan.extend(part.plan)
        all_of_it.episodes.extend(part.episodes)
        all_of_it.rollouts.extend(part.rollouts)
        all_of_it.metrics.update(part.metrics)
        wanted = algorithm.refill(all_of_it.rollouts, num_tasks, num_refills)
        num_refills += 1
    return all_of_it, len(tasks)


def _scored(
    learner: PolicyLearner, kinds: Collection[str], rollouts: Sequence[Rollout]
) -> list[Rollout]:
    """Return rollouts whose sequences carry what the learner says of them."""
    sequences = [sequence for rollout in rollouts for sequence in rollout.sequences]
    if not kinds or not sequences:
        return list(rollouts)
    scores = iter(learner.score(sequences, kinds))
    return [
        replace(r, sequences=tuple(replace(s, scores=next(scores)) for s in r.sequences))
        for r in rollouts
    ]


def _why_nothing_to_learn(sample: Sample) -> str:
    """Say in one line what left an algorithm without anything to learn from."""
    rewards = {rollout.reward for rollout in sample.rollouts}
    ends = Counter(str(e.termination_reason) for e in sample.episodes).most_common(2)
    ended = ", ".join(f"{count} x {reason}" for reason, count in ends)
    if len(rewards) == 1:
        return f"all rewards are {rewards.pop():g} ({ended})"
    return f"no rollout differs from what it is compared with ({ended})"
