from __future__ import annotations

import copy
import dataclasses

import pytest
import torch
from learn_fakes import random_sequences, tiny_policy

from rllm_learn.core.learner import Learner, UpdateRule
from rllm_learn.core.learner_set import LearnerPlan, LearnerSet, make_learners, share_frozen
from rllm_learn.core.losses import LossSum


def loss(output, batch):
    values = -batch.advantages * output.logprobs
    return LossSum(values.masked_fill(~batch.action_mask, 0.0).sum(), batch.count, {})


def learner(seed=0):
    return Learner(tiny_policy(seed), UpdateRule())


def of(adapter, sequences):
    return [
        dataclasses.replace(s, sampled=dataclasses.replace(s.sampled, adapter=adapter))
        for s in sequences
    ]


def weights(one):
    return {name: p.detach().clone() for name, p in one.parameters.items()}


def equal(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


def test_each_policy_learns_from_its_own_sequences_alone():
    red, blue = random_sequences(6, seed=1), random_sequences(5, seed=2)
    together = LearnerSet({"red": learner(), "blue": learner()}, LearnerPlan(names=("red", "blue")))
    mixed = [s for pair in zip(of("red", red), of("blue", blue), strict=False) for s in pair]
    report = together.update([*mixed, of("red", red)[5]], loss)
    assert report.num_optimizer_steps == 2
    for name, own in (("red", red), ("blue", blue)):
        alone = learner()
        figures = alone.update(own, loss).metrics
        learned = weights(together.learners[name])
        for key, parameter in weights(alone).items():
            torch.testing.assert_close(learned[key], parameter, rtol=1e-4, atol=1e-6)
        assert report.metrics[f"{name}/loss"] == pytest.approx(figures["loss"], rel=1e-4)


def test_a_policy_without_sequences_stays_as_it_is():
    together = LearnerSet({"red": learner(), "blue": learner()}, LearnerPlan(names=("red", "blue")))
    before = weights(together.learners["blue"])
    together.update(of("red", random_sequences(3)), loss)
    assert equal(weights(together.learners["blue"]), before)
    assert not equal(weights(together.learners["red"]), before)


def test_scores_are_each_sequences_own_policys_in_order():
    together = LearnerSet(
        {"red": learner(1), "blue": learner(2)}, LearnerPlan(names=("red", "blue"))
    )
    plain = [s.sampled for s in random_sequences(4)]
    asked = [
        dataclasses.replace(s, adapter=name)
        for s, name in zip(plain, ("blue", "red", "", "blue"), strict=True)
    ]
    scores = together.score(asked, {"policy"})
    red, blue = (together.learners[n].score(plain, {"policy"}) for n in ("red", "blue"))
    for score, wanted in zip(scores, (blue[0], red[1], red[2], blue[3]), strict=True):
        assert score.policy == pytest.approx(wanted.policy, abs=1e-5)


def test_copies_are_taken_every_so_many_updates_and_stay_between():
    plan = LearnerPlan(snapshots=("policy",), snapshot_every=2)
    one = LearnerSet({"policy": learner()}, plan)
    batch = random_sequences(4)

    def exported(name):
        own = one.export_weights()
        return {k.partition(":")[2]: t for k, t in own.items() if k.startswith(f"{name}:")}

    one.update(batch, loss)
    assert exported("policy@snapshot") == {}
    one.update(batch, loss)
    second = exported("policy")
    assert equal(exported("policy@snapshot"), second)
    one.update(batch, loss)
    assert equal(exported("policy@snapshot"), second)
    assert not equal(exported("policy"), second)
    one.update(batch, loss)
    assert equal(exported("policy@snapshot"), exported("policy"))


def test_what_is_restored_goes_on_as_what_was_saved():
    plan = LearnerPlan(names=("red", "blue"), snapshots=("red",), snapshot_every=2)

    def fresh():
        return LearnerSet({"red": learner(1), "blue": learner(2)}, plan)

    def batch(seed):
        return [*of("red", random_sequences(3, seed=seed)), *of("blue", random_sequences(3))]

    one = fresh()
    for seed in range(3):
        one.update(batch(seed), loss)
    other = fresh()
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    for kept in (one, other):
        kept.update(batch(7), loss)
    first, second = one.export_weights(), other.export_weights()
    assert first.keys() == second.keys()
    assert equal(first, second)


def test_a_state_of_other_policies_is_refused():
    one = LearnerSet({"red": learner()}, LearnerPlan(names=("red",)))
    with pytest.raises(ValueError, match="blue"):
        LearnerSet({"blue": learner()}, LearnerPlan(names=("blue",))).load_state_dict(
            one.state_dict()
        )
    with pytest.raises(ValueError, match="one"):
        one.load_state_dict(learner().state_dict())


def test_one_policy_without_copies_needs_no_set():
    assert isinstance(make_learners(lambda other: learner(), LearnerPlan()), Learner)


def test_frozen_weights_are_held_once_and_trained_ones_are_each_policys_own():
    one, other = tiny_policy(), tiny_policy()
    for policy in (one, other):
        for name, parameter in policy.named_parameters():
            parameter.requires_grad_("norm" in name)
    share_frozen(other, one)
    held = dict(one.named_parameters())
    for name, parameter in other.named_parameters():
        shares = parameter.data_ptr() == held[name].data_ptr()
        assert shares == ("norm" not in name)
