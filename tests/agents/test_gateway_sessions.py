"""What a session records: exactly what was sampled, each id once, whatever clients do."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from agents_fakes import ByteEngine, ByteTokenizer, thought_stripping_chatml
from gateway_fakes import (
    WEATHER,
    BrokenEngine,
    HeldEngine,
    assistant,
    chat_call,
    make_session,
    text_call,
    user,
)

from rllm_agents.gateway.answers import Answer, chat_answer
from rllm_agents.gateway.refusals import RequestError
from rllm_agents.gateway.sessions import GatewaySession
from rllm_agents.limits import RolloutLimits
from rllm_agents.renderer import Renderer
from rllm_agents.rollout_engines.scripted import ScriptedEngine
from rllm_agents.types import Episode, SamplingParams, TerminationReason

CALL = '<tool_call>\n{"name": "weather",  "arguments": {"city": "Oslo", "day": 1}}\n</tool_call>'
# The template of the fakes, written out by hand.
OPENING = "<|im_start|>assistant\n"


def chatml_ids(text: str) -> tuple[int, ...]:
    return tuple(ByteTokenizer()(text, add_special_tokens=False)["input_ids"])


def decoded(ids: Any) -> str:
    return ByteTokenizer().decode(ids)


def quoted(answer: Answer) -> dict[str, Any]:
    """The reply as a client sends it back: what it was told, through JSON."""
    return json.loads(json.dumps(chat_answer(answer)["choices"][0]["message"]))


def chat(session: GatewaySession, messages: list[dict[str, Any]], **more: Any) -> Answer:
    return asyncio.run(session.chat(chat_call(messages, **more)))


def sampled_spans(episode: Episode) -> list[tuple[int, str]]:
    """Step and text of everything that is learned from, over all records."""
    return [
        (turn.step_index, decoded(record.token_ids[turn.start : turn.stop]))
        for record in episode.trajectory.token_records
        for turn in record.turns
    ]


def test_ids_and_logprobs_are_those_of_the_engine() -> None:
    engine = ByteEngine("four")
    session = make_session(engine)
    answer = chat(session, [user("two and two?")])
    episode = session.finish(1.0)
    (record,) = episode.trajectory.token_records
    prompt = chatml_ids(f"<|im_start|>user\ntwo and two?<|im_end|>\n{OPENING}")
    sampled = chatml_ids("four<|im_end|>")
    assert engine.requests[0].prompt_ids == prompt
    assert record.token_ids == prompt + sampled
    assert record.logprobs == (0.0,) * len(prompt) + tuple(-(j + 1) / 1024 for j in range(5))
    assert record.turns[0].weights_version == 7
    assert answer.prompt_ids == prompt
    assert answer.completion.token_ids == sampled


def test_a_conversation_that_grows_keeps_its_ids_and_is_one_record() -> None:
    engine = ByteEngine(" one ", "two", "three")
    session = make_session(engine)
    messages = [user("a")]
    for question in ("b", "c", ""):
        answer = chat(session, messages)
        # Clients strip what they quote; the model's own words are put back.
        messages += [assistant(answer.reply.content.strip()), user(question)]
    episode = session.finish(0.5)
    (record,) = episode.trajectory.token_records
    assert decoded(record.token_ids) == (
        "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n one <|im_end|>\n"
        "<|im_start|>user\nb<|im_end|>\n<|im_start|>assistant\ntwo<|im_end|>\n"
        "<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\nthree<|im_end|>"
    )
    assert [turn.step_index for turn in record.turns] == [0, 1, 2]
    for before, after in zip(engine.requests, engine.requests[1:], strict=False):
        assert after.prompt_ids[: len(before.prompt_ids)] == before.prompt_ids
        assert after.session_id == before.session_id


def test_tool_calls_that_a_client_writes_anew_continue_the_sampled_ids() -> None:
    engine = ByteEngine(f"<think>hm</think>Let me see. {CALL}", "It rains.")
    session = make_session(engine)
    first = chat(session, [user("weather in Oslo?")], tools=[WEATHER])
    assert first.finish_reason == "tool_calls"
    (call,) = first.reply.calls
    assert (call.name, json.loads(call.arguments)) == ("weather", {"city": "Oslo", "day": 1})
    reply = quoted(first)
    # Other spaces, another order of arguments, and content as a part.
    reply["tool_calls"][0]["function"]["arguments"] = '{"day":1,"city":"Oslo"}'
    reply["content"] = [{"type": "text", "text": "Let me see."}]
    result = {"role": "tool", "tool_call_id": call.id, "content": "rain"}
    second = chat(session, [user("weather in Oslo?"), reply, result], tools=[WEATHER])
    assert (second.reply.content, second.finish_reason) == ("It rains.", "stop")
    (record,) = session.finish(1.0).trajectory.token_records
    text = decoded(record.token_ids)
    assert text.startswith("<|im_start|>system\n# Tools")
    assert text.endswith(
        f"{OPENING}<think>hm</think>Let me see. {CALL}<|im_end|>\n"
        f"<|im_start|>tool\nrain<|im_end|>\n{OPENING}It rains.<|im_end|>"
    )
    assert len(record.turns) == 2


def test_changed_arguments_are_not_taken_for_the_models_own() -> None:
    session = make_session(ByteEngine(CALL, "done"))
    reply = quoted(chat(session, [user("?")], tools=[WEATHER]))
    reply["tool_calls"][0]["function"]["arguments"] = '{"city": "Rome"}'
    result = {"role": "tool", "tool_call_id": reply["tool_calls"][0]["id"], "content": "sun"}
    chat(session, [user("?"), reply, result], tools=[WEATHER])
    first, second = session.finish(1.0).trajectory.token_records
    assert "Rome" in decoded(second.token_ids)
    assert "Rome" not in decoded(first.token_ids)
    assert [len(record.turns) for record in (first, second)] == [1, 1]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("<tool_call>{broken</tool_call>", id="malformed"),
        pytest.param(f"{CALL}<tool_call>[]</tool_call>", id="one of two malformed"),
    ],
)
def test_a_malformed_call_leaves_the_whole_response_as_text(text: str) -> None:
    answer = chat(make_session(ByteEngine(text)), [user("?")], tools=[WEATHER])
    assert (answer.reply.calls, answer.reply.content) == ((), text)


def test_calls_are_not_read_where_tools_must_not_be_called_or_are_not_there() -> None:
    for more in ({}, {"tools": [WEATHER], "tool_choice": "none"}):
        answer = chat(make_session(ByteEngine(CALL)), [user("?")], **more)
        assert answer.reply.content == CALL


def test_a_rewritten_history_begins_a_record_and_loses_none() -> None:
    session = make_session(ByteEngine("one"))
    chat(session, [user("a")])
    chat(session, [user("A"), assistant("one"), user("b")])
    episode = session.finish(1.0)
    assert sampled_spans(episode) == [(0, "one<|im_end|>"), (1, "one<|im_end|>")]
    assert len(episode.trajectory.token_records) == 2


def test_a_template_that_strips_thoughts_begins_a_record() -> None:
    renderer = Renderer(ByteTokenizer(thought_stripping_chatml))
    session = make_session(ByteEngine("<think>x</think>one"), renderer)
    first = chat(session, [user("a")])
    chat(session, [user("a"), quoted(first), user("b")])
    _, second = session.finish(1.0).trajectory.token_records
    (span,) = second.turns
    assert decoded(second.token_ids[: span.start]) == (
        f"<|im_start|>user\na<|im_end|>\n{OPENING}one<|im_end|>\n"
        f"<|im_start|>user\nb<|im_end|>\n{OPENING}"
    )


def test_two_that_continue_the_same_turn_share_its_ids_and_learn_it_once() -> None:
    engine = ByteEngine("root")
    session = make_session(engine)
    root = [user("a"), quoted(chat(session, [user("a")]))]
    for question in ("left", "right"):
        chat(session, [*root, user(question)])
    episode = session.finish(1.0)
    first, second = episode.trajectory.token_records
    assert [turn.step_index for turn in first.turns] == [0, 1]
    assert [turn.step_index for turn in second.turns] == [2]
    (span,) = second.turns
    assert second.token_ids[: span.start] == engine.requests[2].prompt_ids
    assert set(second.logprobs[: span.start]) == {0.0}
    assert len({request.session_id for request in engine.requests}) == 2


def test_overlapping_calls_are_sequences_of_their_own() -> None:
    async def run() -> Episode:
        engine = HeldEngine()
        session = make_session(engine)
        calls = [asyncio.create_task(session.chat(chat_call([user(t)]))) for t in "abc"]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(engine.requests) == 3
        engine.release.set()
        await asyncio.gather(*calls)
        return session.finish(1.0)

    episode = asyncio.run(run())
    assert sampled_spans(episode) == [(i, f"echo {t}<|im_end|>") for i, t in enumerate("abc")]
    assert len(episode.trajectory.token_records) == 3


def test_a_call_whose_client_went_away_is_not_recorded_and_frees_its_place() -> None:
    async def run() -> Episode:
        engine = HeldEngine()
        engine.release.set()
        session = make_session(engine)
        root = [user("a"), quoted(await session.chat(chat_call([user("a")])))]
        engine.release.clear()
        gone = asyncio.create_task(session.chat(chat_call([*root, user("b")])))
        while len(engine.requests) < 2:
            await asyncio.sleep(0)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        assert engine.num_cancelled == 1
        engine.release.set()
        await session.chat(chat_call([*root, user("b")]))
        return session.finish(1.0)

    episode = asyncio.run(run())
    (record,) = episode.trajectory.token_records
    assert [turn.step_index for turn in record.turns] == [0, 1]


def test_finishing_gives_up_what_still_runs_and_refuses_more() -> None:
    async def run() -> list[int]:
        engine = HeldEngine()
        session = make_session(engine)
        running = asyncio.create_task(session.chat(chat_call([user("a")])))
        while not engine.requests:
            await asyncio.sleep(0)
        assert session.finish(0.0).steps == []
        statuses = []
        for call in (running, session.chat(chat_call([user("b")]))):
            with pytest.raises(RequestError) as caught:
                await call
            statuses.append(caught.value.status)
        assert engine.num_cancelled == 1
        return statuses

    assert asyncio.run(run()) == [409, 409]


def test_a_stop_text_ends_text_and_ids_where_a_sampler_would_have() -> None:
    session = make_session(ByteEngine("Thought: x\nObservation: made up", "ok"))
    answer = chat(session, [user("a")], stop=["never", "\nObservation:"])
    assert answer.reply.content == "Thought: x"
    assert answer.finish_reason == "stop"
    ids = chatml_ids("Thought: x\nObservation:")
    assert answer.completion.token_ids == ids
    assert answer.completion.logprobs == tuple(-(j + 1) / 1024 for j in range(len(ids)))
    chat(session, [user("a"), assistant("Thought: x"), user("b")])
    (record,) = session.finish(1.0).trajectory.token_records
    assert decoded(record.token_ids) == (
        f"<|im_start|>user\na<|im_end|>\n{OPENING}Thought: x\nObservation:<|im_end|>\n"
        f"<|im_start|>user\nb<|im_end|>\n{OPENING}ok<|im_end|>"
    )


def test_control_strings_in_messages_stay_ordinary_characters() -> None:
    engine = ByteEngine("x")
    chat(make_session(engine), [user("<|im_end|>")])
    prompt = engine.requests[0].prompt_ids
    assert prompt is not None
    assert list(prompt).count(258) == 1  # the end of the user's turn alone
    assert bytes(i for i in prompt if i < 256).count(b"<|im_end|>") == 1


def test_text_prompts_continue_the_turn_that_they_begin_with() -> None:
    engine = ByteEngine(" world", "!")
    session = make_session(engine)
    first = asyncio.run(session.complete(text_call("hello")))
    assert engine.requests[0].prompt_ids == chatml_ids("hello")
    asyncio.run(session.complete(text_call("hello world<|im_end|>, again")))
    asyncio.run(session.complete(text_call([*first.prompt_ids, *first.completion.token_ids, 65])))
    first_record, second_record = session.finish(1.0).trajectory.token_records
    assert decoded(first_record.token_ids) == "hello world<|im_end|>, again!<|im_end|>"
    assert decoded(second_record.token_ids).startswith("hello world<|im_end|>A")
    assert [len(record.turns) for record in (first_record, second_record)] == [2, 1]


def test_sampling_of_the_session_holds_whatever_requests_say() -> None:
    engine = ByteEngine("x")
    session = make_session(engine, sampling=SamplingParams(temperature=0.7, seed=3))
    chat(session, [user("a")], temperature=0.1, seed=9, max_tokens=5)
    chat(session, [user("b")])
    first, second = (request.sampling for request in engine.requests)
    assert (first.temperature, first.max_tokens) == (0.7, 5)
    assert second.temperature == 0.7
    assert len({first.seed, second.seed, 9, 3}) == 4
    assert session.finish(1.0).steps[0].info["overridden"] == {"temperature": 0.1, "seed": 9}


def test_requests_decide_where_the_session_does_not() -> None:
    engine = ByteEngine("x")
    chat(make_session(engine), [user("a")], temperature=0.1, top_p=0.5, top_k=-1, seed=9)
    sampling = engine.requests[0].sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k) == (0.1, 0.5, 0)
    assert sampling.seed == 9


@pytest.mark.parametrize(
    ("limits", "question", "reason"),
    [
        (RolloutLimits(max_steps=1), "a", TerminationReason.MAX_TURNS_EXCEEDED),
        (
            RolloutLimits(max_prompt_length=40, max_response_length=60),
            "b" * 90,
            TerminationReason.MAX_RESPONSE_LENGTH_EXCEEDED,
        ),
    ],
)
def test_a_bound_refuses_the_call_and_says_which(
    limits: RolloutLimits, question: str, reason: TerminationReason
) -> None:
    session = make_session(ByteEngine("x"), limits=limits)
    chat(session, [user("a")])
    with pytest.raises(RequestError) as caught:
        chat(session, [user(question)])
    assert caught.value.status == 400
    assert session.limit_reached is reason


def test_a_first_prompt_over_its_bound_is_refused() -> None:
    session = make_session(ByteEngine("x"), limits=RolloutLimits(max_prompt_length=10))
    with pytest.raises(RequestError, match="at most 10"):
        chat(session, [user("a" * 20)])
    assert session.limit_reached is TerminationReason.MAX_PROMPT_LENGTH_EXCEEDED


def test_answers_are_cut_at_what_the_context_has_room_for() -> None:
    session = make_session(
        ByteEngine("0123456789"), limits=RolloutLimits(max_prompt_length=99, max_response_length=4)
    )
    answer = chat(session, [user("a")])
    assert (answer.reply.content, answer.finish_reason) == ("0123", "length")


def test_an_engine_that_fails_is_answered_and_forgiven_when_it_answers_again() -> None:
    session = make_session(BrokenEngine("fine", times=1))
    with pytest.raises(RequestError) as caught:
        chat(session, [user("a")])
    assert caught.value.status == 500
    assert session.engine_problem == "RuntimeError: out of [31mmemory now"
    chat(session, [user("a")])
    assert session.engine_problem is None
    assert len(session.finish(1.0).steps) == 1


def test_an_engine_without_ids_gives_steps_but_nothing_to_learn_from() -> None:
    session = make_session(ScriptedEngine(["one", "two"]))
    first = chat(session, [user("a")])
    chat(session, [user("a"), quoted(first), user("b")])
    episode = session.finish(1.0)
    assert [step.model_response for step in episode.steps] == ["one", "two"]
    assert episode.trajectory.token_records == ()


def test_the_reward_is_the_last_steps_and_returns_are_discounted() -> None:
    session = make_session(ByteEngine("x"), gamma=0.5)
    for text in "abc":
        chat(session, [user(text)])
    episode = session.finish(2.0)
    assert [step.reward for step in episode.steps] == [0.0, 0.0, 2.0]
    assert [step.mc_return for step in episode.steps] == [0.5, 1.0, 2.0]
    assert (episode.reward, episode.is_correct) == (2.0, True)
    assert episode.metrics["response_tokens"] == 6.0
    with pytest.raises(ValueError, match="finite"):
        session.finish(float("nan"))
