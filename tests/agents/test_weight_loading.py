"""New weights in a running engine, proved by logprobs after each kind of change."""

from __future__ import annotations

import asyncio
import copy
import math

import pytest
import torch
from tiny_models import (
    VOCABULARY,
    largest_error,
    make_model,
    request,
    sample_all,
)
from torch import Tensor, nn
from transformers import (
    Qwen3ForCausalLM,
)

from rllm_agents.errors import EngineError
from rllm_agents.rollout_engines.transformers import TransformersEngine
from rllm_agents.types import Completion


@pytest.fixture(scope="module")
def model() -> Qwen3ForCausalLM:
    return make_model()


@pytest.fixture
def engine(model: Qwen3ForCausalLM):
    engine = TransformersEngine(model)
    yield engine
    engine.close()


def test_broken_weights_give_an_error_and_do_not_spoil_later_requests() -> None:
    model = make_model()
    engine = TransformersEngine(model, max_batch_size=1)
    name = "model.norm.weight"
    good = {name: model.state_dict()[name].clone()}

    async def run() -> Completion:
        await engine.load_weights({name: torch.full_like(good[name], math.nan)}, version=1)
        with pytest.raises(EngineError, match="not finite"):
            await engine.generate(request([1, 2, 3], 5))
        await engine.load_weights(good, version=2)
        return await engine.generate(request([1, 2], 5, seed=0))

    answer = asyncio.run(run())
    assert largest_error(model, [request([1, 2])], [answer]) < 1e-5


@pytest.mark.parametrize("tied", [True, False])
def test_every_kind_of_parameter_can_be_replaced(tied: bool) -> None:
    model = make_model(tie_word_embeddings=tied)
    engine = TransformersEngine(model)
    twin = copy.deepcopy(model)
    kinds = {name.split(".")[-2]: name for name, _ in twin.named_parameters()}
    assert len(kinds) == (13 if tied else 14)
    asked = request([3, 1, 4, 1, 5], 12, seed=1)

    async def sample() -> Completion:
        return await engine.generate(asked)

    before = asyncio.run(sample())
    for version, name in enumerate(kinds.values(), start=1):
        parameter = dict(twin.named_parameters())[name]
        with torch.no_grad():
            parameter.add_(0.3 * torch.randn_like(parameter))

        async def update(name: str = name, new: Tensor = parameter, v: int = version) -> Completion:
            await engine.load_weights({name: new.detach().clone()}, version=v)
            return await engine.generate(asked)

        answer = asyncio.run(update())
        assert answer.weights_version == version == engine.weights_version
        assert largest_error(twin, [asked], [answer]) < 1e-5, name
        assert answer.logprobs != before.logprobs, name
        before = answer


def test_a_tied_head_follows_the_embedding_under_either_name() -> None:
    model = make_model()
    engine = TransformersEngine(model)
    new = torch.randn(VOCABULARY, 32)

    async def run() -> None:
        await engine.load_weights({"lm_head.weight": new}, version=1)
        assert torch.equal(model.model.embed_tokens.weight, new)
        both = {"lm_head.weight": 2 * new, "model.embed_tokens.weight": 2 * new}
        await engine.load_weights(both, version=2)
        assert torch.equal(model.lm_head.weight, 2 * new)
        both["lm_head.weight"] = new
        with pytest.raises(EngineError, match="values differ"):
            await engine.load_weights(both, version=3)

    asyncio.run(run())
    assert engine.weights_version == 2


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("model.layers.0.self_attn.q_prox.weight", torch.zeros(1), "q_proj"),
        ("model.norm.weight", torch.zeros(31), r"\(32,\), got \(31,\)"),
        ("model.norm.weight", [1.0], "must be a tensor"),
    ],
)
def test_wrong_weights_are_refused_and_nothing_is_changed(
    name: str, value: object, words: str
) -> None:
    model = make_model()
    engine = TransformersEngine(model)
    before = copy.deepcopy(model.state_dict())
    tensors = {"model.embed_tokens.weight": torch.zeros(VOCABULARY, 32), name: value}
    with pytest.raises(EngineError, match=words):
        asyncio.run(engine.load_weights(tensors, version=1))  # type: ignore[arg-type]
    after = model.state_dict()
    assert all(torch.equal(before[key], after[key]) for key in before)
    assert engine.weights_version == 0


def test_sampled_weights_can_still_be_trained(model: Qwen3ForCausalLM) -> None:
    engine = TransformersEngine(model)
    sample_all(engine, [request([1, 2], 3)])
    loss = nn.functional.cross_entropy(
        model(input_ids=torch.tensor([[1, 2]])).logits[0], torch.tensor([3, 4])
    )
    loss.backward()
    assert model.model.norm.weight.grad is not None
    model.zero_grad()
