"""The loss of every algorithm against a plain loop, and what all of them share."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.multiprocessing as multiprocessing
from learn_fakes import random_sequences, tiny_policy

from rllm_learn.algorithms import ALGORITHMS, GRPO, GRPOConfig, make_algorithm
from rllm_learn.core.batch import Rollout, SampledSequence, Scores, TokenSequence, collate
from rllm_learn.core.learner import Learner, UpdateRule
from rllm_learn.core.logprobs import PolicyOutput
from rllm_learn.core.optimizer import LearningRate
from rllm_learn.core.parallel import ProcessGroupRanks
from rllm_learn.errors import ConfigError

CASES = {
    "grpo": ("grpo", {"clip_high": 0.3}),
    "dr_grpo": ("dr_grpo", {"length_constant": 7}),
    "dapo": ("dapo", {"max_length": 90}),
    "gspo": ("gspo", {"clip_low": 0.3, "clip_high": 0.4}),
    "cispo": ("cispo", {"max_ratio": 1.3}),
    "rloo": ("rloo", {}),
    "remax": ("remax", {}),
    "reinforce": ("reinforce", {}),
    "reinforce_plus_plus": ("reinforce_plus_plus", {}),
    "kl k3": ("grpo", {"kl_coefficient": 0.3}),
    "kl k2": ("rloo", {"kl_coefficient": 0.3, "kl_estimator": "k2"}),
    "entropy": ("grpo", {"entropy_coefficient": 0.2}),
    "truncated": ("grpo", {"importance": "truncated"}),
    "masked": ("reinforce", {"importance": "masked", "importance_cap": 3.0}),
    "truncated sequences": (
        "gspo",
        {"importance": "truncated", "importance_level": "sequence", "importance_cap": 1.5},
    ),
    "everything": (
        "cispo",
        {"kl_coefficient": 0.1, "entropy_coefficient": 0.05, "importance": "masked"},
    ),
}


def configured(case: str):
    name, settings = CASES[case]
    return make_algorithm(ALGORITHMS[name][0](**settings))


def scored_sequences(count: int) -> list[TokenSequence]:
    """Random sequences with weights, counts and scores that float32 holds exactly."""
    draw = torch.Generator().manual_seed(7)
    result = []
    for index, item in enumerate(random_sequences(count)):
        noise = torch.randn(2, len(item), generator=draw) * 0.5
        sampler = torch.tensor(item.sampled.logprobs)
        policy, reference = (sampler + row for row in noise)
        scores = Scores(tuple(policy.tolist()), tuple(reference.tolist()))
        result.append(
            replace(
                item,
                sampled=replace(item.sampled, scores=scores),
                weight=(0.5, 1.25, 0.375)[index % 3],
                count=(1.5, 0.25)[index % 2],
            )
        )
    return result


def own_loss(name: str, settings: dict, logp, old: list[float], advantages: list[float]) -> list:
    """The policy's own loss at each sampled token of one sequence, from the papers."""
    ratios = [(new - before).exp() for new, before in zip(logp, old, strict=True)]
    if name == "gspo":
        mean = sum(new - before for new, before in zip(logp, old, strict=True)) / len(logp)
        ratios = [mean.exp()] * len(logp)
    if name in ("rloo", "remax", "reinforce"):
        return [-a * new for a, new in zip(advantages, logp, strict=True)]
    if name == "cispo":
        weights = [min(r.item(), settings["max_ratio"]) for r in ratios]
        return [-w * a * new for w, a, new in zip(weights, advantages, logp, strict=True)]
    low = 1 - settings.get("clip_low", 0.2)
    high = 1 + settings.get("clip_high", 0.28 if name == "dapo" else 0.2)
    return [
        -torch.minimum(r * a, r.clamp(low, high) * a)
        for r, a in zip(ratios, advantages, strict=True)
    ]


def plain_weights(settings: dict, policy: list[float], sampler: list[float]) -> list[float]:
    """Importance weights of the sampled tokens of one sequence."""
    kind, cap = settings.get("importance"), settings.get("importance_cap", 2.0)
    if kind is None:
        return [1.0] * len(policy)
    gaps = [p - s for p, s in zip(policy, sampler, strict=True)]
    if settings.get("importance_level") == "sequence":
        gaps = [sum(gaps)] * len(gaps)
    weights = [math.exp(gap) for gap in gaps]
    if kind == "truncated":
        return [min(weight, cap) for weight in weights]
    return [weight if 1 / cap <= weight <= cap else 0.0 for weight in weights]


