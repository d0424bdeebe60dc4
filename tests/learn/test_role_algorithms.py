from __future__ import annotations

import math

import pytest
import torch

from rllm_learn.algorithms import (
    GRPO,
    REINFORCE,
    GRPOConfig,
    REINFORCEConfig,
    ReMax,
    ReMaxConfig,
    RoleAlgorithms,
)
from rllm_learn.core.batch import Rollout, SampledSequence, collate
from rllm_learn.core.logprobs import PolicyOutput


def rollout(role, reward, *, group=0, num_actions=1, greedy=False):
    """A rollout of one sequence: a prompt of one id, then sampled ids at logprob -1."""
    length = 1 + num_actions
    sampled = SampledSequence(
        token_ids=(1,) * length,
        action_mask=(False,) + (True,) * num_actions,
        logprobs=(0.0,) + (-1.0,) * num_actions,
        step_indices=(-1,) + (0,) * num_actions,
    )
    return Rollout(group, reward, (sampled,), role=role, greedy=greedy, step_rewards=(reward,))


def advantages(credit):
    return [(s.role, s.advantages[-1]) for s in credit.sequences]


def output_of(batch, logprob=-1.0):
    logprobs = torch.full(batch.token_ids.shape, logprob, requires_grad=True)
    return PolicyOutput(logprobs, torch.zeros_like(logprobs))


def test_each_role_is_compared_with_its_own_of_the_same_task():
    algorithms = RoleAlgorithms(GRPO(GRPOConfig(divide_by_std=False)), {})
    credit = algorithms.credit(
        [
            # One task: winners of one role stand beside losers of the other.
            rollout("first", 1.0),
            rollout("second", -1.0),
            rollout("first", 0.0),
            rollout("second", -2.0),
            # Another task.
            rollout("first", 4.0, group=1),
            rollout("first", 0.0, group=1),
        ],
        {},
    )
    assert advantages(credit) == [
        ("first", 0.5),
        ("first", -0.5),
        ("first", 2.0),
        ("first", -2.0),
        ("second", 0.5),
        ("second", -0.5),
    ]
    assert credit.metrics["first/reward"] == 1.25
    assert credit.metrics["second/reward"] == -1.5


def test_a_batch_mean_is_that_of_the_role_alone():
    config = REINFORCEConfig(rollouts_per_task=2)
    algorithms = RoleAlgorithms(REINFORCE(config), {})
    rollouts = [rollout("a", 3.0), rollout("a", 1.0), rollout("b", 10.0), rollout("b", 0.0)]
    assert advantages(algorithms.credit(rollouts, {})) == [
        ("a", 1.0),
        ("a", -1.0),
        ("b", 5.0),
        ("b", -5.0),
    ]


def test_what_an_algorithm_remembers_is_kept_for_each_role():
    config = REINFORCEConfig(rollouts_per_task=1, baseline="running", baseline_decay=0.5)
    algorithms = RoleAlgorithms(REINFORCE(config), {})
    first = algorithms.credit([rollout("a", 2.0), rollout("b", 8.0)], {})
    assert first.memory == {"a/baseline": 2.0, "b/baseline": 8.0}
    second = algorithms.credit([rollout("a", 4.0)], first.memory)
    # 4 less the mean of before; b did not play and keeps its own.
    assert advantages(second) == [("a", 2.0)]
    assert second.memory == {"a/baseline": 3.0, "b/baseline": 8.0}


def test_the_plan_serves_the_algorithm_that_asks_for_most():
    algorithms = RoleAlgorithms(
        GRPO(GRPOConfig(group_size=4)), {"judge": ReMax(ReMaxConfig(group_size=3))}
    )
    plan = algorithms.plan(2)
    assert [(p.task_index, p.greedy) for p in plan] == [
        (task, member == 0) for task in (0, 1) for member in range(5)
    ]
    assert [p.group for p in plan] == [p.task_index for p in plan]


def test_a_greedy_rollout_is_a_baseline_for_who_asks_and_nothing_for_others():
    algorithms = RoleAlgorithms(
        GRPO(GRPOConfig(divide_by_std=False)), {"judge": ReMax(ReMaxConfig(group_size=2))}
    )
    rollouts = [
        rollout("judge", 0.25, greedy=True),
        rollout("judge", 1.0),
        rollout("solver", 100.0, greedy=True),
        rollout("solver", 1.0),
        rollout("solver", 0.0),
    ]
    found = advantages(algorithms.credit(rollouts, {}))
    assert sorted(found) == [("judge", 0.75), ("solver", -0.5), ("solver", 0.5)]


def test_where_algorithms_differ_each_is_its_own_mean_weighed_by_its_tokens():
    # Of "a" the mean over rollouts, of "b" that over tokens; both -advantage at ratio 1.
    a = GRPO(GRPOConfig(divide_by_std=False, aggregation="sequence_mean"))
    b = GRPO(GRPOConfig(divide_by_std=False))
    algorithms = RoleAlgorithms(b, {"a": a})
    rollouts = [
        rollout("a", 1.0, num_actions=4),
        rollout("a", 0.0, num_actions=1),
        rollout("b", 6.0, num_actions=2),
        rollout("b", 0.0, num_actions=1),
    ]
    credit = algorithms.credit(rollouts, {})
    batch = collate(credit.sequences)
    loss = algorithms.loss(output_of(batch), batch)
    # a: mean over rollouts of -0.5 and 0.5 is 0; b: (-3 * 2 + 3 * 1) / 3 tokens = -1.
    # Weighed by 5 and 3 of 8 tokens.
    assert loss.count == pytest.approx(8.0)
    assert loss.total.item() / loss.count == pytest.approx((5 * 0.0 + 3 * -1.0) / 8)


def test_the_loss_of_each_row_is_that_of_its_role():
    clipped = GRPO(GRPOConfig(clip_high=0.1, divide_by_std=False))
    free = GRPO(GRPOConfig(clip_high=9.0, divide_by_std=False))
    algorithms = RoleAlgorithms(clipped, {"b": free})
    rollouts = [rollout(role, reward) for role in "ab" for reward in (1.0, 0.0)]
    batch = collate(algorithms.credit(rollouts, {}).sequences)
    ratio = 1.5
    output = output_of(batch, -1.0 + math.log(ratio))
    loss = algorithms.loss(output, batch)
    # min(rA, clip(r)A): of advantage 0.5 clipped to 1.1, or not; of -0.5 never.
    assert loss.total.item() == pytest.approx(-(1.1 * 0.5) + 1.5 * 0.5 - 1.5 * 0.5 + 1.5 * 0.5)
    loss.total.backward()
    assert output.logprobs.grad is not None
    gradients = output.logprobs.grad[:, 1].tolist()
    assert batch.roles == ("b", "b", "a", "a") or batch.roles == ("a", "a", "b", "b")
    of_winner = {role: gradients[batch.roles.index(role)] for role in "ab"}
    assert of_winner["a"] == 0.0  # past the clip
    assert of_winner["b"] == pytest.approx(-0.5 * ratio)


def test_equal_settings_are_one_batch_of_their_algorithm():
    algorithm = GRPO(GRPOConfig(divide_by_std=False, aggregation="sequence_mean"))
    algorithms = RoleAlgorithms(algorithm, {"b": algorithm})
    rollouts = [rollout("a", r, num_actions=3) for r in (1.0, 0.0)]
    rollouts += [rollout("b", r) for r in (1.0, 0.0)]
    credit = algorithms.credit(rollouts, {})
    assert sum(s.count or 0.0 for s in credit.sequences) == pytest.approx(4.0)  # rollouts
