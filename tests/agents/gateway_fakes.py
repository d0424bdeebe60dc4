"""A gateway over engines that say what they are told to, and ways to talk to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import aiohttp
from agents_fakes import ByteEngine, ByteTokenizer, byte_completion

from rllm_agents.gateway import Gateway, GatewaySettings
from rllm_agents.gateway.protocol import ChatCall, TextCall, read_chat_call, read_text_call
from rllm_agents.gateway.sessions import Access, Beginning, GatewaySession, Sampler
from rllm_agents.limits import RolloutLimits
from rllm_agents.renderer import Renderer
from rllm_agents.tool_parsers import get_tool_parser
from rllm_agents.types import Completion, GenerationRequest

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Say what the weather is",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


class HeldEngine(ByteEngine):
    """Answers `echo` of the last user message, when `release` was set."""

    def __init__(self) -> None:
        super().__init__("unused")
        self.release = asyncio.Event()
        self.num_cancelled = 0

    async def generate(self, request: GenerationRequest) -> Completion:
        self.requests.append(request)
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.num_cancelled += 1
            raise
        return byte_completion(f"echo {request.messages[-1]['content']}")


class BrokenEngine(ByteEngine):
    """Fails `times` times, then answers as ByteEngine does."""

    def __init__(self, *texts: str, times: int = 1_000) -> None:
        super().__init__(*texts)
        self.left = times

    async def generate(self, request: GenerationRequest) -> Completion:
        if self.left > 0:
            self.left -= 1
            raise RuntimeError("out of \x1b[31mmemory\nnow")
        return await super().generate(request)


def make_session(engine: Any, renderer: Renderer | None = None, **begin: Any) -> GatewaySession:
    """A session without a server around it."""
    limits = begin.pop("limits", RolloutLimits())
    sampler = Sampler(
        engine=engine,
        renderer=renderer or Renderer(ByteTokenizer()),
        parser=get_tool_parser("qwen"),
        limits=limits,
    )
    return GatewaySession(sampler, Access("s", "http://nowhere/v1", "key"), Beginning(**begin))


def chat_call(messages: list[dict[str, Any]], **more: Any) -> ChatCall:
    return read_chat_call({"model": "m", "messages": messages, **more})


def text_call(prompt: Any, **more: Any) -> TextCall:
    return read_text_call({"model": "m", "prompt": prompt, **more})


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def with_gateway(
    talk: Callable[[Gateway], Awaitable[Any]],
    engine: Any = None,
    *,
    renderer: Renderer | None = None,
    **settings: Any,
) -> Any:
    """What `talk` returns of a gateway that listens while it runs."""

    async def run() -> Any:
        gateway = Gateway(
            engine or ByteEngine("hello"),
            renderer or Renderer(ByteTokenizer()),
            GatewaySettings(**settings),
        )
        async with gateway:
            return await asyncio.wait_for(talk(gateway), 30)

    return asyncio.run(run())


async def post(url: str, body: Any, **headers: str) -> tuple[int, Mapping[str, str], Any]:
    """Status, headers and decoded body of a POST; bytes and texts are sent as they are."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = {
        "Content-Type": "application/json",
        **{k.replace("_", "-"): v for k, v in headers.items()},
    }
    async with (
        aiohttp.ClientSession() as client,
        client.post(url, data=data, headers=sent) as response,
    ):
        raw = await response.read()
        return response.status, response.headers, json.loads(raw)
