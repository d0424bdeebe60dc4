from __future__ import annotations

import copy
import math
from dataclasses import replace

import peft
import pytest
import torch
from learn_fakes import (
    PROMPTS,
    UnigramPolicy,
    double_policy,
    plain_update,
    random_sequences,
    sequence,
    sequences_of_prompts,
    tiny_policy,
)

from rllm_learn.algorithms import GRPO, GRPOConfig
from rllm_learn.core.learner import Learner, UpdateRule
from rllm_learn.core.losses import LossSum
from rllm_learn.core.optimizer import LearningRate

RULE = UpdateRule(learning_rate=LearningRate(1e-2), max_grad_norm=0.7)
LOSS = GRPO(GRPOConfig()).loss


def lora(policy: torch.nn.Module) -> torch.nn.Module:
    torch.manual_seed(0)
    config = peft.LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM")
    return peft.get_peft_model(policy, config)  # pyright: ignore[reportArgumentType]


def largest_difference(one: torch.nn.Module, other: torch.nn.Module) -> float:
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return max((a - b).abs().max().item() for a, b in pairs)


@pytest.mark.parametrize("micro_tokens", [1, 64, 100_000])
@pytest.mark.parametrize("wrap", [lambda p: p, lora], ids=["full", "lora"])
@pytest.mark.parametrize(
    "sequences",
    [random_sequences(7), sequences_of_prompts(PROMPTS)],
    ids=["apart", "equal prompts"],
)
def test_updates_equal_a_plain_loop_for_any_micro_batch_size(micro_tokens, wrap, sequences):
    # In double precision, because Adam divides by the root of the second moment: where a gradient
    # is nearly 0, float32 rounding alone decides its sign (there one update differs by up to 1e-5).
    policy = wrap(double_policy())
    reference, start = copy.deepcopy(policy), copy.deepcopy(policy)
    rule = UpdateRule(
        learning_rate=LearningRate(1e-2), max_grad_norm=0.7, micro_tokens=micro_tokens
    )
    for _ in range(2):
        Learner(policy, rule).update(sequences, LOSS)
        plain_update(reference, sequences, rule)
    assert largest_difference(policy, start) > 1e-3  # it moved
    assert largest_difference(policy, reference) < 1e-12


def test_the_gradient_of_a_policy_that_can_be_worked_by_hand():
    # p = softmax([0, 0]) = [1/2, 1/2]; one token "1" with advantage 2 sampled at log 1/2:
    # the loss is -2 r, its gradient -2 (onehot - p) = [1, -1]; SGD-like check through the norm.
    policy = UnigramPolicy([0.0, 0.0])
    item = sequence([0, 1], sampled=[1], logprobs=math.log(0.5), advantage=2.0)
    report = Learner(policy, RULE).update([item], LOSS)
    assert report.metrics["grad_norm"] == pytest.approx(math.sqrt(2), rel=1e-6)
    assert report.metrics["loss"] == pytest.approx(-2.0)
    assert report.metrics["entropy"] == pytest.approx(math.log(2))
    assert report.metrics["sampler_gap_max"] == pytest.approx(0.0, abs=1e-7)
    # Adam's first step is the rate times the sign of the gradient.
    assert policy.logits.tolist() == pytest.approx([-1e-2, 1e-2], rel=1e-4)


def test_masked_tokens_get_no_gradient():
    policy = UnigramPolicy([0.0, 0.0, 0.0])
    prompt_of_twos = sequence([2, 2, 2, 1], sampled=[3], logprobs=math.log(1 / 3))
    other_prompt = sequence([0, 0, 0, 1], sampled=[3], logprobs=math.log(1 / 3))
    other = UnigramPolicy([0.0, 0.0, 0.0])
    Learner(policy, RULE).update([prompt_of_twos], LOSS)
    Learner(other, RULE).update([other_prompt], LOSS)
    assert policy.logits.tolist() == other.logits.tolist()


def test_the_gap_to_the_sampler_is_reported():
    policy = UnigramPolicy([0.0, 0.0])
    item = sequence([0, 1, 0], sampled=[1, 2], logprobs=[math.log(0.5) - 0.3, math.log(0.5)])
    report = Learner(policy, RULE).update([item], LOSS)
    assert report.metrics["sampler_gap"] == pytest.approx(0.15, rel=1e-5)
    assert report.metrics["sampler_gap_max"] == pytest.approx(0.3, rel=1e-5)


def test_a_gradient_that_is_not_finite_leaves_the_weights_and_the_optimizer_as_they_were():
    policy = UnigramPolicy([0.0, 0.0])
    learner = Learner(policy, RULE)
    poisoned = sequence([0, 1], sampled=[1], logprobs=-0.7, advantage=math.nan)
    report = learner.update([poisoned], LOSS)
    assert (report.num_optimizer_steps, report.num_skipped_steps) == (0, 1)
    assert policy.logits.tolist() == [0.0, 0.0]
    good = sequence([0, 1], sampled=[1], logprobs=math.log(0.5))
    report = learner.update([good], LOSS)
    assert report.num_skipped_steps == 0
    assert policy.logits.tolist() == pytest.approx([-1e-2, 1e-2], rel=1e-4)


