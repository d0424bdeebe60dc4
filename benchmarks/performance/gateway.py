"""What the gateway adds to a call, against asking the engine in process: median, p99 and CPU time.

The engine's answers are written beforehand, so that only the way there and back is measured: HTTP
over loopback, checks of the request, the chat template, the record. "In process" is what an episode
does without a gateway: render, ask, record. Conversations of one turn, and of twenty that grow by
60 tokens a turn. Client and server share the process, and both are in the CPU time.

Without the `openai` package its client is left out.

    OMP_NUM_THREADS=1 uv run --with openai python benchmarks/performance/gateway.py --write
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
import numpy as np
from transformers import AutoTokenizer

from results import Table, installed, write_result
from rllm_agents import Completion, GenerationRequest, Renderer, SamplingParams, ScriptedEngine
from rllm_agents.gateway import Gateway, GatewaySettings
from rllm_agents.limits import RolloutLimits
from rllm_agents.models import TINY

NUM_CALLS = 1000
NUM_TURNS = (1, 20)
HAS_OPENAI = importlib.util.find_spec("openai") is not None
WORDS = "What is 47 * 83? Say it step by step."

Messages = list[dict[str, Any]]
Reply = Callable[[Messages], Awaitable[Any]]
"""Answers a conversation with the assistant's message."""


class IdEngine:
    """The scripted engine, with the ids of what it says."""

    weights_version = 0

    def __init__(self, tokenizer: Any) -> None:
        """Encode the answer once."""
        self._script = ScriptedEngine([WORDS])
        self._ids = (*tokenizer(WORDS)["input_ids"], tokenizer.eos_token_id)

    async def generate(self, request: GenerationRequest) -> Completion:
        """Say the same as ever."""
        said = await self._script.generate(request)
        return Completion(said.text, "stop", self._ids, (-0.5,) * len(self._ids))

    async def load_weights(self, tensors: Mapping[str, Any], *, version: int) -> None:
        """Learn nothing."""

    def close(self) -> None:
        """Hold nothing."""


async def talk(reply: Reply, num_turns: int, milliseconds: list[float]) -> None:
    """Hold one conversation and note how long each answer took."""
    messages: Messages = []
    for _ in range(num_turns):
        messages.append({"role": "user", "content": WORDS})
        start = time.perf_counter()
        message = await reply(messages)
        milliseconds.append(1e3 * (time.perf_counter() - start))
        messages.append(message)


@dataclass(frozen=True, slots=True)
class Size:
    """How much is said in a measurement."""

    calls: int
    turns: int
    """Of a conversation."""


async def measure(
    name: str, open_conversation: Callable[[], Reply], size: Size, parallel: int
) -> dict[str, Any]:
    """Hold conversations, some at once, and return milliseconds of a call."""
    milliseconds: list[float] = []
    await talk(open_conversation(), size.turns, [])
    left = iter(range(size.calls // size.turns))

    async def work() -> None:
        for _ in left:
            await talk(open_conversation(), size.turns, milliseconds)

    cpu = time.process_time()
    await asyncio.gather(*(work() for _ in range(parallel)))
    cpu = 1e3 * (time.process_time() - cpu) / len(milliseconds)
    median, high = map(float, np.percentile(milliseconds, [50, 99]))
    print(f"measured {name}, {size.turns} turns, {parallel} at once", file=sys.stderr)
    named = {"way": name, "turns": size.turns, "parallel": parallel}
    return {**named, "median_ms": median, "p99_ms": high, "cpu_ms": cpu}


async def compare(size: Size, engine: IdEngine, renderer: Renderer) -> list[dict[str, Any]]:
    """Measure conversations by each way."""

    def in_process() -> Reply:
        transcript = renderer.transcript()

        async def reply(messages: Messages) -> Any:
            ids = transcript.prompt_ids(messages)
            request = GenerationRequest(tuple(messages), ids, SamplingParams(), "direct")
            completion = await engine.generate(request)
            transcript.add(completion)
            return {"role": "assistant", "content": completion.text}

        return reply

    limits = RolloutLimits(max_prompt_length=10**5)
    settings = GatewaySettings(limits=limits, max_sessions=10**6)
    async with Gateway(engine, renderer, settings) as gateway, aiohttp.ClientSession() as client:

        def over_aiohttp() -> Reply:
            url = f"{gateway.open_session().base_url}/chat/completions"

            async def reply(messages: Messages) -> Any:
                body = json.dumps({"model": "rllm", "messages": messages}).encode()
                headers = {"Content-Type": "application/json"}
                async with client.post(url, data=body, headers=headers) as response:
                    return (await response.json())["choices"][0]["message"]

            return reply

        rows = [await measure("in process", in_process, size, 1)]
        for parallel in (1, 32):
            rows.append(await measure("gateway, aiohttp client", over_aiohttp, size, parallel))
        if not HAS_OPENAI:
            return rows
        from openai import AsyncOpenAI

        async with AsyncOpenAI(base_url="http://none", api_key="none") as shared:

            def over_openai() -> Reply:
                openai = shared.with_options(base_url=gateway.open_session().base_url)

                async def reply(messages: Messages) -> Any:
                    given: Any = messages
                    answer = await openai.chat.completions.create(model="rllm", messages=given)
                    return {"role": "assistant", "content": answer.choices[0].message.content}

                return reply

            rows.append(await measure("gateway, openai client", over_openai, size, 1))
        return rows


def table(figures: list[dict[str, Any]]) -> Table:
    """Return a row for each measurement."""
    columns = ("way", "turns", "at once", "median ms", "p99 ms", "CPU ms a call")
    rows = []
    for row in figures:
        times = (f"{row[key]:.2f}" for key in ("median_ms", "p99_ms", "cpu_ms"))
        rows.append((row["way"], str(row["turns"]), str(row["parallel"]), *times))
    return Table.of(columns, rows)


def main() -> None:
    """Print a Markdown table, and write the result where it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--calls", type=int, default=NUM_CALLS, help="Of each measurement.")
    parser.add_argument("--write", action="store_true", help="Write the result file.")
    options = parser.parse_args()
    tokenizer = AutoTokenizer.from_pretrained(TINY)
    engine, renderer = IdEngine(tokenizer), Renderer(tokenizer)
    figures = []
    for turns in NUM_TURNS:
        figures += asyncio.run(compare(Size(options.calls, turns), engine, renderer))
    shown = table(figures)
    print(shown.markdown())
    if options.write:
        versions = installed("aiohttp", *(["openai"] if HAS_OPENAI else []))
        settings = {"calls": options.calls}
        print(write_result("gateway", settings, figures, {"calls": shown}, versions))


if __name__ == "__main__":
    main()
