from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from agents_fakes import (
    ByteEngine,
    CountingEnv,
    EchoAgent,
    Ledger,
    ThreadedEnv,
)

from rllm_agents import (
    AgentExecutionEngine,
    Episode,
    RunProgress,
    TerminationReason,
)


def make_engine(**arguments: Any) -> AgentExecutionEngine:
    defaults: dict[str, Any] = {"agent_class": EchoAgent, "env_class": CountingEnv}
    if "rollout_engine" not in arguments and "engine_name" not in arguments:
        defaults |= {"engine_name": "scripted", "rollout_engine_args": {"responses": ["yes"]}}
    return AgentExecutionEngine(**(defaults | arguments))


def num_env_threads() -> int:
    return sum(thread.name == "rllm-env" for thread in threading.enumerate())


KINDS = [
    "",
    "",
    *(f"{place}:{kind}" for place in ("init", "reset", "step") for kind in ("error", "exit")),
    *(f"{place}:cancel" for place in ("init", "reset", "step")),
    "close:error",
    "close:exit",
    "reset:wrong",
    "step:five",
    "step:none",
    "step:done",
    "step:info",
    "nan",
    "text",
]
EXPECTED = {
    "": TerminationReason.ENV_DONE,
    "close": TerminationReason.ENV_DONE,
    "error": TerminationReason.ENV_EXCEPTION,
    "exit": TerminationReason.ENV_EXIT,
    "cancel": TerminationReason.ENV_LEAKED_CANCEL,
    "nan": TerminationReason.ENV_BAD_REWARD,
    "text": TerminationReason.ENV_BAD_REWARD,
}


def expected_reason(kind: str) -> TerminationReason:
    place, _, what = kind.partition(":")
    key = place if place in EXPECTED else what
    return EXPECTED.get(key, TerminationReason.ENV_PROTOCOL)


@pytest.mark.parametrize("env_class", [CountingEnv, ThreadedEnv])
def test_a_thousand_episodes_with_faults_of_every_kind_all_come_back_labelled(env_class) -> None:
    ledger, chance = Ledger(), random.Random(0)
    rewards = {"nan": [0.5, float("nan")], "text": ["1"]}
    kinds = [chance.choice(KINDS) for _ in range(1000)]
    tasks = [
        {"fault": kind, "rewards": rewards.get(kind, [0.5, 1.0]), "ledger": ledger}
        for kind in kinds
    ]
    before = num_env_threads()
    with make_engine(env_class=env_class, n_parallel_agents=128) as engine:
        episodes = asyncio.run(engine.execute_tasks(tasks))
    assert [episode.id for episode in episodes] == [str(i) for i in range(1000)]
    for kind, episode in zip(kinds, episodes, strict=True):
        assert episode.termination_reason is expected_reason(kind), kind
        if episode.failed:
            assert (episode.reward, episode.is_correct) == (None, False)
            assert episode.error
        else:
            assert (episode.reward, episode.error) == (1.5, None)
    assert ledger.is_balanced
    deadline = time.perf_counter() + 5.0
    while num_env_threads() > before and time.perf_counter() < deadline:
        time.sleep(0.01)
    assert num_env_threads() <= before


def test_hanging_environments_cost_only_their_own_episodes() -> None:
    ledger = Ledger()
    tasks = [
        {"ledger": ledger, "fault": "step:hang" if i % 10 == 0 else "", "hang_seconds": 1.0}
        for i in range(100)
    ]
    start = time.perf_counter()
    with make_engine(env_class=ThreadedEnv, step_timeout=0.2, n_parallel_agents=4) as engine:
        episodes = asyncio.run(engine.execute_tasks(tasks))
    seconds = time.perf_counter() - start
    counts = Counter(episode.termination_reason for episode in episodes)
    assert counts[TerminationReason.ENV_STEP_TIMEOUT] == 10
    assert counts[TerminationReason.ENV_DONE] == 90
    assert ledger.is_balanced
    # Ten hangs over four agents: three in a row, each a timeout and the grace of closing.
    assert seconds < 3 * (0.2 + 0.5) + 2.0


