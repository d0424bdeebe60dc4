from __future__ import annotations

import asyncio
import contextlib
import random
import threading
import time
from collections import Counter
from typing import Any

import pytest
from agents_fakes import CountingEnv, Ledger
from workflow_fakes import FaultyEngine, TaggedEngine, run_one, run_tasks, user, workflow_of

from rllm_agents import (
    AgentWorkflowEngine,
    Episode,
    Step,
    TerminationEvent,
    TerminationReason,
    Trajectory,
)
from rllm_envs.errors import GradingError

FAULTS: dict[str, TerminationReason] = {
    "": TerminationReason.ENV_DONE,
    "error": TerminationReason.WORKFLOW_EXCEPTION,
    "exit": TerminationReason.WORKFLOW_EXCEPTION,
    "cancel": TerminationReason.WORKFLOW_EXCEPTION,
    "generator": TerminationReason.WORKFLOW_EXCEPTION,
    "cancels itself": TerminationReason.WORKFLOW_EXCEPTION,
    "exit in a task": TerminationReason.WORKFLOW_EXCEPTION,
    "error in a task": TerminationReason.WORKFLOW_EXCEPTION,
    "error in a group": TerminationReason.WORKFLOW_EXCEPTION,
    "exit in a thread": TerminationReason.WORKFLOW_EXCEPTION,
    "returns text": TerminationReason.WORKFLOW_EXCEPTION,
    "another's call": TerminationReason.WORKFLOW_EXCEPTION,
    "one call twice": TerminationReason.WORKFLOW_EXCEPTION,
    "no messages": TerminationReason.WORKFLOW_EXCEPTION,
    "unknown sampling": TerminationReason.WORKFLOW_EXCEPTION,
    "nan": TerminationReason.ENV_BAD_REWARD,
    "nan step": TerminationReason.ENV_BAD_REWARD,
    "text reward": TerminationReason.ENV_BAD_REWARD,
    "grading": TerminationReason.GRADER_ERROR,
    "grader raises": TerminationReason.GRADER_ERROR,
    "grader nan": TerminationReason.ENV_BAD_REWARD,
    "env raises": TerminationReason.ENV_EXCEPTION,
    "ends by a limit": TerminationReason.MAX_TURNS_EXCEEDED,
    "ends by a failure": TerminationReason.GRADER_ERROR,
    "leaves a task behind": TerminationReason.ENV_DONE,
    "too long": TerminationReason.TIMEOUT,
    "too long and deaf": TerminationReason.TIMEOUT,
}
KEPT: list[Any] = []


def raise_(error: BaseException) -> Any:
    raise error


async def in_a_task(error: BaseException) -> None:
    await asyncio.sleep(0)
    raise error


async def be_deaf(seconds: float) -> None:
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.05)


async def misbehave(workflow: Any, task: Any) -> Any:
    kind = task["fault"]
    own = workflow.new_trajectory("a")
    ask = workflow.rollout_engine.get_model_response
    output = await ask([user("x")], trajectory=own)
    own.reward = 1.0
    if kind in DO:
        return await DO[kind](workflow, own, output)
    return None


async def cancels_itself() -> None:
    current = asyncio.current_task()
    assert current is not None
    current.cancel()
    await asyncio.sleep(1.0)


async def group(error: Exception) -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(asyncio.sleep(5.0))
        tasks.create_task(in_a_task(error))


async def set_reward(trajectory: Trajectory, reward: Any) -> None:
    trajectory.reward = reward


async def returns(value: Any) -> Any:
    return value


async def steal(workflow: Any, own: Any, output: Any) -> Any:
    KEPT.append(output)
    own.steps = [Step(model_output=KEPT[0])]
    if len(KEPT) == 1:  # the first has none to steal from
        raise ValueError("nothing to steal yet")


async def leave_behind(workflow: Any) -> None:
    async def call_for_ever() -> None:
        while True:
            await workflow.rollout_engine.get_model_response([user("late")])

    KEPT.append(asyncio.create_task(call_for_ever()))


async def use_env(workflow: Any) -> None:
    env = workflow.open_env(lambda: CountingEnv({"fault": "step:error", "ledger": LEDGER}))
    await env.reset()
    await env.step("a")


