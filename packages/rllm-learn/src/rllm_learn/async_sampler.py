"""Asynchronous training: later steps' episodes are played while the learner is at work.

The rule that bounds staleness is the whole of it: **the episodes of step t begin once step
t - max_staleness is complete.** A step publishes at most one version of the weights, so every token
that step t learns from was sampled by weights at most `max_staleness` versions older than those
that it changes. Steps learn in their order and from whole groups, whichever episodes end first, so
that no episode is too old, none is dropped, and each task is learned from once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from rllm_agents import Episode, RolloutRequest
from rllm_learn.algorithms import PlannedRollout
from rllm_learn.errors import TrainingError
from rllm_learn.sampler import PlanSampler
from rllm_learn.step import Progress, Sample
from rllm_learn.step_metrics import IdleTimes, staleness_metrics
from rllm_learn.task_sources import TaskSource


@dataclass(frozen=True, slots=True)
class AheadRule:
    """How far sampling may run ahead of learning."""

    max_staleness: int
    """Most versions between the weights that sampled a token and those that learn from it; with 0
    a step's episodes begin when the step does."""
    num_tasks: int
    """Tasks of each step."""
    num_steps: int
    """Steps of the run: nothing is played for later ones."""


class AsyncSampler:
    """A `Sampler` that has begun the next steps' episodes before it is asked for them."""

    def __init__(
        self,
        sampler: PlanSampler,
        rule: AheadRule,
        *,
        begin: Callable[[Sequence[RolloutRequest]], Future[list[Episode]]],
        plan: Callable[[int], list[PlannedRollout]],
        tasks: TaskSource,
        progress: Progress,
    ):
        """Take what it drives; nothing is played before `sample`.

        Args:
            sampler: Turns plans into requests, and pushes weights while episodes are in flight.
            rule: How far it runs ahead.
            begin: Begins episodes in another thread and returns at once.
            plan: `Algorithm.plan`.
            tasks: What is played.
            progress: Where the run is; read here, moved on by `train_step`.
        """
        self._sampler = sampler
        self._rule = rule
        self._begin = begin
        self._plan = plan
        self._tasks = tasks
        self._progress = progress
        self._batches: dict[int, tuple[list[PlannedRollout], Future[list[Episode]]]] = {}
        self._times: IdleTimes | None = None

    def sample(
        self,
        plan: Sequence[PlannedRollout],
        tasks: Sequence[dict[str, Any]],
        step: int,
        *,
        first_index: int = 0,
    ) -> Sample:
        """Begin what may begin now, and wait for the episodes of this step.

        Raises:
            TrainingError: Too many of them failed, or the step asks for further tasks.
        """
        if first_index:
            raise TrainingError(
                "the algorithm asks for further tasks in the middle of a step, when those of later "
                "steps have begun: set rollout.max_staleness=0, or take one that does not"
            )
        times = self._times = self._times or IdleTimes()
        for later in range(step, min(step + self._rule.max_staleness + 1, self._rule.num_steps)):
            if later not in self._batches:
                self._batches[later] = self._begin_step(later)
                times.begun(self._batches[later][1])
        planned, batch = self._batches.pop(step)
        with times.learner_waits():
            episodes = batch.result()
        sample = self._sampler.collect(planned, episodes, step)
        metrics = staleness_metrics(episodes, self._progress.weights_version)
        return replace(sample, metrics=metrics | times.metrics(episodes))

    def publish(self, weights: Mapping[str, Tensor], version: int) -> None:
        """Sample from these weights from now on, what is in flight too."""
        self._sampler.publish(weights, version)

    def _begin_step(self, step: int) -> tuple[list[PlannedRollout], Future[list[Episode]]]:
        """Begin the episodes of a step, whose tasks follow those of the steps before it."""
        num_tasks = self._rule.num_tasks
        first = self._progress.tasks_drawn + (step - self._progress.step) * num_tasks
        plan = self._plan(num_tasks)
        tasks = self._tasks.batch(first, num_tasks)
        return plan, self._begin(self._sampler.requests(plan, tasks, step))
