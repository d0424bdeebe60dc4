"""The gateway: an OpenAI-compatible server over a rollout engine that records what is sampled."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from rllm_agents.errors import UserError
from rllm_agents.gateway import answers
from rllm_agents.gateway.access import names_this_machine
from rllm_agents.gateway.endings import Ending
from rllm_agents.gateway.http import (
    connection_logger,
    read_body,
    request_id_of,
    send_error,
    send_json,
    send_stream,
)
from rllm_agents.gateway.json_body import read_json_object
from rllm_agents.gateway.protocol import ChatCall, read_chat_call, read_reward, read_text_call
from rllm_agents.gateway.refusals import RequestError, printable
from rllm_agents.gateway.session_table import SessionTable, check_session_id
from rllm_agents.gateway.sessions import Access, Beginning, GatewaySession, Sampler
from rllm_agents.gateway.settings import GatewaySettings
from rllm_agents.renderer import Renderer
from rllm_agents.rollout_engines.base import RolloutEngine
from rllm_agents.tool_parsers import get_tool_parser
from rllm_agents.types import Episode, SamplingParams

SESSION_HEADER = "X-Session-Id"
"""Names the session of a request to /v1; the field `user` does the same."""
_CLOSE_SECONDS = 2.0
_NO_KEY = "no-key-needed"

_log = logging.getLogger(__name__)


class Gateway:
    """Serves a rollout engine to agents written against the OpenAI protocol, and records it all.

    Args:
        engine: Samples; stays the caller's to close.
        renderer: Makes prompts of messages; None where the engine works on text, from which
            nothing can be learned.
        settings: How it listens and what it allows.

    Example:
        ```python
        async with Gateway(engine, renderer) as gateway:
            session = gateway.open_session()
            client = AsyncOpenAI(base_url=session.base_url, api_key=session.api_key)
            ...
            episode = session.finish(reward=1.0)
        ```
    """

    def __init__(
        self,
        engine: RolloutEngine,
        renderer: Renderer | None,
        settings: GatewaySettings | None = None,
    ) -> None:
        self.settings = settings or GatewaySettings()
        """How it listens and what it allows."""
        self._sampler = Sampler(
            engine=engine,
            renderer=renderer,
            parser=get_tool_parser(self.settings.parser_name),
            limits=self.settings.limits,
            defaults=self.settings.sampling,
        )
        self._stop_ids = None if renderer is None else renderer.stop_token_ids
        self._table = SessionTable(
            max_sessions=self.settings.max_sessions,
            idle_seconds=self.settings.idle_seconds,
            on_episode=self.settings.on_episode,
        )
        self._runner: web.ServerRunner | None = None
        self._reaper: asyncio.Task[None] | None = None
        self._num_requests = 0
        self._url = ""
        self._started_at = int(time.time())

    @property
    def url(self) -> str:
        """Where it listens, ``http://127.0.0.1:41234`` for example; empty before it does."""
        return self._url

    @property
    def num_sessions(self) -> int:
        """Sessions that are open."""
        return len(self._table)

    async def start(self) -> None:
        """Begin to listen.

        Raises:
            UserError: The address cannot be listened on.
        """
        server = web.Server(
            self._answer,
            handler_cancellation=True,
            keepalive_timeout=self.settings.header_seconds,
            access_log=None,
            logger=connection_logger(),
            auto_decompress=False,
            lingering_time=1.0,
        )
        self._runner = web.ServerRunner(server, shutdown_timeout=_CLOSE_SECONDS)
        await self._runner.setup()
        host, port = self.settings.host, self.settings.port
        try:
            await web.TCPSite(self._runner, host, port).start()
        except (OSError, UnicodeError) as error:
            await self._runner.cleanup()
            raise UserError(f"cannot listen on {host!r}, port {port}: {error}") from error
        bound = self._runner.addresses[0][1]
        self._url = f"http://{f'[{host}]' if ':' in host else host}:{bound}"
        self._reaper = asyncio.create_task(self._reap())

    async def close(self) -> None:
        """End all sessions and stop listening; again does nothing."""
        self._table.close()
        if self._reaper is not None:
            self._reaper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reaper
            self._reaper = None
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> Self:
        """Begin to listen."""
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End all sessions and stop listening."""
        await self.close()

    def open_session(
        self,
        *,
        task: Any = None,
        sampling: SamplingParams | None = None,
        gamma: float = 1.0,
    ) -> GatewaySession:
        """Open a session, which ends by `session.finish(reward=...)` or `drop_session`.

        Args:
            task: What is played; becomes the Episode's.
            sampling: How everything in it is sampled, whatever requests say (the learner scores
                tokens at the temperature they were sampled at); None obeys the requests.
            gamma: Discount of `Step.mc_return`, in [0, 1].

        Raises:
            UserError: As many sessions are open as are allowed.
        """
        session = self._new_session(secrets.token_urlsafe(18), Beginning(task, sampling, gamma))
        try:
            self._table.add(session, is_remote=False)
        except RequestError as error:
            raise UserError(f"{error}; finish some, or raise max_sessions") from None
        return session

    def drop_session(self, session: GatewaySession) -> None:
        """Refuse further calls of a session and forget it; again does nothing."""
        self._table.drop(session.id)

    def _new_session(self, id: str, begin: Beginning) -> GatewaySession:
        token = self.settings.token
        key = _NO_KEY if token is None else token.reveal()
        access = Access(id, f"{self._url}/sessions/{id}/v1", key)
        return GatewaySession(self._sampler, access, begin)

    async def _reap(self) -> None:
        while True:
            await asyncio.sleep(min(30.0, self.settings.idle_seconds / 4))
            self._table.reap()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request, whatever it is."""
        request_id = request_id_of(request)
        started = time.perf_counter()
        self._num_requests += 1
        try:
            if self._num_requests > self.settings.max_requests:
                raise RequestError(429, "too many requests at once", code="overloaded")
            self._check_access(request)
            response = await self._route(request, request_id)
        except RequestError as error:
            response = await send_error(request, request_id, error)
        except ConnectionError:
            raise
        except Exception as error:
            _log.exception("request %s failed", request_id)
            kind = printable(type(error).__name__)
            failure = RequestError(500, f"the gateway failed: {kind}", code="internal_error")
            response = await send_error(request, request_id, failure)
        finally:
            self._num_requests -= 1
        milliseconds = 1e3 * (time.perf_counter() - started)
        _log.debug("%s %s %d %.1f ms", request_id, request.method, response.status, milliseconds)
        return response

    def _check_access(self, request: web.BaseRequest) -> None:
        token = self.settings.token
        if token is None:
            if not names_this_machine(request.headers.get("Host")):
                raise RequestError(403, "the Host header must name this machine", code="host")
        elif not token.is_in(request.headers.get("Authorization")):
            raise RequestError(
                401, "this gateway wants its token as bearer token", code="invalid_api_key"
            )

    async def _route(self, request: web.BaseRequest, request_id: str) -> web.StreamResponse:
        parts = [part for part in request.path.split("/") if part]
        session_id = None
        if len(parts) > 2 and parts[0] == "sessions" and parts[2] == "v1":
            session_id, parts = parts[1], parts[2:]
        match request.method, parts:
            case "POST", ["v1", "chat", "completions" as kind]:
                return await self._complete(request, request_id, session_id, kind="chat")
            case "POST", ["v1", "completions" as kind]:
                return await self._complete(request, request_id, session_id, kind=kind)
            case "GET", ["v1", "models", *name]:
                return await send_json(request, request_id, self._models("/".join(name)))
            case "GET", ["health"]:
                return await send_json(request, request_id, {"status": "ok"})
            case "POST", ["sessions", *rest] if len(rest) in (0, 2):
                return await self._manage(request, request_id, rest)
            case "DELETE", ["sessions", id]:
                self._table.get_remote(id)
                self._table.drop(id)
                return await send_json(request, request_id, {"id": id, "deleted": True})
        raise RequestError(
            404,
            "there is GET /v1/models and POST /v1/chat/completions and /v1/completions, also under "
            "/sessions/ID; clients that speak the Responses API must be told to use chat "
            "completions",
            code="unknown_url",
        )

    async def _complete(
        self, request: web.BaseRequest, request_id: str, session_id: str | None, *, kind: str
    ) -> web.StreamResponse:
        """Answer a request for a completion."""
        if session_id is not None:
            self._table.get(session_id)  # before anything is read
        body = read_json_object(await read_body(request, self.settings.body_seconds))
        read = read_chat_call if kind == "chat" else read_text_call
        call = read(body, self._stop_ids)
        self._check_model(call.form.model)
        session = self._session_of(request, session_id, call.user)
        if isinstance(call, ChatCall):
            answer = await session.chat(call, request_id)
            whole, chunks = answers.chat_answer, answers.chat_chunks
        else:
            answer = await session.complete(call, request_id)
            whole, chunks = answers.text_answer, answers.text_chunks
        seconds = self.settings.body_seconds
        if call.form.is_stream:
            return await send_stream(request, request_id, chunks(answer), seconds)
        return await send_json(request, request_id, whole(answer), seconds=seconds)

    def _session_of(
        self, request: web.BaseRequest, session_id: str | None, user: str | None
    ) -> GatewaySession:
        """Find the session of a request, or open it."""
        if session_id is not None:
            return self._table.get(session_id)
        header = request.headers.get(SESSION_HEADER)
        named = header if header is not None else user
        if named is None:
            if not self.settings.opens_sessions:
                raise RequestError(403, "calls need a session here", code="session_needed")
            # Nobody can name it again, so it is not kept.
            return self._new_session("", Beginning())
        parameter = "user" if header is None else SESSION_HEADER
        found = self._table.find(check_session_id(named, parameter))
        return found if found is not None else self._open_remote(named)

    def _open_remote(self, id: str) -> GatewaySession:
        if not self.settings.opens_sessions:
            raise RequestError(403, "clients may not open sessions here", code="no_new_sessions")
        self._table.reap()
        session = self._new_session(id, Beginning())
        self._table.add(session, is_remote=True)
        return session

    async def _manage(
        self, request: web.BaseRequest, request_id: str, rest: list[str]
    ) -> web.StreamResponse:
        """Open a session, or finish one with its reward."""
        body = read_json_object(await read_body(request, self.settings.body_seconds))
        if not rest:
            if body:
                raise RequestError(400, "opening a session takes {}", code="invalid_value")
            session = self._open_remote(secrets.token_urlsafe(18))
            opened = {"id": session.id, "base_url": f"/sessions/{session.id}/v1"}
            return await send_json(request, request_id, opened)
        id, action = rest
        if action != "finish":
            raise RequestError(404, "sessions can be finished", code="unknown_url")
        reward, is_correct = read_reward(body)
        episode = self._table.end_remote(id, Ending(reward, is_correct))
        return await send_json(request, request_id, _summary(episode))

    def _check_model(self, name: str) -> None:
        if name != self.settings.model and not self.settings.takes_any_model:
            raise RequestError(
                404,
                f"there is no model {name!r} here; there is {self.settings.model!r}",
                code="model_not_found",
                parameter="model",
            )

    def _models(self, name: str) -> dict[str, Any]:
        if name:
            self._check_model(name)
        entry = {
            "id": name or self.settings.model,
            "object": "model",
            "created": self._started_at,
            "owned_by": "rllm",
            "max_model_len": getattr(self._sampler.engine, "max_model_length", None)
            or self.settings.limits.max_context_length,
        }
        return entry if name else {"object": "list", "data": [entry]}


def _summary(episode: Episode) -> dict[str, Any]:
    """What a client that finishes a session is told."""
    return {
        "id": episode.id,
        "reward": episode.reward,
        "is_correct": episode.is_correct,
        "num_calls": len(episode.steps),
        "num_sequences": len(episode.trajectory.token_records),
        "response_tokens": int(episode.metrics["response_tokens"]),
    }
