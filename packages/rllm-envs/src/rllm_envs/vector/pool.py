"""``SlotPool``: the environments of a pool, which of them are busy, and where their calls run."""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from rllm_envs.errors import EpisodeError
from rllm_envs.vector.jobs import Job, JobThreads
from rllm_envs.vector.process_env import ProcessEnv
from rllm_envs.vector.slot import EnvSlot
from rllm_envs.vector.turns import Turn

CLOSE_LIMIT_SECONDS = 5.0

Call = tuple[int, Callable[..., Turn], tuple[Any, ...]]
"""Place in the pool, method of its slot, arguments."""


class SlotPool:
    """Environments of which each is idle or busy with one call.

    A call starts with ``start`` and ends when its turn is received. Between them it runs in a
    thread if its environment may wait, and has run already if not.

    Args:
        slots: The environments.
        max_threads: Calls that run in threads at the same time.
        deadline: Seconds after which a call in a thread is given up; None: never.
        are_threaded: Whether all calls run in threads, also those that do not wait.
    """

    def __init__(
        self,
        slots: Sequence[EnvSlot],
        *,
        max_threads: int,
        deadline: float | None,
        are_threaded: bool,
    ) -> None:
        self.slots = list(slots)
        self.busy: set[int] = set()
        self._deadline = deadline
        self._are_threaded = are_threaded
        self._may_block = [True] * len(self.slots)
        self._threads = JobThreads(max_threads)
        self._owner = os.getpid()

    @property
    def is_inline(self) -> bool:
        """Whether no call runs in a thread."""
        return not any(self._may_block)

    def reset_call(self, place: int, seed: int | None, options: dict[str, Any] | None) -> Call:
        """Return the call that resets an environment."""
        slot = self.slots[place]
        task = None if options is None else options.get("task")
        self._may_block[place] = self._are_threaded or slot.may_block(task)
        return place, slot.reset, (seed, options)

    def step_call(self, place: int, action: Any) -> Call:
        """Return the call that steps an environment."""
        return place, self.slots[place].step, (action,)

    def require_rest(self, name: str) -> None:
        """Raise EpisodeError where calls are under way."""
        if self.busy:
            raise EpisodeError(
                f"{name} must wait for {len(self.busy)} environments that are under way, such as "
                f"number {min(self.busy)}: recv() their turns first"
            )

    def require_free(self, places: Iterable[int]) -> None:
        """Raise EpisodeError where one of them is under way."""
        for place in places:
            if place in self.busy:
                raise EpisodeError(f"environment {place} is under way: recv() its turn first")

    def require_started(self, slots: Iterable[EnvSlot]) -> None:
        """Raise EpisodeError where an environment has not been reset."""
        for slot in slots:
            if not slot.has_started:
                raise EpisodeError(f"environment {slot.index} has no episode: call reset() first")

    def start(self, calls: Sequence[Call]) -> None:
        """Start calls; those that do not wait have ended when this returns.

        Raises:
            EpisodeError: An environment is busy; then none is started.
        """
        self.require_free(place for place, *_ in calls)
        self.busy.update(place for place, *_ in calls)
        waiting = [call for call in calls if self._may_block[call[0]]]
        self._threads.submit(
            [Job(self.slots[place], function, rest) for place, function, rest in waiting]
        )
        for place, function, rest in calls:
            if not self._may_block[place]:
                self._threads.put(function(*rest))

    def finish(self, calls: Sequence[Call]) -> list[Turn]:
        """Run calls and return their turns by place; nothing else may be under way."""
        self.start(calls)
        return sorted(self.receive(len(calls), None), key=lambda turn: turn.env_id)

    def receive(self, num_wanted: int, seconds: float | None) -> list[Turn]:
        """Return the turns that are ready, at least ``num_wanted``, or fewer after some seconds."""
        num_wanted = self._num_receivable(num_wanted)
        for pause in self._pauses(num_wanted, seconds):
            self._threads.wait(num_wanted, pause)
        return self._take()

    async def areceive(self, num_wanted: int, seconds: float | None) -> list[Turn]:
        """Do the same without keeping the event loop."""
        num_wanted = self._num_receivable(num_wanted)
        loop, has_news = asyncio.get_running_loop(), asyncio.Event()

        def tell() -> None:
            # A closed loop refuses: then nobody waits.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(has_news.set)

        self._threads.listen(tell)
        try:
            for pause in self._pauses(num_wanted, seconds):
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(has_news.wait(), pause)
                has_news.clear()
        finally:
            self._threads.listen(None)
        return self._take()

    def close(self) -> None:
        """Close all environments, and end their threads and processes."""
        if self._owner != os.getpid():
            # A forked copy: threads and processes are those of the original.
            return
        for slot in self.slots:
            slot.is_closed = True
            env = slot.env
            if slot.index in self.busy and isinstance(env, ProcessEnv):
                env.end()
        stuck = {job.slot for job in self._threads.close(CLOSE_LIMIT_SECONDS)}
        for slot in self.slots:
            if slot not in stuck or isinstance(slot.env, ProcessEnv):
                slot.discard()
        self.busy.clear()

    def _take(self) -> list[Turn]:
        turns = self._threads.take()
        self.busy.difference_update(turn.env_id for turn in turns)
        return turns

    def _num_receivable(self, num_wanted: int) -> int:
        if not self.busy:
            raise EpisodeError("no turn is under way: send() actions or async_reset() first")
        return min(num_wanted, len(self.busy))

    def _pauses(self, num_wanted: int, seconds: float | None) -> Iterator[float | None]:
        """Yield how long to wait for news, until there is nothing more to wait for."""
        end = None if seconds is None else time.monotonic() + seconds
        while True:
            until_late = None if self._deadline is None else self._replace_late(self._deadline)
            left = None if end is None else end - time.monotonic()
            if self._threads.num_ready >= num_wanted or (left is not None and left <= 0):
                return
            limits = [limit for limit in (until_late, left) if limit is not None]
            yield min(limits, default=None)

    def _replace_late(self, deadline: float) -> float:
        """Give up the calls that are late, and return the seconds until another one can be."""
        late, until_next = self._threads.give_up_late(deadline)
        for job in late:
            place = job.slot.index
            slot = self.slots[place] = job.slot.successor()
            name = job.function.__name__
            message = f"{name} took longer than deadline={deadline:g} s"
            if name == "step":
                # It may reset, so it too may take long.
                self._threads.submit([Job(slot, slot.fail, (message,))])
            else:
                self._threads.put(slot.give_up(message))
        return until_next
