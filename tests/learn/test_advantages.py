from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rllm_learn.core.advantages import (
    discounted_returns,
    explained_variance,
    generalized_advantages,
    group_relative,
    leave_one_out,
    overlong_penalty,
    standardized,
)


def test_advantages_of_one_group_worked_by_hand():
    # mean 0.25; deviations -0.25, -0.25, 0.75, -0.25; sum of squares 0.75; / (4 - 1) = 0.25;
    # standard deviation 0.5: -0.5, -0.5, 1.5, -0.5.
    result = group_relative([0.0, 0.0, 1.0, 0.0], [7, 7, 7, 7])
    assert result == pytest.approx([-0.5, -0.5, 1.5, -0.5], abs=1e-5)


def test_without_division_the_deviations_remain():
    result = group_relative([0.0, 0.0, 1.0, 0.0], [7, 7, 7, 7], divide_by_std=False)
    assert result == [-0.25, -0.25, 0.75, -0.25]


def test_rewards_of_one_group_do_not_change_advantages_of_another():
    alone = group_relative([1.0, 0.0], [1, 1])
    mixed = group_relative([1.0, 50.0, 0.0, -3.0], [1, 2, 1, 2])
    assert [mixed[0], mixed[2]] == alone


def test_uniform_groups_and_groups_of_one_get_zero():
    assert group_relative([0.3, 0.3, 0.3, 5.0], [1, 1, 1, 2]) == [0.0, 0.0, 0.0, 0.0]


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=2, max_size=16))
def test_advantages_of_a_group_sum_to_zero(rewards):
    assert sum(group_relative(rewards, [0] * len(rewards))) == pytest.approx(0.0, abs=1e-6)


def test_each_reward_is_compared_with_the_mean_of_the_others():
    # Others of 3: (1 + 2) / 2 = 1.5; of 1: (3 + 2) / 2 = 2.5; of 2: (3 + 1) / 2 = 2.
    assert leave_one_out([3.0, 1.0, 9.0, 2.0], [5, 5, 6, 5]) == [1.5, -1.5, 0.0, 0.0]


def test_a_uniform_group_is_exactly_zero_where_rounding_would_leave_something():
    assert leave_one_out([0.1] * 7, [0] * 7) == [0.0] * 7


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=9))
def test_leave_one_out_is_the_deviation_from_the_mean_times_n_by_n_minus_one(rewards):
    n = len(rewards)
    scaled = [n / (n - 1) * a for a in group_relative(rewards, [0] * n, divide_by_std=False)]
    assert leave_one_out(rewards, [0] * n) == pytest.approx(scaled, abs=1e-9)


def test_returns_worked_by_hand():
    # 4; 0 + 0.5 * 4 = 2; 1 + 0.5 * 2 = 2.
    assert discounted_returns([1.0, 0.0, 4.0], 0.5) == [2.0, 2.0, 4.0]
    assert discounted_returns([1.0, 0.0, 4.0]) == [5.0, 4.0, 4.0]
    assert discounted_returns([]) == []


def test_standardized_values_have_mean_zero_and_deviation_one():
    # mean 3; squared deviations 4, 1, 0, 9, 0, over 5: 2.8, whose root is 1.673320.
    result = standardized([1.0, 2.0, 3.0, 6.0, 3.0])
    assert result == pytest.approx([-1.195229, -0.597614, 0.0, 1.792843, 0.0], abs=1e-6)
    assert standardized([0.3, 0.3]) == [0.0, 0.0]
    assert standardized([]) == []


@pytest.mark.parametrize(
    ("length", "penalty"), [(0, 0.0), (80, 0.0), (85, -0.25), (90, -0.5), (100, -1.0), (150, -1.0)]
)
def test_the_penalty_grows_within_the_buffer(length, penalty):
    assert overlong_penalty(length, max_length=100, buffer=20) == pytest.approx(penalty)
    assert overlong_penalty(length, max_length=100, buffer=0) == 0.0


def test_generalized_advantages_worked_by_hand():
    # gamma 0.5, lambda 0.8: d = (0 + 0.5 * 2 - 1, 0 + 0.5 * 1 - 2, 4 - 1) = (0, -1.5, 3);
    # A = (0 + 0.4 * -0.3, -1.5 + 0.4 * 3, 3).
    found = generalized_advantages([0.0, 0.0, 4.0], [1.0, 2.0, 1.0], gamma=0.5, lambda_=0.8)
    assert found == pytest.approx([-0.12, -0.3, 3.0])


@given(
    st.lists(st.tuples(st.floats(-5, 5), st.floats(-5, 5)), min_size=1, max_size=8),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_generalized_advantages_are_the_weighted_mean_of_all_estimates_of_n_steps(
    pairs, gamma, lambda_
):
    # Schulman et al. 2015, eq. 15 and 16: (1 - lambda) sum of lambda^(n - 1) A^(n), where the
    # estimate of n steps sums n rewards, and then trusts the value; beyond the end all are equal.
    rewards, values = [r for r, _ in pairs], [v for _, v in pairs]
    size = len(pairs)

    def of_steps(start: int, n: int) -> float:
        stop = min(start + n, size)
        total = sum(gamma ** (i - start) * rewards[i] for i in range(start, stop))
        rest = gamma**n * values[stop] if stop < size else 0.0
        return total + rest - values[start]

    expected = []
    for start in range(size):
        left = size - start
        mean = sum((1 - lambda_) * lambda_ ** (n - 1) * of_steps(start, n) for n in range(1, left))
        expected.append(mean + lambda_ ** (left - 1) * of_steps(start, left))
    found = generalized_advantages(rewards, values, gamma=gamma, lambda_=lambda_)
    assert found == pytest.approx(expected, abs=1e-9)


def test_explained_variance_worked_by_hand():
    assert explained_variance([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]) == 1.0
    assert explained_variance([1.0, 2.0, 3.0], [0.0, 1.0, 2.0]) == 1.0  # but for a constant
    assert explained_variance([1.0, 2.0, 3.0], [7.0, 7.0, 7.0]) == 0.0
    # Errors 0, 2, 4: variance 8/3 against 2/3.
    assert explained_variance([1.0, 2.0, 3.0], [1.0, 0.0, -1.0]) == pytest.approx(-3.0)
    assert explained_variance([1.0, 1.0], [0.0, 5.0]) == 0.0
    assert explained_variance([], []) == 0.0
