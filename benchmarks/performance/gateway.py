"""What the gateway adds to a call, against asking the engine in process: median, p99 and CPU time.

The engine's answers are written beforehand, so that only the way there and back is measured: HTTP
over loopback, checks of the request, the chat template, the record. "In process" is what an episode
does without a gateway: render, ask, record. Conversations of one turn, and of twenty that grow by
60 tokens a turn. Client and server share the process, and both are in the CPU time.

Run it with `uv run python benchmarks/performance/gateway.py`.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import aiohttp
import numpy as np
from transformers import AutoTokenizer

from rllm_agents import Completion, GenerationRequest, Renderer, SamplingParams, ScriptedEngine
from rllm_agents.gateway import Gateway, GatewaySettings
from rllm_agents.limits import RolloutLimits
from rllm_agents.models import TINY

NUM_CALLS = 1000
NUM_TURNS = (1, 20)
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


async def measure(
    name: str, open_conversation: Callable[[], Reply], num_turns: int, parallel: int
) -> None:
    """Hold conversations, some at once, and print a line of the table."""
    milliseconds: list[float] = []
    await talk(open_conversation(), num_turns, [])
    left = iter(range(NUM_CALLS // num_turns))

    async def work() -> None:
        for _ in left:
            await talk(open_conversation(), num_turns, milliseconds)

    cpu = time.process_time()
    await asyncio.gather(*(work() for _ in range(parallel)))
    cpu = 1e3 * (time.process_time() - cpu) / len(milliseconds)
    median, high = np.percentile(milliseconds, [50, 99])
    print(
        f"| {name} | {num_turns} | {parallel} | {median:.2f} | {high:.2f} | {cpu:.2f} |", flush=True
    )


async def compare(num_turns: int, engine: IdEngine, renderer: Renderer) -> None:
    """Measure conversations of some turns by each way."""

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

        await measure("in process", in_process, num_turns, 1)
        for parallel in (1, 32):
            await measure("gateway, aiohttp client", over_aiohttp, num_turns, parallel)
        try:
            from openai import AsyncOpenAI
        except ImportError:
            return
        async with AsyncOpenAI(base_url="http://none", api_key="none") as shared:

            def over_openai() -> Reply:
                openai = shared.with_options(base_url=gateway.open_session().base_url)

                async def reply(messages: Messages) -> Any:
                    given: Any = messages
                    answer = await openai.chat.completions.create(model="rllm", messages=given)
                    return {"role": "assistant", "content": answer.choices[0].message.content}

                return reply

            await measure("gateway, openai client", over_openai, num_turns, 1)


def main() -> None:
    """Print a Markdown table."""
    tokenizer = AutoTokenizer.from_pretrained(TINY)
    engine, renderer = IdEngine(tokenizer), Renderer(tokenizer)
    print("| way | turns | at once | median ms | p99 ms | CPU ms per call |")
    print("|---|---|---|---|---|---|")
    for num_turns in NUM_TURNS:
        asyncio.run(compare(num_turns, engine, renderer))


if __name__ == "__main__":
    main()
