"""Tokens per CPU second of the transformers engine against transformers' own `generate`.

The tiny model's architecture, one thread, random prompts of 32 ids, greedy. "Equal" lengths: 32 new
tokens each. "Mixed": 4 + exponential(24), at most 96; `generate` runs each static batch to its
longest. Both count the tokens that were asked for.

Run it with `uv run python benchmarks/performance/slot_batcher.py`.
"""

from __future__ import annotations

import asyncio
import time

import numpy as np
import torch
from transformers import AutoModelForCausalLM, GenerationConfig

from rllm_agents import GenerationRequest, SamplingParams
from rllm_agents.models import TINY
from rllm_agents.rollout_engines.transformers import TransformersEngine

PROMPT = 32
LAPS = 3


def lengths(kind: str, count: int) -> list[int]:
    """Return how many tokens each of `count` requests wants."""
    if kind == "equal":
        return [32] * count
    draw = np.random.default_rng(0).exponential(24.0, count)
    return [min(4 + int(x), 96) for x in draw]


def generate(
    model: torch.nn.Module, prompts: list[list[int]], wanted: list[int], slots: int
) -> None:
    """Run static batches of `slots` prompts with transformers' `generate`."""
    for start in range(0, len(prompts), slots):
        batch = torch.tensor(prompts[start : start + slots])
        longest = max(wanted[start : start + slots])
        config = GenerationConfig(
            max_new_tokens=longest, min_new_tokens=longest, do_sample=False, pad_token_id=0
        )
        model.generate(  # pyright: ignore[reportCallIssue]
            input_ids=batch, attention_mask=torch.ones_like(batch), generation_config=config
        )


async def sample(engine: TransformersEngine, prompts: list[list[int]], wanted: list[int]) -> None:
    """Ask the engine for all of them at once."""

    async def one(prompt: list[int], count: int) -> None:
        sampling = SamplingParams(temperature=0.0, max_tokens=count)
        completion = await engine.generate(GenerationRequest((), tuple(prompt), sampling))
        assert len(completion.token_ids) == count

    await asyncio.gather(*(one(p, c) for p, c in zip(prompts, wanted, strict=True)))


def main() -> None:
    """Print a Markdown table: ratios lap by lap, and the engine's tokens per CPU second."""
    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(TINY)
    rng = np.random.default_rng(1)
    print("| slots | lengths | generate / engine, a lap each | engine tokens per CPU second |")
    print("|---|---|---|---|")
    for slots in (16, 64, 256):
        # No stop token: both sides make exactly as many tokens as were asked for.
        engine = TransformersEngine(str(TINY), stop_token_ids=(), max_batch_size=slots)
        for kind in ("equal", "mixed"):
            count = 4 * slots
            prompts = rng.integers(3, 300, (count, PROMPT)).tolist()
            wanted = lengths(kind, count)
            ratios, speeds = [], []
            for _ in range(LAPS):
                start = time.process_time()
                generate(model, prompts, wanted, slots)
                middle = time.process_time()
                asyncio.run(sample(engine, prompts, wanted))
                end = time.process_time()
                ratios.append((middle - start) / (end - middle))
                speeds.append(sum(wanted) / (end - middle))
            laps = ", ".join(f"{ratio:.2f}" for ratio in sorted(ratios))
            print(f"| {slots} | {kind} | {laps} | {max(speeds):,.0f} |", flush=True)
        engine.close()


if __name__ == "__main__":
    main()
