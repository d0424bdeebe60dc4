from __future__ import annotations

import pytest
import torch
from learn_fakes import random_sequences
from transformers import AutoModelForCausalLM

from rllm_agents.models import TINY
from rllm_learn.algorithms import GRPO, GRPOConfig
from rllm_learn.core.learner import Learner, UpdateRule
from rllm_learn.core.model import PolicySpec, load_policy, merged_weights, trainable_parameters
from rllm_learn.core.optimizer import LearningRate

IDS = torch.tensor([[1, 40, 50, 60, 70, 2]])


def trained(spec: PolicySpec) -> torch.nn.Module:
    policy = load_policy(spec)
    rule = UpdateRule(learning_rate=LearningRate(1e-2))
    Learner(policy, rule).update(random_sequences(8, vocabulary=300), GRPO(GRPOConfig()).loss)
    return policy


def test_a_new_adapter_leaves_the_model_as_it_was_loaded():
    base = AutoModelForCausalLM.from_pretrained(TINY)
    policy = load_policy(PolicySpec(TINY))
    assert torch.equal(base(input_ids=IDS).logits, policy(input_ids=IDS).logits)


def test_lora_trains_two_matrices_for_each_linear_layer_but_the_head():
    names = trainable_parameters(load_policy(PolicySpec(TINY, lora_rank=4)))
    assert len(names) == 2 * 7 * 2  # layers x linear layers x (A, B)
    assert all("lora_" in name for name in names)
    full = trainable_parameters(load_policy(PolicySpec(TINY, lora_rank=0)))
    assert "model.embed_tokens.weight" in full


@pytest.mark.parametrize("lora_rank", [0, 8])
def test_a_plain_model_with_the_merged_weights_is_the_policy(lora_rank):
    policy = trained(PolicySpec(TINY, lora_rank=lora_rank))
    plain = AutoModelForCausalLM.from_pretrained(TINY)
    before = plain(input_ids=IDS).logits
    weights = dict(merged_weights(policy))
    missing = plain.load_state_dict(weights, strict=False)
    assert missing.unexpected_keys == []
    after = plain(input_ids=IDS).logits
    assert (after - before).abs().max().item() > 1e-2
    # Merging adds the same numbers in another order.
    assert (after - policy(input_ids=IDS).logits).abs().max().item() < 1e-4


def test_merged_weights_share_no_memory_with_the_policy():
    policy = load_policy(PolicySpec(TINY, lora_rank=0))
    weights = dict(merged_weights(policy))
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.zero_()
    assert weights["model.embed_tokens.weight"].abs().max().item() > 0


def test_the_seed_draws_the_adapter_and_leaves_the_global_generator_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    one = trainable_parameters(load_policy(PolicySpec(TINY, seed=1)))
    assert torch.equal(torch.rand(3), expected)
    same = trainable_parameters(load_policy(PolicySpec(TINY, seed=1)))
    other = trainable_parameters(load_policy(PolicySpec(TINY, seed=2)))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not all(torch.equal(one[name], other[name]) for name in one)


def test_checkpointing_gives_the_same_gradients():
    one, other = (trained(PolicySpec(TINY, gradient_checkpointing=flag)) for flag in (False, True))
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    assert max((a - b).abs().max().item() for a, b in pairs) < 1e-5
