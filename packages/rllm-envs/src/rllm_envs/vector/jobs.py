"""Calls of environments that wait: daemon threads, and the turns that are ready."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from rllm_envs.vector.slot import EnvSlot, in_words
from rllm_envs.vector.turns import Turn


class Job:
    """One call of one slot. Made by the pool, run by ``JobThreads``.

    Args:
        slot: Whose call it is.
        function: ``slot.step``, ``slot.reset`` or ``slot.fail``.
        arguments: Its arguments.
    """

    def __init__(
        self, slot: EnvSlot, function: Callable[..., Turn], arguments: tuple[Any, ...] = ()
    ) -> None:
        self.slot = slot
        self.function = function
        self.arguments = arguments
        self.started = 0.0
        self.thread: threading.Thread | None = None
        self.is_given_up = False

    def run(self) -> Turn:
        """Make the call; whatever it raises becomes a turn with an error."""
        try:
            return self.function(*self.arguments)
        except BaseException as error:
            return self.slot.give_up(f"{self.function.__name__} failed: {in_words(error)}")


class JobThreads:
    """Daemon threads that run jobs, and the queue of turns that are ready.

    Threads start on demand. One that takes a job wakes another one if more jobs are there, so jobs
    that return at once are run by one thread in a row, without a switch of threads for each, and
    jobs that wait get a thread each, up to ``max_threads``.

    The threads know this object and not the pool, so a pool that is forgotten is collected.
    """

    def __init__(self, max_threads: int) -> None:
        self._max_threads = max_threads
        lock = threading.Lock()
        self._has_work = threading.Condition(lock)
        self._is_ready = threading.Condition(lock)
        self._jobs: deque[Job] = deque()
        self._running: set[Job] = set()
        self._turns: list[Turn] = []
        self._threads: set[threading.Thread | None] = set()
        self._num_usable = 0
        self._num_idle = 0
        self._is_waking = False
        self._is_closed = False
        self._num_wanted = 1
        self._listener: Callable[[], None] | None = None

    @property
    def num_ready(self) -> int:
        """Turns that ``take`` returns."""
        return len(self._turns)

    def submit(self, jobs: Iterable[Job]) -> None:
        """Run jobs as soon as threads are free."""
        with self._has_work:
            self._jobs.extend(jobs)
            self._wake_one()

    def put(self, turn: Turn) -> None:
        """Add a turn that was made without a thread."""
        with self._has_work:
            self._add(turn)

    def take(self) -> list[Turn]:
        """Return the turns that are ready, in the order in which they became so."""
        with self._has_work:
            turns, self._turns = self._turns, []
            return turns

    def wait(self, num_wanted: int, seconds: float | None) -> None:
        """Wait until ``num_wanted`` turns are ready, at most for some seconds."""
        with self._is_ready:
            self._num_wanted = num_wanted
            if len(self._turns) < num_wanted:
                self._is_ready.wait(seconds)
            self._num_wanted = 1

    def listen(self, listener: Callable[[], None] | None) -> None:
        """Call ``listener`` in a thread after each turn; None ends that."""
        with self._has_work:
            self._listener = listener

    def give_up_late(self, limit_seconds: float) -> tuple[list[Job], float]:
        """Stop caring about the jobs that run for too long.

        Their threads are replaced; what they still return is dropped and their slots are closed.

        Returns:
            These jobs, and the seconds until the next one can be late.
        """
        now = time.monotonic()
        with self._has_work:
            late = [job for job in self._running if now - job.started >= limit_seconds]
            for job in late:
                self._give_up(job)
            self._num_usable -= len(late)
            self._wake_one()
            left = [limit_seconds - (now - job.started) for job in self._running]
        return late, min([limit_seconds, *left])

    def close(self, seconds: float) -> list[Job]:
        """Drop jobs that have not begun, and wait for the others at most for some seconds.

        Returns:
            The jobs that still run; their slots are closed when they end.
        """
        with self._has_work:
            self._is_closed = True
            self._jobs.clear()
            self._has_work.notify_all()
            threads = list(self._threads)
        end = time.monotonic() + seconds
        for thread in threads:
            if thread is not None and thread is not threading.current_thread():
                thread.join(max(0.0, end - time.monotonic()))
        with self._has_work:
            stuck = list(self._running)
            for job in stuck:
                self._give_up(job)
        return stuck

    def _give_up(self, job: Job) -> None:
        job.is_given_up = True
        self._running.discard(job)
        self._threads.discard(job.thread)

    def _wake_one(self) -> None:
        if not self._jobs or self._is_waking or self._is_closed:
            return
        if self._num_idle:
            self._is_waking = True
            self._has_work.notify()
        elif self._num_usable < self._max_threads:
            self._is_waking = True
            self._num_usable += 1
            thread = threading.Thread(target=self._work, name="rllm-vector", daemon=True)
            self._threads.add(thread)
            thread.start()

    def _work(self) -> None:
        try:
            with self._has_work:
                self._is_waking = False
            while (job := self._next_job()) is not None:
                turn = job.run()
                if self._is_dropped(job, turn):
                    job.slot.discard()
                    return
        finally:
            with self._has_work:
                self._threads.discard(threading.current_thread())

    def _next_job(self) -> Job | None:
        with self._has_work:
            while not self._jobs and not self._is_closed:
                self._num_idle += 1
                self._has_work.wait()
                self._num_idle -= 1
                self._is_waking = False
            if self._is_closed:
                return None
            job = self._jobs.popleft()
            job.started = time.monotonic()
            job.thread = threading.current_thread()
            self._running.add(job)
            self._wake_one()
            return job

    def _is_dropped(self, job: Job, turn: Turn) -> bool:
        with self._has_work:
            if job.is_given_up:
                return True
            self._running.discard(job)
            self._add(turn)
            return False

    def _add(self, turn: Turn) -> None:
        self._turns.append(turn)
        if len(self._turns) >= self._num_wanted:
            self._is_ready.notify_all()
        if self._listener is not None:
            self._listener()
