"""Credit of PPO: actions, rewards, targets and figures, worked by hand and by brute force."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace

import pytest

from rllm_learn.algorithms import PPO, PPOConfig
from rllm_learn.core.batch import Rollout, SampledSequence, Scores, TokenSequence
from rllm_learn.errors import ConfigError

PLAIN = {"whiten_advantages": False}


def sequence(steps: list[int], values: list[float]) -> SampledSequence:
    """One position a step index, -1 for what the policy was told; values at sampled positions."""
    of_sampled = iter(values)
    return SampledSequence(
        (1,) * len(steps),
        tuple(step >= 0 for step in steps),
        tuple(-1.0 * (step >= 0) for step in steps),
        tuple(steps),
        # Values where nothing was sampled must not matter.
        Scores(values=tuple(next(of_sampled) if step >= 0 else 99.0 for step in steps)),
    )


def rollout(*sequences: SampledSequence, rewards: tuple[float, ...], **fields) -> Rollout:
    return Rollout(0, sum(rewards), sequences, step_rewards=rewards, **fields)


def credit(*rollouts: Rollout, **settings):
    return PPO(PPOConfig(**{**PLAIN, **settings})).credit(rollouts, {})


def at_sampled(item: TokenSequence, numbers: tuple[float, ...]) -> list[float]:
    return [n for n, s in zip(numbers, item.sampled.action_mask, strict=True) if s]


# Two turns: two tokens, three of the environment's, two tokens; one point for each turn.
TWO_TURNS = rollout(
    sequence([-1, 0, 0, -1, -1, -1, 1, 1], [0.5, 0.25, 0.0, 1.0]), rewards=(1.0, 2.0)
)


def test_gae_over_tokens_skips_what_the_environment_said():
    # gamma 0.5, lambda 0.5; rewards 0, 1, 0, 2 and values 0.5, 0.25, 0, 1:
    #   d = (0.125 - 0.5, 1 + 0 - 0.25, 0.5 - 0, 2 - 1) = (-0.375, 0.75, 0.5, 1)
    #   A = (-0.375 + 0.25 * 0.9375, 0.75 + 0.25 * 0.75, 0.5 + 0.25, 1).
    # Three tokens of the environment stand in between and discount nothing.
    (item,) = credit(TWO_TURNS, gamma=0.5, lambda_=0.5).sequences
    expected = [-0.140625, 0.9375, 0.75, 1.0]
    assert at_sampled(item, item.advantages) == pytest.approx(expected)
    assert item.targets is not None
    returns = at_sampled(item, item.targets.returns)
    assert returns == pytest.approx([-0.140625 + 0.5, 0.9375 + 0.25, 0.75 + 0.0, 1.0 + 1.0])
    assert item.targets.weights == (0, 1, 1, 0, 0, 0, 1, 1)


def test_gae_over_turns_counts_a_turn_as_one_action():
    # Values at the first token of each turn: 0.5 and 0; d = (1 + 0.5 * 0 - 0.5, 2 - 0) = (0.5, 2);
    # A = (0.5 + 0.25 * 2, 2). A turn's target weighs as much as its two tokens.
    (item,) = credit(TWO_TURNS, gae_over="turns", gamma=0.5, lambda_=0.5).sequences
    assert at_sampled(item, item.advantages) == pytest.approx([1.0, 1.0, 2.0, 2.0])
    assert item.targets is not None
    assert item.targets.weights == (0, 2, 0, 0, 0, 0, 2, 0)
    assert item.targets.returns[1] == pytest.approx(1.5)
    assert item.targets.returns[6] == pytest.approx(2.0)


@pytest.mark.parametrize("unit", ["tokens", "turns"])
def test_how_much_the_environment_says_changes_nothing(unit):
    settings = {"gae_over": unit, "gamma": 0.7, "lambda_": 0.6}
    short = rollout(sequence([-1, 0, 0, -1, 1, 1], [0.5, 0.25, 0.0, 1.0]), rewards=(1.0, 2.0))
    found = [
        at_sampled(item, item.advantages)
        for r in (TWO_TURNS, short)
        for item in credit(r, **settings).sequences
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize("unit", ["tokens", "turns"])
def test_credit_goes_on_over_the_sequences_of_a_rollout(unit):
    # A template that rewrites history cuts the same rollout in two.
    cut = rollout(
        sequence([-1, 0, 0], [0.5, 0.25]),
        sequence([-1, -1, -1, -1, 1, 1], [0.0, 1.0]),
        rewards=(1.0, 2.0),
    )
    settings = {"gae_over": unit, "gamma": 0.5, "lambda_": 0.5}
    first, second = credit(cut, **settings).sequences
    (whole,) = credit(TWO_TURNS, **settings).sequences
    parts = [*at_sampled(first, first.advantages), *at_sampled(second, second.advantages)]
    assert parts == at_sampled(whole, whole.advantages)


def test_without_gae_it_is_the_discounted_return_less_the_value():
    # Returns with gamma 0.5: 2; 1; 1 + 0.5 = 1.5; 0.75.
    expected = [0.75 - 0.5, 1.5 - 0.25, 1.0 - 0.0, 2.0 - 1.0]
    for settings in ({"use_gae": False}, {"lambda_": 1.0}):
        (item,) = credit(TWO_TURNS, gamma=0.5, **settings).sequences
        assert at_sampled(item, item.advantages) == pytest.approx(expected)


def test_each_rollout_is_a_world_of_its_own():
    other = rollout(sequence([-1, 0], [-3.0]), rewards=(7.0,))
    alone = credit(TWO_TURNS).sequences[0].advantages
    assert credit(other, TWO_TURNS, other).sequences[1].advantages == alone


def test_a_step_in_which_nothing_was_sampled_pays_at_the_action_before_it():
    item = sequence([-1, 0, 2], [0.0, 0.0])
    (got,) = credit(rollout(item, rewards=(1.0, 10.0, 100.0)), gamma=0.0).sequences
    assert at_sampled(got, got.advantages) == [11.0, 100.0]


def test_where_steps_are_unknown_the_reward_is_at_the_end_and_turns_are_refused():
    item = replace(sequence([-1, 0, 0], [0.5, 0.25]), step_indices=())
    unknown = Rollout(0, 2.0, (item,))
    (got,) = credit(unknown, gamma=0.5, lambda_=0.0).sequences
    assert at_sampled(got, got.advantages) == [0.125 - 0.5, 2.0 - 0.25]
    with pytest.raises(ConfigError, match="know their steps; take tokens"):
        credit(unknown, gae_over="turns")


def test_kl_in_the_reward_is_paid_by_each_token():
    # KL 0.2 and 0.4 with coefficient 0.5, gamma 1: from the end, 1 - 0.2 and 1 - 0.3.
    scores = Scores((0.0, -1.0, -1.0), (0.0, -1.2, -1.4), values=(0.0, 0.0, 0.0))
    item = replace(sequence([-1, 0, 0], [0.0, 0.0]), scores=scores)
    settings = {"kl_coefficient": 0.5, "kl_place": "reward"}
    (by_token,) = credit(rollout(item, rewards=(1.0,)), **settings).sequences
    assert at_sampled(by_token, by_token.advantages) == pytest.approx([0.7, 0.8])
    (by_turn,) = credit(rollout(item, rewards=(1.0,)), gae_over="turns", **settings).sequences
    assert at_sampled(by_turn, by_turn.advantages) == pytest.approx([0.7, 0.7])
    assert PPO(PPOConfig(**settings)).scores == {"policy", "reference", "values"}
    assert PPO(PPOConfig()).scores == {"values"}


def test_whitening_is_over_all_sampled_tokens_and_leaves_the_targets():
    other = rollout(sequence([-1, 0], [-3.0]), rewards=(7.0,))
    raw = credit(TWO_TURNS, other, gamma=0.5)
    white = credit(TWO_TURNS, other, gamma=0.5, whiten_advantages=True)
    before, after = (
        [a for item in c.sequences for a in at_sampled(item, item.advantages)] for c in (raw, white)
    )
    mean, deviation = statistics.fmean(before), statistics.pstdev(before)
    assert after == pytest.approx([(a - mean) / deviation for a in before])
    for one, same in zip(raw.sequences, white.sequences, strict=True):
        assert one.targets == same.targets


def test_equal_rewards_still_teach_the_critic_and_masked_endings_teach_nothing():
    same = [rollout(sequence([-1, 0], [1.0]), rewards=(1.0,)) for _ in range(3)]
    assert len(credit(*same, whiten_advantages=True).sequences) == 3
    cut = replace(same[0], ending="max_response_length_exceeded")
    settings = {"masked_endings": ["max_response_length_exceeded"]}
    assert len(credit(cut, *same, **settings).sequences) == 3
    assert credit().sequences == []


def test_aggregation_weighs_the_critic_as_the_policy():
    short = rollout(sequence([-1, 0], [1.0]), rewards=(1.0,))
    items = credit(TWO_TURNS, short, aggregation="sequence_mean", gae_over="turns").sequences
    assert [(item.weight, item.count) for item in items] == [(0.25, 1.0), (1.0, 1.0)]
    assert all(
        item.targets is not None and sum(item.targets.weights) * item.weight == 1.0
        for item in items
    )


def test_the_figures_say_how_well_the_critic_foretold():
    # With gamma 1 and lambda 1 the returns are 3, 3, 2, 2; values 0.5, 0.25, 0, 1.
    metrics = credit(TWO_TURNS).metrics
    errors = [2.5, 2.75, 2.0, 1.0]
    expected = 1 - statistics.pvariance(errors) / statistics.pvariance([3, 3, 2, 2])
    assert metrics["explained_variance"] == pytest.approx(expected)
    assert metrics["value"] == pytest.approx(0.4375)
    assert metrics["return"] == pytest.approx(2.5)
    assert metrics["advantage"] == pytest.approx(statistics.fmean(errors))
    assert all(map(math.isfinite, credit().metrics.values()))


def test_every_task_is_played_as_often_as_asked():
    plan = PPO(PPOConfig(rollouts_per_task=3)).plan(2)
    assert [(p.task_index, p.greedy) for p in plan] == [(0, False)] * 3 + [(1, False)] * 3


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"gae_over": "words"}, "tokens or turns, got 'words'"),
        ({"gamma": 1.1}, r"gamma must be in \[0, 1\], got 1.1"),
        ({"lambda_": -0.1}, r"lambda_ must be in \[0, 1\], got -0.1"),
        ({"use_gae": False, "lambda_": 0.9}, "does nothing where algorithm.use_gae is false"),
        ({"rollouts_per_task": 0}, "at least 1, got 0"),
        ({"clip_low": 2.0}, r"clip_low must be in \[0, 1\], got 2.0"),
        ({"clip_high": -1.0}, "clip_high must be at least 0"),
        ({"vf_loss_coeff": 0.0}, "vf_loss_coeff must be above 0"),
        ({"vf_clip_param": 0.0}, "vf_clip_param must be above 0, or null"),
        ({"value_clip": -1.0}, "value_clip must be above 0, or null"),
        ({"critic_learning_rate": 3.0}, r"critic_learning_rate must be in \(0, 1\), or null"),
    ],
)
def test_settings_that_cannot_work_or_do_nothing_are_refused(settings, words):
    with pytest.raises(ConfigError, match=words):
        PPOConfig(**settings)
