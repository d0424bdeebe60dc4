from __future__ import annotations

import pytest
import torch

from rllm_learn.algorithms import ReMax, ReMaxConfig
from rllm_learn.core.batch import Rollout, SampledSequence, Scores
from rllm_learn.errors import ConfigError


def rollout(group: int, reward: float, *, greedy: bool = False, kl: float | None = None) -> Rollout:
    """A rollout with one sampled token, whose policy logprob exceeds the reference's by `kl`."""
    scores = Scores() if kl is None else Scores((0.0, -1.0), (0.0, -1.0 - kl))
    sequence = SampledSequence((1, 2), (False, True), (0.0, -1.0), scores=scores)
    return Rollout(group, reward, (sequence,), greedy=greedy)


def test_the_plan_has_one_greedy_rollout_a_task():
    plan = ReMax(ReMaxConfig(group_size=3)).plan(2)
    assert [(p.task_index, p.group, p.greedy) for p in plan] == [
        (0, 0, True),
        (0, 0, False),
        (0, 0, False),
        (1, 1, True),
        (1, 1, False),
        (1, 1, False),
    ]


def test_the_advantage_is_the_reward_less_that_of_the_greedy_rollout_of_the_same_task():
    credit = ReMax(ReMaxConfig()).credit(
        [
            rollout(0, 0.75, greedy=True),
            rollout(1, 0.0, greedy=True),
            rollout(0, 1.0),
            rollout(0, 0.0),
            rollout(1, 1.0),
        ],
        {},
    )
    # Three sequences: what was decoded greedily is not learned from.
    assert [s.advantages[1] for s in credit.sequences] == [0.25, -0.75, 1.0]
    assert credit.metrics == {"greedy_reward": 0.375, "without_baseline": 0.0}


def test_rollouts_as_good_as_the_greedy_one_and_those_without_one_are_left_out():
    credit = ReMax(ReMaxConfig()).credit(
        [rollout(0, 1.0, greedy=True), rollout(0, 1.0), rollout(0, 0.0), rollout(1, 1.0)], {}
    )
    assert [s.advantages[1] for s in credit.sequences] == [-1.0]
    assert credit.metrics["without_baseline"] == 1.0
    assert ReMax(ReMaxConfig()).credit([], {}).sequences == []


def test_the_kl_penalty_lowers_both_rewards():
    algorithm = ReMax(ReMaxConfig(kl_coefficient=0.5, kl_place="reward"))
    credit = algorithm.credit([rollout(0, 1.0, greedy=True, kl=0.25), rollout(0, 1.0, kl=0.75)], {})
    # (1 - 0.375) - (1 - 0.125)
    assert [s.advantages[1] for s in credit.sequences] == pytest.approx([-0.25])


def test_the_estimator_has_the_gradient_of_the_expected_reward_whatever_the_baseline():
    # Three actions with rewards 1, 0, 5 under a softmax: the exact gradient of E[r] against the
    # mean of -A log p over all actions, weighed by their probability.
    logits = torch.tensor([0.2, -0.4, 0.1], dtype=torch.float64, requires_grad=True)
    rewards = torch.tensor([1.0, 0.0, 5.0], dtype=torch.float64)
    p = logits.softmax(-1)
    (exact,) = torch.autograd.grad((p * rewards).sum(), logits)
    greedy = rewards[int(logits.argmax())]
    algorithm = ReMax(ReMaxConfig())
    losses = algorithm.token_losses(
        logits.log_softmax(-1)[None],
        torch.zeros(1, 3),
        (rewards - greedy)[None],
        torch.ones(1, 3, dtype=torch.bool),
    ).values[0]
    (estimated,) = torch.autograd.grad((p.detach() * losses).sum(), logits)
    assert (-estimated).tolist() == pytest.approx(exact.tolist())


def test_a_greedy_rollout_alone_teaches_nothing():
    with pytest.raises(ConfigError, match="at least 2"):
        ReMaxConfig(group_size=1)
