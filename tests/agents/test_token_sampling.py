"""Which token is drawn, and the logprob that is reported for it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from tiny_models import (
    VOCABULARY,
    largest_error,
    make_model,
    random_prompts,
    request,
    sample_all,
)
from transformers import (
    Qwen3ForCausalLM,
)

from rllm_agents.rollout_engines.token_sampling import SamplingPlan, draw_tokens
from rllm_agents.rollout_engines.transformers import TransformersEngine


@pytest.fixture(scope="module")
def model() -> Qwen3ForCausalLM:
    return make_model()


@pytest.fixture
def engine(model: Qwen3ForCausalLM):
    engine = TransformersEngine(model)
    yield engine
    engine.close()


def test_greedy_takes_the_argmax_and_reports_its_logprob_at_temperature_one(
    model: Qwen3ForCausalLM, engine: TransformersEngine
) -> None:
    prompt = random_prompts(1)[0]
    asked = request(prompt, 10, temperature=0.0)
    (answer,) = sample_all(engine, [asked])
    ids = list(prompt)
    for token in answer.token_ids:
        with torch.no_grad():
            assert token == int(model(input_ids=torch.tensor([ids])).logits[0, -1].argmax())
        ids.append(token)
    assert largest_error(model, [asked], [answer]) < 1e-5


def test_truncated_and_untruncated_requests_share_a_batch_and_report_what_they_sample_from(
    model: Qwen3ForCausalLM, engine: TransformersEngine
) -> None:
    prompt = random_prompts(1)[0]
    kinds = [{}, {"temperature": 0.7}, {"top_k": 3}, {"top_p": 0.6}]
    kinds.append({"temperature": 1.3, "top_k": 5, "top_p": 0.8})
    requests = [request(prompt, 1, seed=s, **kind) for kind in kinds for s in range(40)]
    answers = sample_all(engine, requests)
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([prompt])).logits[0, -1].double()
    for index, kind in enumerate(kinds):
        allowed = reference_distribution(logits.numpy(), **kind)
        for answer in answers[40 * index : 40 * index + 40]:
            assert answer.logprobs[0] == pytest.approx(
                math.log(allowed[answer.token_ids[0]]), abs=1e-5
            )


def reference_distribution(
    logits: np.ndarray, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0
) -> np.ndarray:
    """One row, done plainly: temperature, the k best, of these the fewest with mass top_p."""
    weights = np.exp((logits - logits.max()) / temperature)
    best_first = np.argsort(-weights, kind="stable")
    if top_k:
        weights[best_first[top_k:]] = 0.0
    weights /= weights.sum()
    mass = 0.0
    for token in best_first:
        if mass >= top_p:
            weights[token] = 0.0
        mass += weights[token]
    return weights / weights.sum()


def test_first_tokens_occur_as_often_as_their_probability_says(
    model: Qwen3ForCausalLM, engine: TransformersEngine
) -> None:
    prompt = [3, 1, 4]
    count = 4000
    answers = sample_all(engine, [request(prompt, 1, seed=s) for s in range(count)])
    observed = np.bincount([a.token_ids[0] for a in answers], minlength=VOCABULARY)
    with torch.no_grad():
        expected = model(input_ids=torch.tensor([prompt])).logits[0, -1].softmax(-1).numpy() * count
    likely = expected >= 5
    chi_squared = ((observed - expected) ** 2 / expected)[likely].sum()
    # 49 degrees of freedom at most: the 99.9 % point is 85.4; the seeds are fixed.
    assert likely.sum() >= 10
    assert chi_squared < 85.4


def test_a_known_uniform_number_picks_the_token_that_the_cumulative_sum_says() -> None:
    logits = torch.tensor([[0.1, 0.2, 0.3, 0.4]]).log().repeat(6, 1)
    logits[5, 3] = -torch.inf  # what is left: 1/6, 2/6, 3/6
    uniforms = torch.tensor([0.0, 0.0999, 0.1001, 0.5999, 0.9999999999999999, 0.9999999999999999])
    plan = SamplingPlan(temperature=None, greedy=None, top_k=None, top_p=None)
    ids, logprobs = draw_tokens(logits, uniforms.double(), plan)
    assert ids.tolist() == [0, 0, 1, 2, 3, 2]
    expected = np.log([0.1, 0.1, 0.2, 0.3, 0.4, 0.5])
    np.testing.assert_allclose(logprobs, expected, atol=1e-6)


def test_a_completion_does_not_depend_on_who_shares_its_batch(engine: TransformersEngine) -> None:
    prompts = random_prompts(30)
    together = sample_all(engine, [request(p, 25, seed=i) for i, p in enumerate(prompts)])
    for index in (0, 13, 29):
        (alone,) = sample_all(engine, [request(prompts[index], 25, seed=index)])
        assert alone.token_ids == together[index].token_ids
        np.testing.assert_allclose(alone.logprobs, together[index].logprobs, atol=1e-5)


def test_long_completions_use_a_stream_without_repetition(engine: TransformersEngine) -> None:
    (long,) = sample_all(engine, [request([1], 140, seed=5)])
    (short,) = sample_all(engine, [request([1], 130, seed=5)])
    assert long.token_ids[:130] == short.token_ids
    assert long.token_ids[:64] != long.token_ids[64:128]


def test_requests_without_a_seed_differ(engine: TransformersEngine) -> None:
    first, second = sample_all(engine, [request([1], 40), request([1], 40)])
    assert first.token_ids != second.token_ids


def test_negative_and_huge_seeds_are_seeds(engine: TransformersEngine) -> None:
    seeds = (-1, 2**200, -1)
    answers = sample_all(engine, [request([1], 20, seed=seed) for seed in seeds])
    assert answers[0].token_ids == answers[2].token_ids != answers[1].token_ids
