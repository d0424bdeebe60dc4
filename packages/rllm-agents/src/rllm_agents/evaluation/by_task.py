"""How each task fared: attempts, solved ones, rewards, in the order of the tasks."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rllm_agents.evaluation.episode_files import jsonable
from rllm_agents.metrics import Estimate, mean_reward, task_key, wilson_interval
from rllm_agents.types import Episode

COLUMNS = (
    "task", "episodes", "failed", "correct", "pass_at_1", "low", "high", "mean_reward", "turns",
    "response_tokens", "question",
)  # fmt: skip
"""Of `write_task_table`."""


@dataclass(frozen=True, slots=True)
class TaskFigures:
    """How one task fared. Made by `task_figures`."""

    task: Any
    question: str
    """What the model was first shown; "" where it was shown nothing."""
    num_episodes: int
    num_failed: int
    """Episodes without an outcome: they count neither for nor against the policy."""
    num_correct: int
    pass_at_1: Estimate | None
    """Share of the judged episodes that solved it, with Wilson's 95 % interval over them; its
    `num_tasks` is 1. None where there is none."""
    mean_reward: float | None
    """Over the episodes that have one."""
    mean_turns: float
    mean_response_tokens: float


def task_figures(episodes: Iterable[Episode]) -> tuple[TaskFigures, ...]:
    """Sum up episodes by task, in the order in which tasks first come.

    Episodes belong to one task as `rllm_agents.metrics.pass_at_k` tells them apart: where their
    tasks are equal as JSON.
    """
    groups: dict[str, list[Episode]] = defaultdict(list)
    for episode in episodes:
        groups[task_key(episode.task)].append(episode)
    return tuple(_figures(group) for group in groups.values())


def write_task_table(path: str | Path, figures: Sequence[TaskFigures]) -> None:
    """Write a CSV file with a row for each task, under `COLUMNS`; what there is not, is empty."""
    with open(path, "w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        table = csv.writer(file)
        table.writerow(COLUMNS)
        for one in figures:
            share = one.pass_at_1
            table.writerow(
                (
                    json.dumps(jsonable(one.task), ensure_ascii=False),
                    one.num_episodes,
                    one.num_failed,
                    one.num_correct,
                    *((share.value, share.low, share.high) if share else (None, None, None)),
                    one.mean_reward,
                    one.mean_turns,
                    one.mean_response_tokens,
                    one.question,
                )
            )


def num_turns(episode: Episode) -> int:
    """Completions of an episode."""
    return sum(len(trajectory.steps) for trajectory in episode.trajectories)


def num_response_tokens(episode: Episode) -> float:
    """Sampled tokens of an episode, all turns together; 0 for engines that know only text."""
    given = episode.metrics.get("response_tokens")
    if given is not None:
        return given
    return sum(len(step.response_ids) for t in episode.trajectories for step in t.steps)


def _figures(group: Sequence[Episode]) -> TaskFigures:
    judged = [episode for episode in group if not episode.failed]
    num_correct = sum(episode.is_correct for episode in judged)
    share = num_correct / len(judged) if judged else 0.0
    return TaskFigures(
        task=group[0].task,
        question=next((text for text in map(_question, group) if text), ""),
        num_episodes=len(group),
        num_failed=len(group) - len(judged),
        num_correct=num_correct,
        pass_at_1=Estimate(share, *wilson_interval(share, len(judged)), 1) if judged else None,
        mean_reward=mean_reward(group),
        mean_turns=sum(map(num_turns, group)) / len(group),
        mean_response_tokens=sum(map(num_response_tokens, group)) / len(group),
    )


def _question(episode: Episode) -> str:
    for trajectory in episode.trajectories:
        for message in trajectory.steps[-1].chat_completions if trajectory.steps else ():
            if message.get("role") == "user":
                return str(message.get("content"))
    return ""
