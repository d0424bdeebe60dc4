"""The vLLM engine against plain forward passes of the same weights, on real vLLM."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from tiny_models import largest_error, request
from transformers import PreTrainedModel
from vllm_models import POSITIONS, perturb, play, publish, requests_of, save_model

pytest.importorskip("vllm", reason="vLLM is not installed")

from rllm_agents.errors import EngineError, UserError
from rllm_agents.rollout_engines import build_rollout_engine
from rllm_agents.rollout_engines.vllm import VLLMEngine
from rllm_agents.types import Completion, GenerationRequest

FLOAT32_GAP = 1e-4
"""Largest difference in logprob to a plain forward pass that single precision explains here."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return tmp_path_factory.mktemp("model")


@pytest.fixture(scope="module")
def model(place: Any) -> PreTrainedModel:
    return save_model(place)


@pytest.fixture(scope="module")
def engine(place: Any, model: PreTrainedModel) -> Iterator[VLLMEngine]:
    engine = VLLMEngine(str(place), max_batch_size=16, kv_cache_gib=0.05, sleep_mode=True)
    yield engine
    engine.close()


def next_version(engine: VLLMEngine) -> int:
    return engine.weights_version + 1


def test_logprobs_are_those_of_a_plain_forward_pass(
    engine: VLLMEngine, model: PreTrainedModel
) -> None:
    requests = requests_of(40)
    answers = play(engine, requests)
    assert all(a.finish_reason == "length" and len(a.token_ids) == 24 for a in answers)
    assert largest_error(model, requests, answers) < FLOAT32_GAP


def test_equal_seeds_give_equal_tokens_alone_and_among_others(engine: VLLMEngine) -> None:
    requests = requests_of(12)
    together = play(engine, requests)
    alone = [play(engine, [r])[0] for r in requests[:3]]
    assert [a.token_ids for a in alone] == [a.token_ids for a in together[:3]]
    other = play(engine, [replace(requests[0], sampling=replace(requests[0].sampling, seed=99))])
    assert other[0].token_ids != alone[0].token_ids


def test_logprobs_are_of_the_distribution_after_temperature_and_truncation(
    engine: VLLMEngine, model: PreTrainedModel
) -> None:
    prompt = [3, 1, 4, 1, 5]
    (answer,) = play(engine, [request(prompt, 1, seed=1, temperature=0.5, top_k=3)])
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([prompt])).logits[0, -1] / 0.5
    best = logits.topk(3)
    expected = dict(zip(best.indices.tolist(), best.values.log_softmax(-1).tolist(), strict=True))
    assert answer.logprobs[0] == pytest.approx(expected[answer.token_ids[0]], abs=FLOAT32_GAP)


def test_greedy_takes_the_likeliest_token_and_reports_it_at_temperature_one(
    engine: VLLMEngine, model: PreTrainedModel
) -> None:
    asked = request([7, 8, 9], 6, temperature=0.0)
    (answer,) = play(engine, [asked])
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([[7, 8, 9, *answer.token_ids]])).logits[0]
    assert answer.token_ids == tuple(logits[2:-1].argmax(-1).tolist())
    assert largest_error(model, [asked], [answer]) < FLOAT32_GAP


def test_a_stop_token_ends_a_completion_and_is_part_of_it(place: Any, engine: VLLMEngine) -> None:
    # The model names no stop token, so the engine of this module has none.
    assert engine.stop_token_ids == frozenset()
    (free,) = play(engine, [request([5, 6], 20, temperature=0.0)])
    stop = free.token_ids[4]
    params = engine._sampling_params(request([5, 6], 20, temperature=0.0))
    assert params.stop_token_ids == [] and params.ignore_eos
    params.stop_token_ids = [stop]
    output = engine._process.wait(engine._output((5, 6), params))
    assert tuple(output.token_ids) == free.token_ids[: free.token_ids.index(stop) + 1]
    assert output.finish_reason == "stop"


def test_asleep_it_wakes_for_requests_and_for_weights(
    engine: VLLMEngine, model: PreTrainedModel
) -> None:
    requests = requests_of(4)
    before = play(engine, requests)
    asyncio.run(engine.sleep())
    asyncio.run(engine.ping())
    assert [a.token_ids for a in play(engine, requests)] == [a.token_ids for a in before]
    asyncio.run(engine.sleep())
    version = next_version(engine)
    publish(engine, perturb(model, "norm"), version)
    after = play(engine, requests)
    assert largest_error(model, requests, after) < FLOAT32_GAP
    assert largest_error(model, requests, before) > 0.01
    assert {a.weights_version for a in after} == {version}


