"""Which ids a session of the gateway goes on with, where templates rewrite what was said."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from agents_fakes import ByteEngine, ByteTokenizer, thought_stripping_chatml, trimming_chatml
from gateway_fakes import WEATHER, chat_call, make_session, user

from rllm_agents.gateway.answers import Answer, chat_answer
from rllm_agents.gateway.sessions import GatewaySession
from rllm_agents.renderer import Renderer

OPENING = "<|im_start|>assistant\n"


def decoded(ids: Any) -> str:
    return ByteTokenizer().decode(ids)


def quoted(answer: Answer) -> dict[str, Any]:
    """The reply as a client sends it back: what it was told, through JSON."""
    return json.loads(json.dumps(chat_answer(answer)["choices"][0]["message"]))


def chat(session: GatewaySession, messages: list[dict[str, Any]], **more: Any) -> Answer:
    return asyncio.run(session.chat(chat_call(messages, **more)))


@pytest.mark.parametrize("tools", [[], [WEATHER]])
def test_thoughts_are_kept_where_the_renderer_keeps_them(tools: list[dict[str, Any]]) -> None:
    renderer = Renderer(ByteTokenizer(thought_stripping_chatml), thinking="keep")
    said = ["<think>x</think>one", "<think>y</think>two", "three"]
    session = make_session(ByteEngine(*said), renderer)
    messages = [user("a")]
    for question in "bcd":
        messages += [quoted(chat(session, messages, tools=tools)), user(question)]
    (record,) = session.finish(1.0).trajectory.token_records
    assert [turn.step_index for turn in record.turns] == [0, 1, 2]
    assert decoded(record.token_ids).endswith(
        f"<|im_start|>user\na<|im_end|>\n{OPENING}<think>x</think>one<|im_end|>\n"
        f"<|im_start|>user\nb<|im_end|>\n{OPENING}<think>y</think>two<|im_end|>\n"
        f"<|im_start|>user\nc<|im_end|>\n{OPENING}three<|im_end|>"
    )


def test_branches_keep_the_thoughts_that_they_have_in_common() -> None:
    renderer = Renderer(ByteTokenizer(thought_stripping_chatml), thinking="keep")
    engine = ByteEngine("<think>x</think>one")
    session = make_session(engine, renderer)
    root = [user("a"), quoted(chat(session, [user("a")]))]
    for question in ("left", "right"):
        chat(session, [*root, user(question)])
    first, second = session.finish(1.0).trajectory.token_records
    common = f"<|im_start|>user\na<|im_end|>\n{OPENING}<think>x</think>one<|im_end|>\n"
    assert decoded(first.token_ids).startswith(f"{common}<|im_start|>user\nleft")
    assert decoded(second.token_ids).startswith(f"{common}<|im_start|>user\nright")
    assert [len(record.turns) for record in (first, second)] == [2, 1]


def test_space_that_the_template_trims_is_no_rewriting() -> None:
    session = make_session(ByteEngine(" one \n", "two"), Renderer(ByteTokenizer(trimming_chatml)))
    first = chat(session, [user("a")])
    chat(session, [user("a"), quoted(first), user("b")])
    (record,) = session.finish(1.0).trajectory.token_records
    assert f"{OPENING} one \n<|im_end|>\n" in decoded(record.token_ids)


def test_calls_of_others_are_written_as_the_model_would() -> None:
    deep = '{"x": ' + "[" * 400 + "]" * 400 + "}"
    function = {"name": "weather", "arguments": deep}
    made = {"id": "c", "type": "function", "function": function}
    reply = {"role": "assistant", "content": "See.", "tool_calls": [made, made]}
    result = {"role": "tool", "tool_call_id": "c", "content": "rain"}
    engine = ByteEngine("x")
    chat(make_session(engine), [user("a"), reply, result])
    prompt = decoded(engine.requests[0].prompt_ids)
    assert f'See.\n<tool_call>\n{{"name": "weather", "arguments": {deep}}}\n</tool_call>' in prompt
    assert prompt.count("<tool_call>") == 2