def plain_sequence_loss(case: str, policy: torch.nn.Module, item: TokenSequence) -> torch.Tensor:
    """Weighted loss of one sequence, position by position."""
    name, settings = CASES[case]
    settings = {"max_ratio": 5.0, **settings}
    sampled = item.sampled
    at = [t for t, is_sampled in enumerate(sampled.action_mask) if is_sampled]
    logits = policy(input_ids=torch.tensor([sampled.token_ids])).logits[0]
    rows = [torch.log_softmax(logits[t - 1], dim=-1) for t in at]
    logp = [row[sampled.token_ids[t]] for row, t in zip(rows, at, strict=True)]
    sampler = [sampled.logprobs[t] for t in at]
    before = [sampled.scores.policy[t] for t in at]
    weights = plain_weights(settings, before, sampler)
    advantages = [item.advantages[t] * w for t, w in zip(at, weights, strict=True)]
    old = before if "importance" in settings else sampler
    total = sum(own_loss(name, settings, logp, old, advantages))
    for row, new, t in zip(rows, logp, at, strict=True):
        if "kl_coefficient" in settings and name != "reinforce_plus_plus":
            d = new - sampled.scores.reference[t]
            kl = d**2 / 2 if settings.get("kl_estimator") == "k2" else torch.exp(-d) + d - 1
            total = total + settings["kl_coefficient"] * kl
        entropy = -(row.exp() * row).sum()
        total = total - settings.get("entropy_coefficient", 0.0) * entropy
    return item.weight * total


def plain_gradients(case: str, policy: torch.nn.Module, sequences: list[TokenSequence]):
    """Gradients of the sum of all losses over the sum of all counts, clipped to norm 0.7."""
    losses = [plain_sequence_loss(case, policy, item) for item in sequences]
    (sum(losses) / sum(item.count or 0.0 for item in sequences)).backward()
    torch.nn.utils.clip_grad_norm_(policy.parameters(), 0.7)
    return {n: p.grad for n, p in policy.named_parameters() if p.grad is not None}


