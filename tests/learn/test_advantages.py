from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rllm_learn.core.advantages import group_relative


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
