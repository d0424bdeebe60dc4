"""A server that speaks the OpenAI protocol in token ids over loopback, and fails as planned."""

from __future__ import annotations

import asyncio
import re
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace
from typing import Any, Self

from aiohttp import web
from fault_env import answer_of
from fault_plan import RETRY_AFTER_SECONDS, SLOW_SECONDS, Faults

_SPECIAL = {"<|endoftext|>": 256, "<|im_start|>": 257, "<|im_end|>": 258}
_END = 258
_QUESTION = re.compile(rb"episode (\d+) turn (\d+)")


class ByteTokenizer:
    """One id for each byte of UTF-8, three control tokens, and the ChatML template."""

    eos_token_id = 256
    all_special_tokens = list(_SPECIAL)  # noqa: RUF012
    added_tokens_decoder = {  # noqa: RUF012
        number: SimpleNamespace(content=text, special=True) for text, number in _SPECIAL.items()
    }
    _parts = re.compile("(" + "|".join(re.escape(text) for text in _SPECIAL) + ")")

    def apply_chat_template(
        self, conversation: Any, *, add_generation_prompt: bool = False, **settings: Any
    ) -> str:
        """Return messages as ChatML."""
        text = "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in conversation)
        return text + ("<|im_start|>assistant\n" if add_generation_prompt else "")

    def __call__(self, text: str, **settings: Any) -> dict[str, list[int]]:
        """Return a text's ids."""
        ids: list[int] = []
        for part in self._parts.split(text):
            ids += [_SPECIAL[part]] if part in _SPECIAL else part.encode()
        return {"input_ids": ids}

    def decode(
        self, token_ids: Sequence[int], *, skip_special_tokens: bool = False, **settings: Any
    ) -> str:
        """Return the text of ids."""
        names = {number: text.encode() for text, number in _SPECIAL.items()}
        parts = (
            bytes([i]) if i < 256 else b"" if skip_special_tokens else names[i] for i in token_ids
        )
        return b"".join(parts).decode("utf-8", "replace")


class FaultServer:
    """Answers each turn of each episode as that and no other wants it; runs in a thread.

    Used as a context manager.

    Args:
        plan: Faults of each episode; those of the server are met here.
    """

    def __init__(self, plan: Sequence[Faults]) -> None:
        self._plan = plan
        self._met: Counter[tuple[int, str]] = Counter()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._runner: web.AppRunner | None = None
        self._port = 0
        self.num_requests = 0

    def __enter__(self) -> Self:
        """Start to listen."""
        self._thread.start()
        self._call(self._start())
        return self

    def __exit__(self, *exception: object) -> None:
        """Drop all connections and end the thread."""
        assert self._runner is not None
        self._call(self._runner.cleanup())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    @property
    def base_url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._port}/v1"

    def restart(self) -> None:
        """Drop all connections and listen again, at the same address."""
        assert self._runner is not None
        self._call(self._runner.cleanup())
        self._call(self._start())

    def _call(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _start(self) -> None:
        app = web.Application(client_max_size=2**26)
        app.router.add_get("/v1/models", self._list_models)
        app.router.add_post("/v1/completions", self._complete)
        self._runner = web.AppRunner(
            app, shutdown_timeout=0.05, handler_cancellation=True, access_log=None
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port, backlog=1024).start()
        self._port = self._runner.addresses[0][1]

    async def _list_models(self, request: web.Request) -> web.StreamResponse:
        return web.json_response({"object": "list", "data": [{"id": "served"}]})

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.num_requests += 1
        asked = _QUESTION.findall(bytes(i for i in body["prompt"] if i < 256))
        if not asked:  # the probe of one token
            return web.json_response(_reply([65], body, logprob=0.0))
        episode, turn = map(int, asked[-1])
        for name, fault in _FAULTS.items():
            planned = self._plan[episode].get(name)
            if planned is not None and planned["turn"] == turn:
                self._met[episode, name] += 1
                if self._met[episode, name] <= planned["times"]:
                    failed = await fault(request)
                    if failed is not None:
                        return failed
        ids = [*answer_of(episode, turn).encode(), _END]
        return web.json_response(_reply(ids, body))


def _reply(ids: list[int], body: dict[str, Any], logprob: float = -0.5) -> dict[str, Any]:
    choice = {
        "index": 0,
        "text": "",
        "finish_reason": "stop",
        "token_ids": ids,
        "prompt_token_ids": body["prompt"],
        "logprobs": {"token_logprobs": [logprob] * len(ids)},
    }
    return {"object": "text_completion", "choices": [choice]}


def _status(code: int, **headers: str) -> Callable[..., Awaitable[web.StreamResponse]]:
    async def fail(request: web.Request) -> web.StreamResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.json_response({"error": {"message": "planned"}}, status=code, headers=named)

    return fail


def _body(content: bytes) -> Callable[..., Awaitable[web.StreamResponse]]:
    async def fail(request: web.Request) -> web.StreamResponse:
        return web.Response(body=content, content_type="application/json")

    return fail


def _changed(change: Callable[[dict[str, Any]], None]) -> Callable[..., Awaitable[Any]]:
    async def fail(request: web.Request) -> web.StreamResponse:
        reply = _reply([*b"answer", _END], await request.json())
        change(reply["choices"][0])
        return web.json_response(reply)

    return fail


def _set_logprobs(choice: dict[str, Any], logprob: float, more: int) -> None:
    count = len(choice["token_ids"]) + more
    choice["logprobs"] = {"token_logprobs": [logprob] * count}


async def _hang(request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(3600)
    raise AssertionError


async def _reset(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def _truncate(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"choices"')
    assert request.transport is not None
    request.transport.close()
    return response


async def _slow(request: web.Request) -> None:
    await asyncio.sleep(SLOW_SECONDS)


_FAULTS: dict[str, Callable[[web.Request], Awaitable[web.StreamResponse | None]]] = {
    "HTTP 500": _status(500),
    "HTTP 503": _status(503),
    "HTTP 429 with Retry-After": _status(429, Retry_After=str(RETRY_AFTER_SECONDS)),
    "accepts and hangs": _hang,
    "connection reset": _reset,
    "garbage bytes": _body(b"\x00\xff<html>\xfe"),
    "truncated body": _truncate,
    "empty choices": _body(b'{"choices": []}'),
    "wrong types": _body(b'{"choices": [{"finish_reason": "stop", "token_ids": ["a", null]}]}'),
    "slow but good": _slow,
    "logprobs NaN": _changed(lambda reply: _set_logprobs(reply, float("nan"), 0)),
    "fewer logprobs than ids": _changed(lambda reply: _set_logprobs(reply, -0.5, -1)),
    "another prompt's completion": _changed(lambda reply: reply["prompt_token_ids"].append(65)),
}
