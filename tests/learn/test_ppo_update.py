"""A whole PPO update against plain loops, however it is cut and however many learners take it."""

from __future__ import annotations

import copy
from pathlib import Path

import peft
import pytest
import torch
import torch.multiprocessing as multiprocessing
from learn_fakes import tiny_policy
from ppo_fakes import Plain, learner_of, plain_ppo, ppo_rule, random_rollouts, update_of
from torch import nn

from rllm_learn.core.parallel import ProcessGroupRanks

TRUNKS = pytest.mark.parametrize("shares_trunk", [True, False], ids=["head", "own model"])


def make(kind: str) -> nn.Module:
    policy = tiny_policy().double()
    if kind == "full":
        return policy
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = peft.LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM")
        return peft.get_peft_model(policy, config)


def parameters_of(policy: nn.Module, trunk: nn.Module | None, head: nn.Module) -> dict:
    parts = {"policy": policy, "head": head, **({"trunk": trunk} if trunk else {})}
    return {
        f"{part}.{name}": p.detach()
        for part, module in parts.items()
        for name, p in module.named_parameters()
        if p.requires_grad
    }


def assert_equal(found: dict, expected: dict, before: dict, tolerance: float) -> None:
    """The change of each part is the same, as a relative error of all of its weights."""
    assert found.keys() == expected.keys()
    for part in ("policy", "trunk", "head"):
        names = [name for name in expected if name.startswith(part)]
        change = sum((expected[name] - before[name]).square().sum() for name in names)
        error = sum((found[name] - expected[name]).square().sum() for name in names)
        assert not names or change > 1e-6
        assert error <= tolerance**2 * change


def expected_of(kind: str, rule, *, per_turn: bool = False) -> tuple[dict, dict]:
    """Parameters after the plain loop, and before."""
    policy = make(kind)
    shares = rule.critic.shares_trunk
    start = Plain.of(make(kind), shares_trunk=shares)
    before = parameters_of(start.policy, None if shares else start.trunk, start.head)
    plain = plain_ppo(policy, random_rollouts(), rule, per_turn=per_turn)
    return parameters_of(policy, None if shares else plain.trunk, plain.head), before


def parameters_after_update(learner, **settings) -> tuple[dict, dict]:
    figures = update_of(learner, random_rollouts(), **settings)
    return parameters_of(learner.policy, learner.critic.trunk, learner.critic.head), figures


@TRUNKS
@pytest.mark.parametrize(("kind", "unit"), [("full", "tokens"), ("lora", "turns")])
def test_a_step_equals_a_plain_loop_for_any_micro_batch_size(shares_trunk, kind, unit):
    one_step = {"shares_trunk": shares_trunk, "num_epochs": 1, "minibatch": 99}
    expected, before = expected_of(kind, ppo_rule(**one_step), per_turn=unit == "turns")
    for micro_tokens in (1, 40, 100_000):
        learner = learner_of(make(kind), ppo_rule(**one_step, micro_tokens=micro_tokens))
        found, _ = parameters_after_update(learner, gae_over=unit)
        assert_equal(found, expected, before, 1e-6)


@TRUNKS
@pytest.mark.parametrize(("kind", "unit"), [("full", "turns"), ("lora", "tokens")])
def test_epochs_of_minibatches_equal_a_plain_loop(shares_trunk, kind, unit):
    # The model's norms are in single precision, whose rounding Adam's division magnifies.
    rule = ppo_rule(shares_trunk=shares_trunk)
    expected, before = expected_of(kind, rule, per_turn=unit == "turns")
    found, figures = parameters_after_update(learner_of(make(kind), rule), gae_over=unit)
    assert_equal(found, expected, before, 1e-4)
    assert figures["value_clip_fraction"] > 0.05 and figures["clip_fraction"] > 0.05


