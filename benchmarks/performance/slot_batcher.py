"""Tokens per CPU second of the transformers engine against transformers' own `generate`.

The tiny model's architecture, one thread, random prompts of 32 ids, greedy. "Equal" lengths: 32 new
tokens each. "Mixed": 4 + exponential(24), at most 96; `generate` runs each static batch to its
longest. Both count the tokens that were asked for.

Laps of both take turns; the table has medians and ranges over laps, those of ratios within a lap.

Run it with `OMP_NUM_THREADS=1 uv run python benchmarks/performance/slot_batcher.py --write`.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM, GenerationConfig

from results import Table, installed, with_range, write_result
from rllm_agents import GenerationRequest, SamplingParams
from rllm_agents.models import TINY
from rllm_agents.rollout_engines.transformers import TransformersEngine

PROMPT = 32
SLOTS = (16, 64, 256)


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


def measure(model: torch.nn.Module, slots: int, laps: int) -> list[dict[str, Any]]:
    """Return CPU seconds of both sides by lap, for equal and for mixed lengths."""
    # No stop token: both sides make exactly as many tokens as were asked for.
    engine = TransformersEngine(str(TINY), stop_token_ids=(), max_batch_size=slots)
    rng = np.random.default_rng(1)
    rows = []
    for kind in ("equal", "mixed"):
        prompts = rng.integers(3, 300, (4 * slots, PROMPT)).tolist()
        wanted = lengths(kind, 4 * slots)
        spent: dict[str, list[float]] = {"generate": [], "engine": []}
        for _ in range(laps):
            start = time.process_time()
            generate(model, prompts, wanted, slots)
            middle = time.process_time()
            asyncio.run(sample(engine, prompts, wanted))
            spent["generate"].append(middle - start)
            spent["engine"].append(time.process_time() - middle)
        rows.append({"slots": slots, "lengths": kind, "tokens": sum(wanted), "cpu_seconds": spent})
        print(f"measured {slots} slots, {kind}", file=sys.stderr)
    engine.close()
    return rows


def table(figures: list[dict[str, Any]]) -> Table:
    """Return ratios within a lap, and the engine's tokens per CPU second."""
    columns = ("slots", "lengths", "`generate` / engine", "engine's tokens per CPU second")
    rows = []
    for row in figures:
        theirs, ours = row["cpu_seconds"]["generate"], row["cpu_seconds"]["engine"]
        ratios = [a / b for a, b in zip(theirs, ours, strict=True)]
        speeds = [row["tokens"] / seconds for seconds in ours]
        cells = (with_range(ratios, ".2f"), with_range(speeds, ",.0f"))
        rows.append((str(row["slots"]), row["lengths"], *cells))
    return Table.of(columns, rows)


def main() -> None:
    """Print a Markdown table, and write the result where it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--slots", nargs="+", type=int, default=SLOTS)
    parser.add_argument("--laps", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="Write the result file.")
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(TINY)
    figures = [row for slots in options.slots for row in measure(model, slots, options.laps)]
    shown = table(figures)
    print(shown.markdown())
    if options.write:
        settings = {"prompt_tokens": PROMPT, "laps": options.laps}
        versions = installed("torch", "transformers")
        print(write_result("slot_batcher", settings, figures, {"sampling": shown}, versions))


if __name__ == "__main__":
    main()
