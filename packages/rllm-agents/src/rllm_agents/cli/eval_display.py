"""What `rllm eval` shows: a progress bar while it plays, one table at the end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from rllm_agents.cli.eval_run_dir import EPISODES, SUMMARY, TASKS
from rllm_agents.evaluation import EvaluationResult, TaskFigures
from rllm_agents.types import Episode

_MAX_SHOWN_MISSES = 20
_MAX_SHOWN_CHARACTERS = 160
_MAX_SHOWN_TASKS = 20
_MAX_QUESTION_CHARACTERS = 60


class EpisodeProgress:
    """A progress bar with the time left, on a terminal; nothing elsewhere."""

    def __init__(self, num_episodes: int) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("episodes"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[share]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._bar = self._progress.add_task("episodes", total=num_episodes, share="")
        self._num_ended = 0
        self._num_correct = 0

    def add(self, episode: Episode) -> None:
        """Count an episode that has ended."""
        self._num_ended += 1
        self._num_correct += episode.is_correct
        share = f"{self._num_correct / self._num_ended:.0%} solved"
        self._progress.update(self._bar, advance=1, share=share)

    def stop(self) -> None:
        """Take the bar away; again does nothing."""
        self._progress.stop()

    def __enter__(self) -> Self:
        """Show the bar."""
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the bar away."""
        self.stop()


def print_result(
    result: EvaluationResult,
    misses: Sequence[dict[str, Any]] | None,
    *,
    seconds: float,
    run_dir: Path,
) -> None:
    """Print the table of figures and what the oracle could not solve, if it played."""
    console = Console()
    console.print(_table(result, seconds))
    if len(result.episodes) > result.num_tasks or result.num_tasks <= _MAX_SHOWN_TASKS:
        console.print(_task_table(result.by_task))
    if misses:
        console.print(f"{len(misses)} episodes of the oracle without full reward:")
        for miss in misses[:_MAX_SHOWN_MISSES]:
            console.print(_miss_line(miss), markup=False, highlight=False, soft_wrap=True)
        if len(misses) > _MAX_SHOWN_MISSES:
            console.print(f"  ... the others: oracle_misses in {escape(str(run_dir))}/summary.json")
    if result.num_failed:
        first = next(episode for episode in result.episodes if episode.failed)
        line = f"first failure: {first.termination_reason}: {first.error}"
        console.print(_short(line), markup=False, highlight=False, soft_wrap=True)
    for name in (EPISODES, SUMMARY, TASKS):
        console.print(str(run_dir / name), markup=False, highlight=False, soft_wrap=True)


def _table(result: EvaluationResult, seconds: float) -> Table:
    table = Table(show_header=False, title=f"{len(result.episodes)} episodes")
    table.add_column(justify="right")
    table.add_column()
    if result.pass_at_k is not None:
        for k, estimate in result.pass_at_k.estimates.items():
            interval = f"95 %: {estimate.low:.3f} to {estimate.high:.3f}"
            table.add_row(f"pass@{k}", f"{estimate.value:.3f}  ({interval})")
    reward = "none" if result.mean_reward is None else f"{result.mean_reward:.3f}"
    ends = ", ".join(f"{count} {reason}" for reason, count in result.terminations.items())
    for name, value in (
        ("mean reward", reward),
        ("tasks", str(result.num_tasks)),
        ("failed episodes", str(result.num_failed)),
        ("ended by", ends),
        ("response tokens", f"{result.mean_response_tokens:.1f}"),
        ("turns", f"{result.mean_turns:.2f}"),
        ("seconds", f"{seconds:.1f}"),
    ):
        table.add_row(name, value)
    return table


def _task_table(tasks: Sequence[TaskFigures]) -> Table:
    """Tasks, the least solved first; those that nobody could judge come last."""
    shares = [1.0 if task.pass_at_1 is None else task.pass_at_1.value for task in tasks]
    order = sorted(range(len(tasks)), key=lambda i: (tasks[i].pass_at_1 is None, shares[i], i))
    shown = order[:_MAX_SHOWN_TASKS]
    title = f"{len(tasks)} tasks" if len(shown) == len(tasks) else "the hardest tasks"
    table = Table(title=f"{title}, by pass@1")
    for heading in ("task", "solved", "pass@1", "95 % interval", "reward"):
        table.add_column(heading, justify="right", no_wrap=True)
    # What may wrap gives way in a narrow terminal: the question, which then is cut all the same.
    table.add_column("question")
    for index in shown:
        task, share = tasks[index], tasks[index].pass_at_1
        question = " ".join(task.question.split())[:_MAX_QUESTION_CHARACTERS]
        table.add_row(
            str(index),
            f"{task.num_correct} of {task.num_episodes - task.num_failed}",
            "" if share is None else f"{share.value:.3f}",
            "" if share is None else f"{share.low:.3f} to {share.high:.3f}",
            "" if task.mean_reward is None else f"{task.mean_reward:.3f}",
            Text(question, no_wrap=True, overflow="ellipsis"),
        )
    return table


def _miss_line(miss: dict[str, Any]) -> str:
    """Return the id, the reference and what came of it, shortened."""
    task = miss["task"] if isinstance(miss["task"], dict) else {}
    reference = next((task[k] for k in ("answer", "solution", "target") if k in task), task)
    outcome = miss["error"] or f"reward {miss['reward']}"
    return _short(f"  {miss['id']}  reference {json.dumps(reference, default=str)}: {outcome}")


def _short(text: str) -> str:
    """Cut a line to a readable length."""
    line = " ".join(text.split())
    kept = line if len(line) <= _MAX_SHOWN_CHARACTERS else f"{line[:_MAX_SHOWN_CHARACTERS]}..."
    return f"  {kept}" if text.startswith("  ") else kept
