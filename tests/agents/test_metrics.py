from __future__ import annotations

from itertools import combinations

import pytest

from rllm_agents.errors import UserError
from rllm_agents.metrics import (
    compute_pass_at_k,
    mean_reward,
    pass_at_k,
    task_key,
    termination_counts,
    unbiased_pass_at_k,
    wilson_interval,
)
from rllm_agents.types import Episode, TerminationReason, Trajectory


def episode(
    task: object, correct: bool, reason: TerminationReason = TerminationReason.ENV_DONE
) -> Episode:
    return Episode(
        task=task,
        is_correct=correct,
        termination_reason=reason,
        trajectories=[Trajectory(reward=float(correct))],
    )


def failed(task: object) -> Episode:
    return episode(task, False, TerminationReason.ENV_EXCEPTION)


@pytest.mark.parametrize("n", range(1, 7))
def test_the_estimator_equals_the_mean_over_all_draws_of_k_attempts(n: int) -> None:
    for c in range(n + 1):
        attempts = [i < c for i in range(n)]
        for k in range(1, n + 1):
            draws = [any(draw) for draw in combinations(attempts, k)]
            assert unbiased_pass_at_k(n, c, k) == pytest.approx(sum(draws) / len(draws))


@pytest.mark.parametrize(("n", "c", "k"), [(3, 4, 1), (3, -1, 1), (3, 1, 0), (3, 1, 4)])
def test_the_estimator_refuses_impossible_counts(n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match="needs"):
        unbiased_pass_at_k(n, c, k)


def test_the_estimator_is_exact_for_large_counts() -> None:
    # 1 - (9999 / 10000): one correct of 10000, one drawn.
    assert unbiased_pass_at_k(10_000, 1, 1) == pytest.approx(1e-4, rel=1e-12)


@pytest.mark.parametrize(
    ("share", "n", "low", "high"),
    [(0.0, 10, 0.0, 0.27753), (0.5, 10, 0.23659, 0.76341), (1.0, 10, 0.72247, 1.0)],
)
def test_wilson_intervals_agree_with_published_values(
    share: float, n: int, low: float, high: float
) -> None:
    assert wilson_interval(share, n) == pytest.approx((low, high), abs=1e-5)


def test_pass_at_k_is_the_mean_over_tasks() -> None:
    # Task a: 1 of 4 correct; task b: 2 of 4.
    results = [episode({"q": "a"}, i < 1) for i in range(4)]
    results += [episode({"q": "b"}, i < 2) for i in range(4)]
    figures = pass_at_k(results, k=[1, 2])
    assert figures.estimates[1].value == pytest.approx((1 / 4 + 2 / 4) / 2)
    assert figures.estimates[2].value == pytest.approx(((1 - 3 / 6) + (1 - 1 / 6)) / 2)
    assert (figures.num_tasks, figures.num_episodes, figures.num_correct) == (2, 8, 3)


def test_k_is_one_and_the_largest_group_by_default() -> None:
    results = [episode("a", True), episode("a", False), episode("b", True)]
    figures = pass_at_k(results)
    assert list(figures.estimates) == [1, 2]
    assert figures.pass_at_1 == pytest.approx((0.5 + 1) / 2)
    # Only task a was tried twice.
    assert figures.estimates[2].num_tasks == 1
    assert figures.estimates[2].value == 1.0


def test_failed_episodes_count_neither_for_nor_against() -> None:
    figures = pass_at_k([episode("a", True), failed("a"), failed("b"), episode("c", False)])
    assert figures.num_failed == 2
    assert figures.pass_at_1 == 0.5
    assert figures.estimates[1].num_tasks == 2
    assert figures.num_tasks == 3


def test_equal_tasks_are_one_group_whatever_the_order_of_their_keys() -> None:
    figures = pass_at_k([episode({"a": 1, "b": 2}, True), episode({"b": 2, "a": 1}, False)])
    assert figures.num_tasks == 1


def test_tasks_that_are_no_json_are_told_apart_by_repr() -> None:
    assert task_key({1, 2}) == repr({1, 2})
    assert pass_at_k([episode({"x": object}, True), episode({"x": int}, True)]).num_tasks == 2


def test_no_episodes_is_a_clear_error() -> None:
    with pytest.raises(UserError, match="results is empty"):
        pass_at_k([])


def test_only_failed_episodes_is_an_error_that_says_why_they_failed() -> None:
    with pytest.raises(UserError, match="all 2 failed: env_exception 2"):
        pass_at_k([failed("a"), failed("b")])


@pytest.mark.parametrize("k", [0, 3, [], [1, 3]])
def test_k_beyond_the_judged_episodes_of_every_task_is_refused(k: object) -> None:
    with pytest.raises(UserError, match=r"k must be in \[1, 2\]"):
        pass_at_k([episode("a", True), episode("a", True), failed("a")], k)  # type: ignore[arg-type]


def test_the_table_is_printed_and_the_result_returned(capsys: pytest.CaptureFixture[str]) -> None:
    figures = compute_pass_at_k([episode("a", True), failed("a")])
    printed = capsys.readouterr().out
    assert "pass@1" in printed
    assert "1.000" in printed
    assert "1 failed" in printed
    assert figures.pass_at_1 == 1.0


def test_the_mean_reward_leaves_out_failed_episodes() -> None:
    assert mean_reward([episode("a", True), episode("a", False), failed("a")]) == 0.5
    assert mean_reward([failed("a")]) is None


def test_reasons_are_counted_most_frequent_first() -> None:
    counts = termination_counts([failed("a"), episode("a", True), episode("b", True)])
    assert list(counts.items()) == [
        (TerminationReason.ENV_DONE, 2),
        (TerminationReason.ENV_EXCEPTION, 1),
    ]
