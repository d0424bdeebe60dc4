from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest
from agents_fakes import CountingEnv, Ledger, ThreadedEnv

from rllm_agents.call_threads import EnvThreads
from rllm_agents.env_calls import MAX_OBSERVATION_CHARACTERS, EnvSession
from rllm_agents.errors import EpisodeFailure
from rllm_agents.limits import RolloutLimits
from rllm_agents.types import TerminationReason
from rllm_envs.errors import GradingError, ReferenceAnswerError, SandboxUnavailableError


def in_session(
    task: dict[str, Any],
    use: Callable[[EnvSession], Awaitable[Any]],
    *,
    env_class: type[CountingEnv] = CountingEnv,
    step_timeout_seconds: float | None = None,
    close_seconds: float = 5.0,
) -> tuple[Any, str | None, EnvThreads]:
    """Use a session; return what came out of it, of its close, and the threads."""

    async def main() -> tuple[Any, str | None, EnvThreads]:
        threads = EnvThreads()
        session = EnvSession(
            lambda: env_class(task),
            is_blocking=env_class.blocking,
            threads=threads,
            limits=RolloutLimits(step_timeout_seconds=step_timeout_seconds),
        )
        try:
            result = await use(session)
        except EpisodeFailure as failure:
            result = failure
        problem = await session.close(close_seconds)
        await session.close(close_seconds)
        threads.close()
        return result, problem, threads

    return asyncio.run(main())


async def reset_and_step(session: EnvSession) -> Any:
    await session.reset()
    return await session.step("act")


@pytest.mark.parametrize("env_class", [CountingEnv, ThreadedEnv])
def test_a_step_gives_the_four_values_and_the_environment_is_closed_once(env_class) -> None:
    ledger = Ledger()
    task = {"rewards": [0.5], "ledger": ledger}
    result, problem, _ = in_session(task, reset_and_step, env_class=env_class)
    assert result == ("turn 1", 0.5, True, {"turn": 1})
    assert problem is None
    assert len(ledger.opened) == 1
    assert ledger.is_balanced


@pytest.mark.parametrize("env_class", [CountingEnv, ThreadedEnv])
@pytest.mark.parametrize("kind", ["error", "timeout", "exit", "cancel", "generator"])
@pytest.mark.parametrize("place", ["init", "reset", "step"])
def test_whatever_an_environment_raises_is_its_episodes_failure(env_class, place, kind) -> None:
    ledger = Ledger()
    task = {"fault": f"{place}:{kind}", "ledger": ledger}
    failure, _, _ = in_session(task, reset_and_step, env_class=env_class)
    reasons = {"exit": TerminationReason.ENV_EXIT, "cancel": TerminationReason.ENV_LEAKED_CANCEL}
    assert failure.reason is reasons.get(kind, TerminationReason.ENV_EXCEPTION)
    assert "of the environment raised" in str(failure)
    assert ledger.is_balanced


def test_ctrl_c_inside_an_environment_on_the_event_loop_passes() -> None:
    class Interrupted(CountingEnv):
        def step(self, action: Any) -> Any:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_session({}, reset_and_step, env_class=Interrupted)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("reset:wrong", r"reset .* must return \(observation, info\), got str"),
        ("step:none", "got NoneType"),
        ("step:five", "of 5 values; wrap a Gymnasium environment in rllm_envs.GymEnv"),
        ("step:done", "a boolean as done, got str"),
        ("step:info", "a dict as info, got NoneType"),
    ],
)
def test_an_environment_that_breaks_its_contract_is_told_how(fault: str, message: str) -> None:
    failure, _, _ = in_session({"fault": fault}, reset_and_step)
    assert failure.reason is TerminationReason.ENV_PROTOCOL
    with pytest.raises(EpisodeFailure, match=message):
        raise failure


@pytest.mark.parametrize("reward", [float("nan"), float("inf"), None, "1.0", [1.0], 1j, 10**400])
def test_a_reward_that_is_no_finite_number_is_refused(reward: object) -> None:
    failure, _, _ = in_session({"rewards": [reward]}, reset_and_step)
    assert failure.reason is TerminationReason.ENV_BAD_REWARD


@pytest.mark.parametrize(
    "reward", [True, 1, 1.0, np.float32(1), np.int64(1), np.bool_(True), np.array(1.0)]
)
def test_numbers_of_every_kind_are_rewards(reward: object) -> None:
    result, _, _ = in_session({"rewards": [reward]}, reset_and_step)
    assert result[1] == 1.0
    assert type(result[1]) is float


def test_done_may_be_a_boolean_of_numpy() -> None:
    class NumpyDone(CountingEnv):
        def step(self, action: Any) -> Any:
            return "o", 0.0, np.bool_(True), {}

    result, _, _ = in_session({}, reset_and_step, env_class=NumpyDone)
    assert result[2] is True


@pytest.mark.parametrize("error", [GradingError("no worker"), ReferenceAnswerError("unreadable")])
def test_a_grader_that_fails_is_told_apart_from_its_environment(error: Exception) -> None:
    class Ungraded(CountingEnv):
        def step(self, action: Any) -> Any:
            raise error

    failure, _, _ = in_session({}, reset_and_step, env_class=Ungraded)
    assert failure.reason is TerminationReason.GRADER_ERROR