@pytest.mark.parametrize("env_class", [CountingEnv, ThreadedEnv])
def test_cancelling_a_run_ends_it_within_two_seconds_and_leaves_nothing(env_class) -> None:
    ledger = Ledger()

    async def main() -> float:
        engine = make_engine(env_class=env_class, rollout_engine=ByteEngine("a", seconds=0.05))
        tasks = [{"ledger": ledger, "rewards": [0.0] * 60}] * 100
        run = asyncio.create_task(engine.execute_tasks(tasks))
        await asyncio.sleep(0.3)
        start = time.perf_counter()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert asyncio.all_tasks() == {asyncio.current_task()}
        engine.close()
        return time.perf_counter() - start

    assert asyncio.run(main()) < 2.0
    assert len(ledger.opened) > 0
    assert ledger.is_balanced


def test_an_engine_that_does_not_listen_does_not_keep_a_cancelled_run_from_ending() -> None:
    class Deaf(ByteEngine):
        async def generate(self, request: Any) -> Any:
            deadline = time.perf_counter() + 4.0
            while time.perf_counter() < deadline:
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(0.05)
            return await super().generate(request)

    async def main() -> float:
        engine = make_engine(rollout_engine=Deaf("a"))
        run = asyncio.create_task(engine.execute_tasks([{}] * 20))
        await asyncio.sleep(0.1)
        start = time.perf_counter()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        seconds = time.perf_counter() - start
        await asyncio.sleep(4.0 - seconds)  # let them end, for a clean loop
        engine.close()
        return seconds

    assert asyncio.run(main()) < 2.0


def test_every_request_is_accounted_for_at_any_time() -> None:
    def total(progress: RunProgress) -> int:
        ended = progress.completed + progress.failed + progress.cancelled
        return progress.waiting + progress.in_flight + ended

    async def main(engine: AgentExecutionEngine) -> None:
        faults = ["", "step:error", "", "reset:exit"]
        tasks = [{"fault": faults[i % 4], "rewards": [0.0] * (1 + i % 3)} for i in range(40)]
        async for _ in engine.stream_tasks(tasks):
            now = engine.progress
            assert (now.submitted, total(now)) == (40, 40)
            assert now.in_flight <= 4
        assert engine.progress == RunProgress(submitted=40, completed=20, failed=20)
        stream = engine.stream_tasks([{}] * 10)
        async for _ in stream:
            break
        await stream.aclose()
        now = engine.progress
        assert (now.submitted, now.waiting, now.in_flight, total(now)) == (50, 0, 0, 50)
        assert now.cancelled > 0

    with make_engine(rollout_engine=ByteEngine("a", seconds=0.002), n_parallel_agents=4) as engine:
        asyncio.run(main(engine))


def test_an_error_of_the_progress_callback_reaches_the_caller() -> None:
    def broken(episode: Episode) -> None:
        raise RuntimeError("display is gone")

    with make_engine(on_episode=broken) as engine, pytest.raises(RuntimeError, match="display"):
        asyncio.run(engine.execute_tasks([{}] * 50))


SCRIPT = """
import asyncio, sys, time
from agents_fakes import EchoAgent, ThreadedEnv
from rllm_agents import AgentExecutionEngine

engine = AgentExecutionEngine(
    agent_class=EchoAgent, env_class=ThreadedEnv,
    engine_name="scripted", rollout_engine_args={"responses": ["a"]},
)
print("ready", flush=True)
asyncio.run(engine.execute_tasks([{"fault": "step:hang", "hang_seconds": 600.0}] * 8))
"""


def test_ctrl_c_ends_the_process_though_environments_hang() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        cwd=Path(__file__).parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        start = time.perf_counter()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    assert "KeyboardInterrupt" in errors
    assert process.returncode != 0
    assert time.perf_counter() - start < 5.0
