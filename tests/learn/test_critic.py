"""Values that are packed and read beside logprobs, against one forward pass a sequence."""

from __future__ import annotations

import copy

import peft
import pytest
import torch
import transformers
from learn_fakes import UnigramPolicy, random_sequences, tiny_policy
from test_scoring import make

from rllm_learn.core.batch import collate
from rllm_learn.core.critic import Critic, CriticRule
from rllm_learn.core.learner import Learner, UpdateRule
from rllm_learn.core.optimizer import LearningRate
from rllm_learn.core.scoring import Scorer

# Packed and split; padded, whole logits; and of both kinds without a decoder of their own shape.
FAMILIES = ("qwen3", "gemma2, capped", "granite, scaled", "gpt2", "mamba")
TRUNKS = pytest.mark.parametrize("shares_trunk", [True, False], ids=["head", "own model"])


def lora(policy: torch.nn.Module) -> peft.PeftModel:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = peft.LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM")
        wrapped = peft.get_peft_model(policy, config)
        for name, parameter in wrapped.named_parameters():
            if "lora_B" in name:
                parameter.data.normal_()
    return wrapped


def critic_of(policy: torch.nn.Module, *, shares_trunk: bool) -> Critic:
    """A critic whose head is not 0, and whose own trunk has moved away from the policy's."""
    critic = Critic(policy, shares_trunk=shares_trunk)
    draw = torch.Generator().manual_seed(1)
    for parameter in critic.parameters():
        if parameter.requires_grad:
            noise = torch.randn(parameter.shape, generator=draw).to(parameter.dtype)
            parameter.data.add_(noise * 0.05)
    return critic


def plain_values(trunk: torch.nn.Module, head: torch.nn.Linear, sequences) -> torch.Tensor:
    """Each sequence alone: the head at the position before each sampled id."""
    found = []
    for item in sequences:
        ids = torch.tensor([item.sampled.token_ids])
        states = trunk(input_ids=ids).last_hidden_state[0]
        for position, sampled in enumerate(item.sampled.action_mask):
            if sampled:
                state = states[position - 1].to(head.weight.dtype)
                found.append((state * head.weight[0]).sum() + head.bias[0])
    return torch.stack(found)


@pytest.mark.parametrize("family", FAMILIES)
@TRUNKS
def test_values_are_those_of_each_sequence_alone(family, shares_trunk):
    model = make(family)
    critic = critic_of(model, shares_trunk=shares_trunk)
    sequences = random_sequences(6, vocabulary=97)
    trunk = copy.deepcopy(critic.trunk or model.get_decoder())
    expected = plain_values(trunk, critic.head, sequences)
    batch = collate(sequences)
    scorer = Scorer(model, critic=critic)
    together, alone = scorer(batch).values, scorer.values(batch)
    assert together is not None
    # Where nothing is packed, attention takes its softmax in float32.
    tolerance = 1e-9 if scorer.packs else 1e-4
    for values in (together, alone):
        assert torch.allclose(values[batch.action_mask], expected, rtol=0, atol=tolerance)
        assert not values[~batch.action_mask].any()
    assert expected.abs().max() > 0.01
    assert scorer(batch, with_values=False).values is None


@TRUNKS
def test_a_critic_of_its_own_is_packed_too_and_pads_nothing(shares_trunk):
    model = make("qwen3")
    critic = critic_of(model, shares_trunk=shares_trunk)
    seen = []
    trunk = critic.trunk or model.get_decoder()
    scorer = Scorer(model, critic=critic)
    trunk.register_forward_pre_hook(
        lambda module, inputs, options: seen.append(options["input_ids"].shape), with_kwargs=True
    )
    sequences = random_sequences(6, vocabulary=97)
    scorer.values(collate(sequences))
    assert seen == [(1, sum(map(len, sequences)))]


