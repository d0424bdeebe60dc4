"""Agents written against the real `openai` client, over the gateway."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from agents_fakes import ByteEngine
from gateway_fakes import WEATHER, BrokenEngine, user, with_gateway

from rllm_agents.gateway import Gateway
from rllm_agents.models import TINY
from rllm_agents.renderer import Renderer
from rllm_agents.types import GenerationRequest, SamplingParams

openai = pytest.importorskip("openai")

CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'


def test_the_asynchronous_client_talks_streams_and_reads_usage() -> None:
    async def talk(gateway: Gateway) -> Any:
        session = gateway.open_session()
        async with openai.AsyncOpenAI(base_url=session.base_url, api_key=session.api_key) as client:
            messages: list[Any] = [user("hi")]
            reply = await client.chat.completions.create(model="rllm", messages=messages)
            messages += [reply.choices[0].message, user("more")]
            stream = await client.chat.completions.create(
                model="rllm",
                messages=messages,
                stream=True,
                stream_options={"include_usage": True},
                logprobs=True,
            )
            chunks = [chunk async for chunk in stream]
            text = await client.completions.create(model="rllm", prompt="abc", logprobs=1)
            names = [model.id async for model in client.models.list()]
        return reply, chunks, text, names, session.finish(1.0)

    reply, chunks, text, names, episode = with_gateway(talk, ByteEngine("one", "two"))
    assert reply.choices[0].message.content == "one"
    assert reply._request_id.startswith("req_")
    said = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert said == "two"
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    logprobs = [c.choices[0].logprobs for c in chunks if c.choices and c.choices[0].logprobs]
    assert [e.logprob for e in logprobs[0].content] == [-(j + 1) / 1024 for j in range(4)]
    assert chunks[-1].usage.completion_tokens == 4
    assert text.choices[0].text == "one"
    assert text.choices[0].logprobs.token_logprobs == [-(j + 1) / 1024 for j in range(4)]
    assert names == ["rllm"]
    first, second = episode.trajectory.token_records
    assert [len(first.turns), len(second.turns)] == [2, 1]


def test_the_synchronous_client_works_from_a_thread_and_tools_stay_one_record() -> None:
    def agent(base_url: str, api_key: str, stream: bool) -> str:
        with openai.OpenAI(base_url=base_url, api_key=api_key) as client:
            messages: list[Any] = [user("weather in Oslo?")]
            while True:
                given: Any = {"model": "rllm", "messages": messages, "tools": [WEATHER]}
                if stream:
                    with client.chat.completions.stream(**given) as events:
                        message = events.get_final_completion().choices[0].message
                else:
                    message = client.chat.completions.create(**given).choices[0].message
                messages.append(message)
                if not message.tool_calls:
                    return message.content
                for call in message.tool_calls:
                    assert json.loads(call.function.arguments) == {"city": "Oslo"}
                    result = {"role": "tool", "tool_call_id": call.id, "content": "rain"}
                    messages.append(result)

    async def talk(gateway: Gateway) -> Any:
        episodes = []
        for stream in (False, True):
            session = gateway.open_session()
            said = await asyncio.to_thread(agent, session.base_url, session.api_key, stream)
            episodes.append((said, session.finish(1.0)))
        return episodes

    for said, episode in with_gateway(talk, ByteEngine(f"I ask.\n{CALL}{CALL}", "It rains.")):
        assert said == "It rains."
        (record,) = episode.trajectory.token_records
        assert [turn.step_index for turn in record.turns] == [0, 1]


def test_errors_are_the_clients_own_exceptions() -> None:
    async def talk(gateway: Gateway) -> list[type]:
        session = gateway.open_session()
        raised = []
        async with openai.AsyncOpenAI(base_url=session.base_url, api_key="k", max_retries=0) as c:
            for more in (
                {"model": "other"},
                {"temperature": -1},
                {"frequency_penalty": 0.5},
                {"messages": [user("x" * 20_000)]},
                {},
            ):
                with pytest.raises(openai.APIStatusError) as caught:
                    await c.chat.completions.create(
                        **{"model": "rllm", "messages": [user("hi")], **more}
                    )
                raised.append((type(caught.value).__name__, caught.value.code, caught.value.param))
        return raised

    assert with_gateway(talk, BrokenEngine("x")) == [
        ("NotFoundError", "model_not_found", "model"),
        ("BadRequestError", "invalid_value", "temperature"),
        ("BadRequestError", "unsupported_parameter", "frequency_penalty"),
        ("BadRequestError", "context_length_exceeded", "messages"),
        ("InternalServerError", "engine_error", None),
    ]


def test_the_clients_retries_get_over_an_engine_that_fails_once() -> None:
    async def talk(gateway: Gateway) -> int:
        session = gateway.open_session()
        async with openai.AsyncOpenAI(base_url=session.base_url, api_key="k") as client:
            await client.chat.completions.create(model="rllm", messages=[user("hi")])
        return len(session.finish(1.0).steps)

    assert with_gateway(talk, BrokenEngine("x", times=1)) == 1


class RecordingEngine:
    """Passes everything on to an engine and keeps what it was asked and what it answered."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.max_model_length = engine.max_model_length
        self.weights_version = 0
        self.calls: list[tuple[GenerationRequest, Any]] = []

    async def generate(self, request: GenerationRequest) -> Any:
        completion = await self._engine.generate(request)
        self.calls.append((request, completion))
        return completion

    async def load_weights(self, tensors: Any, *, version: int) -> None:
        raise AssertionError

    def close(self) -> None:
        self._engine.close()


