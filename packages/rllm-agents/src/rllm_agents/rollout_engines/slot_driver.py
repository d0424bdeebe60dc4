"""Steps a slot batch while there is work, from whichever event loop asks for it."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from rllm_agents.errors import EngineError
from rllm_agents.loop_share import LoopShare
from rllm_agents.rollout_engines.slot_batch import SlotBatch
from rllm_agents.rollout_engines.slot_records import SlotRequest, SlotResult

_QUIET_ROUNDS = 8
"""Rounds of the event loop without a new request after which the next step is launched."""

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    """A request and whom to tell."""

    request: SlotRequest
    future: asyncio.Future[SlotResult]


@dataclass(frozen=True, slots=True, eq=False)
class _Change:
    """Work on the model between two steps, and whom to tell."""

    work: Callable[[], None]
    in_flight: bool
    """Whether requests may be in the batch meanwhile."""
    future: asyncio.Future[None]


class SlotDriver:
    """One task in the running event loop drives the batch; steps run in a thread of their own.

    The task ends when nothing is left to do, so several event loops may use the driver one after
    another. Between steps the loop is given time until no new request appears: callers that answer
    at once take part in the very next step, and batches are the same in every run.

    Args:
        batch: Touched in the thread alone, except where no step runs.
    """

    def __init__(self, batch: SlotBatch) -> None:
        self._batch = batch
        self._queued: list[_Waiting] = []
        self._active: dict[SlotRequest, _Waiting] = {}
        self._changes: list[_Change] = []
        self._task: asyncio.Task[None] | None = None
        self._has_answered = True
        """Whether callers have been resumed since the last step."""
        self._thread = concurrent.futures.ThreadPoolExecutor(1, "rllm-slots")
        self._is_closed = False

    async def sample(self, request: SlotRequest) -> SlotResult:
        """Sample one request to its end; cancelling the caller frees its row.

        Raises:
            EngineError: A step failed, or the driver is closed.
        """
        self._start()
        future: asyncio.Future[SlotResult] = asyncio.get_running_loop().create_future()
        self._queued.append(_Waiting(request, future))
        return await future

    async def change(self, work: Callable[[], None], *, in_flight: bool = False) -> None:
        """Do work on the model in the thread, between two steps.

        What `work` raises is raised here. Stored keys and values are dropped.

        Args:
            work: What to do.
            in_flight: What is being sampled goes on afterwards. By default it is sampled to its
                end first, and requests that come meanwhile wait.
        """
        self._start()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._changes.append(_Change(work, in_flight, future))
        await future

    async def ping(self) -> None:
        """Return when the step that runs now has ended.

        Raises:
            EngineError: The driver is closed.
        """
        if self._is_closed:
            raise EngineError("the rollout engine is closed; make a new one")
        await asyncio.wrap_future(self._thread.submit(lambda: None))

    def close(self) -> None:
        """Fail what is waiting and end the thread; again does nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        task = self._task
        if task is not None and not task.done() and not task.get_loop().is_closed():
            task.cancel()
        self._thread.shutdown(wait=True)
        self._drop_all(EngineError("the rollout engine was closed"))

    def _start(self) -> None:
        """Make sure that the task runs in this event loop."""
        if self._is_closed:
            raise EngineError("the rollout engine is closed; make a new one")
        loop = asyncio.get_running_loop()
        task = self._task
        if task is not None and not task.done():
            if task.get_loop() is loop:
                return
            if not task.get_loop().is_closed():
                raise EngineError(
                    "the rollout engine is at work in another event loop; use one engine per loop"
                )
            self._drop_all(EngineError("the event loop was closed"))
        self._has_answered = True
        self._task = loop.create_task(self._drive())

    async def _drive(self) -> None:
        """Step the batch until nothing is left to do."""
        try:
            while self._queued or self._active or self._changes:
                await self._settle()
                if self._changes and (self._changes[0].in_flight or not self._active):
                    await self._apply(self._changes.pop(0))
                else:
                    await self._step()
        except BaseException as error:
            # Whatever it is, nobody may be left waiting.
            self._drop_all(error)
            if not isinstance(error, Exception):
                raise

    async def _settle(self) -> None:
        """Let resumed callers run until they have asked for what they need next.

        Where nobody was resumed there is nothing to wait for, and one round lets others run.
        """
        await self._be_quiet()
        share = LoopShare.of_this_loop()
        if self._has_answered and share.has_line:
            # Who stands in line for the loop may ask yet; who comes after that plays elsewhere.
            await share.let_line_go_on()
            await self._be_quiet()

    async def _be_quiet(self) -> None:
        """Wait for some rounds of the event loop in a row without a new request."""
        quiet = 0
        while quiet < (_QUIET_ROUNDS if self._has_answered else 1):
            before = len(self._queued)
            await asyncio.sleep(0)
            quiet = quiet + 1 if len(self._queued) == before else 0

    async def _step(self) -> None:
        """Admit what fits, run one step in the thread, answer whoever is finished."""
        cancelled = [w for w in self._active.values() if w.future.cancelled()]
        for waiting in cancelled:
            del self._active[waiting.request]
        admitted = self._admit(len(cancelled))
        if not self._active and not cancelled:
            return
        try:
            results = await self._in_thread(
                lambda: self._batch.step(
                    [w.request for w in admitted], [w.request for w in cancelled]
                )
            )
        except Exception as error:
            self._fail_active(error)
            return
        self._has_answered = bool(results)
        for result in results:
            future = self._active.pop(result.request).future
            if not future.done():
                future.set_result(result)

    def _admit(self, num_cancelled: int) -> list[_Waiting]:
        """Move queued requests that fit to the active ones; none while a change waits."""
        queued = [w for w in self._queued if not w.future.done()]
        room = 0 if self._changes else self._batch.num_free + num_cancelled
        admitted, self._queued = queued[:room], queued[room:]
        self._active.update((w.request, w) for w in admitted)
        return admitted

    async def _apply(self, change: _Change) -> None:
        """Do a change that nobody has given up, and forget all stored keys and values."""
        if change.future.done():
            return

        def work() -> None:
            change.work()
            self._batch.renew()

        self._has_answered = True
        try:
            await self._in_thread(work)
        except Exception as error:
            if not change.future.done():
                change.future.set_exception(error)
            return
        if not change.future.done():
            change.future.set_result(None)

    async def _in_thread(self, work: Callable[[], _Result]) -> _Result:
        """Run `work` in the thread; not even a cancellation leaves it running."""
        job = self._thread.submit(work)
        try:
            return await asyncio.wrap_future(job)
        except asyncio.CancelledError:
            concurrent.futures.wait([job])
            raise

    def _fail_active(self, error: Exception) -> None:
        """Fail what was in the batch of a failed step; what is queued goes on."""
        self._has_answered = True
        failed = list(self._active.values())
        self._active.clear()
        self._batch.reset()
        for waiting in failed:
            if not waiting.future.done():
                failure = EngineError(
                    f"a sampling step of {len(failed)} requests failed: "
                    f"{type(error).__name__}: {error}"
                )
                failure.__cause__ = error
                waiting.future.set_exception(failure)

    def _drop_all(self, reason: BaseException) -> None:
        """Leave no request, no change and no row behind."""
        futures: list[asyncio.Future[Any]] = [
            *(w.future for w in self._queued),
            *(w.future for w in self._active.values()),
            *(c.future for c in self._changes),
        ]
        self._queued.clear()
        self._active.clear()
        self._changes.clear()
        self._batch.reset()
        for future in futures:
            if future.done() or future.get_loop().is_closed():
                continue
            if isinstance(reason, asyncio.CancelledError):
                future.cancel()
            else:
                future.set_exception(reason)
