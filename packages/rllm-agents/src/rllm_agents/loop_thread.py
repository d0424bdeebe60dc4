"""An event loop in a thread of its own, for callers that are not asynchronous themselves."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

from rllm_agents.errors import EngineError

_Result = TypeVar("_Result")
_CLOSE_SECONDS = 5.0


class LoopThread:
    """Runs coroutines on one event loop, whichever threads and loops they are asked for from.

    Works inside a notebook, whose own loop cannot be entered twice.
    """

    def __init__(self, name: str) -> None:
        """Start the thread; `name` is what it is called."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Do work and return its result; blocks. An interrupt cancels the work.

        Raises:
            EngineError: The thread is closed.
        """
        future = self.start(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def call(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Await work from another loop; cancelling the caller cancels it.

        Raises:
            EngineError: The thread is closed.
        """
        return await asyncio.wrap_future(self.start(work))

    def cancel_all(self) -> None:
        """Cancel whatever runs on the loop and wait for it."""
        with contextlib.suppress(CancelledError, EngineError, TimeoutError):
            self.start(_cancel_others()).result(timeout=_CLOSE_SECONDS)

    def close(self) -> None:
        """Cancel what runs and end the thread; again does nothing."""
        if self._loop.is_closed():
            return
        self.cancel_all()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=_CLOSE_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()

    def start(self, work: Coroutine[Any, Any, _Result]) -> Future[_Result]:
        """Begin work and return at once; cancelling the future cancels the work.

        Raises:
            EngineError: The thread is closed.
        """
        if self._loop.is_closed():
            work.close()
            raise EngineError("this is closed; make a new one")
        return asyncio.run_coroutine_threadsafe(work, self._loop)


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