def spoiled(total=1.0, gradient=1.0, count=1.0):
    """A loss whose sum, gradient or count is multiplied by something."""

    def loss(output, batch):
        found = LOSS(output, batch)
        value = found.total.detach() * total
        through = (found.total - found.total.detach()) * gradient
        return LossSum(value + through, found.count * count)

    return loss


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("what", ["total", "gradient", "count"])
def test_no_loss_whatever_it_returns_makes_weights_that_are_not_finite(what, number):
    policy = tiny_policy()
    before = copy.deepcopy(policy.state_dict())
    learner = Learner(policy, UpdateRule(learning_rate=LearningRate(1e-2)))
    batch = random_sequences(3)
    report = learner.update(batch, spoiled(**{what: number}))
    after = policy.state_dict()
    if report.num_skipped_steps:
        assert all(torch.equal(before[name], after[name]) for name in before)
    assert all(bool(torch.isfinite(tensor).all()) for tensor in after.values())
    assert report.num_skipped_steps == 1 or (what == "count" and math.isinf(number))
    assert learner.update(batch, LOSS).num_skipped_steps == 0
    assert all(bool(torch.isfinite(tensor).all()) for tensor in policy.state_dict().values())


def test_a_restored_learner_goes_on_bit_for_bit():
    rule = UpdateRule(
        learning_rate=LearningRate(1e-2, warmup_updates=3), minibatch_sequences=5, num_epochs=2
    )
    batches = [random_sequences(12, seed=s) for s in range(4)]
    uninterrupted = Learner(tiny_policy(), rule)
    for batch in batches:
        uninterrupted.update(batch, LOSS)

    first = Learner(tiny_policy(), rule)
    for batch in batches[:2]:
        first.update(batch, LOSS)
    state = copy.deepcopy(first.state_dict())
    second = Learner(tiny_policy(seed=9), rule)
    second.load_state_dict(state)
    for batch in batches[2:]:
        second.update(batch, LOSS)
    assert largest_difference(uninterrupted.policy, second.policy) == 0.0


@pytest.mark.parametrize("left_out", ["parameters", "optimizers", "num_updates"])
def test_each_part_of_the_state_matters(left_out):
    rule = UpdateRule(learning_rate=LearningRate(1e-2, warmup_updates=3))
    first = Learner(tiny_policy(), rule)
    first.update(random_sequences(12), LOSS)
    state = copy.deepcopy(first.state_dict())
    fresh = Learner(tiny_policy(), rule).state_dict()
    crippled = Learner(tiny_policy(), rule)
    crippled.load_state_dict({**state, left_out: fresh[left_out]})
    first.update(random_sequences(12, seed=1), LOSS)
    crippled.update(random_sequences(12, seed=1), LOSS)
    assert largest_difference(first.policy, crippled.policy) > 1e-4


def test_a_state_may_be_loaded_more_than_once():
    learner = Learner(tiny_policy(), RULE)
    learner.update(random_sequences(4), LOSS)
    state = copy.deepcopy(learner.state_dict())
    results = []
    for _ in range(2):
        again = Learner(tiny_policy(seed=5), RULE)
        again.load_state_dict(state)
        again.update(random_sequences(4, seed=1), LOSS)
        results.append(again.policy)
    assert largest_difference(*results) == 0.0


def test_a_state_of_another_model_is_refused():
    learner = Learner(UnigramPolicy([0.0, 0.0]), RULE)
    with pytest.raises(ValueError, match="other parameters"):
        learner.load_state_dict(Learner(tiny_policy(), RULE).state_dict())
    with pytest.raises(ValueError, match=r"shape \(2,\) here and \(3,\)"):
        learner.load_state_dict(Learner(UnigramPolicy([0.0] * 3), RULE).state_dict())


def test_minibatches_cover_every_sequence_once_an_epoch():
    policy = UnigramPolicy([0.0, 0.0])
    rule = UpdateRule(learning_rate=LearningRate(1e-9), minibatch_sequences=4, num_epochs=3)
    seen = []

    def loss(logprobs, batch):
        seen.extend(batch.token_ids[:, 0].tolist())
        return LOSS(logprobs, batch)

    items = [sequence([i % 2, 1], sampled=[1], advantage=float(i)) for i in range(10)]
    report = Learner(policy, rule).update(items, loss)
    assert report.num_optimizer_steps == 9  # batches of 4, 4 and 2, three times
    assert sorted(seen) == [0] * 15 + [1] * 15


def plain_logprobs(policy: torch.nn.Module, item, temperature: float) -> list[float]:
    ids = torch.tensor([item.token_ids])
    with torch.no_grad():
        rows = (policy(input_ids=ids).logits[0] / temperature).log_softmax(-1)
    return [0.0, *(rows[t - 1, item.token_ids[t]].item() for t in range(1, len(item.token_ids)))]