def test_what_the_tiny_model_samples_is_recorded_to_the_last_bit() -> None:
    from transformers import AutoTokenizer

    from rllm_agents.rollout_engines.openai import OpenAIEngine
    from rllm_agents.rollout_engines.transformers import TransformersEngine

    tokenizer = AutoTokenizer.from_pretrained(TINY)
    engine = RecordingEngine(TransformersEngine(str(TINY)))

    async def agent(gateway: Gateway, seed: int) -> Any:
        session = gateway.open_session(sampling=SamplingParams(seed=seed, max_tokens=12))
        async with openai.AsyncOpenAI(base_url=session.base_url, api_key="k") as client:
            messages: list[Any] = [user(f"What is {seed}3*47?")]
            for _ in range(3):
                reply = await client.chat.completions.create(model="rllm", messages=messages)
                messages += [reply.choices[0].message, user("Check it.")]
        return session.finish(1.0)

    async def talk(gateway: Gateway) -> Any:
        episodes = await asyncio.gather(*(agent(gateway, seed) for seed in range(4)))
        # Our own engine for servers, in ids: what comes out is what the engine sampled.
        remote = OpenAIEngine(f"{gateway.url}/v1", tokenizer=tokenizer, mode="tokens")
        prompt = tuple(tokenizer("What is 3*47?")["input_ids"])
        sampling = SamplingParams(temperature=0.5, seed=5, max_tokens=10)
        sampled = await remote.generate(GenerationRequest((), prompt, sampling))
        remote.close()
        return episodes, sampled

    renderer = Renderer(tokenizer)
    try:
        episodes, sampled = with_gateway(talk, engine, renderer=renderer)
    finally:
        engine.close()
    *calls, (_, last) = engine.calls
    assert (sampled.token_ids, sampled.logprobs) == (last.token_ids, last.logprobs)
    by_prompt = {request.prompt_ids: completion for request, completion in calls}
    num_turns = 0
    for episode in episodes:
        (record,) = episode.trajectory.token_records
        for turn in record.turns:
            completion = by_prompt[record.token_ids[: turn.start]]
            assert record.token_ids[turn.start : turn.stop] == completion.token_ids
            assert record.logprobs[turn.start : turn.stop] == completion.logprobs
            num_turns += 1
    assert num_turns == 12
