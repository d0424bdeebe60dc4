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
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from rllm_agents.argument_checks import check_count
from rllm_agents.errors import EngineError, EpisodeFailure, UserError, in_words
from rllm_agents.frames import HEADER, framed
from rllm_agents.limits import RolloutLimits
from rllm_agents.player import PlayEpisode
from rllm_agents.rollout import unplayed_episode
from rllm_agents.rollout_requests import RolloutRequest
from rllm_agents.types import Episode, TerminationReason
from rllm_envs.errors import EnvProcessError
from rllm_envs.vector.child_process import ChildProcess

START_SECONDS = 120.0
"""How long a process may take until it answers, with its imports."""
_WATCH_SECONDS = 1.0
_CANCEL_SECONDS = 1.5
"""How long a stopped episode is waited for, whose environment is being closed."""
_END_SECONDS = 3.0


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
        seconds = limits.trajectory_timeout_seconds
        most = math.inf if seconds is None else seconds + limits.close_timeout_seconds
        self._seconds = most + margin_seconds
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

    async def play(self, request: RolloutRequest) -> Episode:
        """Play one request to its Episode; only cancellation is raised, and what follows.

        Raises:
            EngineError: No process could be started at all.
        """
        lost: list[str] = []
        while True:
            try:
                episode = await self._least_busy().play(request)
            except (ProcessLostError, EnvProcessError) as error:
                if not self._has_started.is_set():  # nor would another one
                    raise EngineError(str(error)) from error
                lost.append(str(error))
                if len(lost) < self._max_attempts:
                    continue
                failure = EpisodeFailure(TerminationReason.ENV_EXIT, str(error))
                return _with_losses(unplayed_episode(request, failure), lost[:-1])
            return _with_losses(episode, lost)

    def close(self) -> None:
        """Stop what is played, close its environments, and end all processes."""
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
            EnvProcessError: It cannot be started.
        """
        if self._is_closed:
            raise EngineError("this AgentExecutionEngine is closed; make a new one")
        for place, process in enumerate(self._processes):
            if process is None or process.is_lost:
                if process is not None:
                    process.close(0.0)
                self._processes[place] = _Process(self._setup, self._has_started)
        living = [process for process in self._processes if process is not None]
        return min(living, key=lambda process: process.num_playing)

    async def _watch(self) -> None:
        """End processes in which an episode takes longer than any may."""
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            for process in self._processes:
                if process is not None and not process.is_lost:
                    process.check_time(self._seconds)


@dataclass(slots=True)
class _Order:
    """A request that a process plays."""

    loop: asyncio.AbstractEventLoop
    ended: asyncio.Future[Episode | None]
    since: float = field(default_factory=time.monotonic)


class _Process:
    """A process, what it plays, and the two threads that talk to it."""

    def __init__(self, setup: bytes, has_started: threading.Event) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._child = ChildProcess(
                "rllm_agents.episode_worker",
                descriptors=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
            )
        self._begun = time.monotonic()
        self._started: float | None = None
        self._has_started = has_started
        self._lock = threading.Lock()
        self._orders: dict[int, _Order] = {}
        self._numbers = itertools.count()
        self._ending: str | None = None
        self._outbox: queue.SimpleQueue[tuple[int, RolloutRequest | None] | None] = (
            queue.SimpleQueue()
        )
        self._threads = [
            threading.Thread(target=self._write, args=(setup,), daemon=True),
            threading.Thread(target=self._read, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    @property
    def is_lost(self) -> bool:
        """Whether it has ended, or hung and was killed."""
        return self._ending is not None

    @property
    def num_playing(self) -> int:
        """Orders without an answer."""
        return len(self._orders)

    def check_time(self, seconds: float) -> None:
        """End it where its start, or an order, takes longer than it may."""
        with self._lock:
            oldest = next(iter(self._orders.values()), None)
        now = time.monotonic()
        if self._started is None:
            if now - self._begun > START_SECONDS:
                self._lose(f"had not started after {START_SECONDS:g} s")
        elif oldest is not None and now - max(oldest.since, self._started) > seconds:
            self._lose(f"gave no answer for {seconds:g} s")

    async def play(self, request: RolloutRequest) -> Episode:
        """Play a request.

        Raises:
            ProcessLostError: The process ended before the episode did.
        """
        loop = asyncio.get_running_loop()
        number, ended = next(self._numbers), loop.create_future()
        with self._lock:
            if self._ending is not None:
                raise ProcessLostError(self._ending)
            self._orders[number] = _Order(loop, ended)
        self._outbox.put((number, request))
        try:
            episode = await ended
        except asyncio.CancelledError:
            await self._stop(number)
            raise
        if episode is None:
            raise ProcessLostError("a process that plays episodes is being ended")
        _give_task(episode, request.task)
        return episode

    async def _stop(self, number: int) -> None:
        """Stop an order, and wait until its environment is closed."""
        stopped = asyncio.get_running_loop().create_future()
        with self._lock:
            order = self._orders.get(number)
            if order is None:
                return
            order.ended = stopped
        self._outbox.put((number, None))
        await asyncio.wait([stopped], timeout=_CANCEL_SECONDS)

    def hang_up(self) -> None:
        """Have it stop what it plays and end."""
        self._outbox.put(None)
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def close(self, seconds: float) -> None:
        """Wait for its end, kill it if it takes longer, and release what it held."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.popen.wait(timeout=seconds)
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
                self._send(orders)
                if order is None:
                    return

    def _send(self, orders: list[tuple[int, RolloutRequest | None]]) -> None:
        try:
            frame = framed(orders)
        except Exception as error:  # a task may hold any object
            if len(orders) > 1:
                for order in orders:
                    self._send([order])
                return
            number, request = orders[0]
            assert request is not None
            what = f"the task cannot be sent between processes: {in_words(error)}"
            failure = EpisodeFailure(TerminationReason.ENV_PROTOCOL, what)
            self._deliver([(number, unplayed_episode(request, failure))])
            return
        self._socket.sendall(frame)

    def _read(self) -> None:
        """Hand out what comes, until the process ends."""
        with self._socket.makefile("rb") as answers:
            try:
                refusal = _value(answers)
                if refusal is not None:
                    raise EngineError(refusal)
                self._started = time.monotonic()
                self._has_started.set()
                while True:
                    self._deliver(_value(answers))
            except (EOFError, OSError):
                how = self._child.ending()
            except Exception as error:
                how = f"answered what cannot be used: {in_words(error)}"
        self._lose(how)

    def _deliver(self, ended: list[tuple[int, Episode | None]]) -> None:
        outcomes: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
        with self._lock:
            for number, episode in ended:
                order = self._orders.pop(number, None)
                if order is not None:
                    outcomes.setdefault(order.loop, []).append((order.ended, episode))
        for loop, pairs in outcomes.items():
            with contextlib.suppress(RuntimeError):  # nobody waits on a loop that is closed
                loop.call_soon_threadsafe(_settle, pairs)

    def _lose(self, how: str) -> None:
        """Kill it, and tell who waits; only the first reason counts."""
        with self._lock:
            if self._ending is None:
                self._ending = f"a process that plays episodes {how}"
            orders, self._orders = self._orders, {}
        self._child.kill()
        self._outbox.put(None)
        error = ProcessLostError(self._ending)
        for order in orders.values():
            with contextlib.suppress(RuntimeError):
                order.loop.call_soon_threadsafe(_settle, [(order.ended, error)])


