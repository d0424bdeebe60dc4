"""The engine over a server that fails: what is tried again, and what an episode says."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from agents_fakes import ByteTokenizer, play_episode
from openai_calls import generate, play, request
from openai_server import FakeServer, drop, hang, raw, status

from rllm_agents.errors import EngineError
from rllm_agents.renderer import Renderer
from rllm_agents.rollout_engines.openai import OpenAIEngine
from rllm_agents.types import TerminationReason


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def test_a_server_that_recovers_costs_nothing_but_time() -> None:
    with FakeServer() as server:
        server.model_faults = [status(503), drop]
        server.faults = [status(500), raw(b"<html>"), drop]
        assert generate(server).text == "yes"


def test_a_completion_that_was_aborted_is_asked_for_again() -> None:
    replies = 0

    def change(reply: dict[str, Any]) -> dict[str, Any]:
        nonlocal replies
        replies += 1
        if replies == 2:  # the first is the probe
            reply["choices"][0]["finish_reason"] = "abort"
        return reply

    with FakeServer() as server:
        server.change = change
        assert generate(server).text == "yes"
        assert len(server.completions) == 2


def test_wrong_lengths_fail_the_episode_and_say_so() -> None:
    def change(reply: dict[str, Any]) -> dict[str, Any]:
        reply["choices"][0]["logprobs"]["token_logprobs"].append(-1.0)
        return reply

    with FakeServer() as server:
        server.change = change
        (episode,) = play(server, [{}])
    assert episode.termination_reason == TerminationReason.LLM_BAD_RESPONSE
    assert "2 logprobs for 1 token ids" in str(episode.error)
    assert episode.reward is None


def test_a_server_that_is_down_is_named_in_every_episode() -> None:
    with FakeServer() as server:
        base_url = server.base_url
    episodes = play(server, [{}] * 3, rollout_engine_args={"max_retries": 1})
    for episode in episodes:
        assert episode.termination_reason == TerminationReason.LLM_CONNECTION
        assert f"{base_url}/models: cannot be reached" in str(episode.error)
        assert "(2 attempts)" in str(episode.error)


def test_a_server_that_goes_away_and_comes_back_loses_only_what_was_asked_meanwhile() -> None:
    with FakeServer() as server:
        engine = OpenAIEngine(server.base_url, max_retries=0)
        assert asyncio.run(engine.generate(request())).text == "yes"
        server.stop()
        with pytest.raises(EngineError, match="cannot be reached"):
            asyncio.run(engine.generate(request()))
        server.start()
        assert asyncio.run(engine.generate(request())).text == "yes"
        engine.close()


def test_an_id_that_the_tokenizer_cannot_decode_is_an_error() -> None:
    class Strict(ByteTokenizer):
        def decode(self, token_ids: Any, **settings: Any) -> str:
            raise IndexError("out of range")

    with (
        FakeServer() as server,
        pytest.raises(EngineError, match=r"cannot decode .* id 258: IndexError"),
    ):
        generate(server, tokenizer=Strict())


def test_cancelling_a_completion_ends_its_request_at_once() -> None:
    async def run(engine: OpenAIEngine, server: FakeServer) -> float:
        await engine.generate(request())
        server.faults = [hang]
        waiting = asyncio.create_task(engine.generate(request()))
        while not server.num_in_flight:
            await asyncio.sleep(0.01)
        start = time.monotonic()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        seconds = time.monotonic() - start
        while server.num_in_flight:
            await asyncio.sleep(0.01)
        return seconds

    with FakeServer() as server:
        engine = OpenAIEngine(server.base_url)
        assert asyncio.run(asyncio.wait_for(run(engine, server), 20)) < 0.5
        assert server.num_aborted == 1
        engine.close()


def test_closing_fails_what_is_in_flight() -> None:
    async def run(engine: OpenAIEngine, server: FakeServer) -> str:
        await engine.generate(request())
        server.faults = [hang]
        waiting = asyncio.create_task(engine.generate(request()))
        while not server.num_in_flight:
            await asyncio.sleep(0.01)
        engine.close()
        with pytest.raises(EngineError) as caught:
            await waiting
        return str(caught.value)

    with FakeServer() as server:
        engine = OpenAIEngine(server.base_url)
        assert "(1 attempt)" in asyncio.run(asyncio.wait_for(run(engine, server), 20))


def test_an_episode_that_runs_out_of_time_does_not_wait_for_the_server() -> None:
    with FakeServer() as server:
        server.faults = [hang] * 5
        engine = OpenAIEngine(server.base_url)
        episode = play_episode(
            engine=engine, renderer=Renderer(ByteTokenizer()), trajectory_timeout_seconds=0.5
        )
        engine.close()
    assert episode.termination_reason == TerminationReason.TIMEOUT