class KeptGradients(Learner):
    """A learner that takes no step but keeps the gradients that it would have taken it by."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.gradients = {}
        self.optimizers.step = self._keep

    def _keep(self, *_args, **_kwargs):
        self.gradients = {n: p.grad.clone() for n, p in self.parameters.items()}


def kept(sequences, loss, *, micro_tokens=64, ranks=None) -> dict[str, torch.Tensor]:
    rule = UpdateRule(
        learning_rate=LearningRate(1e-2), max_grad_norm=0.7, micro_tokens=micro_tokens
    )
    learner = KeptGradients(tiny_policy().double(), rule, ranks=ranks)
    learner.update(sequences, loss)
    return learner.gradients


def assert_same(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert found.keys() == expected.keys()
    scale = max(gradient.norm() for gradient in expected.values())
    assert scale > 1e-3
    for name, gradient in expected.items():
        # Weights and what importance weights are made of are float32.
        assert (found[name] - gradient).norm() < 3e-7 * scale


@pytest.mark.parametrize("case", CASES)
def test_gradients_equal_a_plain_loop_however_the_batch_is_cut(case):
    sequences = scored_sequences(6)
    expected = plain_gradients(case, tiny_policy().double(), sequences)
    for micro_tokens in (1, 50, 100_000):
        found = kept(sequences, configured(case).loss, micro_tokens=micro_tokens)
        assert_same(found, expected)


def gradients_on_rank(rank: int, address: str, place: str) -> None:
    """What each of two processes does; runs in a process of its own."""
    torch.set_num_threads(1)
    ranks = ProcessGroupRanks(
        rank=rank, size=2, address=address, device=torch.device("cpu"), timeout_seconds=60
    )
    found = {c: kept(scored_sequences(5), configured(c).loss, ranks=ranks) for c in CASES}
    torch.save(found, f"{place}/{rank}.pt")
    ranks.close()


def test_gradients_of_every_loss_do_not_depend_on_the_number_of_learners(tmp_path: Path):
    address = f"file://{tmp_path}/rendezvous"
    multiprocessing.spawn(gradients_on_rank, args=(address, str(tmp_path)), nprocs=2, join=True)
    first, second = (torch.load(tmp_path / f"{rank}.pt") for rank in range(2))
    for case in CASES:
        alone = kept(scored_sequences(5), configured(case).loss)
        assert_same(first[case], alone)
        for name in alone:
            assert torch.equal(first[case][name], second[case][name])


@pytest.mark.parametrize("case", CASES)
def test_what_was_not_sampled_changes_nothing_however_extreme_it_is(case):
    (item,) = scored_sequences(1)
    logits = torch.randn(1, len(item), 32, generator=torch.Generator().manual_seed(0))
    extreme = logits.clone()
    scores = item.sampled.scores
    policy, reference = list(scores.policy or ()), list(scores.reference or ())
    for t, is_sampled in enumerate(item.sampled.action_mask):
        if not is_sampled and t > 0:
            # Its token's logprob becomes about -1e4, whose ratio and KL overflow.
            extreme[0, t - 1, item.sampled.token_ids[t]] = -1e4
            policy[t], reference[t] = -math.inf, math.inf
    hostile = replace(
        item, sampled=replace(item.sampled, scores=Scores(tuple(policy), tuple(reference)))
    )
    results = []
    for values, sequence in ((logits, item), (extreme, hostile)):
        values.requires_grad_(True)
        batch = collate([sequence])
        loss = configured(case).loss(PolicyOutput.of_logits(values, batch.token_ids), batch)
        loss.total.backward()
        assert values.grad is not None and values.grad.isfinite().all()
        results.append([loss.total.item(), *(stat.item() for stat in loss.stats.values())])
    assert results[0] == pytest.approx(results[1], rel=1e-6)
    assert all(map(math.isfinite, results[1]))


def rollout(group: int, reward: float, *lengths: int, **fields) -> Rollout:
    """A rollout of sequences with as many sampled tokens, after a prompt of two."""
    sequences = tuple(
        SampledSequence((1,) * (n + 2), (False,) * 2 + (True,) * n, (0.0,) * 2 + (-1.0,) * n)
        for n in lengths
    )
    return Rollout(group, reward, sequences, **fields)


def credit_of(rollouts, **settings):
    return GRPO(GRPOConfig(divide_by_std=False, **settings)).credit(rollouts, {}).sequences


# Two rollouts of one group; the first has two sequences, of 3 and 1 sampled tokens.
PAIR = [rollout(0, 1.0, 3, 1), rollout(0, 0.0, 2)]


@pytest.mark.parametrize(
    ("settings", "weights", "counts"),
    [
        ({}, [1, 1, 1], [3, 1, 2]),
        ({"aggregation": "sequence_mean"}, [0.25, 0.25, 0.5], [0.75, 0.25, 1]),
        (
            {"aggregation": "sequence_sum", "length_constant": 10},
            [0.1, 0.1, 0.1],
            [0.75, 0.25, 1],
        ),
    ],
)
def test_the_weights_of_each_way_to_aggregate(settings, weights, counts):
    sequences = credit_of(PAIR, **settings)
    assert [s.weight for s in sequences] == pytest.approx(weights)
    assert [collate([s]).count for s in sequences] == pytest.approx(counts)


def test_the_divisor_of_sequence_sum_counts_rollouts_that_teach_nothing():
    uniform = [rollout(1, 1.0, 5), rollout(1, 1.0, 5)]
    settings = {"aggregation": "sequence_sum", "length_constant": 10}
    sequences = credit_of([*PAIR, *uniform], **settings)
    assert sum(collate([s]).count for s in sequences) == pytest.approx(4.0)
    assert sum(collate([s]).count for s in credit_of([*PAIR, *uniform])) == 6  # tokens learned from


def test_masked_endings_are_compared_but_not_learned_from():
    cut = rollout(0, 0.0, 4, ending="max_response_length_exceeded")
    done = rollout(0, 1.0, 2, ending="env_done")
    sequences = credit_of([cut, done], masked_endings=["max_response_length_exceeded"])
    assert [len(s) for s in sequences] == [4]
    assert sequences[0].advantages[2] == 0.5  # 1 less the mean of both


def test_rollouts_without_an_advantage_are_learned_from_where_the_loss_has_other_terms():
    uniform = [rollout(0, 1.0, 2), rollout(0, 1.0, 3)]
    assert credit_of(uniform) == []
    assert len(credit_of(uniform, entropy_coefficient=0.1)) == 2


def test_only_rollouts_of_one_role_are_compared():
    pairs = [
        rollout(0, reward, 2, role=role)
        for role, reward in (("solver", 1.0), ("judge", 5.0), ("solver", 0.0), ("judge", 5.0))
    ]
    sequences = credit_of(pairs)
    assert [s.advantages[2] for s in sequences] == [0.5, -0.5]


def stepped(reward_of_steps: tuple[float, ...], group: int = 0) -> Rollout:
    """A rollout with one sampled token a step, one token of the environment between steps."""
    steps = range(len(reward_of_steps))
    ids = tuple(x for step in steps for x in (-1, step))
    sequence = SampledSequence(
        (1,) * len(ids), tuple(i >= 0 for i in ids), tuple(-1.0 * (i >= 0) for i in ids), ids
    )
    return Rollout(group, sum(reward_of_steps), (sequence,), step_rewards=reward_of_steps)


def test_per_step_credit_compares_returns_of_the_same_step():
    # Returns with gamma 0.5: [0, 0, 4] -> [1, 2, 4]; [1, 2] -> [2, 2]. Step 0: mean 1.5; step 1:
    # equal; step 2: alone. The second rollout's second step is equal too.
    rollouts = [stepped((0.0, 0.0, 4.0)), stepped((1.0, 2.0))]
    sequences = credit_of(rollouts, step_credit="per_step", gamma=0.5)
    assert [s.advantages[1::2] for s in sequences] == [(-0.5, 0.0, 0.0), (0.5, 0.0)]


def test_broadcast_credit_gives_all_steps_that_of_the_reward():
    sequences = credit_of([stepped((0.0, 0.0, 4.0)), stepped((1.0, 2.0))])
    assert [s.advantages[1::2] for s in sequences] == [(0.5, 0.5, 0.5), (-0.5, -0.5)]


def test_kl_in_the_reward_is_paid_at_the_step_that_it_was_incurred():
    # KL of the first rollout: 0.2 at step 0 and 0.6 at step 1, with coefficient 0.5.
    first = stepped((0.0, 1.0))
    scores = Scores(policy=(9.0, -1.0, 9.0, -1.0), reference=(0.0, -1.2, 0.0, -1.6))
    first = replace(first, sequences=(replace(first.sequences[0], scores=scores),))
    second = stepped((0.0, 0.0))
    equal = Scores(policy=(0.0,) * 4, reference=(0.0,) * 4)
    second = replace(second, sequences=(replace(second.sequences[0], scores=equal),))
    settings = {"kl_coefficient": 0.5, "kl_place": "reward"}
    whole = credit_of([first, second], **settings)
    assert whole[0].advantages[1] == pytest.approx((1.0 - 0.4) / 2)
    stepwise = credit_of([first, second], step_credit="per_step", **settings)
    assert stepwise[0].advantages[1::2] == pytest.approx(((1.0 - 0.4) / 2, (1.0 - 0.3) / 2))


def test_an_algorithm_asks_for_the_scores_that_it_needs():
    def scores(**settings) -> set[str]:
        return set(GRPO(GRPOConfig(**settings)).scores)

    assert scores() == set()
    assert scores(kl_coefficient=0.1) == {"reference"}
    assert scores(kl_coefficient=0.1, kl_place="reward") == {"reference", "policy"}
    assert scores(importance="truncated") == {"policy"}


def test_scores_that_nobody_filled_in_are_an_error():
    batch = collate(random_sequences(1))
    output = PolicyOutput.of_logits(torch.zeros(*batch.token_ids.shape, 32), batch.token_ids)
    with pytest.raises(ValueError, match="not scored"):
        GRPO(GRPOConfig(kl_coefficient=0.1)).loss(output, batch)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"aggregation": "mean"}, "token_mean, sequence_mean, sequence_sum, got 'mean'"),
        ({"length_constant": 9}, "length_constant=9 does nothing with aggregation=token_mean"),
        ({"aggregation": "sequence_sum"}, "length_constant must be at least 1"),
        ({"kl_estimator": "k2"}, "does nothing where algorithm.kl_coefficient is 0"),
        ({"kl_place": "reward"}, "does nothing where algorithm.kl_coefficient is 0"),
        ({"kl_coefficient": 0.1, "kl_estimator": "k1"}, "mean of its gradient is 0"),
        ({"kl_coefficient": 0.1, "kl_estimator": "k9"}, "k1, k2, k3, or null, got 'k9'"),
        ({"kl_coefficient": 0.1, "kl_place": "nowhere"}, "loss or reward, got 'nowhere'"),
        ({"kl_coefficient": -0.1}, "0 or more, got -0.1"),
        ({"entropy_coefficient": -1.0}, "0 or more, got -1.0"),
        ({"importance": "yes"}, "none, truncated or masked, got 'yes'"),
        ({"importance_cap": 3.0}, "does nothing where algorithm.importance is none"),
        ({"importance_level": "sequence"}, "does nothing where algorithm.importance is none"),
        ({"importance": "masked", "importance_cap": 0.5}, "at least 1, or null, got 0.5"),
        ({"masked_endings": ["env_exception"]}, "failed episodes are never learned from"),
        ({"step_credit": "some"}, "broadcast or per_step, got 'some'"),
        ({"gamma": 0.9}, "does nothing where algorithm.step_credit is broadcast"),
        ({"step_credit": "per_step", "gamma": 1.5}, r"in \[0, 1\], or null, got 1.5"),
        ({"name": "rloo"}, "choose an algorithm with algorithm=rloo"),
    ],
)
def test_settings_that_cannot_work_or_do_nothing_are_refused(settings, words):
    with pytest.raises(ConfigError, match=words):
        GRPOConfig(**settings)
