"""A server that speaks the OpenAI protocol over real HTTP, and misbehaves when it is told to."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Self

from agents_fakes import IM_END
from aiohttp import web

Fault = Callable[["FakeServer", web.Request], Awaitable[web.StreamResponse]]


class FakeServer:
    """Says `texts[turn % len(texts)]`, where the turn is read off the prompt or the messages.

    Used as a context manager; it runs in a thread of its own. Ids are those of ByteTokenizer, a
    completion ends with ``<|im_end|>``, and the logprob of its j-th id is ``-(j + 1) / 1024``, or 0
    for requests with top_k=1.

    Attributes:
        faults: Taken one by one, each by one POST request, before anything is answered properly.
        refused: Fields of a request that are refused, and what to do instead.
        change: Called with each reply to a completion before it is sent.
        posts: Path and body of each POST, in order.
    """

    def __init__(
        self,
        *texts: str,
        gives_ids: bool = True,
        raw_logprobs: bool = False,
        models: Any = ("served",),
        max_model_len: int | None = None,
        key: str | None = None,
    ) -> None:
        self._texts = texts or ("yes",)
        self._gives_ids = gives_ids
        self._raw_logprobs = raw_logprobs
        self._models = models
        self._max_model_len = max_model_len
        self._key = key
        self.faults: list[Fault] = []
        self.model_faults: list[Fault] = []
        self.refused: dict[str, str] = {}
        self.change: Callable[[dict[str, Any]], Any] = lambda reply: reply
        self.posts: list[tuple[str, dict[str, Any]]] = []
        self.headers: list[dict[str, str]] = []
        self.num_aborted = 0
        self.num_gets = 0
        self.num_in_flight = 0
        self.most_in_flight = 0
        self.seconds = 0.0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._port = 0
        self._runner: web.AppRunner | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        self._call(self._start())
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def completions(self) -> list[dict[str, Any]]:
        """Bodies of what was asked, the probe of one token apart."""
        return [body for _, body in self.posts if body.get("top_k") != 1]

    def stop(self) -> None:
        """Stop listening and drop all connections; the port is free again."""
        if self._runner is not None:
            self._call(self._runner.cleanup())
            self._runner = None

    def start(self) -> None:
        """Listen again, on the same port."""
        self._call(self._start())

    def _call(self, coroutine: Any) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(20)

    async def _start(self) -> None:
        app = web.Application(client_max_size=2**26)
        app.router.add_get("/v1/models", self._list_models)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/completions", self._complete)
        self._runner = web.AppRunner(app, shutdown_timeout=0.05, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def _list_models(self, request: web.Request) -> web.StreamResponse:
        self.num_gets += 1
        self.headers.append(dict(request.headers))
        if self.model_faults:
            return await self.model_faults.pop(0)(self, request)
        refusal = self._refusal(request)
        if refusal is not None:
            return refusal
        extra = {} if self._max_model_len is None else {"max_model_len": self._max_model_len}
        data = [{"id": name, **extra} for name in self._models]
        return web.json_response({"object": "list", "data": data})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, self._chat_reply)

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, self._token_reply)

    async def _answer(
        self, request: web.Request, make: Callable[[dict[str, Any]], dict[str, Any]]
    ) -> web.StreamResponse:
        body = await request.json()
        self.posts.append((request.path, body))
        self.headers.append(dict(request.headers))
        self.num_in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.num_in_flight)
        try:
            if self.faults:
                return await self.faults.pop(0)(self, request)
            await asyncio.sleep(self.seconds)
            for field in self.refused.keys() & body.keys():
                said = f"Unsupported parameter: {field!r}. {self.refused[field]}"
                error = {"error": {"message": said, "param": field}}
                return web.json_response(error, status=400)
            refusal = self._refusal(request)
            return refusal or web.json_response(self.change(make(body)))
        except asyncio.CancelledError:
            self.num_aborted += 1
            raise
        finally:
            self.num_in_flight -= 1

    def _refusal(self, request: web.Request) -> web.StreamResponse | None:
        if self._key is None or request.headers.get("Authorization") == f"Bearer {self._key}":
            return None
        said = f"Incorrect API key provided: {request.headers.get('Authorization')}"
        return web.json_response({"error": {"message": said}}, status=401)

    def _token_reply(self, body: dict[str, Any]) -> dict[str, Any]:
        prompt = body["prompt"]
        text = self._texts[prompt.count(IM_END) // 2 % len(self._texts)]
        ids = [*text.encode(), IM_END]
        reason = "stop" if len(ids) <= body["max_tokens"] else "length"
        ids = ids[: body["max_tokens"]]
        is_certain = body["top_k"] == 1 and not self._raw_logprobs
        choice = {
            "index": 0,
            "text": text,
            "finish_reason": reason,
            "logprobs": {
                "tokens": [""] * len(ids),
                "token_logprobs": [0.0 if is_certain else -(j + 1) / 1024 for j in range(len(ids))],
            },
        }
        if self._gives_ids and body.get("return_token_ids"):
            choice |= {"token_ids": ids, "prompt_token_ids": prompt}
        return {"object": "text_completion", "choices": [choice]}

    def _chat_reply(self, body: dict[str, Any]) -> dict[str, Any]:
        turn = sum(message["role"] == "assistant" for message in body["messages"])
        text = self._texts[turn % len(self._texts)]
        message = {"role": "assistant", "content": text}
        return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


def status(code: int, reply: Any = None, **headers: str) -> Fault:
    """Refuse with an HTTP status; underscores in names of headers stand for hyphens."""

    async def fail(server: FakeServer, request: web.Request) -> web.StreamResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if isinstance(reply, str):
            return web.Response(status=code, text=reply, headers=named)
        return web.json_response(reply or {}, status=code, headers=named)

    return fail


def raw(content: bytes, code: int = 200) -> Fault:
    """Answer with bytes."""

    async def fail(server: FakeServer, request: web.Request) -> web.StreamResponse:
        return web.Response(status=code, body=content)

    return fail


def huge(megabytes: int) -> Fault:
    """Send that many megabytes of spaces, and no length beforehand."""

    async def fail(server: FakeServer, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(megabytes):
            await response.write(b" " * 2**20)
        await response.write_eof()
        return response

    return fail


async def hang(server: FakeServer, request: web.Request) -> web.StreamResponse:
    """Accept, and never answer."""
    await asyncio.sleep(3600)
    raise AssertionError


async def drop(server: FakeServer, request: web.Request) -> web.StreamResponse:
    """Close the connection instead of answering."""
    assert request.transport is not None
    request.transport.close()
    return web.Response()


async def cut(server: FakeServer, request: web.Request) -> web.StreamResponse:
    """Promise a thousand bytes, send ten, and close the connection."""
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"choices"')
    assert request.transport is not None
    request.transport.close()
    return response
