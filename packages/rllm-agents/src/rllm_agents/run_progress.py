"""How far runs of an engine are: no request is ever uncounted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rllm_agents.rollout_requests import RolloutRequest
from rllm_agents.types import Episode

PlayRequest = Callable[[RolloutRequest], Awaitable[Episode]]


@dataclass(frozen=True, slots=True)
class RunProgress:
    """Requests of an engine so far, over all its runs. Made by RunCounter, read by users.

    ``submitted == waiting + in_flight + completed + failed + cancelled`` at any time.
    """

    submitted: int = 0
    waiting: int = 0
    """Not begun yet: `n_parallel_agents` others run."""
    in_flight: int = 0
    completed: int = 0
    """Ended by an outcome."""
    failed: int = 0
    """Ended by a failure."""
    cancelled: int = 0
    """Begun or not, without an Episode: their run was stopped."""
    retried: int = 0
    """Further attempts at requests that have ended."""
    hung_calls: int = 0
    """Calls of environments that were given up and still hold a thread."""


class RunCounter:
    """Counts requests as they begin and end. One event loop counts at a time."""

    def __init__(self) -> None:
        self._submitted = self._completed = self._failed = 0
        self._cancelled = self._retried = self._waiting = self._in_flight = 0

    def progress(self, hung_calls: int = 0) -> RunProgress:
        """Return the counts as they are now."""
        return RunProgress(
            submitted=self._submitted,
            waiting=self._waiting,
            in_flight=self._in_flight,
            completed=self._completed,
            failed=self._failed,
            cancelled=self._cancelled,
            retried=self._retried,
            hung_calls=hung_calls,
        )

    @contextmanager
    def counting(self, num_requests: int, play: PlayRequest) -> Iterator[PlayRequest]:
        """Count the requests of one run; those that have not begun at its end are cancelled.

        Args:
            num_requests: Of the run.
            play: Plays one of them; what is yielded does the same and counts it.
        """
        num_begun = 0

        async def counted(request: RolloutRequest) -> Episode:
            nonlocal num_begun
            num_begun += 1
            self._waiting -= 1
            self._in_flight += 1
            episode: Episode | None = None
            try:
                episode = await play(request)
                return episode
            finally:
                self._in_flight -= 1
                self._count(episode)

        self._submitted += num_requests
        self._waiting += num_requests
        try:
            yield counted
        finally:
            self._waiting -= num_requests - num_begun
            self._cancelled += num_requests - num_begun

    def _count(self, episode: Episode | None) -> None:
        if episode is None:
            self._cancelled += 1
            return
        self._failed += episode.failed
        self._completed += not episode.failed
        self._retried += max(0, int(episode.metrics.get("attempts", 1.0)) - 1)