@pytest.mark.parametrize("micro_tokens", [1, 50, 100_000])
@pytest.mark.parametrize("wrap", [lambda p: p, lora], ids=["full", "lora"])
def test_scores_are_those_of_the_policy_and_of_the_model_as_it_was_loaded(micro_tokens, wrap):
    rule = UpdateRule(learning_rate=LearningRate(1e-2), micro_tokens=micro_tokens, temperature=0.7)
    learner = Learner(wrap(tiny_policy().double()), rule, keeps_reference=True)
    # Those of one prompt stand apart here, and together in a row.
    sequences = sequences_of_prompts([(3, [2, 9, 4]), (5, [7, 1]), (4, [6])])
    learner.update(sequences, LOSS)
    sampled = [item.sampled for item in sequences]
    scores = learner.score(sampled, {"policy", "reference"})
    moved = 0.0
    for item, score in zip(sampled, scores, strict=True):
        now = plain_logprobs(learner.policy, item, 0.7)
        loaded = plain_logprobs(tiny_policy().double(), item, 0.7)
        now = [p * m for p, m in zip(now, item.action_mask, strict=True)]
        loaded = [p * m for p, m in zip(loaded, item.action_mask, strict=True)]
        assert score.policy == pytest.approx(now, abs=1e-12)
        assert score.reference == pytest.approx(loaded, abs=1e-12)
        moved = max(moved, *(abs(a - b) for a, b in zip(now, loaded, strict=True)))
    assert moved > 1e-2
    assert all(p.grad is None for p in learner.policy.parameters())


def test_scores_are_only_those_that_were_asked_for():
    learner = Learner(tiny_policy(), RULE)
    (score,) = learner.score([random_sequences(1)[0].sampled], {"policy"})
    assert score.policy is not None and score.reference is None
    with pytest.raises(ValueError, match="keeps no reference"):
        learner.score([], {"reference"})


def test_a_frozen_reference_neither_learns_nor_is_saved():
    learner = Learner(tiny_policy(), RULE, keeps_reference=True)
    alone = Learner(tiny_policy(), RULE)
    assert learner.state_dict()["parameters"].keys() == alone.state_dict()["parameters"].keys()
    assert learner.export_weights().keys() == alone.export_weights().keys()


def test_an_entropy_bonus_raises_the_entropy():
    policy = UnigramPolicy([2.0, 0.0, 0.0])
    loss = GRPO(GRPOConfig(entropy_coefficient=10.0)).loss
    item = sequence([0, 1], sampled=[1], logprobs=math.log(1 / 3), advantage=1e-3)
    before = Learner(policy, RULE).update([item], loss).metrics["entropy"]
    after = Learner(policy, RULE).update([item], loss).metrics["entropy"]
    assert after > before + 1e-3


def test_stats_are_means_over_tokens_and_the_loss_over_its_count():
    policy = UnigramPolicy([0.0, 0.0])
    item = replace(
        sequence([0, 1, 1], sampled=[1, 2], logprobs=math.log(0.5), advantage=2.0),
        weight=0.25,
        count=0.5,
    )
    report = Learner(policy, RULE).update([item], LOSS)
    assert report.metrics["loss"] == pytest.approx(-2.0 * 2 * 0.25 / 0.5)
    assert report.metrics["entropy"] == pytest.approx(math.log(2))
    # Each token's -0.5 (onehot - p) = [0.25, -0.25]; their sum over 0.5 is [1, -1].
    assert report.metrics["grad_norm"] == pytest.approx(math.sqrt(2))


def test_a_cosine_is_over_the_steps_of_the_run_whatever_each_came_to():
    # Cosine from 1 to 0 over 4 steps of the run: at x it is (1 + cos(pi x / 4)) / 2.
    rate = LearningRate(1.0, decay="cosine", total_updates=4)
    rule = UpdateRule(learning_rate=rate, num_epochs=2, minibatch_sequences=2)
    learner = Learner(UnigramPolicy([0.0, 0.0]), rule)
    used = []
    step = learner.optimizers.step
    learner.optimizers.step = lambda at, peak: (used.append(at), step(at, peak=peak))
    sequences = [sequence([0, 1], sampled=[1]) for _ in range(4)]
    # Two epochs of two minibatches; then a step with half as many; the third learns nothing.
    learner.update(sequences, LOSS, step=0)
    learner.update(sequences[:2], LOSS, step=1)
    report = learner.update(sequences[:2], LOSS, step=3)
    places = [0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 3.0, 3.5]
    assert used == pytest.approx([0.5 + 0.5 * math.cos(math.pi * x / 4) for x in places])
    assert used[4] == pytest.approx((2 + math.sqrt(2)) / 4)
    assert report.metrics["learning_rate"] == pytest.approx(used[-1])
