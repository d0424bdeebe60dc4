from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from learn_fakes import random_sequences, summed_gradients, tiny_policy

from rllm_learn.algorithms import DPO, DPOConfig
from rllm_learn.algorithms.dpo import pairs_by_reward
from rllm_learn.core.batch import Rollout, SampledSequence, Scores
from rllm_learn.core.learner import Learner, UpdateRule
from rllm_learn.errors import ConfigError


def rollout(group: int, reward: float, gain: float = 0.0, role: str = "") -> Rollout:
    """Two sampled tokens whose logprobs exceed the reference's by `gain` altogether."""
    scores = Scores((0.0, -1.0, -1.0), (0.0, -1.0 - gain, -1.0))
    sequence = SampledSequence((1, 2, 3), (False, True, True), (0.0, -1.0, -1.0), scores=scores)
    return Rollout(group, reward, (sequence,), role=role)


def rewards(pairs):
    return [(chosen.group, chosen.reward, rejected.reward) for chosen, rejected in pairs]


def test_the_best_is_paired_with_the_worst_of_the_same_task():
    group = [rollout(0, r) for r in (0.2, 0.9, 0.5, 0.1, 0.5)] + [rollout(1, 1.0)]
    assert rewards(pairs_by_reward(group)) == [(0, 0.9, 0.1), (0, 0.5, 0.2)]
    assert rewards(pairs_by_reward(group, max_per_task=1)) == [(0, 0.9, 0.1)]


def test_equal_rewards_other_roles_and_rollouts_without_tokens_make_no_pair():
    assert pairs_by_reward([rollout(0, 1.0), rollout(0, 1.0)]) == []
    assert pairs_by_reward([rollout(0, 1.0, role="a"), rollout(0, 0.0, role="b")]) == []
    assert pairs_by_reward([rollout(0, 1.0), Rollout(0, 0.0, ())]) == []
    of_task = [rollout(0, r) for r in (1.0, 1.0, 1.0, 0.0)]
    assert rewards(pairs_by_reward(of_task)) == [(0, 1.0, 0.0)]


def test_the_pull_is_up_for_the_chosen_and_down_for_the_rejected():
    credit = DPO(DPOConfig(beta=0.5)).credit([rollout(0, 0.0, 2.0), rollout(0, 1.0, 0.0)], {})
    # The margin is 0 - 2: the pull is 0.5 sigmoid(0.5 * 2) = 0.3655293.
    chosen, rejected = credit.sequences
    assert chosen.advantages[1:] == pytest.approx([0.3655293] * 2)
    assert rejected.advantages[1:] == pytest.approx([-0.3655293] * 2)
    assert chosen.count == rejected.count == 0.5
    assert credit.metrics == pytest.approx(
        {"pairs": 1.0, "preference_loss": 1.3132617, "preferred": 0.0, "margin": -1.0}
    )


def test_without_a_pair_nothing_is_learned():
    credit = DPO(DPOConfig()).credit([rollout(0, 1.0), rollout(1, 0.0)], {})
    assert credit.sequences == []
    assert credit.metrics == {"pairs": 0.0}


def log_probability(policy, rollout: Rollout) -> torch.Tensor:
    """Log probability of everything sampled in a rollout, position by position."""
    total = torch.zeros(())
    for sampled in rollout.sequences:
        logits = policy(input_ids=torch.tensor([sampled.token_ids])).logits[0]
        for t, is_sampled in enumerate(sampled.action_mask):
            if is_sampled:
                total = total + torch.log_softmax(logits[t - 1], -1)[sampled.token_ids[t]]
    return total


@pytest.mark.parametrize("micro_tokens", [1, 64, 10_000])
def test_an_update_has_the_gradient_of_the_papers_loss(micro_tokens):
    beta = 0.3
    drawn = [item.sampled for item in random_sequences(10)]
    parts = [(drawn[0],), (drawn[1],), (drawn[2], drawn[3]), (drawn[4],), (drawn[5],), (drawn[6],)]
    played = [Rollout(i // 2, 1.0 - i % 2, part) for i, part in enumerate(parts)]

    policy, reference = tiny_policy(1), tiny_policy(0)
    expected = deepcopy(policy)
    losses = []
    for chosen, rejected in zip(played[::2], played[1::2], strict=True):
        with torch.no_grad():
            base = log_probability(reference, chosen) - log_probability(reference, rejected)
        margin = log_probability(expected, chosen) - log_probability(expected, rejected) - base
        losses.append(-torch.log(1 / (1 + torch.exp(-beta * margin))))
    loss = torch.stack(losses).mean()
    loss.backward()

    # A learner keeps as its reference the model that it was made with: the other weights are then
    # put in their place.
    learner = Learner(
        deepcopy(reference),
        UpdateRule(micro_tokens=micro_tokens),
        keeps_reference=True,
    )
    learner.policy.load_state_dict(policy.state_dict())
    algorithm = DPO(DPOConfig(beta=beta))
    sequences = [s for r in played for s in r.sequences]
    scores = iter(learner.score(sequences, algorithm.scores))
    scored = [
        replace(r, sequences=tuple(replace(s, scores=next(scores)) for s in r.sequences))
        for r in played
    ]
    credit = algorithm.credit(scored, {})
    assert credit.metrics["preference_loss"] == pytest.approx(loss.item(), rel=1e-4)
    gradients = summed_gradients(learner.policy)
    learner.update(credit.sequences, algorithm.loss)
    for name, parameter in expected.named_parameters():
        # Sums over three pairs, of which the loss is the mean.
        assert torch.allclose(gradients[name] / 3, parameter.grad, atol=1e-5), name


@pytest.mark.parametrize("settings", [{"group_size": 1}, {"beta": 0.0}, {"max_pairs_per_task": 0}])
def test_settings_that_cannot_work_are_refused(settings):
    with pytest.raises(ConfigError, match=f"algorithm.{next(iter(settings))}"):
        DPOConfig(**settings)
