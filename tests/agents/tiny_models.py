"""Random models small enough to be sampled in a test, and the plain way to score tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel, Qwen3Config, Qwen3ForCausalLM

from rllm_agents.rollout_engines.transformers import TransformersEngine
from rllm_agents.types import Completion, GenerationRequest, SamplingParams

VOCABULARY = 50
POSITIONS = 256


def make_model(seed: int = 0, **settings: object) -> Qwen3ForCausalLM:
    """A random Qwen3 whose distributions are far from uniform."""
    torch.manual_seed(seed)
    config = Qwen3Config(
        **{
            "vocab_size": VOCABULARY,
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 8,
            "intermediate_size": 48,
            "max_position_embeddings": POSITIONS,
            "tie_word_embeddings": True,
            "initializer_range": 0.3,
            "eos_token_id": None,
            "bos_token_id": None,
            **settings,
        }
    )
    return Qwen3ForCausalLM(config).eval()


def request(
    prompt: Sequence[int], max_tokens: int | None = 12, *, session_id: str = "", **sampling: float
) -> GenerationRequest:
    return GenerationRequest(
        messages=(),
        prompt_ids=tuple(prompt),
        sampling=SamplingParams(max_tokens=max_tokens, **sampling),  # type: ignore[arg-type]
        session_id=session_id,
    )


def random_prompts(count: int, shortest: int = 1, longest: int = 60) -> list[list[int]]:
    rng = np.random.default_rng(7)
    return [
        rng.integers(0, VOCABULARY, rng.integers(shortest, longest + 1)).tolist()
        for _ in range(count)
    ]


def sample_all(
    engine: TransformersEngine, requests: Sequence[GenerationRequest]
) -> list[Completion]:
    async def run() -> list[Completion]:
        return await asyncio.gather(*(engine.generate(r) for r in requests))

    return asyncio.run(run())


def plain_logprobs(model: PreTrainedModel, prompt: Sequence[int], ids: Sequence[int]) -> Tensor:
    """Logprob of each id after those before it, from one forward pass without a cache."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([[*prompt, *ids]])).logits[0].float()
    table = logits.log_softmax(-1)[len(prompt) - 1 : -1]
    return table.gather(1, torch.tensor(ids).unsqueeze(1)).squeeze(1)


def largest_error(
    model: PreTrainedModel, requests: Sequence[GenerationRequest], answers: Sequence[Completion]
) -> float:
    return max(
        float(
            (plain_logprobs(model, r.prompt_ids or (), a.token_ids) - torch.tensor(a.logprobs))
            .abs()
            .max()
        )
        for r, a in zip(requests, answers, strict=True)
    )


def record_batch_sizes(engine: TransformersEngine) -> list[int]:
    """List that grows by the number of rows of each forward pass."""
    sizes: list[int] = []
    engine._model.register_forward_pre_hook(
        lambda module, args, kwargs: sizes.append(len(kwargs["input_ids"])), with_kwargs=True
    )
    return sizes
