"""Plays tasks and sums up: how many are solved, with which rewards, how episodes ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rllm_agents.errors import EngineError, UserError
from rllm_agents.evaluation.by_task import (
    TaskFigures,
    num_response_tokens,
    num_turns,
    task_figures,
)
from rllm_agents.evaluation.episode_log import EpisodeLog, play_requests
from rllm_agents.execution_engine import AgentExecutionEngine
from rllm_agents.metrics import Estimate, PassAtK, mean_reward, pass_at_k
from rllm_agents.model_calls import derive_seed
from rllm_agents.rollout_requests import RolloutRequest
from rllm_agents.types import Episode, SamplingParams


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """What came out. Made by `evaluate_tasks` and `summarize`, read by command lines, trainers."""

    episodes: tuple[Episode, ...]
    """All of them, samples of one task side by side."""
    num_tasks: int
    num_failed: int
    """Episodes without an outcome: they count neither for nor against the policy."""
    pass_at_k: PassAtK | None
    """For each k from 1 to the most judged episodes of a task; None when every episode failed."""
    mean_reward: float | None
    """Over the episodes that have one."""
    terminations: Mapping[str, int]
    """Why episodes ended, most frequent first."""
    mean_response_tokens: float
    """Sampled tokens of an episode, all turns together; 0 for engines that know only text."""
    mean_turns: float
    """Completions of an episode."""

    @property
    def estimate(self) -> Estimate:
        """Pass@1 with its 95 % interval.

        Raises:
            EngineError: Every episode failed; the message has the first failure.
        """
        if self.pass_at_k is None:
            first = self.episodes[0]
            raise EngineError(
                f"all {self.num_failed} episodes failed; the first with "
                f"{first.termination_reason}: {first.error}"
            )
        return self.pass_at_k.estimates[1]

    @property
    def pass_at_1(self) -> float:
        """Estimated share of tasks solved at the first attempt, in [0, 1]; see `estimate`."""
        return self.estimate.value

    @property
    def by_task(self) -> tuple[TaskFigures, ...]:
        """How each task fared, in their order."""
        return task_figures(self.episodes)

    def figures(self) -> dict[str, Any]:
        """The figures as JSON values, without the episodes."""
        estimates = {} if self.pass_at_k is None else self.pass_at_k.estimates
        return {
            "pass_at_1": None if self.pass_at_k is None else self.pass_at_1,
            "pass_at_k": {
                str(k): {"value": e.value, "low": e.low, "high": e.high, "num_tasks": e.num_tasks}
                for k, e in estimates.items()
            },
            "mean_reward": self.mean_reward,
            "num_tasks": self.num_tasks,
            "num_episodes": len(self.episodes),
            "num_failed": self.num_failed,
            "terminations": dict(self.terminations),
            "mean_response_tokens": self.mean_response_tokens,
            "mean_turns": self.mean_turns,
        }


async def evaluate_tasks(
    engine: AgentExecutionEngine,
    tasks: Sequence[Mapping[str, Any]],
    *,
    samples_per_task: int = 1,
    sampling: SamplingParams | None = None,
    seed: int = 0,
    log: EpisodeLog | None = None,
) -> EvaluationResult:
    """Play every task `samples_per_task` times and sum up.

    Args:
        engine: Plays the episodes.
        tasks: One mapping per task.
        samples_per_task: Episodes of each task.
        sampling: How tokens are drawn; by default at temperature 1. Its own seed is not used.
        seed: Fixes all sampling: each episode and each of its turns has a stream of its own.
        log: Saves each episode as it ends; those that have an outcome in it are not played again.

    Raises:
        UserError: There are no tasks, `samples_per_task` is below 1, or the log is of other tasks.
    """
    requests = evaluation_requests(
        tasks, samples_per_task=samples_per_task, sampling=sampling, seed=seed
    )
    if log is None:
        episodes = await engine.execute_requests(requests)
    else:
        episodes = await play_requests(engine, requests, log)
    return summarize(episodes, num_tasks=len(tasks))


def evaluation_requests(
    tasks: Sequence[Mapping[str, Any]],
    *,
    samples_per_task: int = 1,
    sampling: SamplingParams | None = None,
    seed: int = 0,
) -> list[RolloutRequest]:
    """Return the requests that `evaluate_tasks` runs; ids are ``<task>-<sample>``, both from 0."""
    if not tasks:
        raise UserError("there are no tasks to evaluate on")
    if samples_per_task < 1:
        raise UserError(f"samples_per_task must be at least 1, got {samples_per_task}")
    sampling = sampling or SamplingParams()
    return [
        RolloutRequest(
            task=task,
            id=f"{index}-{sample}",
            sampling=replace(sampling, seed=derive_seed(seed, "evaluation", index, sample)),
        )
        for index, task in enumerate(tasks)
        for sample in range(samples_per_task)
    ]


def summarize(episodes: Sequence[Episode], *, num_tasks: int) -> EvaluationResult:
    """Sum up finished episodes of `num_tasks` tasks; there must be at least one episode."""
    num_failed = sum(episode.failed for episode in episodes)
    reasons = Counter(str(episode.termination_reason) for episode in episodes)
    return EvaluationResult(
        episodes=tuple(episodes),
        num_tasks=num_tasks,
        num_failed=num_failed,
        pass_at_k=pass_at_k(episodes, "all") if num_failed < len(episodes) else None,
        mean_reward=mean_reward(episodes),
        terminations=dict(reasons.most_common()),
        mean_response_tokens=sum(map(num_response_tokens, episodes)) / len(episodes),
        mean_turns=sum(map(num_turns, episodes)) / len(episodes),
    )