@TRUNKS
def test_gradients_are_those_of_each_sequence_alone(shares_trunk):
    policy = lora(make("qwen3"))
    critic = critic_of(policy, shares_trunk=shares_trunk)
    other = copy.deepcopy(critic)
    reference = copy.deepcopy(policy)
    trunk = other.trunk or reference.get_base_model().get_decoder()
    sequences = random_sequences(6, vocabulary=97)
    values = Scorer(policy, critic=critic)(collate(sequences)).values
    assert values is not None
    values.square().sum().backward()
    plain_values(trunk, other.head, sequences).square().sum().backward()
    pairs = [
        *zip(policy.parameters(), reference.parameters(), strict=True),
        *zip(critic.parameters(), other.parameters(), strict=True),
    ]
    compared = 0
    for one, expected in pairs:
        assert (one.grad is None) == (expected.grad is None)
        if one.grad is not None and expected.grad is not None:
            scale = expected.grad.abs().max().clamp(min=1e-6)
            assert ((one.grad - expected.grad).abs().max() / scale).item() < 1e-9
            compared += 1
    assert compared > 10
    # A model of its own leaves the policy's weights without a gradient, and the other way round.
    assert any(p.grad is not None for p in policy.parameters()) is shares_trunk


def test_nothing_is_expected_before_anything_was_learned():
    batch = collate(random_sequences(3))
    policy = tiny_policy()
    for shares_trunk in (True, False):
        scorer = Scorer(policy, critic=Critic(policy, shares_trunk=shares_trunk))
        assert not scorer.values(batch).any()


def test_with_adapters_a_critic_of_its_own_shares_the_frozen_weights():
    policy = lora(make("qwen3"))
    trunk = Critic(policy, shares_trunk=False).trunk
    assert trunk is not None
    frozen = {id(p) for p in policy.parameters() if not p.requires_grad}
    learned = {id(p) for p in policy.parameters() if p.requires_grad}
    for name, parameter in trunk.named_parameters():
        assert (id(parameter) in frozen) is ("lora_" not in name)
        assert id(parameter) not in learned
    assert sum(p.requires_grad for p in trunk.parameters()) == len(learned)


def test_a_head_of_a_policy_in_half_precision_is_in_single():
    policy = tiny_policy().bfloat16()
    critic = Critic(policy, shares_trunk=True)
    assert critic.head.weight.dtype == torch.float32
    values = Scorer(policy, critic=critic).values(collate(random_sequences(2)))
    assert values.dtype == torch.float32


def test_gradient_checkpointing_keeps_the_gradients_of_a_critic_of_its_own():
    gradients = []
    for checkpoints in (False, True):
        policy = tiny_policy().double()
        if checkpoints:
            policy.gradient_checkpointing_enable({"use_reentrant": False})
            policy.enable_input_require_grads()
            policy.train()
        critic = critic_of(policy, shares_trunk=False)
        values = Scorer(policy, critic=critic)(collate(random_sequences(4))).values
        assert values is not None
        values.sum().backward()
        gradients.append([p.grad for p in critic.parameters() if p.grad is not None])
    assert len(gradients[0]) == len(gradients[1]) > 10
    assert all(torch.allclose(a, b, atol=1e-12) for a, b in zip(*gradients, strict=True))


def test_a_policy_without_hidden_states_has_no_critic():
    with pytest.raises(ValueError, match=r"UnigramPolicy has no get_decoder\(\)"):
        Critic(UnigramPolicy([0.0, 0.0]), shares_trunk=True)


def test_a_learner_scores_values_beside_logprobs_and_without_them():
    rule = UpdateRule(critic=CriticRule(shares_trunk=True, learning_rate=LearningRate(1e-2)))
    learner = Learner(tiny_policy().double(), rule, keeps_reference=True)
    assert learner.critic is not None
    learner.critic.head.weight.data.fill_(0.3)
    sampled = [item.sampled for item in random_sequences(5)]
    together = learner.score(sampled, {"policy", "values", "reference"})
    alone = learner.score(sampled, {"values"})
    for item, both, one in zip(sampled, together, alone, strict=True):
        assert both.values == pytest.approx(one.values) and one.policy is None
        assert both.policy is not None and both.policy == pytest.approx(both.reference)
        assert one.values is not None and len(one.values) == len(item.token_ids)
        assert [bool(v) for v in one.values] == list(item.action_mask)
    with pytest.raises(ValueError, match="there is no critic"):
        Learner(tiny_policy(), UpdateRule()).score(sampled, {"values"})


def test_a_critic_is_neither_published_nor_saved_with_the_policy(tmp_path):
    rule = UpdateRule(critic=CriticRule(shares_trunk=True, learning_rate=LearningRate(1e-2)))
    learner, alone = Learner(tiny_policy(), rule), Learner(tiny_policy(), UpdateRule())
    assert learner.export_weights().keys() == alone.export_weights().keys()
    learner.policy.save_pretrained(tmp_path)
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    assert again.state_dict().keys() == alone.policy.state_dict().keys()
