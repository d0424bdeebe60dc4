from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator

import pytest

from rllm_agents import AgentExecutionEngine, ChatAgent, ScriptedEngine
from rllm_agents.garbage import seldom_collected
from rllm_envs import GymEnv


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(700, 11, 12)
    yield
    gc.set_threshold(*before)


def test_only_how_often_changes_and_only_inside() -> None:
    with seldom_collected():
        assert gc.get_threshold() == (100_000, 11, 12)
    assert gc.get_threshold() == (700, 11, 12)
    with pytest.raises(KeyError), seldom_collected():
        raise KeyError
    assert gc.get_threshold() == (700, 11, 12)


@pytest.mark.parametrize("first", [0, 500_000])
def test_who_wants_even_less_of_it_keeps_that(first: int) -> None:
    gc.set_threshold(first, 11, 12)
    with seldom_collected():
        assert gc.get_threshold() == (first, 11, 12)
    assert gc.get_threshold() == (first, 11, 12)


def test_the_last_of_several_blocks_sets_it_back() -> None:
    is_inside, may_end = threading.Event(), threading.Event()

    def other() -> None:
        with seldom_collected():
            is_inside.set()
            may_end.wait(10)

    thread = threading.Thread(target=other)
    with seldom_collected():
        thread.start()
        assert is_inside.wait(10)
    assert gc.get_threshold() == (100_000, 11, 12)
    may_end.set()
    thread.join()
    assert gc.get_threshold() == (700, 11, 12)


def test_it_holds_while_episodes_run_also_of_a_run_that_is_left_early() -> None:
    async def main() -> list[tuple[int, int, int]]:
        seen = []
        with AgentExecutionEngine(
            agent_class=ChatAgent,
            env_class=GymEnv,
            env_args={"env_id": "rllm/Arithmetic-v0"},
            rollout_engine=ScriptedEngine(responses=["1"]),
        ) as engine:
            stream = engine.stream_tasks([{"seed": n} for n in range(9)])
            async for _ in stream:
                seen.append(gc.get_threshold())
                break
            await stream.aclose()
            seen.append(gc.get_threshold())
        return seen

    assert asyncio.run(main()) == [(100_000, 11, 12), (700, 11, 12)]
