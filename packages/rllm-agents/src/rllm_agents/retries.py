"""Trying again what may pass: which faults, how often, how long after, and until when."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from rllm_agents.argument_checks import check_count
from rllm_agents.errors import EpisodeFailure, GaveUpError, TransientError
from rllm_agents.limits import check_seconds
from rllm_agents.types import Episode, TerminationReason
from rllm_envs.errors import InfrastructureError, SandboxUnavailableError
from rllm_envs.vector.env_process import EnvHungError, EnvRaisedError
from rllm_envs.vector.wire import UnsendableError

_MAX_BACKOFF_SECONDS = 30.0
_MAX_RETRY_AFTER_SECONDS = 60.0
_MAX_CAUSES = 32
# What stays wrong, though it is of a kind that may pass.
_FINAL = (SandboxUnavailableError, GaveUpError, EnvHungError, UnsendableError)
_TRANSIENT = (TransientError, ConnectionError, InfrastructureError)
_FINAL_NAMES = frozenset(kind.__name__ for kind in _FINAL)
_TRANSIENT_NAMES = frozenset(kind.__name__ for kind in _TRANSIENT)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a request. Made by Retries, read by who plays it."""

    request_id: str
    number: int = 1
    """From 1."""
    seconds_left: float | None = None
    """How long it may take; None: no bound."""

    @property
    def id(self) -> str:
        """``<request>/<number>``: what is late of another attempt has another one."""
        return f"{self.request_id}/{self.number}"


Play = Callable[[Attempt], Awaitable[tuple[Episode, BaseException | None]]]
"""Plays one attempt: its Episode, and what failed if anything did."""


class Retries:
    """Plays attempts until one has an outcome, a fault that stays, or the budget is spent.

    The wait before attempt n + 1 is what the other side asked for (Retry-After, at most 60 s) and
    a time drawn uniformly from 0 to min(30, backoff 2^(n-1)) seconds: "full jitter".

    Args:
        max_attempts: At least 1.
        backoff_seconds: Longest wait before the second attempt, above 0.
        budget_seconds: Of one request, all its attempts and waits included; None: no bound.

    Raises:
        UserError: An argument is out of range.
    """

    def __init__(
        self,
        max_attempts: int = 1,
        backoff_seconds: float = 0.5,
        budget_seconds: float | None = None,
    ) -> None:
        check_count("retry_limit", max_attempts)
        check_seconds("retry_backoff", backoff_seconds)
        self.max_attempts = max_attempts
        self.backoff_seconds = backoff_seconds
        self._budget_seconds = budget_seconds
        self._jitter = random.Random()

    async def play(
        self, request_id: str, play: Play, *, num_lost: int = 0, seconds_spent: float = 0.0
    ) -> Episode:
        """Return the Episode of the last attempt, with `attempts` among its metrics.

        A further attempt that runs out of what its predecessors have left of the budget has shown
        nothing about the policy; the Episode before it is returned then.

        Args:
            request_id: Of the request; attempts are called ``<request>/<number>``.
            play: Plays one of them.
            num_lost: Attempts before, elsewhere, of which nothing is left.
            seconds_spent: Of the budget, by those.
        """
        started = time.perf_counter() - seconds_spent
        attempt = Attempt(request_id, num_lost + 1, self._seconds_left(started))
        earlier: list[str] = []
        failed: Episode | None = None
        while True:
            episode, error = await play(attempt)
            if failed is not None and episode.termination_reason is TerminationReason.TIMEOUT:
                return self._finished(failed, attempt.number, started)
            episode.info["attempt_id"] = attempt.id
            if earlier:
                episode.info["earlier_errors"] = list(earlier)
            may_pass = episode.failed and is_transient(error)
            wait = self._wait_seconds(attempt.number, error) if may_pass else None
            left = self._seconds_left(started)
            if wait is None or (left is not None and wait >= left):
                return self._finished(episode, attempt.number, started)
            failed = episode
            earlier.append(f"{attempt.id}: {episode.error}")
            await asyncio.sleep(wait)
            attempt = Attempt(request_id, attempt.number + 1, self._seconds_left(started))

    def _finished(self, episode: Episode, num_attempts: int, started: float) -> Episode:
        episode.metrics["attempts"] = float(num_attempts)
        episode.metrics["total_seconds"] = time.perf_counter() - started
        return episode

    def _seconds_left(self, started: float) -> float | None:
        if self._budget_seconds is None:
            return None
        return max(0.0, started + self._budget_seconds - time.perf_counter())

    def _wait_seconds(self, attempts: int, error: BaseException | None) -> float | None:
        """How long to wait after so many attempts; None where there is no further one."""
        if attempts >= self.max_attempts:
            return None
        most = min(_MAX_BACKOFF_SECONDS, self.backoff_seconds * 2.0 ** (attempts - 1))
        asked = min(retry_after_seconds(error), _MAX_RETRY_AFTER_SECONDS)
        return asked + self._jitter.uniform(0.0, most)


def is_transient(error: BaseException | None) -> bool:
    """Whether a fault may pass: a slow call, a lost connection, a sandbox, or what says so itself.

    What an engine has tried again itself, and a call of an environment that hung, are not.
    """
    causes = list(causes_of(error))
    if any(isinstance(cause, _FINAL) for cause in causes):
        return False
    return any(map(_may_pass, causes))


def retry_after_seconds(error: BaseException | None) -> float:
    """How long the other side wants to be left alone, in seconds."""
    asked = [e.retry_after or 0.0 for e in causes_of(error) if isinstance(e, TransientError)]
    return max(asked, default=0.0)


def leaves_of(error: BaseException) -> Iterator[BaseException]:
    """The errors of a group, of all depths; an error that is no group is itself."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves_of(inner)
    else:
        yield error


def causes_of(error: BaseException | None) -> Iterator[BaseException]:
    """An error, what it was raised from, and so on; of groups, those of each member."""
    for _ in range(_MAX_CAUSES):
        if error is None:
            return
        if isinstance(error, BaseExceptionGroup):
            for leaf in leaves_of(error):
                yield from causes_of(leaf)
            return
        yield error
        error = error.__cause__


def _may_pass(error: BaseException) -> bool:
    if isinstance(error, EpisodeFailure):
        return error.is_transient
    if isinstance(error, EnvRaisedError):  # what it raised, not that it did so in a process
        kinds = set(error.kinds)
        return bool(kinds & _TRANSIENT_NAMES) and not kinds & _FINAL_NAMES
    return isinstance(error, _TRANSIENT)
