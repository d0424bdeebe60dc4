"""LoRA adapters by version in real vLLM, against peft's forward passes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
from tiny_models import largest_error
from vllm_models import play, requests_of, save_model

pytest.importorskip("vllm", reason="vLLM is not installed")

from rllm_agents.errors import EngineError
from rllm_agents.rollout_engines.vllm import VLLMEngine
from rllm_agents.rollout_engines.vllm_adapters import vllm_rank
from rllm_agents.types import Completion

FLOAT32_GAP = 1e-4


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("model")


@pytest.fixture(scope="module")
def policy(place: Path) -> Any:
    """A model with adapters on all linear layers, which start as no change."""
    config = peft.LoraConfig(
        r=4, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM", lora_dropout=0.0
    )
    return peft.get_peft_model(save_model(place), config).eval()


@pytest.fixture(scope="module")
def engine(place: Path, policy: Any) -> Iterator[VLLMEngine]:
    engine = VLLMEngine(str(place), max_batch_size=16, kv_cache_gib=0.05, max_lora_rank=4)
    yield engine
    engine.close()


def next_adapter(policy: Any, seed: int) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Draw new adapters, and return them as the engine takes them."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in policy.named_parameters():
            if "lora_B" in name:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
    tensors = {n: t.clone() for n, t in peft.get_peft_model_state_dict(policy).items()}
    return tensors, {"r": 4, "lora_alpha": 8, "peft_type": "LORA", "target_modules": "all-linear"}


def test_without_an_adapter_the_base_model_is_sampled(engine: VLLMEngine, policy: Any) -> None:
    requests = requests_of(6)
    with policy.disable_adapter():
        assert largest_error(policy, requests, play(engine, requests)) < FLOAT32_GAP


def test_each_version_is_sampled_from_exactly(engine: VLLMEngine, policy: Any) -> None:
    for version in (1, 2):
        requests = requests_of(6)
        before = play(engine, requests)
        asyncio.run(engine.load_adapter(*next_adapter(policy, version), version=version))
        after = play(engine, requests)
        assert largest_error(policy, requests, after) < FLOAT32_GAP
        assert largest_error(policy, requests, before) > 0.05
        assert {a.weights_version for a in after} == {version} == {engine.weights_version}


def test_an_engine_that_was_not_started_for_it_does_not_sleep(engine: VLLMEngine) -> None:
    with pytest.raises(EngineError, match="sleep_mode=True"):
        asyncio.run(engine.sleep())


def test_two_versions_in_flight_match_their_own_adapters(engine: VLLMEngine, policy: Any) -> None:
    """And a third waits until the first is no longer in use."""
    versions = [engine.weights_version + i for i in (1, 2, 3)]
    long = requests_of(3, max_tokens=150)
    adapters = [next_adapter(policy, seed) for seed in (11, 12, 13)]
    third_was_loaded_while_first_ran = False

    async def run() -> list[list[Completion]]:
        nonlocal third_was_loaded_while_first_ran
        await engine.load_adapter(*adapters[0], version=versions[0])
        first = [asyncio.create_task(engine.generate(r)) for r in long]
        await asyncio.sleep(0.02)
        await engine.load_adapter(*adapters[1], version=versions[1])
        second = [asyncio.create_task(engine.generate(r)) for r in long]
        assert not any(t.done() for t in first), "too quick to be in flight together"
        await engine.load_adapter(*adapters[2], version=versions[2])
        third_was_loaded_while_first_ran = not all(t.done() for t in first)
        third = [asyncio.create_task(engine.generate(r)) for r in long]
        return [list(await asyncio.gather(*tasks)) for tasks in (first, second, third)]

    answers = asyncio.run(run())
    assert not third_was_loaded_while_first_ran
    for version, (tensors, _), answered in zip(versions, adapters, answers, strict=True):
        assert {a.weights_version for a in answered} == {version}
        peft.set_peft_model_state_dict(policy, tensors)
        assert largest_error(policy, long, answered) < FLOAT32_GAP


def test_an_adapter_that_does_not_fit_is_refused_and_the_engine_lives(
    engine: VLLMEngine, policy: Any
) -> None:
    version = engine.weights_version
    tensors, config = next_adapter(policy, 5)
    with pytest.raises(EngineError, match=r"rank must be in \[1, 4\], got 64"):
        asyncio.run(engine.load_adapter(tensors, {**config, "r": 64}, version=version + 1))
    unknown = {"base_model.model.nowhere.lora_A.weight": torch.ones(4, 32)}
    with pytest.raises(EngineError, match="vLLM refuses the adapter"):
        asyncio.run(engine.load_adapter(unknown, config, version=version + 1))
    assert engine.weights_version == version
    assert play(engine, requests_of(2))[0].weights_version == version


def test_whole_weights_are_refused_where_adapters_are_sampled(engine: VLLMEngine) -> None:
    with pytest.raises(EngineError, match="use load_adapter"):
        asyncio.run(engine.load_weights({}, version=1))


def test_the_rank_vllm_is_started_with_is_the_next_it_knows() -> None:
    assert [vllm_rank(r) for r in (1, 4, 8, 9, 300)] == [1, 8, 8, 16, 320]
