"""Awaitables that are begun before they have a deadline behave as if they were awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any

import pytest

from rllm_agents.call_threads import Outcome, contain_awaitable


async def at_once() -> str:
    return "value"


async def after_a_while() -> str:
    await asyncio.sleep(0.001)
    await asyncio.sleep(0.001)
    return "value"


class Steps:
    """An awaitable that is neither a coroutine nor a future."""

    def __await__(self) -> Generator[Any, Any, str]:
        yield from asyncio.sleep(0).__await__()
        yield from asyncio.sleep(0.001).__await__()
        return "value"


def contained(call: Any, seconds: float | None) -> Outcome | None:
    async def work() -> Outcome | None:
        return await contain_awaitable(call, seconds)

    return asyncio.run(work())


@pytest.mark.parametrize("call", [at_once, after_a_while, Steps])
@pytest.mark.parametrize("seconds", [None, 30.0])
def test_the_value_is_the_outcome(call, seconds):
    outcome = contained(call, seconds)
    assert outcome is not None
    assert (outcome.value, outcome.error) == ("value", None)


def test_a_future_is_awaited():
    def start() -> asyncio.Future[str]:
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        loop.call_later(0.001, future.set_result, "value")
        return future

    outcome = contained(start, 30.0)
    assert outcome is not None and outcome.value == "value"


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("error", [ValueError("no"), TimeoutError("its own"), SystemExit(3)])
def test_what_is_raised_is_the_outcome(waits, error):
    async def fail() -> None:
        if waits:
            await asyncio.sleep(0.001)
        raise error

    outcome = contained(fail, 30.0)
    assert outcome is not None and outcome.error is error


def test_a_deadline_holds_from_the_first_wait_on():
    seen = []

    async def hang() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    assert contained(hang, 0.01) is None
    assert seen == ["cancelled"]


def test_one_that_goes_on_after_its_deadline_may_say_its_last_word():
    async def tidy_up() -> str:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            await asyncio.sleep(0.001)
            raise
        return "never"

    assert contained(tidy_up, 0.01) is None


def test_cancellation_from_outside_passes():
    seen = []

    async def hang() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            seen.append("ended")

    async def cancel() -> None:
        task = asyncio.create_task(contain_awaitable(hang, 30.0))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert seen == ["ended"]


def test_a_cancellation_of_its_own_is_an_outcome():
    async def leak() -> None:
        raise asyncio.CancelledError

    outcome = contained(leak, 30.0)
    assert outcome is not None and isinstance(outcome.error, asyncio.CancelledError)


def test_an_abandoned_call_is_closed():
    seen = []

    async def hang() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            seen.append("closed")

    async def abandon() -> None:
        waiting = contain_awaitable(hang, None)
        waiting.send(None)
        waiting.close()

    asyncio.run(abandon())
    assert seen == ["closed"]
