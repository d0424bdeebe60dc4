from __future__ import annotations

import pytest
from learn_fakes import sequence

from rllm_learn.algorithms import REINFORCE, REINFORCEConfig
from rllm_learn.core.batch import Rollout, SampledSequence
from rllm_learn.errors import ConfigError

SAMPLED = sequence([1, 2], sampled=[1]).sampled
ROLLOUTS = [Rollout(i, reward, (SAMPLED,)) for i, reward in enumerate((1.0, 0.0, 0.5, 0.5))]


def advantages(memory=None, rollouts=ROLLOUTS, **settings):
    credit = REINFORCE(REINFORCEConfig(**settings)).credit(rollouts, memory or {})
    return [s.advantages[1] for s in credit.sequences], credit


def test_without_a_baseline_rewards_are_the_advantages():
    # A rollout without reward teaches nothing and is left out.
    assert advantages(baseline="none")[0] == [1.0, 0.5, 0.5]


def test_the_mean_of_the_batch_is_subtracted():
    found, credit = advantages(baseline="batch")
    assert found == [0.5, -0.5]
    assert credit.metrics == {"baseline": 0.5}
    assert credit.memory == {}


def test_the_running_mean_is_that_of_the_steps_before():
    found, credit = advantages(baseline="running", baseline_decay=0.5)
    assert found == [0.5, -0.5]  # the first step has no past
    assert credit.memory == {"baseline": 0.5}
    found, credit = advantages({"baseline": 0.25}, baseline="running", baseline_decay=0.5)
    assert found == [0.75, -0.25, 0.25, 0.25]
    assert credit.metrics == {"baseline": 0.25}
    assert credit.memory == {"baseline": 0.375}


def test_a_step_without_rollouts_leaves_the_running_mean():
    found, credit = advantages({"baseline": 0.25}, [], baseline="running")
    assert (found, credit.memory) == ([], {"baseline": 0.25})


def test_returns_are_compared_with_those_of_the_same_step_of_the_whole_batch():
    def stepped(group, *rewards):
        ids = tuple(x for step in range(len(rewards)) for x in (-1, step))
        mask = tuple(i >= 0 for i in ids)
        one = SampledSequence((1,) * len(ids), mask, (-1.0,) * len(ids), ids)
        return Rollout(group, sum(rewards), (one,), step_rewards=rewards)

    config = REINFORCEConfig(step_credit="per_step", gamma=0.5)
    credit = REINFORCE(config).credit([stepped(0, 0.0, 4.0), stepped(1, 2.0)], {})
    # Returns [2, 4] and [2]: at step 0 equal, at step 1 alone; then nothing is learned.
    assert credit.sequences == []
    credit = REINFORCE(config).credit([stepped(0, 0.0, 4.0), stepped(1, 1.0, 2.0)], {})
    # [2, 4] and [2, 2].
    assert [s.advantages[1::2] for s in credit.sequences] == [(0.0, 1.0), (0.0, -1.0)]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"baseline": "mean"}, "none, batch or running, got 'mean'"),
        ({"baseline_decay": 0.5}, "does nothing where algorithm.baseline is batch"),
        ({"baseline": "running", "baseline_decay": 1.0}, r"in \[0, 1\), or null, got 1.0"),
        ({"baseline": "running", "step_credit": "per_step"}, "baseline=batch with"),
        ({"rollouts_per_task": 0}, "at least 1, got 0"),
    ],
)
def test_settings_that_cannot_work_or_do_nothing_are_refused(settings, words):
    with pytest.raises(ConfigError, match=words):
        REINFORCEConfig(**settings)
