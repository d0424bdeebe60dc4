"""Ratings from matches, against closed forms."""

from __future__ import annotations

import math

import pytest

from rllm_agents.leaderboard.ratings import ratings

ELO = 400 / math.log(10)


def test_one_opponent_has_a_closed_form() -> None:
    rated = ratings({("a", "random"): (28, 4, 8)})
    # 30 of 40 points, and half of the one game that is added: odds 30.5 to 10.5
    assert rated["a"].value == pytest.approx(400 * math.log10(30.5 / 10.5))
    # Fisher information n p (1 - p) = 41 * 30.5 * 10.5 / 41²
    half = 1.959964 * ELO / math.sqrt(30.5 * 10.5 / 41)
    assert rated["a"].high - rated["a"].value == pytest.approx(half, rel=1e-5)
    assert rated["a"].value - rated["a"].low == pytest.approx(half, rel=1e-5)
    assert rated["random"].value == rated["random"].low == rated["random"].high == 0.0


def test_who_always_wins_has_a_finite_rating_and_draws_are_even() -> None:
    rated = ratings({("best", "random"): (100, 0, 0), ("even", "random"): (0, 50, 0)})
    assert rated["best"].value == pytest.approx(400 * math.log10(100.5 / 0.5))
    assert rated["even"].value == pytest.approx(0.0, abs=1e-6)


def test_ratings_go_through_common_opponents() -> None:
    rated = ratings({("a", "random"): (75_000, 0, 25_000), ("b", "a"): (75_000, 0, 25_000)})
    # 3 to 1 twice in a row: 9 to 1
    assert rated["a"].value == pytest.approx(400 * math.log10(3), abs=0.5)
    assert rated["b"].value == pytest.approx(400 * math.log10(9), abs=0.5)


def test_both_sides_of_a_pair_say_the_same_and_games_with_oneself_nothing() -> None:
    one = ratings({("a", "random"): (30, 5, 15)})
    split = ratings(
        {("a", "random"): (20, 5, 5), ("random", "a"): (10, 0, 10), ("a", "a"): (9, 9, 9)}
    )
    assert split["a"].value == pytest.approx(one["a"].value)
    assert split["a"].high == pytest.approx(one["a"].high)


def test_more_games_narrow_the_interval() -> None:
    few, many = (ratings({("a", "random"): (2 * n, 0, n)})["a"] for n in (10, 1000))
    assert many.high - many.low < (few.high - few.low) / 5