def updated_on_rank(rank: int, address: str, place: str) -> None:
    """What each of two processes does; runs in a process of its own."""
    torch.set_num_threads(1)
    ranks = ProcessGroupRanks(
        rank=rank, size=2, address=address, device=torch.device("cpu"), timeout_seconds=60
    )
    for shares_trunk in (True, False):
        learner = learner_of(make("full"), ppo_rule(shares_trunk=shares_trunk), ranks=ranks)
        torch.save(parameters_after_update(learner), f"{place}/{shares_trunk}-{rank}.pt")
    ranks.close()


def test_two_learners_equal_the_same_plain_loop(tmp_path: Path):
    address = f"file://{tmp_path}/rendezvous"
    multiprocessing.spawn(updated_on_rank, args=(address, str(tmp_path)), nprocs=2, join=True)
    for shares_trunk in (True, False):
        rule = ppo_rule(shares_trunk=shares_trunk)
        expected, before = expected_of("full", rule)
        _, alone = parameters_after_update(learner_of(make("full"), rule))
        (one, figures), (other, same) = (
            torch.load(tmp_path / f"{shares_trunk}-{rank}.pt") for rank in range(2)
        )
        assert_equal(one, expected, before, 1e-4)
        assert all(torch.equal(one[name], other[name]) for name in one)
        assert figures == same and figures == pytest.approx(alone, rel=1e-4, abs=1e-6)


@TRUNKS
def test_a_restored_learner_goes_on_bit_for_bit_with_its_critic(shares_trunk):
    rule = ppo_rule(shares_trunk=shares_trunk)
    uninterrupted, first = (learner_of(make("lora"), rule) for _ in range(2))
    for seed in range(3):
        update_of(uninterrupted, random_rollouts(seed=seed))
    update_of(first, random_rollouts(seed=0))
    state = copy.deepcopy(first.state_dict())
    second = learner_of(make("lora"), rule)
    second.load_state_dict(state)
    for seed in (1, 2):
        update_of(second, random_rollouts(seed=seed))
    pairs = []
    for learner in (uninterrupted, second):
        assert learner.critic is not None
        pairs.append(parameters_of(learner.policy, learner.critic.trunk, learner.critic.head))
    assert all(torch.equal(pairs[0][name], pairs[1][name]) for name in pairs[0])


@pytest.mark.parametrize("part", ["parameters", "optimizers"])
def test_each_part_of_the_critics_state_matters(part):
    rule = ppo_rule(shares_trunk=False)
    first, crippled, fresh = (learner_of(make("lora"), rule) for _ in range(3))
    update_of(first, random_rollouts())
    state = copy.deepcopy(first.state_dict())
    state["critic"][part] = fresh.state_dict()["critic"][part]
    crippled.load_state_dict(state)
    for learner in (first, crippled):
        update_of(learner, random_rollouts(seed=1))
    assert first.critic is not None and crippled.critic is not None
    assert (first.critic.head.weight - crippled.critic.head.weight).abs().max() > 1e-4


def test_a_state_with_a_critic_goes_to_no_learner_without_one():
    with_critic = learner_of(make("full"), ppo_rule(shares_trunk=True))
    without = type(with_critic)(make("full"), type(with_critic.rule)())
    with pytest.raises(ValueError, match="state is of a learner with a critic"):
        without.load_state_dict(with_critic.state_dict())
    with pytest.raises(ValueError, match="state is of a learner without a critic"):
        with_critic.load_state_dict(without.state_dict())


def test_a_critic_that_is_not_finite_leaves_everything_as_it_was():
    learner = learner_of(make("full"), ppo_rule(shares_trunk=False, num_epochs=1, minibatch=99))
    assert learner.critic is not None
    before = copy.deepcopy(parameters_of(learner.policy, learner.critic.trunk, learner.critic.head))
    figures = update_of(learner, random_rollouts(), vf_loss_coeff=float("inf"))
    after = parameters_of(learner.policy, learner.critic.trunk, learner.critic.head)
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert figures["grad_norm"] == figures["critic_grad_norm"] == 0.0
