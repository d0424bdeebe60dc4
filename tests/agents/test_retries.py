from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from agents_fakes import ByteEngine, CountingEnv, EchoAgent, Ledger

from rllm_agents import (
    AgentExecutionEngine,
    Completion,
    Episode,
    GenerationRequest,
    TerminationReason,
    TransientError,
    UserError,
)
from rllm_agents.errors import EpisodeFailure, GaveUpError
from rllm_agents.retries import Attempt, Retries, is_transient, retry_after_seconds
from rllm_envs.errors import SandboxError, SandboxUnavailableError
from rllm_envs.vector.env_process import EnvHungError, EnvProcessError, EnvRaisedError
from rllm_envs.vector.wire import UnsendableError

LLM_ERROR, TIMEOUT = TerminationReason.LLM_ERROR, TerminationReason.TIMEOUT


def caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


def names_of(error: Exception) -> tuple[str, ...]:
    return tuple(kind.__name__ for kind in type(error).__mro__)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (None, False),
        (ValueError("wrong"), False),
        (TransientError("busy"), True),
        (ConnectionResetError("gone"), True),
        (SandboxError("no fork server"), True),
        (SandboxUnavailableError("no Landlock"), False),
        (EnvProcessError("ended by SIGKILL"), True),
        (EnvHungError("took longer"), False),
        (EnvRaisedError(("ValueError", "Exception"), "wrong"), False),
        (EnvRaisedError(("ConnectionResetError", "ConnectionError"), "gone"), True),
        (EnvRaisedError(names_of(SandboxError("no fork server")), "x"), True),
        (EnvRaisedError(names_of(UnsendableError("no data")), "no data"), False),
        (UnsendableError("no data"), False),
        (caused(EpisodeFailure(LLM_ERROR, "x"), TransientError("busy")), True),
        (caused(EpisodeFailure(LLM_ERROR, "x"), GaveUpError("5 attempts", LLM_ERROR)), False),
        (EpisodeFailure(LLM_ERROR, "slow", is_transient=True), True),
        (ExceptionGroup("g", [ValueError("x"), ConnectionError("gone")]), True),
    ],
)
def test_only_typed_faults_may_pass(error: BaseException | None, expected: bool) -> None:
    assert is_transient(error) is expected


def test_what_the_other_side_asks_for_is_found_below_other_errors() -> None:
    failure = caused(EpisodeFailure(LLM_ERROR, "x"), TransientError("busy", retry_after=7.0))
    assert retry_after_seconds(failure) == 7.0
    assert retry_after_seconds(ValueError("x")) == 0.0


def play_with(
    retries: Retries, ends: list[tuple[TerminationReason, BaseException | None]], **before: Any
) -> tuple[Episode, list[Attempt]]:
    """Play attempts that end as given."""
    attempts: list[Attempt] = []

    async def play(attempt: Attempt) -> tuple[Episode, BaseException | None]:
        attempts.append(attempt)
        reason, error = ends[len(attempts) - 1]
        text = None if error is None else str(error)
        return Episode(id=attempt.request_id, termination_reason=reason, error=text), error

    return asyncio.run(retries.play("r", play, **before)), attempts


def test_attempts_go_on_until_one_has_an_outcome() -> None:
    busy = (LLM_ERROR, TransientError("busy"))
    ends = [busy, busy, (TerminationReason.ENV_DONE, None), busy]
    episode, attempts = play_with(Retries(10, 0.001), ends)
    assert [attempt.id for attempt in attempts] == ["r/1", "r/2", "r/3"]
    assert episode.info == {"attempt_id": "r/3", "earlier_errors": ["r/1: busy", "r/2: busy"]}
    assert episode.metrics["attempts"] == 3.0


def test_attempts_that_were_lost_elsewhere_count_and_have_used_their_time() -> None:
    ends = [(LLM_ERROR, TransientError("busy"))] * 9
    retries = Retries(3, 0.001, budget_seconds=60.0)
    episode, attempts = play_with(retries, ends, num_lost=1, seconds_spent=20.0)
    assert [attempt.id for attempt in attempts] == ["r/2", "r/3"]
    assert all(30.0 < (attempt.seconds_left or 0.0) <= 40.0 for attempt in attempts)
    assert episode.metrics["attempts"] == 3.0
    assert episode.metrics["total_seconds"] > 20.0


def test_an_attempt_that_only_runs_out_of_the_rest_of_the_budget_is_no_outcome() -> None:
    episode, attempts = play_with(
        Retries(10, 0.001, budget_seconds=60.0),
        [(LLM_ERROR, TransientError("busy")), (TIMEOUT, None)],
    )
    assert (episode.termination_reason, episode.reward) == (LLM_ERROR, None)
    assert (len(attempts), episode.metrics["attempts"]) == (2, 2.0)
    assert all(attempt.seconds_left is not None for attempt in attempts)


