from __future__ import annotations

from learn_fakes import sequence

from rllm_learn.algorithms import RLOO, RLOOConfig
from rllm_learn.core.batch import Rollout

SAMPLED = sequence([1, 2, 3], sampled=[1, 2]).sampled


def test_each_rollout_is_compared_with_the_others_of_its_task():
    rollouts = [
        Rollout(group, reward, (SAMPLED,))
        for group, reward in ((0, 1.0), (1, 1.0), (0, 0.0), (0, 0.0), (1, 1.0))
    ]
    credit = RLOO(RLOOConfig(group_size=3)).credit(rollouts, {})
    # Of group 0: 1 - 0, 0 - 1/2, 0 - 1/2; group 1 is uniform.
    assert [s.advantages for s in credit.sequences] == [(1.0,) * 3, (-0.5,) * 3, (-0.5,) * 3]
    assert credit.metrics == {"uniform_groups": 0.5}


def test_the_plan_plays_each_task_as_often_as_the_group_is_large():
    plan = RLOO(RLOOConfig(group_size=2)).plan(2)
    assert [(p.group, p.greedy) for p in plan] == [(0, False), (0, False), (1, False), (1, False)]
