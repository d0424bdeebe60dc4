"""Scores, intervals and normalisation, against numbers worked by hand."""

from __future__ import annotations

import pytest

from rllm_agents.leaderboard.figures import (
    Interval,
    average,
    entry_figures,
    mean_interval,
    normalise,
    normalised,
    task_means,
    total_figures,
)
from rllm_agents.leaderboard.records import EpisodeRecord
from rllm_agents.leaderboard.suites import SuiteEntry


def record(reward: float, *, success: bool = False, tokens: int = 3) -> EpisodeRecord:
    return EpisodeRecord(("a",), reward, success, "env_done", tokens, 1, 0.5)


def test_shares_have_wilsons_interval_and_other_rewards_the_normal_one() -> None:
    none_of_ten = mean_interval([0.0] * 10)
    # Wilson: z² / (n + z²) = 3.8415 / 13.8415
    assert (none_of_ten.value, none_of_ten.low) == (0.0, 0.0)
    assert none_of_ten.high == pytest.approx(0.27753, abs=1e-5)
    both = mean_interval([-1.0, 1.0, -1.0, 1.0])
    # variance 4/3, standard error sqrt(4/3/4) = 0.57735
    assert both.value == 0.0
    assert both.high == pytest.approx(1.95996 * 0.57735, abs=1e-4)
    assert both.low == -both.high


def test_random_play_is_0_and_the_oracle_1() -> None:
    scaled = normalised(Interval(0.5, 0.4, 0.7), random=0.2, oracle=0.8)
    assert scaled is not None
    assert (scaled.value, scaled.low, scaled.high) == pytest.approx((0.5, 1 / 3, 5 / 6))
    assert normalised(Interval(0.5, 0.4, 0.6), random=0.5, oracle=0.5) is None


def test_an_average_recovers_its_width_from_its_parts() -> None:
    mean = average([Interval(0.5, 0.2, 0.6), Interval(0.9, 0.5, 1.0)])
    # below: sqrt(0.3² + 0.4²) / 2 = 0.25; above: sqrt(0.1² + 0.1²) / 2 = 0.0707
    assert (mean.value, mean.low, mean.high) == pytest.approx((0.7, 0.45, 0.770711), abs=1e-6)


def test_attempts_are_averaged_before_tasks_are_counted() -> None:
    records = [record(r) for r in (1.0, 0.0, 1.0, 1.0)]
    assert task_means(records, 2, "reward") == [0.5, 1.0]
    entry = SuiteEntry("e", env="rllm/MCQ-v0", num_tasks=2, attempts=2)
    figures = entry_figures(entry, records)
    assert figures["score"][0] == 0.75
    # Wilson over the 2 tasks, not the 4 episodes: (1.71037 ± 1.13244) / 2.92073
    assert figures["score"] == pytest.approx([0.75, 0.19787, 0.97332], abs=1e-5)
    assert (figures["episodes"], figures["tokens"], figures["turns"]) == (4, 12, 4)
    assert figures["ends"] == {"env_done": 4}


def test_matches_count_by_opponent_and_are_normalised_as_a_whole() -> None:
    entry = SuiteEntry("m", match="rllm/Nim-v0", opponents=("random", "expert"), num_tasks=2)
    records = [record(r) for r in (1.0, 1.0, 0.5, 0.0, 0.0, 0.5, 0.0, 0.0)]
    figures = normalise(entry_figures(entry, records), random=0.25, oracle=0.75)
    assert figures["results"] == {"random": [2, 1, 1], "expert": [0, 1, 3]}
    assert figures["score"][0] == 0.375
    assert figures["normalised"] is None
    # (0.375 - 0.25) / (0.75 - 0.25)
    assert total_figures([figures])["normalised"][0] == 0.25


def test_a_total_needs_every_entrys_references() -> None:
    entry = SuiteEntry("e", env="rllm/MCQ-v0", num_tasks=1)
    one = normalise(entry_figures(entry, [record(1.0)]), random=0.0, oracle=1.0)
    other = normalise(entry_figures(entry, [record(0.0)]), random=None, oracle=None)
    assert total_figures([one, one])["normalised"][0] == 1.0
    assert total_figures([one, other])["normalised"] is None
    assert total_figures([one, other])["score"][0] == 0.5
