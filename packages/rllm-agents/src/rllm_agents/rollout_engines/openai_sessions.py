"""HTTP sessions of event loops: made where they are needed, closed whatever becomes of the loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Generic, ParamSpec, TypeVar

import aiohttp

from rllm_agents.errors import EngineError

_T = TypeVar("_T")
_P = ParamSpec("_P")

# Below the 5 seconds after which common servers drop an idle connection: a request that is sent on
# one that is just being dropped fails.
_KEEP_ALIVE_SECONDS = 4.0


@dataclass(frozen=True, slots=True)
class LoopSession:
    """What requests of one event loop share. Made and read by LoopSessions."""

    session: aiohttp.ClientSession
    slots: asyncio.Semaphore
    """Held by each request in flight; others wait without their time running."""
    keeper: AsyncGenerator[None, None]
    """Closes the session at the loop's end: loops close the generators that began in them."""


class LoopSessions:
    """One session for each event loop, so that one object serves several loops in turn.

    Args:
        headers: Sent with every request.
        max_connections: Most requests in flight in one loop, at least 1.
    """

    def __init__(self, headers: Mapping[str, str], max_connections: int) -> None:
        self._headers = dict(headers)
        self._max_connections = max_connections
        self._by_loop: dict[asyncio.AbstractEventLoop, LoopSession] = {}
        self._closings: set[asyncio.Task[None]] = set()
        self.is_closed = False

    async def of_this_loop(self) -> LoopSession:
        """Return the running loop's session.

        Raises:
            EngineError: After `close`.
        """
        if self.is_closed:
            raise EngineError("this OpenAIEngine is closed; make a new one")
        loop = asyncio.get_running_loop()
        found = self._by_loop.get(loop)
        if found is None or found.session.closed:
            for other in [other for other in self._by_loop if other.is_closed()]:
                _close_without_loop(self._by_loop.pop(other).session)
            found = self._by_loop[loop] = await self._open()
        return found

    def close(self) -> None:
        """Close all sessions, those of loops that have ended too; again does nothing."""
        self.is_closed = True
        for loop, found in self._by_loop.items():
            if loop.is_closed():
                _close_without_loop(found.session)
            elif loop.is_running():
                loop.call_soon_threadsafe(self._begin_closing, found.session)
            elif _no_loop_runs():
                loop.run_until_complete(found.session.close())
        self._by_loop.clear()

    def _begin_closing(self, session: aiohttp.ClientSession) -> None:
        task = asyncio.get_running_loop().create_task(session.close())
        self._closings.add(task)
        task.add_done_callback(self._closings.discard)

    async def _open(self) -> LoopSession:
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=self._headers,
        )
        keeper = _keep(session)
        await anext(keeper)
        return LoopSession(session, asyncio.Semaphore(self._max_connections), keeper)


class SharedFetch(Generic[_P, _T]):
    """A value that the first who asks fetches for all who ask meanwhile, and that then stays.

    A failure reaches all who wait for it, and the next who asks tries again.
    """

    def __init__(self, fetch: Callable[_P, Awaitable[_T]]) -> None:
        self._fetch = fetch
        self._task: asyncio.Task[_T] | None = None
        self.value: _T | None = None
        """None until it was fetched."""

    async def get(self, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Return the value, fetching it first where it is not there yet.

        Raises:
            EngineError: What the fetch raised.
        """
        if self.value is not None:
            return self.value
        task = self._task
        if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
            task = self._task = asyncio.create_task(self._run(*args, **kwargs))
            # One who fetches may be cancelled, those who wait with him then go on.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            return await asyncio.shield(task)
        except EngineError as error:
            # An exception of each one's own: raised many times, one would grow a long traceback.
            own = EngineError(str(error))
            own.reason = error.reason
            raise own from error

    async def _run(self, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        self.value = await self._fetch(*args, **kwargs)
        return self.value


async def _keep(session: aiohttp.ClientSession) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        await session.close()


def _close_without_loop(session: aiohttp.ClientSession) -> None:
    """Mark a session as closed whose loop is: its connections are gone, nothing is awaited."""
    closing = session.close()
    with contextlib.suppress(StopIteration, RuntimeError):
        closing.send(None)
    closing.close()


def _no_loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return True
    return False
