"""Figures of finished episodes: pass@k with an interval, mean reward, how they ended."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from rich.console import Console
from rich.table import Table

from rllm_agents.errors import UserError
from rllm_agents.types import Episode, TerminationReason

Attempts: TypeAlias = int | Sequence[int] | Literal["all"]
"""One or several numbers of attempts, or all that there can be."""

_Z_95 = 1.959963984540054
"""Quantile of the standard normal distribution that leaves 2.5 % above it."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A share and where the true one lies. Made by `pass_at_k`."""

    value: float
    """In [0, 1]."""
    low: float
    """Lower end of the 95 % interval."""
    high: float
    """Upper end of the 95 % interval."""
    num_tasks: int
    """Tasks it is taken over: those with at least k judged episodes."""


@dataclass(frozen=True, slots=True)
class PassAtK:
    """How often at least one of k attempts solves a task. Made by `pass_at_k`, read by users.

    The interval is Wilson's score interval over tasks (Wilson 1927), at 95 %. The estimates of
    tasks lie in [0, 1], where no variable of that mean varies more than a yes-or-no one, so for
    k > 1 the interval is on the wide side.
    """

    estimates: Mapping[int, Estimate]
    """By k, ascending."""
    num_tasks: int
    """Distinct tasks."""
    num_episodes: int
    """Episodes given, failed ones included."""
    num_correct: int
    """Episodes that solved their task."""
    num_failed: int
    """Episodes without an outcome; they count neither for nor against."""

    @property
    def pass_at_1(self) -> float:
        """The estimate for k = 1.

        Raises:
            KeyError: When it was not asked for.
        """
        return self.estimates[1].value

    def table(self) -> Table:
        """The figures as a table for the terminal."""
        failed = f", {self.num_failed} failed" if self.num_failed else ""
        table = Table(title=f"{self.num_episodes} episodes of {self.num_tasks} tasks{failed}")
        for heading in ("", "value", "95 % interval", "tasks"):
            table.add_column(heading, justify="right")
        for k, estimate in self.estimates.items():
            table.add_row(
                f"pass@{k}",
                f"{estimate.value:.3f}",
                f"{estimate.low:.3f} to {estimate.high:.3f}",
                str(estimate.num_tasks),
            )
        return table


def compute_pass_at_k(results: Sequence[Episode], k: Attempts | None = None) -> PassAtK:
    """Estimate pass@k, print it as a table and return it.

    Arguments, result and errors are those of `pass_at_k`.
    """
    figures = pass_at_k(results, k)
    Console().print(figures.table())
    return figures


def pass_at_k(results: Sequence[Episode], k: Attempts | None = None) -> PassAtK:
    """Estimate how often at least one of k attempts solves a task.

    Of a task with n judged episodes, c of them correct, the unbiased estimate is
    1 - C(n - c, k) / C(n, k) (Chen et al. 2021, "Evaluating Large Language Models Trained on
    Code"); the result is its mean over tasks. Episodes belong to one task when their tasks are
    equal as JSON, keys in any order. Failed episodes are counted apart and not in n; a task with
    fewer than k judged episodes is not in the estimate for k.

    Args:
        results: Finished episodes.
        k: One or several numbers of attempts, or "all" from 1 to the most judged episodes of a
            task; by default 1 and that most.

    Raises:
        UserError: When there is no judged episode, or no task has k of them.
    """
    if not results:
        raise UserError("pass@k of no episodes: results is empty")
    judged: dict[str, list[bool]] = defaultdict(list)
    for episode in results:
        attempts = judged[task_key(episode.task)]
        if not episode.failed:
            attempts.append(episode.is_correct)
    num_failed = sum(episode.failed for episode in results)
    largest = max(map(len, judged.values()))
    if largest == 0:
        reasons = ", ".join(f"{r} {n}" for r, n in termination_counts(results).items())
        raise UserError(
            f"pass@k needs episodes with an outcome; all {num_failed} failed: {reasons}"
        )
    if k == "all":
        k = range(1, largest + 1)
    wanted = sorted({1, largest} if k is None else {k} if isinstance(k, int) else set(k))
    if not wanted or wanted[0] < 1 or wanted[-1] > largest:
        raise UserError(
            f"k must be in [1, {largest}], the most judged episodes of a task, got {k!r}"
        )
    return PassAtK(
        estimates={k: _estimate(list(judged.values()), k) for k in wanted},
        num_tasks=len(judged),
        num_episodes=len(results),
        num_correct=sum(map(sum, judged.values())),
        num_failed=num_failed,
    )


@lru_cache(maxsize=2**16)
def unbiased_pass_at_k(n: int, c: int, k: int) -> float:
    """Probability that k of n attempts, drawn without replacement, hold one of the c correct.

    1 - C(n - c, k) / C(n, k), Chen et al. 2021, with exact integers.

    Raises:
        ValueError: Unless 0 <= c <= n and 1 <= k <= n.
    """
    if not (0 <= c <= n and 1 <= k <= n):
        raise ValueError(f"needs 0 <= c <= n and 1 <= k <= n, got n={n}, c={c}, k={k}")
    all_choices = math.comb(n, k)
    return (all_choices - math.comb(n - c, k)) / all_choices


def wilson_interval(share: float, n: float, *, z: float = _Z_95) -> tuple[float, float]:
    """Wilson's score interval (1927) of a share in [0, 1] seen over n trials.

    (p + z²/2n ± z sqrt(p (1 - p) / n + z²/4n²)) / (1 + z²/n). Never empty: 0 of 10 gives
    (0, 0.278).
    """
    center = share + z * z / (2 * n)
    spread = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    # The ends touch the share exactly at 0 and 1; rounding must not push them past it.
    low = min(share, max(0.0, (center - spread) / scale))
    return low, max(share, min(1.0, (center + spread) / scale))


def mean_reward(episodes: Iterable[Episode]) -> float | None:
    """Mean reward of the episodes that have one; None when none has."""
    rewards = [episode.reward for episode in episodes if episode.reward is not None]
    return sum(rewards) / len(rewards) if rewards else None


def termination_counts(episodes: Iterable[Episode]) -> dict[TerminationReason | None, int]:
    """How many episodes ended for which reason, most frequent first."""
    return dict(Counter(episode.termination_reason for episode in episodes).most_common())


def task_key(task: Any) -> str:
    """A string that is equal for equal tasks: canonical JSON, or `repr` where there is none."""
    try:
        return json.dumps(task, sort_keys=True, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return repr(task)


def _estimate(groups: Sequence[Sequence[bool]], k: int) -> Estimate:
    per_task = [unbiased_pass_at_k(len(g), sum(g), k) for g in groups if len(g) >= k]
    value = math.fsum(per_task) / len(per_task)
    low, high = wilson_interval(value, len(per_task))
    return Estimate(value=value, low=low, high=high, num_tasks=len(per_task))
