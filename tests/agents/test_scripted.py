from __future__ import annotations

import asyncio

import pytest

from rllm_agents.errors import EngineError, UserError
from rllm_agents.rollout_engines.scripted import ScriptedEngine
from rllm_agents.types import GenerationRequest, Message, SamplingParams


def ask(engine: ScriptedEngine, session: str, *messages: Message) -> str:
    request = GenerationRequest(messages, None, SamplingParams(), session)
    return asyncio.run(engine.generate(request)).text


def test_each_session_gets_the_responses_in_order_and_from_the_start_again() -> None:
    engine = ScriptedEngine(["one", "two"])
    assert [ask(engine, "a"), ask(engine, "a"), ask(engine, "a")] == ["one", "two", "one"]
    assert ask(engine, "b") == "one"


def test_a_function_answers_the_conversation() -> None:
    engine = ScriptedEngine(lambda messages: messages[-1]["content"].upper())
    assert ask(engine, "a", {"role": "user", "content": "hello"}) == "HELLO"


def test_a_function_that_returns_no_text_is_an_engine_error() -> None:
    engine = ScriptedEngine(lambda messages: 3)  # type: ignore[arg-type, return-value]
    with pytest.raises(EngineError, match="must return a string, got int"):
        ask(engine, "a")


@pytest.mark.parametrize("responses", [[], "hello", ["a", 1], None, 3])
def test_responses_that_are_no_list_of_texts_are_refused(responses: object) -> None:
    with pytest.raises(UserError, match="non-empty list of strings"):
        ScriptedEngine(responses)  # type: ignore[arg-type]


def test_a_script_has_no_weights_to_load() -> None:
    engine = ScriptedEngine(["a"])
    assert engine.weights_version == 0
    with pytest.raises(EngineError, match="no weights"):
        asyncio.run(engine.load_weights({}, version=1))
    engine.close()
    engine.close()
