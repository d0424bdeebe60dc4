"""Figures of episodes: scores with intervals, normalised between random play and the oracle."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rllm_agents.leaderboard.records import EpisodeRecord
from rllm_agents.leaderboard.suites import SuiteEntry
from rllm_agents.metrics import wilson_interval

_Z_95 = 1.959963984540054
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Interval:
    """A value and its 95 % interval."""

    value: float
    low: float
    high: float

    def rounded(self) -> list[float]:
        """Value, low and high as a row holds them."""
        return [round(number, _DIGITS) for number in (self.value, self.low, self.high)]


def mean_interval(values: Sequence[float]) -> Interval:
    """Return the mean of independent values with its 95 % interval.

    Of values in [0, 1] it is Wilson's score interval (1927), which is on the wide side for other
    values than 0 and 1, and never empty; of others the normal approximation.
    """
    n = len(values)
    mean = math.fsum(values) / n
    if min(values) >= 0.0 and max(values) <= 1.0:
        return Interval(mean, *wilson_interval(mean, n))
    variance = math.fsum((value - mean) ** 2 for value in values) / max(n - 1, 1)
    half = _Z_95 * math.sqrt(variance / n)
    return Interval(mean, mean - half, mean + half)


def normalised(score: Interval, random: float, oracle: float) -> Interval | None:
    """Return a score on the scale on which random play is 0 and the oracle is 1.

    (score - random) / (oracle - random); None where the oracle is no better than random play.
    """
    span = oracle - random
    if span <= 0.0:
        return None
    return Interval(*((number - random) / span for number in (score.value, score.low, score.high)))


def average(parts: Sequence[Interval]) -> Interval:
    """Return the mean of independent estimates, each of the same weight.

    The interval recovers variances from the parts' own limits (MOVER; Zou and Donner 2008):
    mean - sqrt(sum (value - low)²) / n, and likewise above.
    """
    n = len(parts)
    mean = math.fsum(part.value for part in parts) / n
    below = math.sqrt(math.fsum((part.value - part.low) ** 2 for part in parts)) / n
    above = math.sqrt(math.fsum((part.high - part.value) ** 2 for part in parts)) / n
    return Interval(mean, mean - below, mean + above)


def task_means(records: Sequence[EpisodeRecord], attempts: int, field: str) -> list[float]:
    """Return the mean of a field over the attempts of each task, in the order of tasks."""
    values = [float(getattr(record, field)) for record in records]
    return [
        math.fsum(values[start : start + attempts]) / attempts
        for start in range(0, len(values), attempts)
    ]


def entry_figures(entry: SuiteEntry, records: Sequence[EpisodeRecord]) -> dict[str, Any]:
    """Return the figures of all episodes of an entry, as a row holds them.

    ``score`` and ``solved`` are value, low and high over tasks: of the reward, and of the share
    of episodes that the environment calls solved. Of a match the score counts 1 for a win and 1/2
    for a draw, and ``results`` has wins, draws and losses against each opponent.
    """
    figures: dict[str, Any] = {
        "name": entry.name,
        "id": entry.id,
        "score": mean_interval(task_means(records, entry.attempts, "reward")).rounded(),
        "solved": mean_interval(task_means(records, entry.attempts, "success")).rounded(),
        "episodes": len(records),
        "tokens": sum(record.tokens for record in records),
        "turns": sum(record.turns for record in records),
        "ends": dict(sorted(Counter(record.end for record in records).items())),
    }
    if entry.match:
        each = len(records) // len(entry.opponents)
        figures["results"] = {
            opponent: _results(records[index * each : (index + 1) * each])
            for index, opponent in enumerate(entry.opponents)
        }
    return figures


def normalise(
    figures: Mapping[str, Any], random: float | None, oracle: float | None
) -> dict[str, Any]:
    """Return an entry's figures with the references and the normalised score beside them.

    A match has none of its own: in a game of luck experts and random players are too close.
    """
    if random is None or oracle is None:
        return {**figures, "references": None, "normalised": None}
    is_match = "results" in figures
    scaled = None if is_match else normalised(Interval(*figures["score"]), random, oracle)
    return {
        **figures,
        "references": [random, oracle],
        "normalised": None if scaled is None else scaled.rounded(),
    }


def total_figures(entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a suite's figures: means over its entries, sums of tokens, turns and episodes.

    Of a suite with matches, the mean score is normalised, by the means of the references.
    """
    score = average([Interval(*entry["score"]) for entry in entries])
    scaled = [Interval(*e["normalised"]) for e in entries if e["normalised"] is not None]
    references = [e["references"] for e in entries if e["references"] is not None]
    total = average(scaled) if len(scaled) == len(entries) else None
    if len(references) == len(entries) and any("results" in entry for entry in entries):
        random, oracle = (math.fsum(each) / len(entries) for each in zip(*references, strict=True))
        total = normalised(score, random, oracle)
    return {
        "normalised": None if total is None else total.rounded(),
        "score": score.rounded(),
        "solved": average([Interval(*entry["solved"]) for entry in entries]).rounded(),
        **{key: sum(entry[key] for entry in entries) for key in ("episodes", "tokens", "turns")},
    }


def _results(records: Sequence[EpisodeRecord]) -> list[int]:
    scores = [record.reward for record in records]
    return [scores.count(1.0), scores.count(0.5), scores.count(0.0)]