@pytest.mark.parametrize("part", ["self_attn", "mlp", "norm", "embed_tokens"])
def test_pushed_weights_of_each_kind_are_sampled_from(
    engine: VLLMEngine, model: PreTrainedModel, part: str
) -> None:
    requests = requests_of(10)
    before = play(engine, requests)
    version = next_version(engine)
    publish(engine, perturb(model, part), version)
    after = play(engine, requests)
    assert largest_error(model, requests, after) < FLOAT32_GAP
    # The old weights explain none of it: without the push this would fail.
    assert largest_error(model, requests, before) > 0.05
    assert {a.weights_version for a in after} == {version} == {engine.weights_version}


def test_a_tied_head_may_come_under_its_own_name(
    engine: VLLMEngine, model: PreTrainedModel
) -> None:
    (embedding,) = perturb(model, "embed_tokens", seed=5).values()
    publish(engine, {"lm_head.weight": embedding}, next_version(engine))
    requests = requests_of(6)
    assert largest_error(model, requests, play(engine, requests)) < FLOAT32_GAP


def test_stored_keys_of_old_weights_are_not_used_after_a_push(
    engine: VLLMEngine, model: PreTrainedModel
) -> None:
    # One prompt of several blocks, so that a second request finds its keys and values stored.
    asked = [request(list(range(40)) * 4, 8, seed=1)]
    play(engine, asked)
    publish(engine, perturb(model, "self_attn", seed=1), next_version(engine))
    assert largest_error(model, asked, play(engine, asked)) < FLOAT32_GAP


def test_a_part_of_a_fused_matrix_is_completed_or_refused_but_never_undefined(
    engine: VLLMEngine, model: PreTrainedModel, place: Any
) -> None:
    version = engine.weights_version
    name = "model.layers.0.self_attn.q_proj.weight"
    with pytest.raises(EngineError, match=r"k_proj.*in one matrix.*send them together"):
        publish(engine, {name: model.get_parameter(name)}, version + 1)
    assert engine.weights_version == version
    requests = requests_of(4)
    assert largest_error(model, requests, play(engine, requests)) < FLOAT32_GAP


def test_wrong_weights_are_refused_and_change_nothing(
    engine: VLLMEngine, model: PreTrainedModel
) -> None:
    version = engine.weights_version
    for tensors, message in (
        ({"model.norm.wieght": torch.ones(32)}, r"no weight 'model.norm.wieght'; nearest: model"),
        ({"model.norm.weight": torch.ones(3)}, r"must have shape \(32,\), got \(3,\)"),
    ):
        with pytest.raises(EngineError, match=message):
            publish(engine, tensors, version + 1)
    assert engine.weights_version == version
    requests = requests_of(4)
    assert largest_error(model, requests, play(engine, requests)) < FLOAT32_GAP


def test_a_push_waits_for_what_is_being_sampled(engine: VLLMEngine, model: PreTrainedModel) -> None:
    version = next_version(engine)
    long = requests_of(4, max_tokens=150)
    old = [p.detach().clone() for p in model.parameters()]

    async def run() -> tuple[list[Completion], list[Completion]]:
        running = [asyncio.create_task(engine.generate(r)) for r in long]
        await asyncio.sleep(0.05)
        await engine.load_weights(perturb(model, "mlp", seed=2), version=version)
        return await asyncio.gather(*running), [await engine.generate(long[0])]

    before, after = asyncio.run(run())
    assert {a.weights_version for a in before} == {version - 1}
    assert after[0].weights_version == version
    assert largest_error(model, long[:1], after) < FLOAT32_GAP
    with torch.no_grad():
        for parameter, value in zip(model.parameters(), old, strict=True):
            parameter.copy_(value)
    assert largest_error(model, long, before) < FLOAT32_GAP
    publish(engine, {n: p.detach() for n, p in model.named_parameters()}, version + 1)


