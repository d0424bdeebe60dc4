from __future__ import annotations

import pytest

from rllm_learn.algorithms import GRPO, GRPOConfig
from rllm_learn.core.batch import Rollout, SampledSequence

ALGORITHM = GRPO(GRPOConfig(group_size=3))


def rollout(group: int, reward: float, *lengths: int) -> Rollout:
    """A rollout of sequences of these lengths; the last id of each was sampled."""
    sequences = tuple(
        SampledSequence(
            token_ids=(group,) * n,
            action_mask=(False,) * (n - 1) + (True,),
            logprobs=(0.0,) * (n - 1) + (-1.0,),
        )
        for n in lengths
    )
    return Rollout(group, reward, sequences)


def test_the_plan_plays_each_task_as_often_as_the_group_is_large():
    plan = ALGORITHM.plan(2)
    assert [(p.task_index, p.group, p.greedy) for p in plan] == [
        (0, 0, False),
        (0, 0, False),
        (0, 0, False),
        (1, 1, False),
        (1, 1, False),
        (1, 1, False),
    ]


def test_every_sequence_of_a_rollout_gets_the_advantage_of_its_group():
    # Rewards 1, 0, 0: mean 1/3, standard deviation sqrt((4/9 + 1/9 + 1/9) / 2) = 0.57735;
    # advantages 1.1547, -0.57735, -0.57735.
    credit = ALGORITHM.credit([rollout(0, 1.0, 3, 2), rollout(0, 0.0, 4), rollout(0, 0.0, 2)], {})
    assert [len(s) for s in credit.sequences] == [3, 2, 4, 2]
    firsts = [s.advantages[0] for s in credit.sequences]
    assert firsts == pytest.approx([1.1547, 1.1547, -0.57735, -0.57735], abs=1e-4)
    assert credit.metrics == {"uniform_groups": 0.0}


def test_uniform_groups_and_groups_of_one_survivor_are_left_out():
    credit = ALGORITHM.credit(
        [
            rollout(0, 1.0, 2),
            rollout(0, 1.0, 2),
            rollout(1, 1.0, 3),
            rollout(1, 0.0, 3),
            rollout(2, 1.0, 4),  # the other members failed
        ],
        {},
    )
    assert [len(s) for s in credit.sequences] == [3, 3]
    assert credit.metrics["uniform_groups"] == pytest.approx(2 / 3)


def test_nothing_is_learned_from_no_rollouts():
    credit = ALGORITHM.credit([], {})
    assert credit.sequences == []
    assert credit.metrics == {"uniform_groups": 1.0}
