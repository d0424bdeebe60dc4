"""Requests for episodes, and many of them run at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rllm_agents.errors import UserError
from rllm_agents.garbage import seldom_collected
from rllm_agents.types import Episode, SamplingParams

# A run that is stopped ends within two seconds, whatever its episodes do.
_CANCEL_SECONDS = 1.8

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RolloutRequest:
    """One episode to be run. Made by users and sampling plans, read by engines."""

    task: Mapping[str, Any]
    """The problem; the environment is made from it, or the workflow gets it."""
    id: str
    """Becomes the Episode's id."""
    sampling: SamplingParams | None = None
    """None takes the engine's; its seed is then mixed with `id`."""
    num_lost: int = 0
    """Attempts that were lost with the process they were made in; further ones count from there."""
    seconds_spent: float = 0.0
    """Of what one episode may take, by those."""


async def run_requests(
    requests: Sequence[RolloutRequest],
    run: Callable[[RolloutRequest], Awaitable[Episode]],
    num_parallel: int,
) -> AsyncGenerator[Episode, None]:
    """Run requests, at most `num_parallel` at a time, and yield each Episode as it ends.

    Leaving the loop early cancels what is still running. What `run` raises ends all of it.

    Raises:
        UserError: Two requests have the same id.
    """
    _check_ids(requests)
    waiting = iter(requests)
    ended: asyncio.Queue[Episode | BaseException] = asyncio.Queue()

    async def work() -> None:
        try:
            for request in waiting:
                ended.put_nowait(await run(request))
        except BaseException as error:
            ended.put_nowait(error)
            raise

    with seldom_collected():
        workers = [asyncio.create_task(work()) for _ in range(min(num_parallel, len(requests)))]
        try:
            for _ in requests:
                episode = await ended.get()
                if isinstance(episode, BaseException):
                    raise episode
                yield episode
        finally:
            for worker in workers:
                worker.cancel()
            await _end(workers)


async def _end(workers: Sequence[asyncio.Task[None]]) -> None:
    """Wait for cancelled workers, but not for one that does not listen."""
    if not workers:
        return
    done, deaf = await asyncio.wait(workers, timeout=_CANCEL_SECONDS)
    for worker in done:
        if not worker.cancelled():
            worker.exception()  # looked at: it has been raised already, or nobody is left to hear
    if deaf:
        _log.warning("%d episodes do not end though they are cancelled; left behind", len(deaf))


def requests_of(tasks: Iterable[Mapping[str, Any]]) -> list[RolloutRequest]:
    """Return a request for every task; its id is the task's place, from "0".

    Raises:
        UserError: A task is no mapping.
    """
    requests = []
    for index, task in enumerate(tasks):
        if not isinstance(task, Mapping):
            raise UserError(f"task {index} must be a mapping, got {task!r:.120}")
        requests.append(RolloutRequest(task=task, id=str(index)))
    return requests


def _check_ids(requests: Sequence[RolloutRequest]) -> None:
    seen: set[str] = set()
    for request in requests:
        if request.id in seen:
            raise UserError(f"ids of requests must differ; {request.id!r} occurs twice")
        seen.add(request.id)
