"""Who may use an engine that sleeps now and then, and when; with an engine that only takes notes.

Real vLLM falls asleep and wakes in test_vllm.py and test_vllm_adapters.py.
"""

from __future__ import annotations

import asyncio

import pytest

from rllm_agents.errors import EngineError
from rllm_agents.rollout_engines.vllm_sleep import SleepMode


class NotedEngine:
    """vLLM's two calls, each of which takes a turn of the loop."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.has_memory = True

    async def sleep(self, level: int, mode: str) -> None:
        assert (level, mode) == (1, "wait")
        await asyncio.sleep(0)
        self.notes.append("asleep")

    async def wake_up(self) -> bool:
        await asyncio.sleep(0)
        if not self.has_memory:
            raise RuntimeError("CUDA out of memory\nand a long trace")
        self.notes.append("awake")
        return True


async def use(mode: SleepMode, engine: NotedEngine, name: str, turns: int = 1) -> None:
    async with mode.awake():
        engine.notes.append(f"{name} begins")
        for _ in range(turns):
            await asyncio.sleep(0)
        engine.notes.append(f"{name} ends")


def test_it_falls_asleep_once_and_wakes_for_the_next_user() -> None:
    async def main() -> list[str]:
        engine = NotedEngine()
        mode = SleepMode(engine)
        await use(mode, engine, "a")
        await mode.sleep()
        await mode.sleep()
        await use(mode, engine, "b")
        await use(mode, engine, "c")
        return engine.notes

    assert asyncio.run(main()) == [
        *("a begins", "a ends", "asleep", "awake"),
        *("b begins", "b ends", "c begins", "c ends"),
    ]


def test_who_is_at_work_ends_first_and_who_comes_meanwhile_wakes_it() -> None:
    async def main() -> list[str]:
        engine = NotedEngine()
        mode = SleepMode(engine)
        async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
            tasks.create_task(use(mode, engine, "early", turns=9))
            await asyncio.sleep(0)
            tasks.create_task(mode.sleep())
            await asyncio.sleep(0)
            tasks.create_task(use(mode, engine, "late"))
            tasks.create_task(use(mode, engine, "later"))
        return engine.notes

    notes = asyncio.run(main())
    assert notes[:4] == ["early begins", "early ends", "asleep", "awake"]
    assert sorted(notes[4:]) == ["late begins", "late ends", "later begins", "later ends"]


def test_one_that_cannot_wake_says_why_and_is_asked_again_by_the_next() -> None:
    async def main() -> list[str]:
        engine = NotedEngine()
        mode = SleepMode(engine)
        await mode.sleep()
        engine.has_memory = False
        with pytest.raises(EngineError, match=r"could not wake up: CUDA out of memory$"):
            await use(mode, engine, "a")
        engine.has_memory = True
        await use(mode, engine, "b")
        return engine.notes

    assert asyncio.run(main()) == ["asleep", "awake", "b begins", "b ends"]
