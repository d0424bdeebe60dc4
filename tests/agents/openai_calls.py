"""Calls of the OpenAI engine, made short for tests."""

from __future__ import annotations

import asyncio
from typing import Any

from agents_fakes import ByteTokenizer, CountingEnv, EchoAgent
from openai_server import FakeServer

from rllm_agents import AgentExecutionEngine
from rllm_agents.rollout_engines.openai import OpenAIEngine
from rllm_agents.types import (
    Completion,
    Episode,
    GenerationRequest,
    SamplingParams,
)


def request(
    prompt: tuple[int, ...] | None = (1, 2, 3), max_tokens: int | None = 20, **sampling: Any
) -> GenerationRequest:
    return GenerationRequest(
        messages=({"role": "user", "content": "?"},),
        prompt_ids=prompt,
        sampling=SamplingParams(max_tokens=max_tokens, **sampling),
    )


def generate(server: FakeServer, *requests: GenerationRequest, **arguments: Any) -> Any:
    """The completion of the request, or of each of several."""
    engine = OpenAIEngine(server.base_url, **{"tokenizer": ByteTokenizer(), **arguments})

    async def run() -> list[Completion]:
        return await asyncio.gather(*(engine.generate(r) for r in requests or (request(),)))

    try:
        answers = asyncio.run(run())
    finally:
        engine.close()
    return answers if len(requests) > 1 else answers[0]


def play(server: FakeServer, tasks: list[dict[str, Any]], **changes: Any) -> list[Episode]:
    arguments = {"base_url": server.base_url, **changes.pop("rollout_engine_args", {})}
    settings = {"tokenizer": ByteTokenizer(), **changes}
    with AgentExecutionEngine(
        agent_class=EchoAgent,
        env_class=CountingEnv,
        engine_name="openai",
        rollout_engine_args=arguments,
        **settings,
    ) as engine:
        return asyncio.run(engine.execute_tasks(tasks))
