"""Several processes that play the episodes of one engine, each with agents and environments.

Python runs on one core at a time; where environments, agents and chat templates are what takes
long, more processes play more episodes. They are engines of their own (`episode_worker`).
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import math
import threading
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from rllm_agents.argument_checks import check_count
from rllm_agents.episode_process import WATCH_SECONDS, EpisodeProcess, ProcessLostError
from rllm_agents.errors import EngineError, EpisodeFailure, UserError, in_words
from rllm_agents.frames import framed, pickled
from rllm_agents.limits import RolloutLimits
from rllm_agents.player import PlayEpisode
from rllm_agents.rollout import unplayed_episode
from rllm_agents.rollout_requests import RolloutRequest
from rllm_agents.types import Episode, TerminationReason
from rllm_envs.errors import EnvProcessError

_END_SECONDS = 3.5
"""How long processes may take to close what they play."""
_RESTART_SECONDS = 0.5
"""How long to wait where no process can be started."""


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
        self._processes: list[EpisodeProcess | None] = [None] * num_processes
        self._has_started = threading.Event()  # any of them, ever
        self._is_closed = False

    @asynccontextmanager
    async def playing(self) -> AsyncGenerator[PlayEpisode, None]:
        """Be ready to play on the running event loop, until the block ends."""
        watch = asyncio.create_task(self._watch())
        try:
            yield functools.partial(self._play, asyncio.Lock())
        finally:
            watch.cancel()
            await asyncio.wait([watch])

    async def _play(self, alone: asyncio.Lock, request: RolloutRequest) -> Episode:
        """Play one request to its Episode; only cancellation is raised, and what follows.

        Args:
            alone: Held by the last attempt at a request that was lost before: one that takes its
                process along fails by itself in the end.
            request: Of an id that no other one has.

        Raises:
            EngineError: All of this is closed, or no process can make the engine.
        """
        lost: list[str] = []
        spent = 0.0
        while True:
            is_last = bool(lost) and len(lost) == self._max_attempts - 1
            try:
                async with alone if is_last else contextlib.nullcontext():
                    episode = await self._least_busy().play(request)
            except (ProcessLostError, EnvProcessError) as error:
                self._refuse_if_closed()
                lost.append(str(error))
                if isinstance(error, ProcessLostError):
                    spent += error.seconds
                else:
                    await asyncio.sleep(_RESTART_SECONDS)
                if len(lost) < self._max_attempts and spent < self._budget_seconds:
                    request = replace(request, num_lost=len(lost), seconds_spent=spent)
                    continue
                if not self._has_started.is_set():
                    raise EngineError(str(error)) from error
                return _lost_episode(request, lost, spent)
            if lost and episode.termination_reason is TerminationReason.TIMEOUT:
                # It had only what was left of the time, which says nothing about the policy.
                return _lost_episode(request, lost, spent)
            if lost:
                episode.info["earlier_errors"] = lost + episode.info.get("earlier_errors", [])
                attempts = max(episode.metrics["attempts"], len(lost) + 1.0)
                episode.metrics["attempts"] = attempts
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

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise EngineError("this AgentExecutionEngine is closed; make a new one")

    def _least_busy(self) -> EpisodeProcess:
        """Return a process, started where there are fewer than asked for.

        Raises:
            EngineError: All of this is closed.
            EnvProcessError: There is none, and none can be started.
        """
        problem = EnvProcessError("no process for episodes could be started")
        with self._lock:
            self._refuse_if_closed()
            for place, process in enumerate(self._processes):
                if process is None or process.is_lost:
                    self._processes[place] = None
                    if process is not None:
                        process.close(0.0)
                    try:
                        self._processes[place] = EpisodeProcess(self._setup, self._has_started)
                    except EnvProcessError as error:
                        problem = error
            living = [process for process in self._processes if process is not None]
        if not living:
            raise problem
        return min(living, key=lambda process: process.load)

    async def _watch(self) -> None:
        """End processes in which something takes longer than it may."""
        while True:
            for process in self._processes:
                if process is not None and not process.is_lost:
                    process.check_time(self._seconds)
            await asyncio.sleep(WATCH_SECONDS)


def _lost_episode(request: RolloutRequest, lost: list[str], seconds: float) -> Episode:
    """Return the Episode of a request whose attempts were all lost, or had no time left."""
    failure = EpisodeFailure(TerminationReason.ENV_EXIT, lost[-1])
    episode = unplayed_episode(request, failure)
    episode.metrics |= {"attempts": float(len(lost)), "total_seconds": seconds}
    if lost[:-1]:
        episode.info["earlier_errors"] = lost[:-1]
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
