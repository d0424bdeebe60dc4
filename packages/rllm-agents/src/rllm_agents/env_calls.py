"""Calls into environments, contained: whatever one does, its episode alone ends, and says why."""

from __future__ import annotations

import asyncio
import contextlib
import math
import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rllm_agents.errors import EpisodeFailure
from rllm_agents.limits import RolloutLimits
from rllm_agents.types import TerminationReason
from rllm_envs.errors import GradingError, ReferenceAnswerError

# How long a call that was given up may still run before `close` is called beside it.
_GRACE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
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


class EnvSession:
    """One environment during one episode: constructed, reset, stepped, and closed exactly once.

    Environments with `blocking = False` run on the event loop, all others in threads under
    `step_timeout_seconds`. Everything that they do wrong is raised as EpisodeFailure, `SystemExit`
    and a stray `CancelledError` included; only KeyboardInterrupt on the event loop passes.

    Args:
        make_env: Constructs the environment.
        is_blocking: Whether the construction may block.
        threads: Where blocking calls run.
        limits: Their time limits.
    """

    def __init__(
        self,
        make_env: Callable[[], Any],
        *,
        is_blocking: bool,
        threads: EnvThreads,
        limits: RolloutLimits,
    ) -> None:
        self._make_env = make_env
        self._is_blocking = is_blocking
        self._threads = threads
        self._limits = limits
        self._env: Any = None
        self._running: EnvCall | None = None
        self._is_closed = False
        self.seconds = 0.0
        """Spent in the environment so far."""

    async def reset(self) -> tuple[Any, dict[str, Any]]:
        """Construct the environment and reset it.

        Raises:
            EpisodeFailure: When it raises, takes too long or breaks its contract.
        """
        self._env = await self._call("construction", self._make_env, late=_close_late)
        self._is_blocking = getattr(self._env, "blocking", True) is not False
        answer = await self._call("reset", self._env.reset)
        if not isinstance(answer, tuple | list) or len(answer) != 2:
            raise _broke_contract("reset", "(observation, info)", answer)
        observation, info = answer
        return observation, _checked_info("reset", info)

    async def step(self, action: Any) -> tuple[Any, float, bool, dict[str, Any]]:
        """Act on the environment.

        Raises:
            EpisodeFailure: When it raises, takes too long, breaks its contract or gives a reward
                that is no finite number.
        """
        answer = await self._call("step", lambda: self._env.step(action))
        if not isinstance(answer, tuple | list) or len(answer) != 4:
            raise _broke_contract("step", "(observation, reward, done, info)", answer)
        observation, reward, done, info = answer
        if type(done).__name__ not in ("bool", "bool_"):  # bool_ is NumPy's
            raise _broke_contract("step", "a boolean as done", done)
        return observation, _checked_reward(reward), bool(done), _checked_info("step", info)

    async def close(self, timeout_seconds: float) -> str | None:
        """Close the environment if there is one and it has not been closed.

        Returns:
            What went wrong, in words; None when nothing did.
        """
        if self._env is None or self._is_closed:
            return None
        self._is_closed = True
        if self._running is not None:
            await self._running.wait(min(_GRACE_SECONDS, timeout_seconds))
        close = getattr(self._env, "close", None)
        if close is None:
            return None
        if not self._is_blocking:
            outcome = contain_on_loop(close)
        else:
            call = self._threads.start(close)
            outcome = await call.wait(timeout_seconds)
            if outcome is None:
                call.give_up()
                return f"close of the environment took longer than {timeout_seconds} s"
        return None if outcome.error is None else f"close raised {in_words(outcome.error)}"

    async def _call(
        self,
        name: str,
        function: Callable[[], Any],
        late: Callable[[Outcome], None] | None = None,
    ) -> Any:
        start = time.perf_counter()
        try:
            if self._is_blocking:
                outcome = await self._call_in_thread(name, function, late)
            else:
                outcome = contain_on_loop(function)
        finally:
            self.seconds += time.perf_counter() - start
        if outcome.error is None:
            return outcome.value
        if isinstance(outcome.error, EpisodeFailure):
            raise outcome.error
        is_grading = isinstance(outcome.error, GradingError | ReferenceAnswerError)
        reason = TerminationReason.GRADER_ERROR if is_grading else TerminationReason.ENV_EXCEPTION
        message = f"{name} of the environment raised {in_words(outcome.error)}"
        raise EpisodeFailure(reason, message) from outcome.error

    async def _call_in_thread(
        self,
        name: str,
        function: Callable[[], Any],
        late: Callable[[Outcome], None] | None,
    ) -> Outcome:
        timeout = self._limits.step_timeout_seconds
        self._threads.refuse_if_hung()
        self._running = call = self._threads.start(function, late=late)
        try:
            outcome = await call.wait(timeout)
        except BaseException:
            call.give_up()
            raise
        if outcome is None:
            call.give_up()
            raise EpisodeFailure(
                TerminationReason.ENV_STEP_TIMEOUT,
                f"{name} of the environment took longer than step_timeout={timeout} s",
            )
        self._running = None
        return outcome


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
    outcome = contain(function)
    if isinstance(outcome.error, KeyboardInterrupt):
        raise outcome.error
    return outcome


def _close_late(outcome: Outcome) -> None:
    """Close an environment whose construction ended after it was given up."""
    close = getattr(outcome.value, "close", None)
    if close is not None:
        close()


def _checked_reward(reward: Any) -> float:
    try:
        if isinstance(reward, str | bytes):
            raise TypeError("text")
        value = float(reward)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        value = math.nan
    if not math.isfinite(value):
        raise EpisodeFailure(
            TerminationReason.ENV_BAD_REWARD,
            f"the environment's reward must be a finite number, got {reward!r:.120}",
        )
    return value


def _checked_info(name: str, info: Any) -> dict[str, Any]:
    if not isinstance(info, Mapping):
        raise _broke_contract(name, "a dict as info", info)
    return dict(info)


def _broke_contract(name: str, wanted: str, got: Any) -> EpisodeFailure:
    hint = ""
    if isinstance(got, tuple | list):
        hint = f" of {len(got)} values"
        if name == "step" and len(got) == 5:
            hint += "; wrap a Gymnasium environment in rllm_envs.GymEnv"
    return EpisodeFailure(
        TerminationReason.ENV_PROTOCOL,
        f"{name} of the environment must return {wanted}, got {type(got).__name__}{hint}",
    )


def in_words(error: BaseException) -> str:
    """Type and message of an error, of bounded length."""
    return f"{type(error).__name__}: {error}"[:2000]
