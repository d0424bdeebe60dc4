"""Calls into environments, contained: whatever one does, its episode alone ends, and says why."""

from __future__ import annotations

import asyncio
import inspect
import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from rllm_agents.call_threads import (
    EnvCall,
    EnvThreads,
    Outcome,
    contain_awaitable,
    contain_on_loop,
)
from rllm_agents.errors import EpisodeFailure, in_words
from rllm_agents.isolated_envs import IsolatedEnv
from rllm_agents.limits import RolloutLimits
from rllm_agents.types import TerminationReason
from rllm_envs.errors import EnvProcessError, GradingError, ReferenceAnswerError, SandboxError
from rllm_envs.vector.env_process import EnvHungError, EnvRaisedError
from rllm_envs.vector.wire import UnsendableError

# How long a call that was given up may still run before `close` is called beside it.
_GRACE_SECONDS = 0.5
# No model reads as much; a renderer or a server would choke on it.
MAX_OBSERVATION_CHARACTERS = 8 * 2**20
_TEXTS, _LISTS = (str, bytes), (list, tuple)
_MAPPINGS = (dict, Mapping)  # a dict is told far more quickly than a Mapping
_NESTS = (*_LISTS, *_MAPPINGS)
# What an error is of; by name where it comes from another process.
_REASONS: tuple[tuple[TerminationReason, tuple[type[BaseException], ...]], ...] = (
    (TerminationReason.GRADER_ERROR, (GradingError, ReferenceAnswerError)),
    (TerminationReason.SANDBOX_ERROR, (SandboxError,)),
    (TerminationReason.ENV_EXIT, (SystemExit,)),
    (TerminationReason.ENV_LEAKED_CANCEL, (asyncio.CancelledError,)),
    (TerminationReason.ENV_PROTOCOL, (UnsendableError,)),
)