LEDGER = Ledger()
EVENT, REASON = TerminationEvent, TerminationReason
DO: dict[str, Any] = {
    "error": lambda w, t, o: in_a_task(ValueError("broken workflow")),
    "exit": lambda w, t, o: in_a_task(SystemExit(3)),
    "cancel": lambda w, t, o: in_a_task(asyncio.CancelledError("leaked")),
    "generator": lambda w, t, o: in_a_task(GeneratorExit()),
    "cancels itself": lambda w, t, o: cancels_itself(),
    "exit in a task": lambda w, t, o: asyncio.gather(in_a_task(SystemExit(3)), asyncio.sleep(5.0)),
    "error in a task": lambda w, t, o: asyncio.gather(in_a_task(KeyError("k")), asyncio.sleep(5.0)),
    "error in a group": lambda w, t, o: group(ValueError("inside")),
    "exit in a thread": lambda w, t, o: w.run_in_executor(raise_, SystemExit(3)),
    "returns text": lambda w, t, o: returns("an episode"),
    "another's call": steal,
    "one call twice": lambda w, t, o: returns(t.steps.append(Step(model_output=o))),
    "no messages": lambda w, t, o: w.rollout_engine.get_model_response([]),
    "unknown sampling": lambda w, t, o: w.rollout_engine.get_model_response([user("x")], heat=1),
    "nan": lambda w, t, o: set_reward(t, float("nan")),
    "nan step": lambda w, t, o: returns(setattr(t.steps[0], "reward", float("inf"))),
    "text reward": lambda w, t, o: set_reward(t, "1"),
    "grading": lambda w, t, o: in_a_task(GradingError("no verdict")),
    "grader raises": lambda w, t, o: w.grade(lambda task, text: 1 / 0, {}, "x"),
    "grader nan": lambda w, t, o: w.grade(lambda task, text: float("nan"), {}, "x"),
    "env raises": lambda w, t, o: use_env(w),
    "ends by a limit": lambda w, t, o: in_a_task(EVENT(REASON.MAX_TURNS_EXCEEDED)),
    "ends by a failure": lambda w, t, o: in_a_task(EVENT(REASON.GRADER_ERROR, "no judge")),
    "leaves a task behind": lambda w, t, o: leave_behind(w),
    "too long": lambda w, t, o: asyncio.sleep(60.0),
    "too long and deaf": lambda w, t, o: be_deaf(2.0),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_ends_its_own_episode_typed_and_without_a_reward(kind: str) -> None:
    KEPT.clear()
    engine = TaggedEngine(longest_seconds=0.0)
    start = time.perf_counter()
    faulty, well = run_tasks(
        misbehave,
        [{"fault": kind}, {"fault": ""}],
        rollout_engine=engine,
        workflow_timeout=0.3,
        n_parallel_tasks=1,
        retry_limit=1,
    )
    assert time.perf_counter() - start < 2.5
    assert faulty.termination_reason is FAULTS[kind]
    assert (well.reward, well.error) == (1.0, None)
    if faulty.failed:
        assert (faulty.reward, faulty.is_correct) == (None, False)
        assert faulty.error
        assert all(t.reward is None for t in faulty.trajectories)
    else:
        assert (faulty.reward, faulty.error) == (1.0, None)
    # What was sampled before the fault is kept to be looked at, and is nobody else's.
    assert [s.model_response for s in faulty.trajectories[0].steps][:1] == ["x=1"]
    assert LEDGER.is_balanced


def test_five_hundred_workflows_with_faults_of_every_kind_all_come_back_labelled() -> None:
    KEPT.clear()
    chance = random.Random(0)
    names = [name for name in FAULTS if name != "another's call"]
    kinds = [chance.choice(names) for _ in range(500)]
    threads = threading.active_count()
    start = time.perf_counter()
    episodes = run_tasks(
        misbehave,
        [{"fault": kind} for kind in kinds],
        workflow_timeout=1.0,
        n_parallel_tasks=64,
    )
    seconds = time.perf_counter() - start
    assert [e.id for e in episodes] == [str(i) for i in range(500)]
    for kind, episode in zip(kinds, episodes, strict=True):
        assert episode.termination_reason is FAULTS[kind], (kind, episode.error)
        assert (episode.reward is None) == episode.failed
    # 64 at a time, of which a few take all of their second and the grace after it.
    assert seconds < 8.0
    assert threading.active_count() <= threads + 1


def test_faults_of_the_engine_are_labelled_as_its() -> None:
    faults: list[BaseException] = [
        ValueError("no"),
        SystemExit(1),
        asyncio.CancelledError("leaked"),
        GeneratorExit(),
    ]

    async def ask(workflow: Any, task: Any) -> None:
        await workflow.rollout_engine.get_model_response([user("x")])

    for error in faults[:3]:
        episode = run_one(ask, rollout_engine=FaultyEngine(lambda n, e=error: e))
        assert episode.termination_reason is TerminationReason.LLM_ERROR, error
        assert episode.metrics["failed_calls"] == 1.0


def test_a_workflow_may_go_on_after_a_call_has_failed() -> None:
    async def stubborn(workflow: Any, task: Any) -> None:
        own = workflow.new_trajectory("a")
        for _ in range(3):
            with contextlib.suppress(Exception):
                await workflow.rollout_engine.get_model_response([user("x")], trajectory=own)
        own.reward = float(len(own.steps))

    engine = FaultyEngine(lambda n: ValueError("no") if n == 2 else None)
    episode = run_one(stubborn, rollout_engine=engine)
    assert (episode.reward, episode.metrics["failed_calls"]) == (2.0, 1.0)


def test_late_calls_of_a_run_that_is_over_reach_no_other_run() -> None:
    refused: list[str] = []

    async def leaves(workflow: Any, task: Any) -> None:
        async def late() -> None:
            try:
                await be_deaf(0.8)
                await workflow.rollout_engine.get_model_response([user("late")])
            except Exception as error:
                refused.append(str(error))
                raise

        KEPT.append(asyncio.create_task(late()))

    async def main(engine: AgentWorkflowEngine) -> list[Episode]:
        episodes = await engine.execute_tasks([{}, {}, {}])
        await asyncio.sleep(0.6)
        return episodes

    rollout_engine = TaggedEngine()
    with AgentWorkflowEngine(
        workflow_cls=workflow_of(leaves), rollout_engine=rollout_engine
    ) as engine:
        episodes = asyncio.run(main(engine))
    assert [e.metrics["num_calls"] for e in episodes] == [0.0, 0.0, 0.0]
    assert rollout_engine.sampled == {}
    assert len(refused) == 3
    assert all("is over" in text for text in refused)


def test_cancelling_a_run_ends_it_within_two_seconds_and_leaves_nothing() -> None:
    ledger = Ledger()

    async def long(workflow: Any, task: Any) -> None:
        env = workflow.open_env(lambda: CountingEnv({"rewards": [0.0] * 999, "ledger": ledger}))
        await env.reset()

        async def turns() -> None:
            for _ in range(999):
                await workflow.rollout_engine.get_model_response([user("x")])
                await env.step("a")

        KEPT.append(asyncio.create_task(turns()))
        await asyncio.gather(turns(), turns())

    async def main() -> float:
        engine = AgentWorkflowEngine(
            workflow_cls=workflow_of(long), rollout_engine=TaggedEngine(longest_seconds=0.05)
        )
        run = asyncio.create_task(engine.execute_tasks([{}] * 100))
        await asyncio.sleep(0.4)
        start = time.perf_counter()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        seconds = time.perf_counter() - start
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert asyncio.get_running_loop().get_task_factory() is None
        engine.close()
        return seconds

    assert asyncio.run(main()) < 2.0
    assert len(ledger.opened) == 100
    assert ledger.is_balanced


def test_a_deaf_workflow_does_not_keep_a_cancelled_run_from_ending() -> None:
    async def main() -> float:
        engine = AgentWorkflowEngine(
            workflow_cls=workflow_of(lambda w, t: be_deaf(3.0)), rollout_engine=TaggedEngine()
        )
        run = asyncio.create_task(engine.execute_tasks([{}] * 20))
        await asyncio.sleep(0.1)
        start = time.perf_counter()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        seconds = time.perf_counter() - start
        engine.close()
        await asyncio.sleep(3.0 - seconds)  # let them end, for a clean loop
        return seconds

    assert asyncio.run(main()) < 2.0


def test_hanging_threads_cost_only_their_own_tasks() -> None:
    async def hangs(workflow: Any, task: Any) -> None:
        await workflow.run_in_executor(time.sleep, task["seconds"])

    tasks = [{"seconds": 1.0 if i % 10 == 0 else 0.0} for i in range(50)]
    episodes = run_tasks(hangs, tasks, step_timeout=0.2, n_parallel_tasks=4)
    counts = Counter(str(e.termination_reason) for e in episodes)
    assert counts == {"env_step_timeout": 5, "env_done": 45}


def test_a_grader_that_hangs_is_told_apart_from_one_that_fails() -> None:
    async def grades(workflow: Any, task: Any) -> None:
        await workflow.grade(lambda task, text: time.sleep(0.5), {}, "x")

    episode = run_one(grades, step_timeout=0.1)
    assert episode.termination_reason is TerminationReason.GRADER_TIMEOUT
    assert episode.reward is None