def _settle(outcomes: list[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, outcome in outcomes:
        if future.done():
            continue
        if isinstance(outcome, ProcessLostError):
            future.set_exception(outcome)
            future.exception()  # looked at, where the order was stopped and nobody does
        else:
            future.set_result(outcome)


def _value(answers: BinaryIO) -> Any:
    """Read one frame; EOFError where the other side has ended."""
    header = answers.read(HEADER)
    content = answers.read(int.from_bytes(header, "big")) if len(header) == HEADER else b""
    if not content:
        raise EOFError
    return pickle.loads(content)


def _give_task(episode: Episode, task: Mapping[str, Any]) -> None:
    """Put the task back, which was left out on the way."""
    episode.task = task
    for trajectory in episode.trajectories:
        trajectory.task = task if trajectory.task is None else trajectory.task


def _with_losses(episode: Episode, lost: list[str]) -> Episode:
    """Tell of the attempts that were lost with their processes."""
    if lost:
        episode.info["earlier_errors"] = lost + episode.info.get("earlier_errors", [])
        episode.metrics["attempts"] += len(lost)
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
        return framed(dict(arguments))
    except Exception as error:
        raise UserError(
            f"n_processes: the engine's arguments cannot be sent to other processes: "
            f"{in_words(error)}"
        ) from error
