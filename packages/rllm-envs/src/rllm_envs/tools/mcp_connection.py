"""One connection to an MCP server, used from any thread through an event loop of its own thread."""

import asyncio
import concurrent.futures
import contextlib
import os
import tempfile
import threading
import weakref
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import IO, Any

from rllm_envs.errors import MissingDependencyError, ToolError

START_SECONDS = 60.0
"""How long a server may take until it is ready; the first start of one may install it."""
PING_SECONDS = 5.0
"""How long a server may take to show that it is alive, after a call that took too long."""
CLOSE_SECONDS = 10.0
MAX_TOOLS = 1000
_LOG_BYTES = 2**20
_CONNECTION_CLOSED = -32000
_TRANSPORT_LIBRARIES = ("anyio", "httpx", "httpx2", "httpcore", "httpcore2")


class ServerGoneError(Exception):
    """The server does not start, has ended, or cannot be reached."""


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where a server is. Made by ``MCPTools``, read by each of its connections."""

    command: tuple[str, ...] = ()
    """Program and arguments of a server that speaks on its standard input and output."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of that program, beside PATH, HOME and the like."""
    url: str = ""
    """Address of a server that speaks streamable HTTP, where there is no command."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """HTTP headers of each request to it."""

    def __str__(self) -> str:
        return self.url or " ".join(self.command)


class LoopThread:
    """An event loop that runs in a daemon thread until it is closed or collected."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        thread = threading.Thread(target=self.loop.run_forever, name="mcp", daemon=True)
        thread.start()
        self._submitting = threading.Lock()
        # Neither loop nor thread knows this object, so that it can be collected.
        self._finalizer = weakref.finalize(self, _end_loop, self.loop, thread)

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Return the result of a coroutine, which is run in the loop and bounds its own time.

        Raises:
            ServerGoneError: The loop is closed, before or meanwhile.
        """
        # What is submitted before the end is cancelled by it; after it nothing would run.
        with self._submitting:
            if not self._finalizer.alive:
                work.close()
                raise ServerGoneError("the tools of the server are closed")
            future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise ServerGoneError("the tools of the server are closed") from None

    def close(self) -> None:
        """Cancel what runs, end all sessions and stop the loop; calling twice is harmless."""
        with self._submitting:
            self._finalizer()


def _end_loop(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    async def cancel_all() -> None:
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.wait([asyncio.create_task(_settled(tasks))], timeout=CLOSE_SECONDS)
        await loop.shutdown_asyncgens()
        loop.stop()

    # A loop that a fork has left without its thread runs nothing.
    if thread.is_alive():
        asyncio.run_coroutine_threadsafe(cancel_all(), loop)
        # Collection may take place in that very thread.
        if threading.current_thread() is not thread:
            thread.join(CLOSE_SECONDS + 1)
            if not thread.is_alive():
                loop.close()


async def _settled(tasks: list[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)


class Connection:
    """A session with a server, which is started for it if it is a program.

    Args:
        loop: Where the session lives.
        address: Where the server is.

    Raises:
        ServerGoneError: The server is not ready within ``START_SECONDS``.
        MissingDependencyError: mcp is not installed.
    """

    def __init__(self, loop: LoopThread, address: ServerAddress) -> None:
        self._library = _load()
        self.loop = loop
        self._address = address
        self._log: IO[bytes] = tempfile.TemporaryFile("a+b")  # noqa: SIM115  # closed by the task
        self._session: Any = None
        self._is_suspect = False
        self._stop = asyncio.Event()
        loop.run(self._start())

    def tools(self) -> list[dict[str, Any]]:
        """Return the tools of the server as the protocol describes them.

        Raises:
            ServerGoneError: The server does not answer.
        """
        return self.loop.run(self._list())

    def call(self, name: str, arguments: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Return the result of a call as the protocol describes it.

        Raises:
            ServerGoneError: The server has ended or does not answer at all.
            ToolError: The call took too long, or the server refused it.
        """
        return self.loop.run(self._call(name, arguments, seconds))

    def close(self) -> None:
        """End the session, and the server if it was started for it."""
        with contextlib.suppress(ServerGoneError):
            self.loop.run(self._end())

    async def _start(self) -> None:
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._serve(ready))
        try:
            await asyncio.wait_for(asyncio.shield(ready), START_SECONDS)
        except TimeoutError:
            self._task.cancel()
            raise ServerGoneError(
                f"{self._address} is not ready after {START_SECONDS:g} s{self._last_words()}"
            ) from None

    async def _serve(self, ready: asyncio.Future[None]) -> None:
        """Hold the session open; entering and leaving must be done by one task."""
        try:
            async with contextlib.AsyncExitStack() as stack:
                streams = await self._open(stack)
                session = self._library.ClientSession(streams[0], streams[1])
                await stack.enter_async_context(session)
                await session.initialize()
                self._session = session
                ready.set_result(None)
                await self._stop.wait()
        except Exception as error:
            if not ready.done():
                reason = f"{_innermost(error)}{self._last_words()}"
                ready.set_exception(ServerGoneError(f"{self._address}: {reason}"))
        finally:
            self._session = None
            self._log.close()
            if not ready.done():
                ready.cancel()

    async def _open(self, stack: contextlib.AsyncExitStack) -> Any:
        address = self._address
        if address.command:
            from mcp.client.stdio import stdio_client

            parameters = self._library.StdioServerParameters(
                command=address.command[0],
                args=list(address.command[1:]),
                env=dict(address.env) or None,
            )
            errors: Any = self._log
            return await stack.enter_async_context(stdio_client(parameters, errlog=errors))
        from mcp.client.streamable_http import streamable_http_client
        from mcp.shared._httpx_utils import create_mcp_http_client

        client: Any = create_mcp_http_client(headers=dict(address.headers))
        await stack.enter_async_context(client)
        opened = streamable_http_client(address.url, http_client=client)
        return await stack.enter_async_context(opened)

    async def _list(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        params = None
        while True:
            page = await self._answered(self._live().list_tools(params=params), START_SECONDS)
            found += page.get("tools", [])
            if not page.get("nextCursor") or len(found) > MAX_TOOLS:
                return found[:MAX_TOOLS]
            params = self._library.types.PaginatedRequestParams(cursor=page["nextCursor"])

    async def _call(self, name: str, arguments: dict[str, Any], seconds: float) -> dict[str, Any]:
        session = self._live()
        if self._is_suspect:
            try:
                await self._answered(session.send_ping(), PING_SECONDS)
            except TimeoutError:
                raise ServerGoneError(f"{self._address} does not answer any more") from None
            self._is_suspect = False
        try:
            return await self._answered(session.call_tool(name, arguments), seconds)
        except TimeoutError:
            self._is_suspect = True
            raise ToolError(f"{name} took longer than {seconds:g} s") from None

    async def _answered(self, request: Coroutine[Any, Any, Any], seconds: float) -> dict[str, Any]:
        """Return the answer to a request as JSON data.

        Raises:
            TimeoutError: There is none in time.
            ServerGoneError: There can be none.
            ToolError: It is an error.
        """
        try:
            answer = await asyncio.wait_for(request, seconds)
            return answer.model_dump(mode="json", by_alias=True, exclude_none=True)
        except TimeoutError:
            raise
        except Exception as error:
            if _is_gone(error):
                reason = f"{_innermost(error)}{self._last_words()}"
                raise ServerGoneError(f"{self._address}: {reason}") from error
            raise ToolError(f"{type(error).__name__}: {error}"[:2000]) from error
        finally:
            self._shorten_log()

    def _live(self) -> Any:
        if self._session is None:
            raise ServerGoneError(f"{self._address} has ended")
        return self._session

    async def _end(self) -> None:
        self._stop.set()
        done, _ = await asyncio.wait([self._task], timeout=CLOSE_SECONDS)
        if not done:
            self._task.cancel()

    def _last_words(self) -> str:
        """Return the end of what the server wrote to its standard error."""
        if self._log.closed:
            return ""
        size = os.fstat(self._log.fileno()).st_size
        end = os.pread(self._log.fileno(), 500, max(0, size - 500)).decode("utf-8", "replace")
        return f"; it wrote: {end.strip()}" if end.strip() else ""

    def _shorten_log(self) -> None:
        if not self._log.closed and os.fstat(self._log.fileno()).st_size > _LOG_BYTES:
            os.ftruncate(self._log.fileno(), 0)


def _load() -> Any:
    try:
        import mcp  # an optional library
    except ImportError as error:
        raise MissingDependencyError(
            "tools of an MCP server need mcp: pip install 'rllm-envs[mcp]'"
        ) from error
    return mcp


def _innermost(error: BaseException) -> str:
    """Return the one error inside of groups, which task groups make of it, as text."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def _is_gone(error: BaseException) -> bool:
    """Return whether an error says that there is no server at the other end."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(_is_gone, error.exceptions))
    data = getattr(error, "error", None)
    if data is not None:
        message = str(getattr(data, "message", ""))
        return getattr(data, "code", 0) == _CONNECTION_CLOSED or "Session terminated" in message
    library = type(error).__module__.partition(".")[0]
    return isinstance(error, OSError | EOFError) or library in _TRANSPORT_LIBRARIES
