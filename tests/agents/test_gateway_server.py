"""The server: what it answers, what it refuses, and that no client can hurt another."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import aiohttp
import pytest
from agents_fakes import ByteEngine
from gateway_fakes import BrokenEngine, HeldEngine, assistant, post, user, with_gateway

from rllm_agents.errors import UserError
from rllm_agents.gateway import Gateway, Token
from rllm_agents.gateway.json_body import MAX_BODY_BYTES
from rllm_agents.types import Episode, TerminationReason

ASK = {"model": "rllm", "messages": [user("hi")]}
TOKEN = "a-token-of-more-than-sixteen"


async def status_of(method: str, url: str, **more: Any) -> int:
    async with aiohttp.ClientSession() as client, client.request(method, url, **more) as response:
        await response.read()
        return response.status


def ask(body: Any, engine: Any = None, path: str = "chat/completions", **settings: Any) -> Any:
    """Answer to one request in a session of its own."""

    async def talk(gateway: Gateway) -> Any:
        return await post(f"{gateway.open_session().base_url}/{path}", body)

    return with_gateway(talk, engine, **settings)


def test_an_answer_has_the_protocols_form() -> None:
    status, headers, body = ask({**ASK, "logprobs": True, "return_token_ids": True})
    assert (status, body["object"], body["model"]) == (200, "chat.completion", "rllm")
    assert headers["Content-Type"].startswith("application/json")
    (choice,) = body["choices"]
    assert choice["message"] == {"role": "assistant", "content": "hello", "refusal": None}
    assert choice["finish_reason"] == "stop"
    assert choice["token_ids"] == [*b"hello", 258]
    assert [entry["logprob"] for entry in choice["logprobs"]["content"]] == [
        -(j + 1) / 1024 for j in range(6)
    ]
    # <|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n
    assert len(body["prompt_token_ids"]) == 1 + 5 + 2 + 1 + 1 + 1 + 10
    assert body["usage"] == {"prompt_tokens": 21, "completion_tokens": 6, "total_tokens": 27}


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        pytest.param(b"{", 400, "json", id="half of JSON"),
        pytest.param(b"[]", 400, "json", id="no object"),
        pytest.param(b"\xff\xfe", 400, "json", id="no text"),
        pytest.param(b'{"seed": NaN}', 400, "json", id="NaN"),
        pytest.param(b'{"a":' + b"9" * 5000 + b"}", 400, "json", id="a number too long"),
        pytest.param(b'{"a":' * 70 + b"1" + b"}" * 70, 400, "json", id="70 levels"),
        pytest.param(b'{"a":' + b"[" * 300_000, 400, "json", id="depth bomb"),
        pytest.param(b'{"a":[' + b"[]," * 1_100_000, 400, "json", id="bracket bomb"),
        pytest.param({**ASK, "model": "gpt-9"}, 404, "model_not_found", id="unknown model"),
        pytest.param({"model": "rllm"}, 400, "invalid_value", id="no messages"),
        pytest.param(
            {**ASK, "logit_bias": {"5": -100}}, 400, "unsupported_parameter", id="logit_bias"
        ),
        pytest.param({**ASK, "mirostat": 1}, 400, "unknown_parameter", id="unknown parameter"),
    ],
)
def test_wrong_requests_are_refused_in_the_protocols_form(
    body: Any, status: int, code: str
) -> None:
    found, _, answer = ask(body)
    assert (found, answer["error"]["code"]) == (status, code)
    assert answer["error"]["type"] == "invalid_request_error"
    assert len(answer["error"]["message"]) < 600


@pytest.mark.parametrize(("levels", "status"), [(63, 200), (64, 400)])
def test_64_levels_are_read_and_no_more(levels: int, status: int) -> None:
    inner = b'{"a":' * levels + b"1" + b"}" * levels  # inside the body, which is one level
    asked = b'"model":"rllm","messages":[{"role":"user","content":"x"}]'
    assert ask(b"{" + asked + b',"metadata":' + inner + b"}")[0] == status


def test_a_body_of_17_megabytes_is_refused_and_the_next_request_answered() -> None:
    async def talk(gateway: Gateway) -> list[int]:
        url = f"{gateway.open_session().base_url}/chat/completions"
        statuses = []

        async def pieces() -> Any:
            for _ in range(17):
                yield b" " * 2**20

        for data in (b" " * (MAX_BODY_BYTES + 1), pieces()):
            try:
                headers = {"Content-Type": "application/json"}
                statuses.append(await status_of("POST", url, data=data, headers=headers))
            except aiohttp.ClientConnectionError:
                statuses.append(413)  # the connection was closed before all of it was sent
        statuses.append((await post(url, ASK))[0])
        return statuses

    assert with_gateway(talk) == [413, 413, 200]


def test_slow_clients_lose_their_connection_and_others_do_not_notice() -> None:
    async def talk(gateway: Gateway) -> list[bytes]:
        url = gateway.open_session().base_url
        host, port = gateway.url.removeprefix("http://").split(":")
        begun = (
            b"POST /v1/chat/completions HT",
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
        )
        slow = []
        for text in begun:
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(text)
            slow.append((reader, writer))
        assert (await post(f"{url}/chat/completions", ASK))[0] == 200
        answers = [await reader.read() for reader, _ in slow]
        for _, writer in slow:
            writer.close()
        return answers

    header, body = with_gateway(talk, header_seconds=0.2, body_seconds=0.2)
    assert header == b""
    assert body.startswith(b"HTTP/1.1 408 ")


def test_every_route_wants_the_token_where_there_is_one() -> None:
    async def talk(gateway: Gateway) -> tuple[set[int], int, int]:
        session = gateway.open_session()
        id = session.base_url.split("/")[-2]
        routes = [
            ("GET", "/v1/models"),
            ("GET", "/health"),
            ("POST", "/v1/chat/completions"),
            ("POST", "/v1/completions"),
            ("POST", f"/sessions/{id}/v1/chat/completions"),
            ("POST", "/sessions"),
            ("POST", f"/sessions/{id}/finish"),
            ("DELETE", f"/sessions/{id}"),
            ("GET", "/nowhere"),
        ]
        wrong = [None, "", TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer ", "Bearer \xe4"]
        statuses = {
            await status_of(
                method,
                gateway.url + path,
                data=b"{}" if method == "POST" else None,
                headers={"Authorization": value} if value is not None else {},
            )
            for method, path in routes
            for value in wrong
        }
        headers = {"Authorization": f"Bearer {session.api_key}"}
        known = await status_of("GET", f"{gateway.url}/health", headers=headers)
        unknown = await status_of("GET", f"{gateway.url}/nowhere", headers=headers)
        return statuses, known, unknown

    assert with_gateway(talk, token=Token(TOKEN)) == ({401}, 200, 404)


def test_other_addresses_need_a_token() -> None:
    with pytest.raises(UserError, match="needs a token"):
        with_gateway(lambda gateway: asyncio.sleep(0), host="0.0.0.0")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({"Host": "rebound.example"}, 403, id="a name that was bound anew"),
        pytest.param({"Host": "localhost:1234"}, 200, id="this machine"),
        pytest.param({"Content-Type": "text/plain"}, 415, id="what a web page may send"),
        pytest.param({"Content-Encoding": "gzip"}, 415, id="compressed"),
    ],
)
def test_web_pages_cannot_ask(headers: dict[str, str], status: int) -> None:
    async def talk(gateway: Gateway) -> int:
        url = f"{gateway.open_session().base_url}/chat/completions"
        return (await post(url, ASK, **{k.replace("-", "_"): v for k, v in headers.items()}))[0]

    assert with_gateway(talk) == status


@pytest.mark.parametrize(
    ("given", "is_kept"),
    [("abc-123", True), ("a b", False), ("x" * 129, False), ("<script>", False)],
)
def test_request_ids_are_echoed_where_they_are_fit_to_be(given: str, is_kept: bool) -> None:
    async def talk(gateway: Gateway) -> str:
        _, headers, _ = await post(f"{gateway.url}/nowhere", {}, X_Request_Id=given)
        return headers["X-Request-Id"]

    echoed = with_gateway(talk)
    assert (echoed == given) is is_kept
    assert is_kept or echoed.startswith("req_")


def test_sessions_of_this_process_cannot_be_ended_over_http() -> None:
    async def talk(gateway: Gateway) -> tuple[int, int, int]:
        session = gateway.open_session()
        url = session.base_url.removesuffix("/v1")
        finished = (await post(f"{url}/finish", {"reward": 1.0}))[0]
        deleted = await status_of("DELETE", url)
        return finished, deleted, (await post(f"{session.base_url}/chat/completions", ASK))[0]

    assert with_gateway(talk) == (403, 403, 200)


def test_a_client_opens_uses_and_finishes_a_session() -> None:
    episodes: list[Episode] = []

    async def talk(gateway: Gateway) -> tuple[Any, int]:
        _, _, opened = await post(f"{gateway.url}/sessions", {})
        url = f"{gateway.url}{opened['base_url']}"
        messages = [user("hi")]
        for _ in range(2):
            _, _, body = await post(f"{url}/chat/completions", {**ASK, "messages": messages})
            messages += [body["choices"][0]["message"], user("more")]
        for reward in ("1", None, True, 1e400):
            refused = {"reward": reward}
            assert (await post(f"{gateway.url}/sessions/{opened['id']}/finish", refused))[0] == 400
        _, _, summary = await post(
            f"{gateway.url}/sessions/{opened['id']}/finish", {"reward": 0.25, "is_correct": False}
        )
        after, _, _ = await post(f"{url}/chat/completions", ASK)
        return summary, after

    summary, after = with_gateway(talk, on_episode=episodes.append)
    assert after == 404
    assert summary == {
        **{"id": episodes[0].id, "reward": 0.25, "is_correct": False},
        **{"num_calls": 2, "num_sequences": 1, "response_tokens": 12},
    }
    assert len(episodes[0].trajectory.token_records[0].turns) == 2


def test_a_header_or_the_user_names_a_session_and_neither_is_not_kept() -> None:
    async def talk(gateway: Gateway) -> tuple[list[int], int, int]:
        url = f"{gateway.url}/v1/chat/completions"
        sessions = []
        for body, headers in (
            (ASK, {}),
            ({**ASK, "user": "anna"}, {}),
            (ASK, {"X_Session_Id": "anna"}),
            ({**ASK, "user": "anna"}, {"X_Session_Id": "bert"}),
        ):
            assert (await post(url, body, **headers))[0] == 200
            sessions.append(gateway.num_sessions)
        bad, _, _ = await post(url, {**ASK, "user": "../etc"})
        _, _, summary = await post(f"{gateway.url}/sessions/anna/finish", {"reward": 0})
        return sessions, bad, summary["num_calls"]

    assert with_gateway(talk) == ([0, 1, 1, 2], 400, 2)


def test_sessions_are_bounded_and_idle_ones_are_dropped() -> None:
    episodes: list[Episode] = []

    async def talk(gateway: Gateway) -> tuple[list[int], int]:
        statuses = [(await post(f"{gateway.url}/sessions", {}))[0] for _ in range(3)]
        # What a day later would be.
        reaped = gateway._table.reap(now=asyncio.get_running_loop().time() + 86_400)
        statuses.append((await post(f"{gateway.url}/sessions", {}))[0])
        return statuses, reaped

    statuses, reaped = with_gateway(talk, max_sessions=2, on_episode=episodes.append)
    assert (statuses, reaped) == ([200, 200, 429, 200], 2)
    assert [e.termination_reason for e in episodes] == [TerminationReason.AGENT_EXCEPTION] * 3
    assert all(e.reward is None and "no reward" in (e.error or "") for e in episodes)


def test_where_clients_may_not_open_sessions_every_call_needs_one() -> None:
    async def talk(gateway: Gateway) -> list[int]:
        url = f"{gateway.url}/v1/chat/completions"
        return [
            (await post(url, ASK))[0],
            (await post(url, {**ASK, "user": "anna"}))[0],
            (await post(f"{gateway.url}/sessions", {}))[0],
            (await post(f"{gateway.url}/sessions/guessed/v1/chat/completions", ASK))[0],
        ]

    assert with_gateway(talk, opens_sessions=False) == [403, 403, 403, 404]


def test_a_client_that_leaves_frees_the_engine_and_is_not_recorded() -> None:
    async def talk(gateway: Gateway) -> tuple[int, int]:
        session = gateway.open_session()
        client = aiohttp.ClientSession()
        body = json.dumps(ASK)
        headers = {"Content-Type": "application/json"}
        url = f"{session.base_url}/chat/completions"
        call = asyncio.create_task(client.post(url, data=body, headers=headers).__aenter__())
        while not engine.requests:
            await asyncio.sleep(0.01)
        call.cancel()
        await client.close()
        while not engine.num_cancelled:
            await asyncio.sleep(0.01)
        return engine.num_cancelled, len(session.finish(0.0).steps)

    engine = HeldEngine()
    assert with_gateway(talk, engine) == (1, 0)


def test_more_requests_than_allowed_are_told_to_come_again() -> None:
    async def talk(gateway: Gateway) -> tuple[int, str, int]:
        url = f"{gateway.open_session().base_url}/chat/completions"
        first = asyncio.create_task(post(url, ASK))
        while not engine.requests:
            await asyncio.sleep(0.01)
        status, headers, _ = await post(url, ASK)
        engine.release.set()
        return status, headers["Retry-After"], (await first)[0]

    engine = HeldEngine()
    assert with_gateway(talk, engine, max_requests=1) == (429, "1", 200)


def test_no_text_of_models_engines_or_clients_reaches_the_log_as_it_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hostile = "\x1b[2Jowned\r\nforged line"

    async def talk(gateway: Gateway) -> list[str]:
        url = gateway.open_session().base_url
        await post(f"{url}/chat/completions", {**ASK, "messages": [user(hostile)]})
        broken = await post(f"{url}/chat/completions", {**ASK, hostile: 1})
        return [broken[2]["error"]["message"]]

    with caplog.at_level(logging.DEBUG):
        (message,) = with_gateway(talk, BrokenEngine("x"))
    assert "\x1b" not in message
    assert "\n" not in message
    logged = "\n".join(record.getMessage() for record in caplog.records)
    assert "req_" in logged
    for text in ("\x1b", "owned", "forged", "memory"):
        assert text not in logged


def test_overlong_conversations_have_the_code_that_frameworks_know() -> None:
    body = {**ASK, "messages": [user("x" * 5000), assistant("y"), user("z")]}
    status, _, answer = ask(body)
    assert (status, answer["error"]["code"]) == (400, "context_length_exceeded")


def test_models_are_listed_with_their_length() -> None:
    async def talk(gateway: Gateway) -> tuple[Any, int]:
        async with aiohttp.ClientSession() as client:
            async with client.get(f"{gateway.url}/v1/models") as response:
                listed = await response.json()
            async with client.get(f"{gateway.url}/v1/models/other") as response:
                return listed, response.status

    listed, other = with_gateway(talk, ByteEngine("x"), model="mine/small")
    (entry,) = listed["data"]
    assert (entry["id"], entry["max_model_len"], other) == ("mine/small", 4096 + 8192, 404)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"zz\r\n{}\r\n0\r\n\r\n", id="badly chunked"),
        pytest.param(b"10\r\n{", id="cut off"),
    ],
)
def test_broken_bodies_are_no_errors_of_the_server(
    sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def talk(gateway: Gateway) -> int:
        host, port = gateway.url.removeprefix("http://").split(":")
        url = gateway.open_session().base_url
        path = url.removeprefix(gateway.url).encode()
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(
            b"POST " + path + b"/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + sent
        )
        writer.write_eof()
        answer = await reader.read()
        writer.close()
        assert answer == b"" or answer.startswith(b"HTTP/1.1 400")
        return (await post(f"{url}/chat/completions", ASK))[0]

    assert with_gateway(talk, body_seconds=1.0) == 200
    assert [r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR] == []
