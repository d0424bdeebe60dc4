from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from learn_fakes import random_sequences, sequence, sequences_of_prompts

from rllm_learn.core.batch import (
    BatchError,
    Rollout,
    SampledSequence,
    Scores,
    TokenSequence,
    collate,
    make_micro_batches,
)


def test_collating_pads_to_the_right_with_what_is_masked_out():
    batch = collate(
        [
            sequence([5, 6, 7], sampled=[2], logprobs=-0.5, advantage=2.0),
            sequence([8, 9], sampled=[1], logprobs=-0.25, advantage=-1.0),
        ]
    )
    assert batch.token_ids.tolist() == [[5, 6, 7], [8, 9, 0]]
    assert batch.action_mask.tolist() == [[False, False, True], [False, True, False]]
    assert batch.sampler_logprobs.tolist() == [[0.0, 0.0, -0.5], [0.0, -0.25, 0.0]]
    assert batch.advantages.tolist() == [[2.0, 2.0, 2.0], [-1.0, -1.0, 0.0]]
    assert batch.num_actions == 2


@given(st.integers(1, 40), st.integers(1, 200), st.integers(0, 5))
def test_micro_batches_keep_to_the_budget_and_lose_nothing(count, micro_tokens, seed):
    sequences = random_sequences(count, seed=seed)
    batches = make_micro_batches(sequences, micro_tokens)
    assert sorted(map(id, sequences)) == sorted(id(s) for b in batches for s in b)
    for batch in batches:
        area = len(batch) * max(map(len, batch))
        assert area <= micro_tokens or len(batch) == 1


@given(st.integers(1, 40), st.integers(1, 200), st.integers(0, 5))
def test_packed_micro_batches_keep_to_the_budget_and_lose_nothing(count, micro_tokens, seed):
    draw = random.Random(seed)
    prompts = [(5, [draw.randint(1, 30) for _ in range(count)]), (12, [draw.randint(1, 9)])]
    sequences = sequences_of_prompts(prompts)
    batches = make_micro_batches(sequences, micro_tokens, packed=True)
    assert sorted(map(id, sequences)) == sorted(id(s) for b in batches for s in b)
    for batch in batches:
        # Each of the batch's prompts once, and what was sampled.
        prompts = {s.sampled.token_ids[: s.sampled.num_prompt_ids] for s in batch}
        positions = sum(map(len, prompts)) + sum(s.sampled.num_actions for s in batch)
        is_bounded = positions <= micro_tokens and sum(map(len, batch)) <= 4 * micro_tokens
        assert is_bounded or len(batch) == 1


def test_packed_a_prompt_is_counted_once():
    # A prompt of 4 ids: 4 + 1 + 3 + 5 = 13.
    sequences = sequences_of_prompts([(4, [3, 5, 1])])
    lengths = [[len(s) for s in b] for b in make_micro_batches(sequences, 13, packed=True)]
    assert lengths == [[5, 7, 9]]
    lengths = [[len(s) for s in b] for b in make_micro_batches(sequences, 12, packed=True)]
    assert lengths == [[5, 7], [9]]
    # 16 positions, and 6 x 11 whole ids, more than 4 x 16.
    sequences = sequences_of_prompts([(10, [1] * 6)])
    lengths = [[len(s) for s in b] for b in make_micro_batches(sequences, 16, packed=True)]
    assert lengths == [[11] * 5, [11]]


def test_a_sequence_longer_than_the_budget_forms_a_micro_batch_alone():
    sequences = [sequence(list(range(n)), sampled=[1]) for n in (3, 9, 4)]
    assert [[len(s) for s in b] for b in make_micro_batches(sequences, 8)] == [[3, 4], [9]]


@pytest.mark.parametrize(
    ("ids", "mask", "logprobs", "words"),
    [
        ((1, 2), (False,), (0.0, 0.0), "one length"),
        ((1, 2), (False, False), (0.0, 0.0), "no sampled id"),
        ((1, 2), (True, False), (-1.0, 0.0), "position 0"),
        ((1, 2), (False, True), (0.0, math.nan), "position 1"),
        ((1, 2), (False, True), (0.0, -math.inf), "position 1"),
        ((1, 2), (False, True), (0.0, 0.5), "position 1"),
    ],
)
def test_records_that_cannot_be_learned_from_are_refused(ids, mask, logprobs, words):
    with pytest.raises(BatchError, match=words):
        SampledSequence(ids, mask, logprobs)


def test_rewards_that_are_not_finite_and_missing_advantages_are_refused():
    sampled = SampledSequence((1, 2), (False, True), (0.0, -1.0))
    with pytest.raises(BatchError, match="nan"):
        Rollout(0, math.nan, (sampled,))
    with pytest.raises(BatchError, match="inf"):
        Rollout(0, 1.0, (sampled,), step_rewards=(0.0, math.inf))
    with pytest.raises(BatchError, match="1 advantages for 2 positions"):
        TokenSequence(sampled, advantages=(1.0,))
    with pytest.raises(BatchError, match="empty"):
        collate([])
    with pytest.raises(BatchError, match="at least 1, got 0"):
        make_micro_batches([], 0)


def test_scores_are_collated_where_every_sequence_has_them():
    one, two = sequence([5, 6, 7], sampled=[2]), sequence([8, 9], sampled=[1])
    one = replace(one, sampled=replace(one.sampled, scores=Scores((0.0, -1.0, -2.0), (0.0,) * 3)))
    two = replace(two, sampled=replace(two.sampled, scores=Scores((0.0, -3.0))))
    batch = collate([one, two])
    assert batch.policy_logprobs is not None
    assert batch.policy_logprobs.tolist() == [[0.0, -1.0, -2.0], [0.0, -3.0, 0.0]]
    assert batch.reference_logprobs is None


def test_a_batch_counts_its_sampled_tokens_unless_sequences_say_otherwise():
    one, two = sequence([5, 6, 7], sampled=[1, 2]), sequence([8, 9], sampled=[1])
    assert collate([one, two]).count == 3
    other = collate([one, replace(two, weight=0.5, count=0.25)])
    assert (other.count, other.weights.tolist()) == (2.25, [[1.0], [0.5]])


def test_the_response_is_what_follows_the_first_prompt():
    def sampled(*mask: int) -> SampledSequence:
        return SampledSequence((1,) * len(mask), tuple(map(bool, mask)), (-1.0,) * len(mask))

    rollout = Rollout(0, 1.0, (sampled(0, 0, 1, 0, 1), sampled(0, 0, 0, 0, 1, 1)))
    assert (rollout.response_length, rollout.num_actions) == (4, 4)
    assert Rollout(0, 1.0, ()).response_length == 0


def test_step_indices_must_cover_all_positions():
    with pytest.raises(BatchError, match="2 step indices for 3 positions"):
        SampledSequence((1, 2, 3), (False, True, True), (0.0, -1.0, -1.0), (0, 1))
