"""Models that vLLM's kernels on a CPU take, and engines over them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import torch
from tiny_models import make_model, random_prompts, request, sample_all
from transformers import PreTrainedModel

from rllm_agents.rollout_engines.vllm import VLLMEngine
from rllm_agents.types import Completion, GenerationRequest

POSITIONS = 256


def save_model(directory: Path, **settings: Any) -> PreTrainedModel:
    """Save a random Qwen3 with grouped heads of 32 dimensions and return it."""
    model = make_model(head_dim=32, max_position_embeddings=POSITIONS, **settings)
    model.save_pretrained(directory)
    return model


def requests_of(count: int, max_tokens: int = 24, **sampling: Any) -> list[GenerationRequest]:
    prompts = random_prompts(count, shortest=1, longest=90)
    return [request(p, max_tokens, seed=i, **sampling) for i, p in enumerate(prompts)]


def play(engine: VLLMEngine, requests: list[GenerationRequest]) -> list[Completion]:
    return sample_all(engine, requests)  # type: ignore[arg-type]


def perturb(model: PreTrainedModel, part: str, seed: int = 0) -> dict[str, torch.Tensor]:
    """Change all parameters whose name has `part`, and return their new values by name."""
    generator = torch.Generator().manual_seed(seed)
    changed = {}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if part in name:
                noise = torch.randn(parameter.shape, generator=generator)
                parameter.add_(noise * 0.1)
                changed[name] = parameter.detach().clone()
    assert changed, part
    return changed


def publish(engine: VLLMEngine, tensors: dict[str, torch.Tensor], version: int) -> None:
    asyncio.run(engine.load_weights(tensors, version=version))
