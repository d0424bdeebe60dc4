"""Several processes that play the episodes of one engine, each with agents and environments.

Python runs on one core at a time; where environments, agents and chat templates are what takes
long, more processes play more episodes. They are engines of their own (`episode_worker`).
"""

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
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from rllm_agents.argument_checks import check_count
from rllm_agents.errors import EngineError, EpisodeFailure, UserError, in_words
from rllm_agents.frames import framed, pickled, read_frame
from rllm_agents.limits import RolloutLimits
from rllm_agents.player import PlayEpisode
from rllm_agents.rollout import unplayed_episode
from rllm_agents.rollout_requests import RolloutRequest
from rllm_agents.types import Episode, TerminationReason
from rllm_envs.errors import EnvProcessError
from rllm_envs.vector.child_process import ChildProcess

START_SECONDS = 120.0
"""How long a process may take until it answers, with its imports."""
_WATCH_SECONDS = 0.5
_CANCEL_SECONDS = 1.5
"""How long a run that is stopped waits for an episode whose environment is being closed."""
_STUCK_SECONDS = 5.0
"""How long a process may take to stop an episode."""
_END_SECONDS = 3.5


class ProcessLostError(EngineError):
    """A process ended, or hung, with episodes in it."""


class EpisodeProcesses:
    """Plays requests in processes; what is lost with one is played again in another.

    Args:
        arguments: Of the engine that each process makes; what they name lies in modules.
        num_processes: At least 1.
        max_attempts: How often a request is played that is lost with its process.
        limits: Of each episode.
        margin_seconds: How much longer than it may an episode may seem to take, in a process that
            is busy; one that takes longer is ended.

    Raises:
        UserError: The arguments cannot be sent to a process.
    """

    def __init__(
        self,
        arguments: Mapping[str, Any],
        num_processes: int,
        max_attempts: int,
        limits: RolloutLimits,
        *,
        margin_seconds: float = 20.0,
    ) -> None:
        check_count("n_processes", num_processes)
        self._setup = _sendable(arguments)
        self._max_attempts = max_attempts
        given = limits.trajectory_timeout_seconds
        self._budget_seconds = math.inf if given is None else given
        self._seconds = self._budget_seconds + limits.close_timeout_seconds + margin_seconds
        self._lock = threading.Lock()
        self._processes: list[_Process | None] = [None] * num_processes
        self._has_started = threading.Event()  # any of them, ever
        self._is_closed = False

    @asynccontextmanager
    async def playing(self) -> AsyncGenerator[PlayEpisode, None]:
        """Be ready to play on the running event loop, until the block ends."""
        watch = asyncio.create_task(self._watch())
        try:
            yield self.play
        finally:
            watch.cancel()
            await asyncio.wait([watch])

    async def play(self, request: RolloutRequest) -> Episode:
        """Play one request to its Episode; only cancellation is raised, and what follows.

        Raises:
            EngineError: All of this is closed, or no process can make the engine.
        """
        started = time.monotonic()
        lost: list[str] = []
        while True:
            try:
                episode = await self._least_busy().play(request)
            except (ProcessLostError, EnvProcessError) as error:
                lost.append(str(error))
                spent = time.monotonic() - started
                if len(lost) < self._max_attempts and spent < self._budget_seconds:
                    request = replace(request, num_lost=len(lost), seconds_spent=spent)
                    continue
                if not self._has_started.is_set():
                    raise EngineError(str(error)) from error
                failure = EpisodeFailure(TerminationReason.ENV_EXIT, str(error))
                episode = unplayed_episode(request, failure)
                episode.metrics |= {"attempts": float(len(lost)), "total_seconds": spent}
                lost.pop()
            if lost:
                episode.info["earlier_errors"] = lost + episode.info.get("earlier_errors", [])
            return episode

    def close(self) -> None:
        """Stop what is played, close its environments, and end all processes."""
        with self._lock:
            self._is_closed = True
            processes = [process for process in self._processes if process is not None]
        for process in processes:
            process.hang_up()
        end = time.monotonic() + _END_SECONDS
        for process in processes:
            process.close(max(0.0, end - time.monotonic()))

    def _least_busy(self) -> _Process:
        """Return a process, started where there are fewer than asked for.

        Raises:
            EngineError: All of this is closed.
            EnvProcessError: It cannot be started.
        """
        with self._lock:
            if self._is_closed:
                raise EngineError("this AgentExecutionEngine is closed; make a new one")
            for place, process in enumerate(self._processes):
                if process is None or process.is_lost:
                    if process is not None:
                        process.close(0.0)
                    self._processes[place] = _Process(self._setup, self._has_started)
            living = [process for process in self._processes if process is not None]
        return min(living, key=lambda process: process.load)

    async def _watch(self) -> None:
        """End processes in which something takes longer than it may."""
        while True:
            for process in self._processes:
                if process is not None and not process.is_lost:
                    process.check_time(self._seconds)
            await asyncio.sleep(_WATCH_SECONDS)


@dataclass(slots=True)
class _Order:
    """A request that a process plays."""

    request: RolloutRequest
    loop: asyncio.AbstractEventLoop
    ended: asyncio.Future[Episode | None]
    since: float = field(default_factory=time.monotonic)


class _Process:
    """A process, what it plays, and the two threads that talk to it.

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
        self._was_dead = False
        self._outbox: queue.SimpleQueue[tuple[int, str, bytes | None] | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._write, args=(setup,), daemon=True),
            threading.Thread(target=self._read, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

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
            if self._was_dead:
                self._lose(self._child.ending())
            self._was_dead = True
        elif self._started is None:
            if now - self._begun > START_SECONDS:
                self._lose(f"had not started after {START_SECONDS:g} s")
        elif now - stopped > _STUCK_SECONDS:
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
        with contextlib.suppress(OSError):  # what has happened, the other thread is told
            self._socket.sendall(setup)
            while (order := self._outbox.get()) is not None:
                orders = [order]
                with contextlib.suppress(queue.Empty):
                    while (order := self._outbox.get_nowait()) is not None:
                        orders.append(order)
                self._socket.sendall(framed(orders))
                if order is None:
                    return

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
        kind = EngineError if is_refusal and not self._has_started.is_set() else ProcessLostError
        for order in orders.values():
            with contextlib.suppress(RuntimeError):
                order.loop.call_soon_threadsafe(_settle, [(order.ended, kind(self._ending))])


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


def _sendable(arguments: Mapping[str, Any]) -> bytes:
    """Return the frame of an engine's arguments, which a fresh process can make sense of."""
    for name, value in arguments.items():
        module = getattr(value, "__module__", "")
        if module == "__main__" or "<locals>" in getattr(value, "__qualname__", ""):
            raise UserError(
                f"n_processes needs {name} at the top of a module that can be imported, got "
                f"{value!r:.120}; move it from the script into a file of its own"
            )
        try:
            pickled(value)
        except Exception as error:
            raise UserError(
                f"n_processes: {name} cannot be sent to another process, where it must be made of "
                f"data and of what lies in modules: {in_words(error)}"
            ) from error
    return framed(dict(arguments))