def test_no_wait_goes_past_the_budget() -> None:
    start = time.perf_counter()
    asked = TransientError("busy", retry_after=30.0)
    episode, attempts = play_with(Retries(10, 0.001, budget_seconds=5.0), [(LLM_ERROR, asked)])
    assert (len(attempts), episode.failed) == (1, True)
    assert time.perf_counter() - start < 4.0


def test_waits_are_drawn_uniformly_up_to_twice_as_long_each_time() -> None:
    retries = Retries(100, 0.5)
    retries._jitter = random.Random(0)
    for attempt, most in [(1, 0.5), (2, 1.0), (5, 8.0), (20, 30.0)]:
        waits = [retries._wait_seconds(attempt, None) or 0.0 for _ in range(2000)]
        assert 0.0 <= min(waits) < 0.02 * most
        assert 0.98 * most < max(waits) <= most
        assert sum(waits) / 2000 == pytest.approx(most / 2, rel=0.05)
    assert retries._wait_seconds(100, None) is None


@pytest.mark.parametrize("arguments", [{"retry_limit": 0}, {"retry_backoff": -1.0}])
def test_values_out_of_range_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=next(iter(arguments))):
        run_engine(ByteEngine("a"), **arguments)


# The execution engine


class Flaky(ByteEngine):
    """Raises what `fault` makes of the number of the call, from 1; None: it answers."""

    def __init__(self, fault: Callable[[int], BaseException | None]) -> None:
        super().__init__("a")
        self._fault = fault
        self.num_calls = 0

    async def generate(self, request: GenerationRequest) -> Completion:
        self.num_calls += 1
        error = self._fault(self.num_calls)
        if error is not None:
            self.requests.append(request)
            raise error
        return await super().generate(request)


def run_engine(engine: Any, task: dict[str, Any] | None = None, **arguments: Any) -> Episode:
    arguments = {"retry_backoff": 0.001, "sampling_params": {"seed": 1}} | arguments
    with AgentExecutionEngine(
        agent_class=EchoAgent, env_class=CountingEnv, rollout_engine=engine, **arguments
    ) as executor:
        (episode,) = asyncio.run(executor.execute_tasks([task or {}]))
    return episode


def test_an_attempt_has_a_fresh_environment_and_session_and_the_same_seeds() -> None:
    ledger = Ledger()
    engine = Flaky(lambda n: TransientError("busy") if n == 2 else None)
    episode = run_engine(engine, {"ledger": ledger, "rewards": [0.0, 1.0]})
    assert (episode.reward, episode.error, episode.metrics["attempts"]) == (1.0, None, 2.0)
    assert episode.info["attempt_id"] == "0/2"
    assert "busy" in episode.info["earlier_errors"][0]
    assert (len(ledger.opened), ledger.is_balanced) == (2, True)
    first, second = engine.requests[:2], engine.requests[2:]
    assert [r.sampling.seed for r in first] == [r.sampling.seed for r in second]
    assert first[0].session_id != second[0].session_id
    assert len(episode.steps) == 2


def test_an_environment_that_loses_a_connection_is_played_again() -> None:
    class Remote(CountingEnv):
        num_made = 0

        def reset(self) -> Any:
            Remote.num_made += 1
            if Remote.num_made < 3:
                raise ConnectionResetError("gone")
            return super().reset()

    with AgentExecutionEngine(
        agent_class=EchoAgent,
        env_class=Remote,
        engine_name="scripted",
        rollout_engine_args={"responses": ["yes"]},
        retry_backoff=0.001,
    ) as engine:
        (episode,) = asyncio.run(engine.execute_tasks([{}]))
        assert (episode.reward, episode.metrics["attempts"]) == (1.0, 3.0)
        assert engine.progress.retried == 2


def test_deterministic_faults_and_too_many_faults_are_not_tried_again() -> None:
    engine = Flaky(lambda n: ValueError("wrong"))
    assert run_engine(engine).metrics["attempts"] == 1.0
    engine = Flaky(lambda n: TransientError("busy"))
    episode = run_engine(engine, retry_limit=4)
    assert (episode.termination_reason, episode.reward) == (LLM_ERROR, None)
    assert engine.num_calls == 4


def test_a_model_call_that_takes_too_long_is_given_up_and_tried_again() -> None:
    class Slow(ByteEngine):
        async def generate(self, request: GenerationRequest) -> Completion:
            self.requests.append(request)
            if len(self.requests) == 1:
                await asyncio.sleep(60.0)
            return await super().generate(request)

    episode = run_engine(Slow("a"), call_timeout=0.1)
    assert (episode.reward, episode.metrics["attempts"]) == (1.0, 2.0)
    assert "call_timeout=0.1" in episode.info["earlier_errors"][0]
    episode = run_engine(Slow("a"), call_timeout=0.1, retry_limit=1)
    assert episode.termination_reason is TerminationReason.LLM_TIMEOUT
