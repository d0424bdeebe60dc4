"""Blocking calls in threads, contained and with deadlines, and calls on the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import Any

from rllm_agents.errors import EpisodeFailure
from rllm_agents.types import TerminationReason


@dataclass(slots=True)
class Outcome:
    """What a call returned or raised. Made where the call ran, read by who waits for it."""

    value: Any = None
    error: BaseException | None = None


class EnvThreads:
    """Daemon threads for blocking calls. A call that hangs keeps its thread; others go on.

    Threads start on demand and are used again, so a call never waits for another one's end. They
    are daemons: one that hangs for ever does not keep the process from leaving.

    Args:
        max_hung: Calls that may hang at a time; beyond it `refuse_if_hung` refuses.
    """

    def __init__(self, max_hung: int = 256) -> None:
        self._max_hung = max_hung
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._is_closed = False
        self._num_hung = 0

    @property
    def num_hung(self) -> int:
        """Calls that were given up and still run."""
        return self._num_hung

    def refuse_if_hung(self) -> None:
        """Keep hanging calls from piling up.

        Raises:
            EpisodeFailure: When `max_hung` calls hang.
        """
        if self._num_hung >= self._max_hung:
            raise EpisodeFailure(
                TerminationReason.ENV_STEP_TIMEOUT,
                f"{self._num_hung} environment calls hang; no further one is started",
            )

    def start(
        self, function: Callable[[], Any], *, late: Callable[[Outcome], None] | None = None
    ) -> EnvCall:
        """Start a call in a thread; must be called on an event loop.

        Args:
            function: What to call.
            late: Called in the thread with the outcome if the call was given up before it.
        """
        call = EnvCall(self, function, late)
        with self._lock:
            worker = self._idle.pop() if self._idle else _Worker(self)
        worker.inbox.put(call)
        return call

    def close(self) -> None:
        """End the idle threads now and the others when their calls return."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.inbox.put(None)
        for worker in idle:
            worker.thread.join(timeout=1.0)

    def _retire(self, worker: _Worker) -> bool:
        """Take back a worker whose call ended; whether it is to stop."""
        with self._lock:
            if not self._is_closed:
                self._idle.append(worker)
            return self._is_closed

    def _count_hung(self, change: int) -> None:
        with self._lock:
            self._num_hung += change


class EnvCall:
    """One call in a thread. Made by EnvThreads.start, awaited by an EnvSession."""

    def __init__(
        self,
        threads: EnvThreads,
        function: Callable[[], Any],
        late: Callable[[Outcome], None] | None,
    ) -> None:
        self._threads = threads
        self._function = function
        self._late = late
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._lock = threading.Lock()
        self._outcome: Outcome | None = None
        self._is_given_up = False

    async def wait(self, timeout_seconds: float | None) -> Outcome | None:
        """Its outcome, or None when it has not ended in time; it runs on in any case."""
        if self._outcome is None:
            self._waiter = self._loop.create_future()
            timer = None
            if timeout_seconds is not None:
                timer = self._loop.call_later(timeout_seconds, self._wake)
            try:
                await self._waiter
            finally:
                if timer is not None:
                    timer.cancel()
        return self._outcome

    def give_up(self) -> None:
        """Stop caring about the outcome; `late` gets it."""
        with self._lock:
            self._is_given_up = True
            outcome = self._outcome
        if outcome is None:
            self._threads._count_hung(+1)
        elif self._late is not None:
            late = self._late
            self._threads.start(lambda: late(outcome))

    def run(self) -> None:
        """Make the call; in the thread."""
        outcome = contain(self._function)
        with self._lock:
            self._outcome = outcome
            is_given_up = self._is_given_up
        if is_given_up:
            self._threads._count_hung(-1)
            if self._late is not None:
                late = self._late
                contain(lambda: late(outcome))

    def announce(self) -> None:
        """Wake up who waits; in the thread, after `run`."""
        # A closed loop refuses: then nobody waits.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class _Worker:
    """A thread and the queue of its calls."""

    def __init__(self, threads: EnvThreads) -> None:
        self.inbox: queue.SimpleQueue[EnvCall | None] = queue.SimpleQueue()
        self._threads = threads
        self.thread = threading.Thread(target=self._run, name="rllm-env", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while (call := self.inbox.get()) is not None:
            call.run()
            # First back among the idle, then the news: who hears it may start the next call.
            is_over = self._threads._retire(self)
            call.announce()
            if is_over:
                return


async def call_in_thread(
    threads: EnvThreads, function: Callable[[], Any], name: str, timeout_seconds: float | None
) -> Outcome:
    """Make a call in a thread and return its outcome.

    Args:
        threads: Where it runs.
        function: What to call.
        name: What it is called in errors.
        timeout_seconds: How long it may take; None: no bound. It runs on in any case.

    Raises:
        EpisodeFailure: It took longer, or too many calls hang already.
    """
    threads.refuse_if_hung()
    call = threads.start(function)
    try:
        outcome = await call.wait(timeout_seconds)
    except BaseException:
        call.give_up()
        raise
    if outcome is None:
        call.give_up()
        raise EpisodeFailure(
            TerminationReason.ENV_STEP_TIMEOUT,
            f"{name} took longer than step_timeout={timeout_seconds} s",
        )
    return outcome


async def contain_awaitable(
    call: Callable[[], Awaitable[Any]], timeout_seconds: float | None
) -> Outcome | None:
    """Await a call in the caller's own task and keep what it raises.

    Only what ends that task is raised: its cancellation, KeyboardInterrupt, GeneratorExit.

    Args:
        call: What to call and await.
        timeout_seconds: After which it is cancelled; None: no bound.

    Returns:
        The outcome; None where the time was up.
    """
    timer = None
    try:
        steps = call().__await__()
        try:
            waits_for = next(steps)
        except StopIteration as end:
            # Most calls never wait where nothing is slow, and a deadline costs more than they do.
            return Outcome(end.value)
        timer = asyncio.timeout(timeout_seconds)
        async with timer:
            return Outcome(await _Begun(steps, waits_for))
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        if timer is not None and timer.expired() and isinstance(error, TimeoutError):
            return None
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task and task.cancelling():
            raise
        return Outcome(error=error)


class _Begun:
    """An awaitable that has run to where it first waits, in the task that it was begun in."""

    def __init__(self, steps: Generator[Any, Any, Any], waits_for: Any) -> None:
        self._steps = steps
        self._waits_for = waits_for

    def __await__(self) -> Generator[Any, Any, Any]:
        try:
            while True:
                try:
                    yield self._waits_for
                except GeneratorExit:
                    self._steps.close()
                    raise
                except BaseException as error:
                    self._waits_for = self._steps.throw(error)
                else:
                    self._waits_for = next(self._steps)
        except StopIteration as end:
            return end.value


def contain(function: Callable[[], Any]) -> Outcome:
    """Call a function and keep whatever it raises, exits and cancellations included."""
    try:
        return Outcome(value=function())
    except BaseException as error:
        return Outcome(error=error)


def contain_on_loop(function: Callable[[], Any]) -> Outcome:
    """Like `contain`, on the event loop's thread: ctrl-C passes.

    A synchronous call is never cancelled by asyncio, so a CancelledError out of it is its own.
    """
    try:
        return Outcome(function())
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return Outcome(error=error)