class EnvSession:
    """One environment during one episode: constructed, reset, stepped, and closed exactly once.

    Environments with `blocking = False` run on the event loop, all others in threads under
    `step_timeout_seconds`; what a method returns is awaited there if it is awaitable. An
    IsolatedEnv is killed when its time is up. Everything that they do wrong is raised as
    EpisodeFailure, `SystemExit` and a stray `CancelledError` included; only KeyboardInterrupt on
    the event loop passes.

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

    async def open(self) -> Any:
        """Construct the environment and return it; only `call` may call its methods.

        Raises:
            EpisodeFailure: When it raises or takes too long.
        """
        self._env = await self.call("construction", self._make_env, late=_close_late)
        self._is_blocking = getattr(self._env, "blocking", True) is not False
        if isinstance(self._env, IsolatedEnv):
            await self.call("construction", self._env.make)
        return self._env

    async def reset(self) -> tuple[Any, dict[str, Any]]:
        """Construct the environment and reset it.

        Raises:
            EpisodeFailure: When it raises, takes too long or breaks its contract.
        """
        env = await self.open()
        answer = await self.call("reset", env.reset)
        if not isinstance(answer, (tuple, list)) or len(answer) != 2:
            raise broke_contract("reset", "(observation, info)", answer)
        observation, info = answer
        check_observation(observation)
        return observation, checked_info("reset", info)

    async def step(self, action: Any) -> tuple[Any, float, bool, dict[str, Any]]:
        """Act on the environment.

        Raises:
            EpisodeFailure: When it raises, takes too long, breaks its contract or gives a reward
                that is no finite number.
        """
        answer = await self.call("step", lambda: self._env.step(action))
        if not isinstance(answer, (tuple, list)) or len(answer) != 4:
            raise broke_contract("step", "(observation, reward, done, info)", answer)
        observation, reward, done, info = answer
        if type(done).__name__ not in ("bool", "bool_"):  # bool_ is NumPy's
            raise broke_contract("step", "a boolean as done", done)
        check_observation(observation)
        return observation, checked_reward(reward), bool(done), checked_info("step", info)

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
        outcome: Outcome | None
        if not self._is_blocking:
            outcome = contain_on_loop(close)
        else:
            call = self._threads.start(close)
            outcome = await call.wait(timeout_seconds)
            if outcome is None:
                call.give_up()
                self._kill()
        if outcome is not None and inspect.isawaitable(pending := outcome.value):
            outcome = await contain_awaitable(lambda: pending, timeout_seconds)
        if outcome is None:
            return f"close of the environment took longer than {timeout_seconds} s"
        return None if outcome.error is None else f"close raised {in_words(outcome.error)}"

    async def call(
        self,
        name: str,
        function: Callable[[], Any],
        late: Callable[[Outcome], None] | None = None,
    ) -> Any:
        """Call something of the environment, where and as long as it may run.

        Args:
            name: What it is called in errors.
            function: What to call.
            late: Gets the outcome where it comes after `step_timeout_seconds`.

        Raises:
            EpisodeFailure: When it raises or takes too long.
        """
        start = time.perf_counter()
        try:
            if self._is_blocking:
                outcome = await self._call_in_thread(name, function, late)
            else:
                outcome = contain_on_loop(function)
            # A plain tuple is what nearly every environment returns, and quickly told.
            if type(outcome.value) is not tuple and inspect.isawaitable(outcome.value):
                outcome = await self._awaited(name, outcome.value)
        finally:
            self.seconds += time.perf_counter() - start
        if outcome.error is None:
            return outcome.value
        if isinstance(outcome.error, EpisodeFailure):
            raise outcome.error
        message = f"{name} of the environment raised {_in_words(outcome.error)}"
        raise EpisodeFailure(reason_of(outcome.error), message) from outcome.error

    async def _awaited(self, name: str, pending: Any) -> Outcome:
        """Await what a method returned, on the event loop."""
        outcome = await contain_awaitable(lambda: pending, self._limits.step_timeout_seconds)
        if outcome is None:
            raise self._took_too_long(name)
        return outcome

    def _took_too_long(self, name: str) -> EpisodeFailure:
        return EpisodeFailure(
            TerminationReason.ENV_STEP_TIMEOUT,
            f"{name} of the environment took longer than "
            f"step_timeout={self._limits.step_timeout_seconds} s",
        )

    def _kill(self) -> None:
        """End the process of an environment that has one, and with it the call in its thread."""
        if isinstance(self._env, IsolatedEnv):
            self._env.kill()

    async def _call_in_thread(
        self,
        name: str,
        function: Callable[[], Any],
        late: Callable[[Outcome], None] | None,
    ) -> Outcome:
        # A process is killed in time by who waits for its answer.
        is_isolated = isinstance(self._env, IsolatedEnv)
        timeout = None if is_isolated else self._limits.step_timeout_seconds
        self._threads.refuse_if_hung()
        self._running = call = self._threads.start(function, late=late)
        try:
            outcome = await call.wait(timeout)
        except BaseException:
            call.give_up()
            self._kill()
            raise
        if outcome is None:
            call.give_up()
            raise self._took_too_long(name)
        self._running = None
        return outcome


def _close_late(outcome: Outcome) -> None:
    """Close an environment whose construction ended after it was given up."""
    close = getattr(outcome.value, "close", None)
    if close is not None:
        close()


def reason_of(error: BaseException) -> TerminationReason:
    """Return what an episode ends for whose environment raised an error."""
    kinds = set(error.kinds) if isinstance(error, EnvRaisedError) else set[str]()
    for reason, classes in _REASONS:
        if isinstance(error, classes) or any(kind.__name__ in kinds for kind in classes):
            return reason
    if isinstance(error, EnvHungError):
        return TerminationReason.ENV_STEP_TIMEOUT
    if isinstance(error, EnvProcessError) and not kinds:
        return TerminationReason.ENV_EXIT
    return TerminationReason.ENV_EXCEPTION


def _in_words(error: BaseException) -> str:
    return str(error) if isinstance(error, EnvRaisedError) else in_words(error)


def check_observation(observation: Any) -> None:
    """Refuse an observation of more characters than any model reads.

    Raises:
        EpisodeFailure: It has more than `MAX_OBSERVATION_CHARACTERS`, its parts together.
    """
    size = _num_characters(observation)
    if size > MAX_OBSERVATION_CHARACTERS:
        raise EpisodeFailure(
            TerminationReason.ENV_OBS_TOO_LARGE,
            f"an observation of the environment has {size} characters; at most "
            f"{MAX_OBSERVATION_CHARACTERS} are taken",
        )


def _num_characters(value: Any, depth: int = 4) -> int:
    """Characters of the texts in a value, as deep as observations are nested."""
    if isinstance(value, _TEXTS):
        return len(value)
    if depth == 0 or not isinstance(value, _NESTS):
        return 0
    items = value if isinstance(value, _LISTS) else value.values()
    size = 0
    for item in items:
        size += len(item) if isinstance(item, _TEXTS) else _num_characters(item, depth - 1)
    return size


def checked_reward(reward: Any) -> float:
    """Return a reward as a float.

    Raises:
        EpisodeFailure: It is no finite number.
    """
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


def checked_info(name: str, info: Any) -> dict[str, Any]:
    """Return a copy of an info.

    Raises:
        EpisodeFailure: It is no mapping.
    """
    if not isinstance(info, _MAPPINGS):
        raise broke_contract(name, "a dict as info", info)
    return dict(info)


def broke_contract(name: str, wanted: str, got: Any) -> EpisodeFailure:
    """Say that a method of an environment did not return what it must."""
    hint = ""
    if isinstance(got, tuple | list):
        hint = f" of {len(got)} values"
        if name == "step" and len(got) == 5:
            hint += "; wrap a Gymnasium environment in rllm_envs.GymEnv"
    return EpisodeFailure(
        TerminationReason.ENV_PROTOCOL,
        f"{name} of the environment must return {wanted}, got {type(got).__name__}{hint}",
    )
