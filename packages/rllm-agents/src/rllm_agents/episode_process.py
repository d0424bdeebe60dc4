"""A process that plays episodes: what it is asked, what it answers, and how its end is noticed."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import pickle
import queue
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rllm_agents.errors import EngineError, EpisodeFailure, in_words
from rllm_agents.frames import framed, pickled, read_frame
from rllm_agents.rollout import unplayed_episode
from rllm_agents.rollout_requests import RolloutRequest
from rllm_agents.types import Episode, TerminationReason
from rllm_envs.errors import EnvProcessError
from rllm_envs.vector.child_process import ChildProcess

START_SECONDS = 120.0
"""How long a process may take until it answers, with its imports."""
WATCH_SECONDS = 0.5
"""Between two looks at a process; one that has ended may leave answers that are read meanwhile."""
_CANCEL_SECONDS = 1.5
"""How long a run that is stopped waits for an episode whose environment is being closed."""
_STUCK_SECONDS = 5.0
"""How long a process may take to stop an episode."""


class ProcessLostError(EngineError):
    """A process ended, or hung, with episodes in it.

    Attributes:
        seconds: How long it had been playing the one that gets this.
    """

    def __init__(self, message: str, seconds: float = 0.0) -> None:
        super().__init__(message)
        self.seconds = seconds


@dataclass(slots=True)
class _Order:
    """A request that a process plays."""

    request: RolloutRequest
    loop: asyncio.AbstractEventLoop
    ended: asyncio.Future[Episode | None]
    since: float = field(default_factory=time.monotonic)


class EpisodeProcess:
    """A process, what it plays, and the two threads that talk to it.

    Args:
        setup: Frame of the arguments of its engine.
        has_started: Set when it has made the engine.

    Raises:
        EnvProcessError: It cannot be started.
    """

    def __init__(self, setup: bytes, has_started: threading.Event) -> None:
        try:
            self._socket, theirs = socket.socketpair()
        except OSError as error:
            raise EnvProcessError(f"cannot start a process for episodes: {error}") from error
        with theirs, contextlib.ExitStack() as undo:
            undo.callback(self._socket.close)
            self._child = ChildProcess(
                "rllm_agents.episode_worker",
                descriptors=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
            )
            undo.pop_all()
        self._begun = time.monotonic()
        self._started: float | None = None
        self._has_started = has_started
        self._lock = threading.Lock()
        self._orders: dict[int, _Order] = {}
        self._stopped: dict[int, float] = {}
        self._numbers = itertools.count()
        self._ending: str | None = None
        self._is_ending = False
        self._dead_since: float | None = None
        self._outbox: queue.SimpleQueue[tuple[int, str, bytes | None] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        try:
            self._start_thread(self._write, setup)
            self._start_thread(self._read)
        except RuntimeError as error:  # there are as many as there can be
            self.close(0.0)
            raise EnvProcessError(f"cannot start a process for episodes: {error}") from error

    def _start_thread(self, work: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        thread.start()
        self._threads.append(thread)

    @property
    def is_lost(self) -> bool:
        """Whether it has ended, is about to, or is another process' own, which was forked."""
        return self._ending is not None or self._is_ending or not self._child.is_mine

    @property
    def load(self) -> tuple[bool, int]:
        """Whether it owes the end of an episode that was stopped, and its orders."""
        return bool(self._stopped), len(self._orders)

    def check_time(self, seconds: float) -> None:
        """End it where its start, an order or the end of one takes longer than it may."""
        with self._lock:
            oldest = next(iter(self._orders.values()), None)
            stopped = next(iter(self._stopped.values()), math.inf)
        now = time.monotonic()
        if not self._child.is_alive:
            # What it sent last may still be read. Others may hold the socket that it has left.
            if self._dead_since is None:
                self._dead_since = now
            elif now - self._dead_since >= WATCH_SECONDS:
                self._lose(self._child.ending())
        elif self._started is None:
            if now - self._begun > START_SECONDS:
                self._lose(f"had not started after {START_SECONDS:g} s")
        elif now - max(stopped, self._started) > _STUCK_SECONDS:
            self._lose(f"did not stop an episode in {_STUCK_SECONDS:g} s")
        elif oldest is not None and now - max(oldest.since, self._started) > seconds:
            self._lose(f"gave no answer for {seconds:g} s")

    async def play(self, request: RolloutRequest) -> Episode:
        """Play a request.

        Raises:
            ProcessLostError: The process ended before the episode did.
            EngineError: It cannot make the engine, as no one before it could.
        """
        try:
            content = pickled(request)
        except Exception as error:  # a task may hold any object
            what = f"the task cannot be sent to another process: {in_words(error)}"
            return unplayed_episode(request, EpisodeFailure(TerminationReason.ENV_PROTOCOL, what))
        loop = asyncio.get_running_loop()
        number, ended = next(self._numbers), loop.create_future()
        with self._lock:
            if self._ending is not None:
                raise ProcessLostError(self._ending)
            self._orders[number] = _Order(request, loop, ended)
        self._outbox.put((number, request.id, content))
        try:
            episode = await ended
        except asyncio.CancelledError:
            await self._stop(number)
            raise
        if episode is None:
            raise ProcessLostError("a process that plays episodes was ended")
        return episode

    async def _stop(self, number: int) -> None:
        """Stop an order, and wait until its environment is closed."""
        stopped = asyncio.get_running_loop().create_future()
        with self._lock:
            order = self._orders.get(number)
            if order is None:
                return
            order.ended = stopped
            self._stopped[number] = time.monotonic()
        self._outbox.put((number, order.request.id, None))
        await asyncio.wait([stopped], timeout=_CANCEL_SECONDS)

    def hang_up(self) -> None:
        """Have it stop what it plays and end."""
        if self._child.is_mine:
            self._outbox.put(None)
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_WR)

    def close(self, seconds: float) -> None:
        """Wait for its end, kill it if it takes longer, and release what it held."""
        if self._child.is_mine:
            self._child.wait(seconds)
            self._lose("was ended")
            for thread in self._threads:
                thread.join()
        self._socket.close()

    def _write(self, setup: bytes) -> None:
        """Send what is ordered, all that waits together."""
        try:
            self._socket.sendall(setup)
            while (order := self._outbox.get()) is not None:
                orders = [order]
                with contextlib.suppress(queue.Empty):
                    while (order := self._outbox.get_nowait()) is not None:
                        orders.append(order)
                self._socket.sendall(framed(orders))
                if order is None:
                    return
        except OSError:
            return  # what has happened, the other thread is told
        except BaseException as error:
            self._lose(f"cannot be asked: {in_words(error)}")

    def _read(self) -> None:
        """Hand out what comes, until the process ends."""
        try:
            with self._socket.makefile("rb") as answers:
                refusal = read_frame(answers)
                if refusal is not None:
                    self._lose(f"cannot make the engine: {refusal}", is_refusal=True)
                    return
                self._started = time.monotonic()
                self._has_started.set()
                while True:
                    self._deliver(read_frame(answers))
        except (EOFError, OSError):
            how = self._child.ending()
        except BaseException as error:
            how = f"answered what cannot be read: {in_words(error)}"
        self._lose(how)

    def _deliver(self, answers: list[tuple[int, bytes | None]]) -> None:
        outcomes: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
        for number, content in answers:
            with self._lock:
                order = self._orders.pop(number, None)
                was_stopped = self._stopped.pop(number, None) is not None
            if order is None:
                continue
            if content is None and not was_stopped:
                self._is_ending = True  # it stops all by itself
            outcome = None if content is None else _read_episode(content, order.request)
            outcomes.setdefault(order.loop, []).append((order.ended, outcome))
        for loop, pairs in outcomes.items():
            with contextlib.suppress(RuntimeError):  # nobody waits on a loop that is closed
                loop.call_soon_threadsafe(_settle, pairs)

    def _lose(self, how: str, *, is_refusal: bool = False) -> None:
        """Kill it, and tell who waits; only the first reason counts."""
        with self._lock:
            if self._ending is None:
                self._ending = f"a process that plays episodes {how}"
            orders, self._orders = self._orders, {}
            self._stopped.clear()
        self._child.kill()
        self._outbox.put(None)
        with contextlib.suppress(OSError):  # both threads wake, whoever else holds the other end
            self._socket.shutdown(socket.SHUT_RDWR)
        now = time.monotonic()
        started = now if self._started is None else self._started
        for order in orders.values():
            error: EngineError = ProcessLostError(self._ending, now - max(order.since, started))
            if is_refusal and not self._has_started.is_set():
                error = EngineError(self._ending)
            with contextlib.suppress(RuntimeError):
                order.loop.call_soon_threadsafe(_settle, [(order.ended, error)])


def _settle(outcomes: list[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, outcome in outcomes:
        if future.done():
            continue
        if isinstance(outcome, EngineError):
            future.set_exception(outcome)
            future.exception()  # looked at, where the order was stopped and nobody does
        else:
            future.set_result(outcome)


def _read_episode(content: bytes, request: RolloutRequest) -> Episode:
    """Return the Episode of a request, with the task, which was left out on the way."""
    try:
        episode: Episode = pickle.loads(content)
    except BaseException as error:  # an object of an info, which does what it likes
        what = f"what the episode holds cannot be read in another process: {in_words(error)}"
        return unplayed_episode(request, EpisodeFailure(TerminationReason.ENV_PROTOCOL, what))
    episode.task = request.task
    for trajectory in episode.trajectories:
        trajectory.task = request.task if trajectory.task is None else trajectory.task
    return episode
