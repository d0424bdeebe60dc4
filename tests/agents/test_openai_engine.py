"""The engine over HTTP: exact ids and logprobs, which model, how long, which key."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from agents_fakes import END_OF_TEXT, IM_END, ByteTokenizer
from openai_calls import generate, play, request
from openai_server import FakeServer, status

from rllm_agents import AgentExecutionEngine, compute_pass_at_k
from rllm_agents.agents.tool import ToolAgent
from rllm_agents.errors import EngineError, UserError
from rllm_agents.rollout_engines import build_rollout_engine
from rllm_agents.rollout_engines.openai import OpenAIEngine
from rllm_agents.types import Completion, TerminationReason
from rllm_envs import ToolEnvironment, math_reward_fn

KEY = "sk-verysecret-1234567890"
TWO_TURNS = {"rewards": [0.0, 1.0]}


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


# Exact ids


def test_the_quick_start_form_runs_and_is_scored() -> None:
    answer = r"The answer is \boxed{42}"
    with FakeServer(answer, models=("org/model",), max_model_len=100_000) as server:
        engine = AgentExecutionEngine(
            agent_class=ToolAgent,
            agent_args={"tools": ["calculator"], "parser_name": "qwen"},
            env_class=ToolEnvironment,
            env_args={"tools": ["calculator"], "reward_fn": math_reward_fn},
            engine_name="openai",
            rollout_engine_args={"base_url": server.base_url},
            tokenizer=ByteTokenizer(),
            sampling_params={"temperature": 0.6, "top_p": 0.95, "model": "org/model"},
            max_response_length=16384,
            max_prompt_length=4096,
            n_parallel_agents=64,
        )
        tasks = [{"question": "What is 6 * 7?", "ground_truth": "42"}] * 8
        results = asyncio.run(engine.execute_tasks(tasks))
        figures = compute_pass_at_k(results)
        engine.close()
        assert [episode.error for episode in results] == [None] * 8
        assert figures.pass_at_1 == 1.0
        assert server.num_gets == 1
        assert [body["model"] for body in server.completions] == ["org/model"] * 8
        assert {body["temperature"] for body in server.completions} == {0.6}
        assert "Authorization" not in server.headers[-1]


def test_ids_and_logprobs_arrive_exactly_as_the_server_sampled_them() -> None:
    with FakeServer("hé!") as server:
        answer = generate(server)
    ids = [*"hé!".encode(), IM_END]
    assert answer == Completion(
        text="hé!",
        finish_reason="stop",
        token_ids=tuple(ids),
        logprobs=tuple(-(j + 1) / 1024 for j in range(len(ids))),
        weights_version=0,
    )


def test_a_completion_that_was_cut_keeps_its_last_id_in_the_text() -> None:
    with FakeServer("abcdef") as server:
        answer = generate(server, request(max_tokens=4))
    assert (answer.text, answer.finish_reason, len(answer.token_ids)) == ("abcd", "length", 4)


def test_text_is_decoded_from_ids_without_control_tokens() -> None:
    def change(reply: dict[str, Any]) -> dict[str, Any]:
        choice = reply["choices"][0]
        if len(choice["token_ids"]) > 1:
            choice["token_ids"] = [104, END_OF_TEXT, 105, IM_END]
            choice["text"] = "something else"
        return reply

    with FakeServer("abc") as server:
        server.change = change
        assert generate(server).text == "hi"
        assert generate(server, tokenizer=None).text == "something else"


def test_the_request_says_all_that_shapes_the_distribution() -> None:
    with FakeServer() as server:
        sampled = request(temperature=0.5, top_p=0.9, top_k=7, seed=2**62)
        generate(server, sampled, request(), stop_token_ids=[258, 256])
        bodies = sorted(server.completions, key=lambda body: body["temperature"])
    plain = {"min_p": 0.0, "repetition_penalty": 1.0, "presence_penalty": 0.0}
    plain |= {"frequency_penalty": 0.0, "stop_token_ids": [258, 256], "model": "served"}
    plain |= {"prompt": [1, 2, 3], "max_tokens": 20, "logprobs": 0, "return_token_ids": True}
    assert bodies == [
        {**plain, "temperature": 0.5, "top_p": 0.9, "top_k": 7, "seed": 2**62},
        {**plain, "temperature": 1.0, "top_p": 1.0, "top_k": -1},
    ]


def test_the_second_prompt_is_the_first_its_completion_and_the_new_message() -> None:
    with FakeServer("one", "two") as server:
        (episode,) = play(server, [TWO_TURNS])
        first, second = server.completions
    tokenizer = ByteTokenizer()
    opening = "<|im_start|>user\nstart<|im_end|>\n<|im_start|>assistant\n"
    bridge = "\n<|im_start|>user\nturn 1<|im_end|>\n<|im_start|>assistant\n"
    encode = lambda text: tokenizer(text, add_special_tokens=False)["input_ids"]  # noqa: E731
    assert first["prompt"] == encode(opening)
    assert second["prompt"] == [*encode(opening), *b"one", IM_END, *encode(bridge)]
    (record,) = episode.trajectory.token_records
    assert list(record.token_ids) == [*second["prompt"], *b"two", IM_END]
    spans = [(turn.start, turn.stop) for turn in record.turns]
    start, again = len(first["prompt"]), len(second["prompt"])
    assert spans == [(start, start + 4), (again, again + 4)]
    expected = [0.0] * len(record.token_ids)
    expected[start : start + 4] = expected[again:] = [-1 / 1024, -2 / 1024, -3 / 1024, -4 / 1024]
    assert list(record.logprobs) == expected
    assert (episode.reward, episode.termination_reason) == (1.0, TerminationReason.ENV_DONE)


def test_stop_tokens_of_the_template_go_to_the_server() -> None:
    with FakeServer() as server:
        play(server, [{}])
        assert server.completions[0]["stop_token_ids"] == [IM_END, END_OF_TEXT]


def test_the_tokenizer_may_stand_among_the_engine_arguments() -> None:
    with FakeServer() as server:
        (episode,) = play(
            server, [{}], tokenizer=None, rollout_engine_args={"tokenizer": ByteTokenizer()}
        )
    assert episode.trajectory.token_records


def test_one_engine_serves_loops_one_after_another() -> None:
    with FakeServer() as server:
        engine = OpenAIEngine(server.base_url)
        for _ in range(3):
            assert asyncio.run(engine.generate(request())).text == "yes"
        engine.close()
        engine.close()
        with pytest.raises(EngineError, match="closed"):
            asyncio.run(engine.generate(request()))
        assert server.num_gets == 1
        assert len(server.posts) == 4  # one of them the probe


def test_many_first_requests_ask_for_models_and_probe_once() -> None:
    with FakeServer() as server:
        answers = generate(server, *[request()] * 50)
        assert [answer.text for answer in answers] == ["yes"] * 50
        assert server.num_gets == 1
        assert len(server.posts) == 51


# Which model


def test_the_only_model_of_the_server_is_taken() -> None:
    with FakeServer(models=("the one",)) as server:
        generate(server)
        assert server.completions[0]["model"] == "the one"


@pytest.mark.parametrize(
    ("models", "said"),
    [
        (("a", "b"), "serves 2 models; name one of them as model: a, b"),
        ((), "serves 0 models; name one of them as model: none"),
        (tuple(f"m{i}" for i in range(30)), "m19 and 10 more"),
    ],
)
def test_without_a_name_several_models_are_an_error_that_lists_them(
    models: tuple[str, ...], said: str
) -> None:
    with FakeServer(models=models) as server, pytest.raises(EngineError, match=said):
        generate(server)


def test_a_server_without_a_list_of_models_needs_the_name() -> None:
    with FakeServer() as server:
        server.model_faults = [status(404), status(404)]
        assert generate(server, model="mine").text == "yes"
        with pytest.raises(EngineError, match="/models: HTTP 404"):
            generate(server)


def test_the_servers_length_bounds_prompts_and_completions() -> None:
    with FakeServer(models=("a", "b"), max_model_len=10) as server:
        engine = OpenAIEngine(server.base_url, model="b", tokenizer=ByteTokenizer())
        assert engine.max_model_length is None
        asyncio.run(engine.prepare())
        assert engine.max_model_length == 10
        with pytest.raises(EngineError, match="3 tokens and max_tokens=8 exceed the 10 tokens"):
            asyncio.run(engine.generate(request(max_tokens=8)))
        asyncio.run(engine.generate(request(max_tokens=None)))
        assert server.completions[-1]["max_tokens"] == 7
        engine.close()
        shorter = OpenAIEngine(server.base_url, model="b", max_model_length=6)
        asyncio.run(shorter.prepare())
        assert shorter.max_model_length == 6
        shorter.close()


def test_an_episode_is_never_longer_than_the_server_takes() -> None:
    with FakeServer("a" * 200, max_model_len=60) as server:
        long, short = play(server, [{"question": "x" * 100}, {"question": "hm"}])
        assert long.termination_reason == TerminationReason.MAX_PROMPT_LENGTH_EXCEEDED
        assert short.termination_reason == TerminationReason.MAX_RESPONSE_LENGTH_EXCEEDED
        (body,) = server.completions
        assert len(body["prompt"]) + body["max_tokens"] == 60


def test_without_any_bound_max_tokens_must_be_given() -> None:
    with FakeServer() as server, pytest.raises(EngineError, match="max_tokens must be given"):
        generate(server, request(max_tokens=None))


def test_a_refused_length_is_shown_with_what_was_asked() -> None:
    said = "This model's maximum context length is 512 tokens."
    with FakeServer() as server:
        server.faults = [status(400, {"error": {"message": said}})]
        with pytest.raises(EngineError) as caught:
            generate(server, mode="tokens")
    assert said in str(caught.value)
    assert "(the request: 1 prompt tokens, max_tokens=1)" in str(caught.value)


# Logprobs


@pytest.mark.parametrize(
    ("raw_logprobs", "sampling", "warns"),
    [
        (True, {"temperature": 0.5}, True),
        (True, {"top_p": 0.9}, True),
        (True, {"top_k": 5}, True),
        (True, {}, False),
        (True, {"temperature": 0.0, "top_p": 0.9}, False),
        (False, {"temperature": 0.5, "top_p": 0.9, "top_k": 5}, False),
    ],
)
def test_logprobs_of_another_distribution_are_warned_of_once(
    raw_logprobs: bool, sampling: Any, warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with FakeServer(raw_logprobs=raw_logprobs) as server:
        generate(server, *[request(**sampling)] * 3)
    said = [record.getMessage() for record in caplog.records if record.levelno > logging.INFO]
    assert len(said) == warns
    assert all("--logprobs-mode processed_logprobs" in line for line in said)


# Arguments


def test_a_server_does_not_take_weights() -> None:
    engine = OpenAIEngine("http://localhost:9/v1")
    assert engine.weights_version == 0
    with pytest.raises(EngineError, match="owns its weights"):
        asyncio.run(engine.load_weights({}, version=1))


def test_the_key_of_the_environment_is_used_and_a_given_one_before_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\n")
    with FakeServer(key=KEY) as server:
        assert generate(server).text == "yes"
        (episode,) = play(server, [{}], rollout_engine_args={"api_key": "sk-otherwise"})
        shown = f"{episode.error} {episode.info} {caplog.text} {vars(episode)}"
    assert "HTTP 401" in str(episode.error)
    assert "Bearer ***" in str(episode.error)
    assert "verysecret" not in shown
    assert "otherwise" not in shown


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "missing a required argument: 'base_url'; it takes base_url, model"),
        ({"base_url": "localhost"}, "base_url must be an address"),
        ({"base_url": "http://a/v1", "mode": "text"}, "mode must be one of auto, tokens, chat"),
        ({"base_url": "http://a/v1", "model": ""}, "model must be the server's name"),
        ({"base_url": "http://a/v1", "max_model_length": 1}, "max_model_length must be at least"),
        ({"base_url": "http://a/v1", "api_key": 7}, "api_key must be a string, got int"),
        ({"base_url": "http://a/v1", "url": "x"}, "unexpected keyword argument 'url'"),
    ],
)
def test_a_wrong_argument_is_refused(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        build_rollout_engine("openai", arguments)
