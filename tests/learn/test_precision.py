"""Float32 copies of weights that compute in bfloat16."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch
from learn_fakes import UnigramPolicy, random_sequences, sequence, tiny_policy
from torch import nn

from rllm_learn.algorithms import GRPO, GRPOConfig
from rllm_learn.core.batch import TokenBatch
from rllm_learn.core.learner import Learner, UpdateRule
from rllm_learn.core.logprobs import PolicyOutput
from rllm_learn.core.losses import LossSum
from rllm_learn.core.optimizer import LearningRate
from rllm_learn.core.precision import MasterWeights

LOSS = GRPO(GRPOConfig()).loss


def test_steps_too_small_for_bfloat16_add_up():
    # Next to 1 bfloat16 has 1 + 1/128 and 1 - 1/256: a step of 1e-3 alone is rounded away.
    policy = UnigramPolicy([1.0, 1.0]).to(torch.bfloat16)
    rule = UpdateRule(learning_rate=LearningRate(1e-3))
    learner = Learner(policy, rule)
    item = sequence([0, 1], sampled=[1], logprobs=-0.6931)
    learner.update([item], LOSS)
    assert policy.logits.tolist() == [1.0, 1.0]
    assert learner.state_dict()["parameters"]["logits"].tolist() == pytest.approx(
        [0.999, 1.001], abs=1e-6
    )
    for _ in range(5):
        learner.update([item], LOSS)
    assert policy.logits[0].item() == 1 - 1 / 128 or policy.logits[0].item() == 1 - 1 / 256
    assert policy.logits.dtype == torch.bfloat16


def test_gradients_of_micro_batches_add_up_in_float32():
    weight = nn.Parameter(torch.ones(1, dtype=torch.bfloat16))
    masters = MasterWeights({"w": weight})
    for factor in (256.0, 1.0, 1.0):  # in bfloat16 256 + 1 is 256
        (weight * factor).sum().backward()
        assert weight.grad is None
    gradient = masters.parameters["w"].grad
    assert gradient is not None and gradient.dtype == torch.float32 and gradient.item() == 258.0


def test_weights_in_float32_are_their_own():
    weight = nn.Parameter(torch.ones(2))
    masters = MasterWeights({"w": weight})
    assert masters.parameters["w"] is weight
    masters.publish()
    assert weight.tolist() == [1.0, 1.0]


def likelihood(output: PolicyOutput, batch: TokenBatch) -> LossSum:
    """Minus the logprobs of what was sampled: no clipping, at whose edge rounding decides."""
    total = -output.logprobs[batch.action_mask].sum()
    return LossSum(total, float(batch.action_mask.sum()), {})


def test_one_update_is_near_that_in_float32_and_its_rounding_is_what_is_published():
    policy = tiny_policy().to(torch.bfloat16)
    # The same weights, in float32.
    reference = copy.deepcopy(policy).float()
    before = {name: p.detach().clone() for name, p in reference.named_parameters()}
    rule = UpdateRule(learning_rate=LearningRate(1e-3))
    learners = [Learner(policy, rule), Learner(reference, rule)]
    reports = [learner.update(random_sequences(16), likelihood) for learner in learners]
    norms = [report.metrics["grad_norm"] for report in reports]
    assert norms[0] == pytest.approx(norms[1], rel=0.01)
    masters, expected = (learner.state_dict()["parameters"] for learner in learners)
    exported = learners[0].export_weights()
    wrong = moved = 0.0
    for name, start in before.items():
        assert masters[name].dtype == torch.float32
        wrong += float((masters[name] - expected[name]).norm() ** 2)
        moved += float((expected[name] - start).norm() ** 2)
        assert torch.equal(exported[name], masters[name].to(torch.bfloat16))
    # Adam's first step is as long for a small gradient as for a large one, so that rounding turns
    # the signs of small ones.
    assert (wrong / moved) ** 0.5 < 0.3


def test_a_state_keeps_what_bfloat16_cannot():
    rule = UpdateRule(learning_rate=LearningRate(1e-4))
    first = Learner(tiny_policy().to(torch.bfloat16), rule)
    first.update(random_sequences(8), LOSS)
    second = Learner(tiny_policy(seed=9).to(torch.bfloat16), replace(rule))
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    for learner in (first, second):
        learner.update(random_sequences(8, seed=1), LOSS)
    one, other = (learner.state_dict()["parameters"] for learner in (first, second))
    assert all(torch.equal(one[name], other[name]) for name in one)
    pairs = zip(first.policy.parameters(), second.policy.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