@pytest.mark.parametrize("shape", ["text", "bytes", "mapping"])
def test_an_observation_beyond_what_any_model_reads_is_refused(shape: str) -> None:
    text = "x" * (MAX_OBSERVATION_CHARACTERS + 1)
    question: Any = {"text": text, "bytes": text.encode(), "mapping": {"a": [text[1:], "bc"]}}
    failure, _, _ = in_session({"question": question[shape]}, reset_and_step)
    assert failure.reason is TerminationReason.ENV_OBS_TOO_LARGE
    result, _, _ = in_session({"question": text[1:]}, reset_and_step)
    assert result[2] is True


def test_a_sandbox_that_fails_is_told_apart_from_its_environment() -> None:
    class Sandboxed(CountingEnv):
        def step(self, action: Any) -> Any:
            raise SandboxUnavailableError("no Landlock")

    failure, _, _ = in_session({}, reset_and_step, env_class=Sandboxed)
    assert failure.reason is TerminationReason.SANDBOX_ERROR


@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize("kind", ["", "error", "exit", "cancel", "hang"])
def test_coroutine_methods_are_awaited_and_contained(kind: str, blocking: bool) -> None:
    class Asynchronous(CountingEnv):
        async def step(self, action: Any) -> Any:
            await asyncio.sleep(60.0 if kind == "hang" else 0.0)
            return super().step(action)

        async def close(self) -> None:
            await asyncio.sleep(0.0)
            super().close()

    Asynchronous.blocking = blocking
    ledger = Ledger()
    task = {"fault": f"step:{kind}" if kind != "hang" else "", "ledger": ledger}
    result, problem, threads = in_session(
        task, reset_and_step, env_class=Asynchronous, step_timeout_seconds=0.2
    )
    reasons = {
        "error": TerminationReason.ENV_EXCEPTION,
        "exit": TerminationReason.ENV_EXIT,
        "cancel": TerminationReason.ENV_LEAKED_CANCEL,
        "hang": TerminationReason.ENV_STEP_TIMEOUT,
    }
    if kind:
        assert result.reason is reasons[kind]
    else:
        assert result[1] == 1.0
    assert (problem, threads.num_hung) == (None, 0)
    assert ledger.is_balanced


@pytest.mark.parametrize("place", ["init", "reset", "step"])
def test_a_hang_ends_at_the_step_timeout_and_the_environment_is_closed(place: str) -> None:
    ledger = Ledger()
    task = {"fault": f"{place}:hang", "hang_seconds": 0.6, "ledger": ledger}
    start = time.perf_counter()
    failure, _, threads = in_session(
        task, reset_and_step, env_class=ThreadedEnv, step_timeout_seconds=0.1
    )
    assert failure.reason is TerminationReason.ENV_STEP_TIMEOUT
    assert "step_timeout=0.1" in str(failure)
    assert time.perf_counter() - start < 2.0
    wait_until(lambda: threads.num_hung == 0 and bool(ledger.closed))
    assert ledger.is_balanced


def wait_until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    deadline = time.perf_counter() + seconds
    while not condition():
        assert time.perf_counter() < deadline, "waited in vain"
        time.sleep(0.01)


def test_an_environment_made_after_it_was_given_up_is_still_closed() -> None:
    ledger = Ledger()

    class SlowToMake(ThreadedEnv):
        def __init__(self, task: Any) -> None:
            time.sleep(0.3)
            super().__init__(task)

    in_session({"ledger": ledger}, reset_and_step, env_class=SlowToMake, step_timeout_seconds=0.05)
    wait_until(lambda: bool(ledger.closed))
    assert ledger.is_balanced


def test_what_close_raises_or_how_long_it_takes_is_reported_and_nothing_more() -> None:
    result, problem, _ = in_session({"fault": "close:error"}, reset_and_step)
    assert result[1] == 1.0
    assert problem == "close raised ValueError: broken environment"
    task = {"fault": "close:hang", "hang_seconds": 0.5}
    _, problem, _ = in_session(task, reset_and_step, env_class=ThreadedEnv, close_seconds=0.1)
    assert problem == "close of the environment took longer than 0.1 s"


def test_threads_are_used_again_and_end_with_close() -> None:
    async def main() -> tuple[int, EnvThreads]:
        threads = EnvThreads()
        for _ in range(20):
            await threads.start(lambda: None).wait(None)
        running = sum(t.name == "rllm-env" for t in threading.enumerate())
        return running, threads

    before = sum(t.name == "rllm-env" for t in threading.enumerate())
    running, threads = asyncio.run(main())
    assert running - before <= 2
    threads.close()
    wait_until(lambda: sum(t.name == "rllm-env" for t in threading.enumerate()) <= before)


def test_too_many_hanging_calls_are_refused_not_awaited() -> None:
    async def main() -> None:
        threads = EnvThreads(max_hung=2)
        release = threading.Event()
        for _ in range(2):
            call = threads.start(release.wait)
            assert await call.wait(0.02) is None
            call.give_up()
        with pytest.raises(EpisodeFailure, match="2 environment calls hang"):
            threads.refuse_if_hung()
        release.set()
        while threads.num_hung:
            await asyncio.sleep(0.01)
        threads.refuse_if_hung()
        outcome = await threads.start(lambda: "works again").wait(None)
        assert outcome is not None
        assert outcome.value == "works again"
        threads.close()

    asyncio.run(main())
