"""Servers that know only text: conversations are sent, and nothing can be learned from it."""

from __future__ import annotations

import pytest
from openai_calls import generate, play, request
from openai_server import FakeServer, status

from rllm_agents import compute_pass_at_k
from rllm_agents.errors import EngineError
from rllm_agents.types import Completion

TWO_TURNS = {"rewards": [0.0, 1.0]}


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.mark.parametrize("code", [None, 400, 404, 405, 422, 501])
def test_a_server_without_ids_is_spoken_to_in_text(
    code: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    with FakeServer("one", "two", gives_ids=False) as server:
        server.faults = [] if code is None else [status(code)]
        episodes = play(server, [TWO_TURNS] * 3)
        assert [path for path, _ in server.posts].count("/v1/completions") == 1
        assert sum(path == "/v1/chat/completions" for path, _ in server.posts) == 6
    for episode in episodes:
        assert (episode.error, episode.reward) == (None, 1.0)
        assert [step.model_response for step in episode.steps] == ["one", "two"]
        assert episode.trajectory.token_records == ()
    assert compute_pass_at_k(episodes).pass_at_1 == 1.0
    (record,) = caplog.records
    assert "returns no token ids" in record.getMessage()


def test_without_a_tokenizer_messages_are_sent_and_no_probe() -> None:
    with FakeServer("one", "two") as server:
        sampling = {"temperature": 0.5, "top_p": 0.9, "top_k": 3, "seed": 1, "max_tokens": 9}
        (episode,) = play(server, [TWO_TURNS], tokenizer=None, sampling_params=sampling)
        (path, first), (_, second) = server.posts
    assert episode.reward == 1.0
    assert episode.trajectory.token_records == ()
    assert path == "/v1/chat/completions"
    assert first["messages"] == [{"role": "user", "content": "start"}]
    assert [m["content"] for m in second["messages"]] == ["start", "one", "turn 1"]
    assert (first["temperature"], first["top_p"], first["top_k"]) == (0.5, 0.9, 3)
    assert first["max_tokens"] == 9
    assert 0 <= first["seed"] < 2**31
    assert first["seed"] != second["seed"]


def test_chat_mode_asks_for_text_though_there_are_ids() -> None:
    with FakeServer() as server:
        answer = generate(server, mode="chat")
        assert answer == Completion(text="yes", finish_reason="stop")
        assert [path for path, _ in server.posts] == ["/v1/chat/completions"]


def test_token_mode_refuses_a_server_without_ids() -> None:
    with FakeServer(gives_ids=False) as server:
        with pytest.raises(EngineError, match="mode='tokens' needs a server that returns token"):
            generate(server, mode="tokens")
        with pytest.raises(EngineError, match="needs prompt_ids"):
            generate(server, request(prompt=None), mode="tokens")


def test_models_that_want_other_words_for_the_same_get_them() -> None:
    with FakeServer() as server:
        server.refused = {"max_tokens": "Use 'max_completion_tokens' instead.", "top_p": "Sorry."}
        answers = generate(server, *[request()] * 3, mode="chat")
        assert [answer.text for answer in answers] == ["yes"] * 3
        body = server.posts[-1][1]
        assert body["max_completion_tokens"] == 20
        assert "top_p" not in body
        server.refused["temperature"] = "Only 1 is supported."
        assert generate(server, mode="chat").text == "yes"
        with pytest.raises(EngineError, match=r"'temperature'. Only 1 is supported."):
            generate(server, request(temperature=0.5), mode="chat")
