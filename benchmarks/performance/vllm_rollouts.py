"""Whole multi-turn episodes over vLLM against a bare replay of the same token prompts.

    OMP_NUM_THREADS=1 uv run python benchmarks/performance/vllm_rollouts.py --write

A random Qwen3 of 10M parameters, made so that a turn ends after 48 tokens, on average.
AgentExecutionEngine plays episodes of four turns; then vLLM's `AsyncLLM`, the same one, is given
the same prompts as ids and samples as many ids after each, every prompt as soon as the one before
it in its episode has been answered. The replay has no agents, environments, templates, text or
records. Laps alternate, and each starts with an empty prefix cache.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch
from transformers import AutoTokenizer, PreTrainedTokenizerBase, Qwen3Config, Qwen3ForCausalLM

from results import Table, installed, with_range, write_result
from rllm_agents import AgentExecutionEngine, ChatAgent, Episode
from rllm_agents.models import TINY
from rllm_agents.rollout_engines.vllm import VLLMEngine
from rllm_envs import BaseEnv

NUM_TURNS = 4
MEAN_TOKENS = 48
POSITIONS = 2048
WORDS = ("compute", "the", "sum", "of", "every", "digit", "then", "multiply", "by", "seven", "say")


class TalkEnv(BaseEnv):
    """Says forty words a turn and ends after four, with reward 1."""

    blocking = False

    def __init__(self, seed: int) -> None:
        """Take the seed of what it says."""
        self._random = random.Random(seed)
        self._turn = 0

    def reset(self) -> tuple[str, dict[str, Any]]:
        """Begin to talk."""
        return self._talk(), {}

    def step(self, action: str) -> tuple[str, float, bool, dict[str, Any]]:
        """Go on talking."""
        self._turn += 1
        done = self._turn == NUM_TURNS
        return self._talk(), float(done), done, {}

    def _talk(self) -> str:
        return " ".join(self._random.choices(WORDS, k=40))

    @staticmethod
    def from_dict(info: dict[str, Any]) -> TalkEnv:
        """Make one of a task's seed."""
        return TalkEnv(info["seed"])


def save_model(directory: Path) -> None:
    """Write a random model that ends its turns, and the tiny model's tokenizer."""
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(TINY)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=320,
        intermediate_size=960,
        num_hidden_layers=8,
        num_attention_heads=8,
        num_key_value_heads=4,
        head_dim=32,
        max_position_embeddings=POSITIONS,
        tie_word_embeddings=False,
        initializer_range=0.06,
        eos_token_id=tokenizer.eos_token_id,
    )
    model = Qwen3ForCausalLM(config).eval()
    end_turns(model, tokenizer)
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)


@torch.no_grad()
def end_turns(model: Any, tokenizer: PreTrainedTokenizerBase) -> None:
    """Give the turn's end the same probability everywhere, so that turns are of geometric length.

    One dimension of the residual stream is made a constant, which no layer writes to; the head's
    row of the turn's end reads it: the least-squares solution of (hidden state) . row = logit.
    """
    model.model.embed_tokens.weight[:, 0] = 4.0
    for layer in model.model.layers:
        layer.self_attn.o_proj.weight[0] = 0.0
        layer.mlp.down_proj.weight[0] = 0.0
    ids = torch.randint(3, len(tokenizer), (32, 128))
    hidden = model.model(input_ids=ids).last_hidden_state.flatten(0, 1)
    head = model.lm_head.weight
    end = tokenizer.get_vocab()["<|im_end|>"]
    others = hidden @ head.T
    others[:, end] = -torch.inf
    wanted = others.logsumexp(-1) - float(np.log(MEAN_TOKENS - 1))
    head[end] = torch.linalg.lstsq(hidden, wanted[:, None]).solution[:, 0]


class Clock:
    """Seconds of wall clock, and CPU seconds of this process and of vLLM's."""

    def __init__(self) -> None:
        """Start."""
        self._start = self._now()

    def _now(self) -> tuple[float, float, float]:
        children = psutil.Process().children(recursive=True)
        theirs = sum(sum(child.cpu_times()[:2]) for child in children)
        return time.perf_counter(), time.process_time(), theirs

    def stop(self) -> tuple[float, float, float]:
        """Return what has passed."""
        wall, own, theirs = (after - b for after, b in zip(self._now(), self._start, strict=True))
        return wall, own, theirs


def play(engine: VLLMEngine, tokenizer: Any, parallel: int) -> list[Episode]:
    """Play as many episodes at once through the execution engine, as a user does."""
    execution = AgentExecutionEngine(
        agent_class=ChatAgent,
        agent_args={"system_prompt": "Answer in a few words."},
        env_class=TalkEnv,
        rollout_engine=engine,
        tokenizer=tokenizer,
        sampling_params={"seed": 1},
        max_prompt_length=POSITIONS // 2,
        max_response_length=POSITIONS // 2,
        n_parallel_agents=parallel,
    )
    with execution:
        tasks = [{"seed": i} for i in range(parallel)]
        episodes = asyncio.run(execution.execute_tasks(tasks))
    assert not any(episode.failed for episode in episodes), episodes[0].error
    return episodes


