from __future__ import annotations

import statistics

import pytest

from rllm_learn.algorithms import REINFORCEPlusPlus, REINFORCEPlusPlusConfig
from rllm_learn.core.batch import Rollout, SampledSequence, Scores
from rllm_learn.errors import ConfigError


def rollout(group: int, reward: float, *kls: tuple[float, ...]) -> Rollout:
    """A rollout of sequences whose sampled tokens have these KL estimates, after one of a prompt
    whose scores must not matter."""
    sequences = tuple(
        SampledSequence(
            (1,) * (len(kl) + 1),
            (False,) + (True,) * len(kl),
            (0.0,) + (-1.0,) * len(kl),
            scores=Scores((-3.0,) + (-1.0,) * len(kl), (-9.0, *(-1.0 - k for k in kl))),
        )
        for kl in kls
    )
    return Rollout(group, reward, sequences)


ROLLOUTS = [rollout(0, 1.0, (0.2, 0.4), (0.6,)), rollout(0, 0.0, (0.0, 1.0))]


def learned(rollouts=ROLLOUTS, **settings) -> list[float]:
    algorithm = REINFORCEPlusPlus(REINFORCEPlusPlusConfig(**settings))
    assert algorithm.scores == {"policy", "reference"}
    credit = algorithm.credit(rollouts, {})
    return [
        a
        for s in credit.sequences
        for a, sampled in zip(s.advantages, s.sampled.action_mask, strict=True)
        if sampled
    ]


def test_each_token_pays_for_the_divergence_from_it_on_and_all_are_normalised_together():
    # With coefficient 0.5: 1 - 0.5 * (1.2, 1.0, 0.6) and 0 - 0.5 * (1, 1).
    raw = [0.4, 0.5, 0.7, -0.5, -0.5]
    mean, deviation = statistics.fmean(raw), statistics.pstdev(raw)
    expected = [(value - mean) / deviation for value in raw]
    assert learned(kl_coefficient=0.5) == pytest.approx(expected, rel=1e-6)


def test_the_variant_with_baseline_subtracts_the_mean_of_the_task_first():
    rollouts = [*ROLLOUTS, rollout(1, 1.0, (0.0,)), rollout(1, 1.0, (0.0,))]
    # Rewards less the task's mean: 0.5, -0.5, 0, 0.
    raw = [-0.1, 0.0, 0.2, -1.0, -1.0, 0.0, 0.0]
    mean, deviation = statistics.fmean(raw), statistics.pstdev(raw)
    expected = [(value - mean) / deviation for value in raw]
    found = learned(rollouts, kl_coefficient=0.5, subtract_group_mean=True)
    assert found == pytest.approx(expected, rel=1e-6)


def test_equal_rewards_and_no_divergence_teach_nothing():
    assert learned([rollout(0, 1.0, (0.0,)), rollout(1, 1.0, (0.0, 0.0))]) == []


def test_one_rollout_a_task_has_no_mean_to_subtract():
    assert len(REINFORCEPlusPlus(REINFORCEPlusPlusConfig(rollouts_per_task=1)).plan(3)) == 3
    with pytest.raises(ConfigError, match="at least 2, got 1"):
        REINFORCEPlusPlusConfig(rollouts_per_task=1, subtract_group_mean=True)
