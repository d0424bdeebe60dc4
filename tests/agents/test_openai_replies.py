"""Replies of servers are believed only as far as they were checked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rllm_agents.errors import EngineError, TransientError
from rllm_agents.rollout_engines.openai_replies import (
    NoTokenIdsError,
    ServedModel,
    read_chat_completion,
    read_models,
    read_token_completion,
)


def token_reply(**changes: Any) -> dict[str, Any]:
    choice = {
        "text": "ab",
        "finish_reason": "stop",
        "token_ids": [97, 98, 258],
        "prompt_token_ids": [5, 6],
        "logprobs": {"token_logprobs": [-0.5, -1.25, 0.0]},
        **changes,
    }
    return {"choices": [{k: v for k, v in choice.items() if v != "absent"}]}


def read(reply: Any, max_tokens: int = 10) -> Any:
    return read_token_completion(reply, prompt_ids=(5, 6), max_tokens=max_tokens)


def test_ids_logprobs_reason_and_text_are_read_as_they_stand() -> None:
    sampled = read(token_reply())
    assert sampled.token_ids == (97, 98, 258)
    assert sampled.logprobs == (-0.5, -1.25, 0.0)
    assert (sampled.finish_reason, sampled.text) == ("stop", "ab")
    assert read(token_reply(finish_reason="length")).finish_reason == "length"


def test_a_server_that_does_not_repeat_the_prompt_is_believed() -> None:
    assert read(token_reply(prompt_token_ids="absent")).token_ids == (97, 98, 258)


def test_a_logprob_that_rounding_put_above_zero_becomes_zero() -> None:
    record = {"token_logprobs": [1e-6, -0.5, 0]}
    assert read(token_reply(logprobs=record)).logprobs == (0.0, -0.5, 0.0)


def test_halves_of_surrogate_pairs_do_not_get_through() -> None:
    broken = json.loads('"\\ud800x"')
    assert read(token_reply(text=broken)).text == "?x"


@pytest.mark.parametrize("ids", [None, "absent"])
def test_a_completion_without_ids_is_an_error_of_its_own(ids: Any) -> None:
    with pytest.raises(NoTokenIdsError, match="token_ids"):
        read(token_reply(token_ids=ids))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"token_ids": "97"}, "a list was expected"),
        ({"token_ids": [97, -1, 258]}, "token id 1 of the completion is -1"),
        ({"token_ids": [97, 98.0, 258]}, "token id 1 of the completion is 98.0"),
        ({"token_ids": [97, True, 258]}, "token id 1 of the completion is True"),
        ({"token_ids": [97, 2**31, 258]}, "token id 1 of the completion is 2147483648"),
        ({"token_ids": [[[[97]]], 98, 258]}, "token id 0"),
        ({"token_ids": []}, "has 0 token ids; 1 to 10 were asked"),
        ({"token_ids": [97] * 11}, "has 11 token ids; 1 to 10 were asked"),
        ({"token_ids": [97, 258]}, "3 logprobs for 2 token ids"),
        ({"logprobs": {"token_logprobs": [-1.0, float("nan"), 0.0]}}, "logprob 1 .* is nan"),
        ({"logprobs": {"token_logprobs": [-1.0, 0.0, -float("inf")]}}, "logprob 2 .* is -inf"),
        ({"logprobs": {"token_logprobs": [-1.0, -2e6, 0.0]}}, "logprob 1 of the completion"),
        ({"logprobs": {"token_logprobs": [-1.0, True, 0.0]}}, "logprob 1 .* is True"),
        ({"logprobs": None}, "logprobs of the completion are None"),
        ({"logprobs": {"token_logprobs": "no"}}, "logprobs of the completion are 'no'"),
        ({"logprobs": {"token_logprobs": [-0.5]}}, "1 logprobs for 3 token ids"),
        ({"logprobs": {"token_logprobs": [-0.5, None, 0]}}, "logprob 1 of the completion is None"),
        ({"logprobs": {"token_logprobs": [-0.5, 0.1, 0]}}, "logprob 1 of the completion is 0.1"),
        ({"logprobs": {"token_logprobs": [float("nan"), 0, 0]}}, "logprob 0 of the completion"),
        ({"logprobs": {"token_logprobs": [0, 0, float("-inf")]}}, "logprob 2 of the completion"),
        ({"logprobs": {"token_logprobs": [0, 0, -(10**400)]}}, "logprob 2 of the completion"),
        ({"finish_reason": None}, "finish_reason of the completion is None"),
        ({"finish_reason": "content_filter"}, "stop or length was expected"),
        ({"prompt_token_ids": [1, 5, 6]}, "completed another prompt"),
        ({"prompt_token_ids": "5, 6"}, "completed another prompt"),
        ({"text": 7}, "a string was expected"),
    ],
)
def test_a_wrong_field_is_named_with_its_value(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(EngineError, match=problem) as caught:
        read(token_reply(**changes))
    assert not isinstance(caught.value, TransientError | NoTokenIdsError)


@pytest.mark.parametrize(
    "reply", [None, [], "text", {}, {"choices": []}, {"choices": [{}, {}]}, {"choices": [7]}]
)
def test_a_reply_without_its_one_choice_is_refused(reply: Any) -> None:
    for reader in (read, read_chat_completion):
        with pytest.raises(EngineError, match="one choice was expected"):
            reader(reply)


@pytest.mark.parametrize("reason", ["abort", "error"])
def test_a_completion_that_the_server_gave_up_may_be_asked_for_again(reason: str) -> None:
    with pytest.raises(TransientError, match=reason):
        read(token_reply(finish_reason=reason))


def test_an_error_stays_short_whatever_was_answered() -> None:
    with pytest.raises(EngineError) as caught:
        read({"choices": [["x" * 10**6] * 1000] * 2})
    assert len(str(caught.value)) < 500


def chat_reply(message: Any, reason: str = "stop") -> dict[str, Any]:
    return {"choices": [{"message": message, "finish_reason": reason}]}


def test_a_message_is_read_and_none_is_an_empty_one() -> None:
    assert read_chat_completion(chat_reply({"content": "hello"})) == ("hello", "stop")
    assert read_chat_completion(chat_reply({"content": None}, "length")) == ("", "length")


@pytest.mark.parametrize(
    ("message", "problem"),
    [(None, "no message"), ("hello", "no message"), ({"content": 3}, "a string was expected")],
)
def test_a_message_of_a_wrong_form_is_refused(message: Any, problem: str) -> None:
    with pytest.raises(EngineError, match=problem):
        read_chat_completion(chat_reply(message))


def test_tool_calls_that_the_server_cut_out_are_refused() -> None:
    with pytest.raises(EngineError, match="tool_calls"):
        read_chat_completion(chat_reply({"content": None}, "tool_calls"))


def test_models_are_read_with_their_lengths() -> None:
    reply = {"data": [{"id": "a", "max_model_len": 512}, {"id": "b"}]}
    assert read_models(reply) == (ServedModel("a", 512), ServedModel("b", None))


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ([], "instead of a list"),
        ({"data": {}}, "instead of a list"),
        ({"data": ["a"]}, "no 'id'"),
        ({"data": [{"id": ""}]}, "no 'id'"),
        ({"data": [{"id": "a", "max_model_len": "512"}]}, "max_model_len='512'"),
        ({"data": [{"id": "a", "max_model_len": 0}]}, "max_model_len=0"),
        ({"data": [{"id": "a", "max_model_len": True}]}, "max_model_len=True"),
    ],
)
def test_a_list_of_models_of_a_wrong_form_is_refused(reply: Any, problem: str) -> None:
    with pytest.raises(EngineError, match=problem):
        read_models(reply)