def turns_of(episodes: list[Episode]) -> list[list[tuple[list[int], int]]]:
    """Return the prompts of each episode, each with the number of ids that were sampled."""
    return [[(s.prompt_ids, len(s.response_ids)) for s in e.steps] for e in episodes]


def replay(engine: VLLMEngine, turns: list[list[tuple[list[int], int]]]) -> None:
    """Give vLLM the prompts of each episode one after the other, all episodes at once.

    Args:
        engine: Whose `AsyncLLM` is asked, on its own event loop.
        turns: Of each episode its prompts, each with the number of ids to sample after it.
    """
    from vllm import SamplingParams, TokensPrompt
    from vllm.sampling_params import RequestOutputKind

    llm = engine._process.engine

    async def one(name: str, ids: list[int], count: int, seed: int) -> None:
        params = SamplingParams(
            max_tokens=count,
            temperature=1.0,
            seed=seed,
            ignore_eos=True,
            logprobs=0,
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        async for output in llm.generate(TokensPrompt(prompt_token_ids=ids), params, name):
            if output.finished:
                assert len(output.outputs[0].token_ids) == count

    async def work(index: int, episode: list[tuple[list[int], int]]) -> None:
        for turn, (ids, count) in enumerate(episode):
            await one(f"replay-{index}-{turn}", ids, count, index * NUM_TURNS + turn)

    async def everything() -> None:
        await asyncio.gather(*(work(index, episode) for index, episode in enumerate(turns)))

    engine._process.wait(everything())


def timed(engine: VLLMEngine, work: Callable[[], Any]) -> tuple[Any, tuple[float, float, float]]:
    """Do work with an empty prefix cache; returns its result and what it took."""

    async def empty() -> None:
        await engine._process.engine.reset_prefix_cache()

    engine._process.wait(empty())
    gc.collect()
    clock = Clock()
    result = work()
    return result, clock.stop()


def compare(engine: VLLMEngine, tokenizer: Any, parallel: int, num_laps: int) -> dict[str, Any]:
    """Play and replay lap by lap; returns a row of figures."""
    laps = []
    for _ in range(num_laps):
        episodes, ours = timed(engine, lambda: play(engine, tokenizer, parallel))
        turns = turns_of(episodes)
        _, bare = timed(engine, lambda turns=turns: replay(engine, turns))
        laps.append(
            {
                "tokens": sum(count for episode in turns for _, count in episode),
                "turns": sum(map(len, turns)),
                "wall_seconds": {"rollouts": ours[0], "replay": bare[0]},
                "cpu_seconds": {"rollouts": ours[1] + ours[2], "replay": bare[1] + bare[2]},
                "driver_cpu_seconds": {"rollouts": ours[1], "replay": bare[1]},
                "ratio": bare[0] / ours[0],
                "cpu_ratio": (bare[1] + bare[2]) / (ours[1] + ours[2]),
            }
        )
    return {"parallel": parallel, "laps": laps}


def main() -> None:
    """Print a Markdown table, and write the result where it is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--parallel", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--laps", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="Write the result file.")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as directory:
        save_model(Path(directory))
        tokenizer = AutoTokenizer.from_pretrained(directory)
        engine = VLLMEngine(directory, max_batch_size=256, kv_cache_gib=2.0)
        try:
            replay(engine, turns_of(play(engine, tokenizer, 8)))  # both warm up
            figures = [compare(engine, tokenizer, n, options.laps) for n in options.parallel]
        finally:
            engine.close()
    shown = table(figures)
    print(shown.markdown())
    if options.write:
        settings = {"turns": NUM_TURNS, "mean_tokens": MEAN_TOKENS, "laps": options.laps}
        versions = installed("vllm", "torch", "transformers")
        print(write_result("vllm_rollouts", settings, figures, {"rollouts": shown}, versions))


def table(figures: list[dict[str, Any]]) -> Table:
    """Return throughput of rollouts relative to the replay, medians and ranges over laps."""
    columns = (
        "episodes at once", "laps", "throughput, of the replay", "per CPU second, of the replay",
        "tokens per second", "driver's CPU ms an episode", "of the replay's driver",
    )  # fmt: skip
    rows = []
    for row in figures:
        laps, parallel = row["laps"], row["parallel"]
        rates = [lap["tokens"] / lap["wall_seconds"]["rollouts"] for lap in laps]
        drivers = (
            [1e3 * lap["driver_cpu_seconds"][side] / parallel for lap in laps]
            for side in ("rollouts", "replay")
        )
        cells = [with_range([lap[key] for lap in laps], ".2f") for key in ("ratio", "cpu_ratio")]
        cells += [with_range(rates, ".0f"), *(with_range(spent, ".1f") for spent in drivers)]
        rows.append((str(parallel), str(len(laps)), *cells))
    return Table.of(columns, rows)


if __name__ == "__main__":
    main()
