"""Requests to a server that fails: which are tried again, how often, and what is said."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import pytest
from openai_server import FakeServer, Fault, cut, drop, hang, huge, raw, status

from rllm_agents.errors import EngineError, UserError
from rllm_agents.rollout_engines.openai_client import ClientSettings, OpenAIClient
from rllm_agents.rollout_engines.openai_replies import RefusedError

KEY = "sk-verysecret-1234567890"


def ask(
    server: FakeServer | str,
    faults: Sequence[Fault] = (),
    *,
    path: str = "/chat/completions",
    **settings: Any,
) -> Any:
    """The reply to one chat request, after the faults."""
    base_url = server if isinstance(server, str) else server.base_url
    if isinstance(server, FakeServer):
        server.faults += faults
    client = OpenAIClient(ClientSettings(base_url, **settings))

    async def run() -> Any:
        body = {"messages": [{"role": "user", "content": "?"}]}
        return await client.ask(path, lambda reply: reply, body, about="2 tokens")

    try:
        return asyncio.run(run())
    finally:
        client.close()


def error_of(server: FakeServer | str, faults: Sequence[Fault] = (), **settings: Any) -> str:
    with pytest.raises(EngineError) as caught:
        ask(server, faults, **settings)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


@pytest.mark.parametrize(
    "fault",
    [
        *(status(code) for code in (408, 409, 429, 500, 502, 503, 529)),
        *(drop, cut, raw(b"<html>busy</html>"), raw(b'{"choices": [')),
    ],
)
def test_a_passing_fault_costs_one_more_attempt(fault: Fault) -> None:
    with FakeServer("yes") as server:
        assert ask(server, [fault])["choices"][0]["message"]["content"] == "yes"
        assert len(server.posts) == 2


def test_attempts_are_bounded_and_counted_and_the_server_quoted() -> None:
    failing = status(503, {"error": {"message": "overloaded"}})
    with FakeServer() as server:
        message = error_of(server, [failing] * 9, max_retries=2)
        assert len(server.posts) == 3
        assert message.startswith(f"{server.base_url}/chat/completions: HTTP 503")
        assert message.endswith("overloaded (3 attempts)")


def test_no_retries_means_one_attempt() -> None:
    with FakeServer() as server:
        assert "(1 attempt)" in error_of(server, [status(500)], max_retries=0)
        assert len(server.posts) == 1


@pytest.mark.parametrize("code", [400, 401, 403, 404, 413, 422, 501, 301])
def test_a_refusal_is_not_repeated(code: int) -> None:
    with FakeServer() as server:
        message = error_of(server, [status(code, {"error": {"message": "because"}})] * 2)
        assert len(server.posts) == 1
        assert f"HTTP {code}" in message
        assert "because" in message
        assert message.endswith("(the request: 2 tokens)")


def test_a_used_up_quota_is_not_waited_for() -> None:
    reply = {"error": {"message": "no credit", "code": "insufficient_quota"}}
    with FakeServer() as server:
        assert "no credit" in error_of(server, [status(429, reply)])
        assert len(server.posts) == 1


def test_the_server_is_left_alone_as_long_as_it_asks() -> None:
    with FakeServer("yes") as server:
        start = time.monotonic()
        ask(server, [status(429, Retry_After="1")])
        assert 1.0 <= time.monotonic() - start < 5.0


@pytest.mark.parametrize("date", ["Wed, 21 Oct 2015 07:28:00 GMT", "soon", "nan", "-3", "1e999"])
def test_a_retry_after_of_the_past_or_of_nonsense_is_not_waited_for(date: str) -> None:
    with FakeServer("yes") as server:
        start = time.monotonic()
        ask(server, [status(429, Retry_After=date)])
        assert time.monotonic() - start < 5.0


def test_waits_double_up_to_a_bound_and_start_with_what_the_server_asks() -> None:
    client = OpenAIClient(ClientSettings("http://localhost/v1"))
    waits = {n: [client._wait_seconds(n, None) for _ in range(400)] for n in (1, 2, 3, 20)}
    # Drawn uniformly from [0, 0.5 * 2 ** (n - 1)], at most 30: half of the range is the mean.
    for attempt, most in ((1, 0.5), (2, 1.0), (3, 2.0), (20, 30.0)):
        assert 0 <= min(waits[attempt]) < 0.1 * most
        assert 0.9 * most < max(waits[attempt]) <= most
    assert all(3.0 <= client._wait_seconds(1, 3.0) <= 3.5 for _ in range(50))
    assert client._wait_seconds(1, 86_400.0) <= 60.5


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ({"error": {"message": "openai form"}}, "openai form"),
        ({"object": "error", "message": "older form"}, "older form"),
        ({"detail": "fastapi form"}, "fastapi form"),
        ({"error": "plain form"}, "plain form"),
        ("not even JSON", "not even JSON"),
        ("", "HTTP 400 Bad Request"),
        ({"error": {"message": "two\nlines \x1b[31mred\x00 \u202edesrever"}}, "two lines [31mred"),
    ],
)
def test_what_the_server_says_is_shown_in_one_clean_line(reply: Any, said: str) -> None:
    with FakeServer() as server:
        message = error_of(server, [status(400, reply)])
    assert said in message
    assert message.isprintable()


def test_a_long_complaint_is_cut() -> None:
    with FakeServer() as server:
        assert len(error_of(server, [status(400, {"error": {"message": "x" * 10**6}})])) < 700


def test_an_endless_reply_is_given_up() -> None:
    with FakeServer() as server:
        assert "more than 33554432 bytes" in error_of(server, [huge(40)])
        assert len(server.posts) == 1


def test_a_server_that_never_answers_is_given_up() -> None:
    with FakeServer() as server:
        message = error_of(server, [hang, hang], request_timeout=0.2, max_retries=1)
        assert message.endswith("no answer within 0.2 seconds (2 attempts)")


def test_a_server_that_is_not_there_is_named() -> None:
    with FakeServer() as server:
        base_url = server.base_url
    message = error_of(base_url, max_retries=1)
    assert message.startswith(f"{base_url}/chat/completions: cannot be reached: ")
    assert message.endswith("(2 attempts)")


def test_redirects_are_not_followed() -> None:
    with FakeServer() as target, FakeServer() as server:
        location = f"{target.base_url}/chat/completions"
        message = error_of(server, [status(307, Location=location)], api_key=KEY)
        assert "redirects are not followed" in message
        assert target.posts == []


def test_the_key_goes_to_the_server_and_nowhere_else(caplog: pytest.LogCaptureFixture) -> None:
    with FakeServer(key=KEY) as server:
        assert ask(server, api_key=KEY)["choices"]
        assert server.headers[-1]["Authorization"] == f"Bearer {KEY}"
    with FakeServer(key="another") as server:
        message = error_of(server, api_key=KEY)
        assert "Bearer ***" in message
        assert "OPENAI_API_KEY" in message
        echo = error_of(server, [raw(f"<p>{KEY}</p>".encode())], api_key=KEY, max_retries=0)
    settings = ClientSettings("http://localhost/v1", api_key=KEY)
    shown = [message, echo, repr(settings), str(settings), repr(OpenAIClient(settings))]
    assert [text for text in [*shown, caplog.text] if "verysecret" in text] == []


def test_a_path_that_is_not_there_hints_at_the_usual_base_url() -> None:
    with FakeServer() as server:
        message = error_of(server.base_url.removesuffix("/v1"))
        assert "base_url usually ends with /v1" in message
        assert "HTTP 404" in message


def test_proxies_of_the_environment_are_not_used_for_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with FakeServer("direct") as server, FakeServer("by proxy") as proxy:
        for name in ("http_proxy", "HTTP_PROXY"):
            monkeypatch.setenv(name, proxy.base_url.removesuffix("/v1"))
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        reply = ask(server)
        assert reply["choices"][0]["message"]["content"] == "direct"
        reply = ask("http://elsewhere.invalid/v1")
        assert reply["choices"][0]["message"]["content"] == "by proxy"
        monkeypatch.setenv("no_proxy", "elsewhere.invalid")
        assert "cannot be reached" in error_of("http://elsewhere.invalid/v1", max_retries=0)


def test_no_more_requests_than_allowed_are_in_flight_and_waiting_costs_no_time() -> None:
    with FakeServer() as server:
        server.seconds = 0.2
        settings = ClientSettings(server.base_url, max_connections=3, request_timeout=0.7)
        client = OpenAIClient(settings)

        async def run() -> list[Any]:
            asks = (client.ask("/chat/completions", len, {"messages": []}) for _ in range(15))
            return await asyncio.gather(*asks)

        assert asyncio.run(run()) == [1] * 15
        assert server.most_in_flight == 3
        assert len(server.posts) == 15


def test_a_request_that_is_no_json_is_refused_before_it_is_sent() -> None:
    client = OpenAIClient(ClientSettings("http://localhost:9/v1"))
    for value in (object(), float("nan")):
        with pytest.raises(EngineError, match="cannot be written as JSON"):
            asyncio.run(client.ask("/chat/completions", len, {"messages": value}))


def test_a_refusal_says_which_parameter_it_is_about() -> None:
    reply = {"error": {"message": "no", "code": "unsupported_parameter", "param": "max_tokens"}}
    with FakeServer() as server, pytest.raises(RefusedError) as caught:
        ask(server, [status(400, reply)])
    error = caught.value
    assert (error.status, error.code, error.parameter) == (
        400,
        "unsupported_parameter",
        "max_tokens",
    )
    assert error.message == "no"


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"base_url": "localhost:30000/v1"}, "base_url must be an address such as"),
        ({"base_url": "ftp://localhost/v1"}, "base_url must be an address such as"),
        ({"base_url": "http:///v1"}, "base_url must be an address such as"),
        ({"base_url": "http://localhost:port/v1"}, "base_url must be an address such as"),
        ({"base_url": None}, "base_url must be an address such as"),
        ({"base_url": "http://local\nhost/v1"}, "base_url must be an address such as"),
        ({"base_url": "http://me:word@localhost/v1"}, "give api_key"),
        ({"base_url": "http://localhost/v1?a=b"}, "must end with a path"),
        ({"api_key": "sk verysecret"}, "api_key must be printable ASCII"),
        ({"api_key": "verysecret\r\nX: y"}, "api_key must be printable ASCII"),
        ({"request_timeout": 0}, "request_timeout must be seconds above 0"),
        ({"request_timeout": float("inf")}, "request_timeout must be seconds above 0"),
        ({"max_retries": -1}, r"max_retries must be in \[0, 100\], got -1"),
        ({"max_connections": 0}, "max_connections must be at least 1, got 0"),
    ],
)
def test_a_wrong_setting_is_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(UserError, match=problem) as caught:
        ClientSettings(**{"base_url": "http://localhost/v1", **settings})
    assert "verysecret" not in str(caught.value)
    assert "word" not in str(caught.value).replace("password", "")