def test_weights_exchanged_in_flight_match_each_span(
    engine: VLLMEngine, model: PreTrainedModel
) -> None:
    first = engine.weights_version
    long = requests_of(4, max_tokens=160)

    def table(ids: tuple[int, ...], prompt: tuple[int, ...]) -> torch.Tensor:
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([[*prompt, *ids]])).logits[0]
        scores = logits.log_softmax(-1)[len(prompt) - 1 : -1]
        return scores.gather(1, torch.tensor(ids).unsqueeze(1)).squeeze(1)

    async def run() -> list[Completion]:
        running = [asyncio.create_task(engine.generate(r)) for r in long]
        await asyncio.sleep(0.1)
        new = perturb(model, "mlp", seed=3)
        await engine.load_weights(new, version=first + 1, in_flight=True)
        return list(await asyncio.gather(*running))

    old_tables: list[torch.Tensor]
    saved = {n: p.detach().clone() for n, p in model.named_parameters()}
    answers = asyncio.run(run())
    new_tables = [
        table(a.token_ids, r.prompt_ids or ()) for r, a in zip(long, answers, strict=True)
    ]
    changed = {n: p.detach().clone() for n, p in model.named_parameters()}
    model.load_state_dict(saved, strict=False)
    old_tables = [
        table(a.token_ids, r.prompt_ids or ()) for r, a in zip(long, answers, strict=True)
    ]
    model.load_state_dict(changed, strict=False)
    crossed = [a for a in answers if a.version_spans]
    assert crossed, "no completion was in flight while the weights were exchanged"
    for answer, old, new in zip(answers, old_tables, new_tables, strict=True):
        spans = answer.version_spans
        if not spans:
            continue
        assert [s.weights_version for s in spans] == [first, first + 1]
        assert (spans[0].start, spans[-1].stop) == (0, len(answer.token_ids))
        cut = spans[0].stop
        assert cut == spans[1].start
        got = torch.tensor(answer.logprobs)
        assert float((got[:cut] - old[:cut]).abs().max()) < FLOAT32_GAP
        assert float((got[cut:] - new[cut:]).abs().max()) < FLOAT32_GAP
        assert answer.weights_version == first


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (request([], 4), "at least one id"),
        (request([50], 4), r"in \[0, 50\).*got 50 to 50"),
        (request([1] * POSITIONS, 4), "exceed the model's 256 positions"),
        (request([1], 4, temperature=0.001), r"temperature 0 or at least 0.01, got 0.001"),
    ],
)
def test_a_request_that_cannot_be_served_fails_alone(
    engine: VLLMEngine, asked: GenerationRequest, message: str
) -> None:
    with pytest.raises(EngineError, match=message):
        play(engine, [asked])
    assert play(engine, [request([1, 2], 3)])[0].token_ids


def test_seeded_prompts_longer_than_a_step_are_sampled(engine: VLLMEngine) -> None:
    # 16 prompts of 250 ids arrive at once: more than the 4,096 ids of one step together.
    asked = [request([i % 50] * 250, 4, seed=i) for i in range(40)]
    assert all(len(a.token_ids) == 4 for a in play(engine, asked))


def test_a_cancelled_request_is_given_up_in_vllm_too(engine: VLLMEngine) -> None:
    async def run() -> None:
        task = asyncio.create_task(engine.generate(request([1, 2, 3], 240)))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        for _ in range(100):
            if engine._process.engine.get_num_unfinished_requests() == 0:
                return
            await asyncio.sleep(0.02)
        raise AssertionError("vLLM still samples the request")

    asyncio.run(run())


def test_adapters_need_an_engine_that_was_started_for_them(engine: VLLMEngine) -> None:
    with pytest.raises(EngineError, match="max_lora_rank"):
        asyncio.run(engine.load_adapter({}, {"r": 8}, version=1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dtype": "int8"}, "dtype must be one of float32, bfloat16, float16, got 'int8'"),
        ({"device": "cuda"}, "samples on cpu"),
        ({"kv_cache_gib": 0}, "kv_cache_gib must be above 0"),
        ({"max_batch_size": 0}, "max_batch_size must be at least 1"),
        ({"max_lora_rank": 1000}, r"max_lora_rank must be in \[1, 512\]"),
        ({"max_lora_versions": 1}, "at least 2"),
        ({"max_model_length": 10_000}, r"max_model_length must be in \[2, 256\]"),
        ({"vllm_args": {"tensor_paralel_size": 2}}, "nearest: tensor_parallel_size"),
        ({"vllm_args": {"logprobs_mode": "raw_logprobs"}}, "may not set 'logprobs_mode'"),
    ],
)
def test_wrong_settings_are_refused_before_a_process_is_started(
    place: Any, model: PreTrainedModel, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        build_rollout_engine("vllm", {"model": str(place), **arguments})


def test_heads_that_vllm_has_no_kernel_for_are_refused(tmp_path: Any) -> None:
    save_model(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "head_dim": 24}))
    with pytest.raises(UserError, match="heads of 24 dimensions, only for 32, 64"):
        VLLMEngine(str(tmp_path))


def test_a_death_of_vllms_process_is_an_error_for_everybody_and_no_hang(
    place: Any, model: PreTrainedModel, engine: VLLMEngine
) -> None:
    """The last test of this file: the engine is dead after it."""
    import psutil

    children = psutil.Process().children(recursive=True)
    cores = [
        p for p in children if "EngineCore" in p.name() or "EngineCore" in " ".join(p.cmdline())
    ]
    assert cores, [p.cmdline() for p in children]

    async def run() -> list[Any]:
        running = [asyncio.create_task(engine.generate(request([1, 2], 240))) for _ in range(3)]
        await asyncio.sleep(0.02)
        for core in cores:
            core.kill()
        return await asyncio.wait_for(asyncio.gather(*running, return_exceptions=True), 30)

    errors = asyncio.run(run())
    assert all(isinstance(e, EngineError) and "process died" in str(e) for e in errors), errors
    assert not engine.is_alive
    with pytest.raises(EngineError, match="process died"):
        play(engine, [request([1, 2], 3)])
    engine.close()
    with pytest.raises(EngineError, match="closed"):
        play(engine, [request([1, 2], 3)])
