"""Calls into environments, contained: whatever one does, its episode alone ends, and says why."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from rllm_agents.call_threads import EnvCall, EnvThreads, Outcome, contain_on_loop
from rllm_agents.errors import EpisodeFailure, in_words
from rllm_agents.limits import RolloutLimits
from rllm_agents.types import TerminationReason
from rllm_envs import GymEnv
from rllm_envs.errors import GradingError, ReferenceAnswerError

# How long a call that was given up may still run before `close` is called beside it.
_GRACE_SECONDS = 0.5


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

    async def open(self) -> Any:
        """Construct the environment and return it; only `call` may call its methods.

        Raises:
            EpisodeFailure: When it raises or takes too long.
        """
        self._env = await self.call("construction", self._make_env, late=_close_late)
        self._is_blocking = getattr(self._env, "blocking", True) is not False
        return self._env

    async def reset(self) -> tuple[Any, dict[str, Any]]:
        """Construct the environment and reset it.

        Raises:
            EpisodeFailure: When it raises, takes too long or breaks its contract.
        """
        env = await self.open()
        answer = await self.call("reset", env.reset)
        if not isinstance(answer, tuple | list) or len(answer) != 2:
            raise broke_contract("reset", "(observation, info)", answer)
        observation, info = answer
        return observation, checked_info("reset", info)

    async def step(self, action: Any) -> tuple[Any, float, bool, dict[str, Any]]:
        """Act on the environment.

        Raises:
            EpisodeFailure: When it raises, takes too long, breaks its contract or gives a reward
                that is no finite number.
        """
        answer = await self.call("step", lambda: self._env.step(action))
        if not isinstance(answer, tuple | list) or len(answer) != 4:
            raise broke_contract("step", "(observation, reward, done, info)", answer)
        observation, reward, done, info = answer
        if type(done).__name__ not in ("bool", "bool_"):  # bool_ is NumPy's
            raise broke_contract("step", "a boolean as done", done)
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
        if not self._is_blocking:
            outcome = contain_on_loop(close)
        else:
            call = self._threads.start(close)
            outcome = await call.wait(timeout_seconds)
            if outcome is None:
                call.give_up()
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


def _close_late(outcome: Outcome) -> None:
    """Close an environment whose construction ended after it was given up."""
    close = getattr(outcome.value, "close", None)
    if close is not None:
        close()


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
    if not isinstance(info, Mapping):
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


def may_block_when_made(env_class: Any) -> bool:
    """Whether constructing an environment of a class may block."""
    # gymnasium.make returns at once. On the event loop, episodes begin in the order of requests
    # in every run, which keeps batches of the rollout engine, and so the last bits, the same.
    if isinstance(env_class, type) and issubclass(env_class, GymEnv):
        return False
    return getattr(env_class, "blocking", True) is not False
