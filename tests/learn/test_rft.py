from __future__ import annotations

import pytest
import torch
from learn_fakes import UnigramPolicy

from rllm_learn.algorithms import RFT, RFTConfig
from rllm_learn.core.batch import Rollout, SampledSequence
from rllm_learn.core.learner import Learner, UpdateRule
from rllm_learn.core.optimizer import LearningRate
from rllm_learn.errors import ConfigError


def rollout(group: int, reward: float, *ids: int) -> Rollout:
    """A rollout that sampled these ids after a prompt of id 0."""
    mask = (False, *[True] * len(ids))
    return Rollout(group, reward, (SampledSequence((0, *ids), mask, (-0.0,) * len(mask)),))


def imitated(credit):
    return [sequence.sampled.token_ids[1:] for sequence in credit.sequences]


def test_only_what_is_right_is_imitated_with_advantage_1():
    played = [rollout(0, 1.0, 1), rollout(0, 0.9, 2), rollout(1, 0.0, 3), rollout(1, 2.0, 4, 5)]
    credit = RFT(RFTConfig()).credit(played, {})
    assert imitated(credit) == [(1,), (4, 5)]
    assert {a for s in credit.sequences for a in s.advantages} == {1.0}
    assert credit.metrics == {"kept": 0.5, "solved_tasks": 1.0}
    lower = RFT(RFTConfig(min_reward=0.5)).credit(played, {})
    assert imitated(lower) == [(1,), (2,), (4, 5)]


def test_equal_answers_of_one_task_count_once_and_easy_tasks_can_be_bounded():
    played = [
        *(rollout(0, 1.0, i) for i in (1, 1, 2, 3)),
        rollout(1, 1.0, 1),
        rollout(2, 0.0, 1),
    ]
    assert imitated(RFT(RFTConfig()).credit(played, {})) == [(1,), (2,), (3,), (1,)]
    every = RFT(RFTConfig(distinct=False))
    assert imitated(every.credit(played, {})) == [(1,), (1,), (2,), (3,), (1,)]
    bounded = RFT(RFTConfig(max_kept_per_task=2)).credit(played, {})
    assert imitated(bounded) == [(1,), (2,), (1,)]
    assert bounded.metrics == {"kept": 0.5, "solved_tasks": pytest.approx(2 / 3)}


def test_nothing_right_is_nothing_to_learn():
    assert RFT(RFTConfig()).credit([rollout(0, 0.0, 1)], {}).sequences == []
    assert RFT(RFTConfig()).credit([], {}).metrics == {"kept": 0.0, "solved_tasks": 0.0}


def test_the_loss_is_the_mean_of_minus_log_p_over_the_kept_tokens():
    # A policy of three equal ids: every token costs log 3, and the gradient of the mean over the
    # tokens 1, 1, 2 with respect to the logits is softmax - shares = 1/3 - (0, 2/3, 1/3).
    algorithm = RFT(RFTConfig())
    played = [rollout(0, 1.0, 1, 1), rollout(0, 0.0, 0, 0), rollout(1, 1.0, 2)]
    policy = UnigramPolicy([0.0, 0.0, 0.0])
    rule = UpdateRule(LearningRate(1e-3), max_grad_norm=1e9)
    credit = algorithm.credit(played, {})
    report = Learner(policy, rule).update(credit.sequences, algorithm.loss)
    assert report.metrics["loss"] == pytest.approx(torch.tensor(3.0).log().item(), rel=1e-5)
    exact = torch.tensor([1 / 3, -1 / 3, 0.0])
    assert report.metrics["grad_norm"] == pytest.approx(exact.norm().item(), rel=1e-5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rollouts_per_task": 0}, "rollouts_per_task"),
        ({"max_kept_per_task": 9}, "max_kept_per_task"),
        ({"kl_coefficient": 0.1, "kl_place": "reward"}, "does nothing in rft"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        RFTConfig(**settings)
