"""What the gateway adds to a call: median and 99th percentile, against calling the engine.

The engine's answer is written beforehand, so that nothing but the way there and back is measured:
HTTP over loopback, checks of the request, the chat template, the record. Two conversations: a short
question, and one of thirty turns, of which the last is asked. Client and server share the process.

Run it with `uv run python benchmarks/performance/gateway.py`.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import numpy as np
from transformers import AutoTokenizer

from rllm_agents import GenerationRequest, Renderer, SamplingParams, ScriptedEngine
from rllm_agents.gateway import Gateway, GatewaySettings
from rllm_agents.limits import RolloutLimits
from rllm_agents.models import TINY

NUM_CALLS = 2000
NUM_WARM_UP = 100
CONVERSATIONS = {
    "one turn": [{"role": "user", "content": "What is 47 * 83?"}],
    "thirty turns": [
        {"role": role, "content": f"Message {i}: " + "some words of a dialogue " * 10}
        for i in range(30)
        for role in ("user", "assistant")
    ][:-1],
}

Call = Callable[[], Awaitable[Any]]


async def measure(call: Call, parallel: int) -> tuple[float, float, float]:
    """Return median and 99th percentile in milliseconds, and calls per second."""
    milliseconds: list[float] = []

    async def work(num_calls: int) -> None:
        for _ in range(num_calls):
            start = time.perf_counter()
            await call()
            milliseconds.append(1e3 * (time.perf_counter() - start))

    await work(NUM_WARM_UP)
    milliseconds.clear()
    start = time.perf_counter()
    await asyncio.gather(*(work(NUM_CALLS // parallel) for _ in range(parallel)))
    seconds = time.perf_counter() - start
    median, high = np.percentile(milliseconds, [50, 99])
    return float(median), float(high), len(milliseconds) / seconds


def row(name: str, parallel: int, figures: tuple[float, float, float]) -> None:
    """Print a line of the table."""
    median, high, rate = figures
    print(f"| {name} | {parallel} | {median:.2f} | {high:.2f} | {rate:.0f} |", flush=True)


async def compare(name: str, messages: list[dict[str, str]], renderer: Renderer | None) -> None:
    """Measure one conversation by each way."""
    engine = ScriptedEngine(["an answer"])
    request = GenerationRequest(tuple(messages), None, SamplingParams(), "direct")
    settings = GatewaySettings(limits=RolloutLimits(max_steps=10**6, max_prompt_length=10**6))
    body = json.dumps({"model": "rllm", "messages": messages}).encode()
    headers = {"Content-Type": "application/json"}
    async with Gateway(engine, renderer, settings) as gateway, aiohttp.ClientSession() as client:
        session = gateway.open_session()
        url = f"{session.base_url}/chat/completions"

        async def over_http() -> None:
            async with client.post(url, data=body, headers=headers) as response:
                assert response.status == 200, await response.text()
                await response.read()

        row(f"{name}, engine", 1, await measure(lambda: engine.generate(request), 1))
        for parallel in (1, 32):
            row(f"{name}, gateway, aiohttp", parallel, await measure(over_http, parallel))
        try:
            from openai import AsyncOpenAI
        except ImportError:
            return
        async with AsyncOpenAI(base_url=session.base_url, api_key="none") as openai:

            async def over_openai() -> None:
                await openai.chat.completions.create(model="rllm", messages=messages)  # type: ignore[arg-type]

            row(f"{name}, gateway, openai", 1, await measure(over_openai, 1))


def main() -> None:
    """Print a Markdown table."""
    renderer = Renderer(AutoTokenizer.from_pretrained(TINY))
    print("| conversation, way | calls at once | median ms | p99 ms | calls/s |")
    print("|---|---|---|---|---|")
    for name, messages in CONVERSATIONS.items():
        asyncio.run(compare(f"{name}, as text", messages, None))
        asyncio.run(compare(f"{name}, as ids", messages, renderer))


if __name__ == "__main__":
    main()
