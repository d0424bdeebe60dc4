"""Sessions of event loops that come and go, without a warning left behind."""

from __future__ import annotations

import asyncio
import gc
import logging
import warnings
from collections.abc import Iterator

import pytest
from openai_server import FakeServer

from rllm_agents.errors import EngineError
from rllm_agents.rollout_engines.openai_sessions import LoopSessions, SharedFetch


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing is left to the garbage collector to complain about, nor to a loop to log."""
    gc.collect()
    with warnings.catch_warnings(record=True) as caught, caplog.at_level(logging.WARNING):
        warnings.simplefilter("always")
        yield
        gc.collect()
    assert [str(warning.message) for warning in caught] == []
    assert caplog.records == []


async def get_models(sessions: LoopSessions, server: FakeServer) -> int:
    found = await sessions.of_this_loop()
    async with found.session.get(server.base_url + "/models") as response:
        await response.read()
        return response.status


@pytest.mark.usefixtures("quiet")
def test_loops_one_after_another_have_sessions_of_their_own() -> None:
    with FakeServer() as server:
        sessions = LoopSessions({}, 4)
        for _ in range(3):
            assert asyncio.run(get_models(sessions, server)) == 200
        sessions.close()
        sessions.close()
        with pytest.raises(EngineError, match="closed"):
            asyncio.run(get_models(sessions, server))


@pytest.mark.usefixtures("quiet")
def test_requests_of_one_loop_share_a_session_and_its_connection() -> None:
    with FakeServer() as server:
        sessions = LoopSessions({"X-Kind": "test"}, 4)

        async def run() -> None:
            first, second = await sessions.of_this_loop(), await sessions.of_this_loop()
            assert first is second
            for _ in range(5):
                await get_models(sessions, server)
            assert len(first.session.connector._conns) == 1  # type: ignore[union-attr]

        asyncio.run(run())
        sessions.close()
        assert server.headers[0]["X-Kind"] == "test"


@pytest.mark.usefixtures("quiet")
def test_closing_within_the_loop_ends_its_connections() -> None:
    with FakeServer() as server:
        sessions = LoopSessions({}, 4)

        async def run() -> None:
            await get_models(sessions, server)
            session = (await sessions.of_this_loop()).session
            sessions.close()
            await asyncio.sleep(0.05)
            assert session.closed

        asyncio.run(run())


@pytest.mark.usefixtures("quiet")
def test_closing_as_the_last_thing_in_a_loop_leaves_nothing_open() -> None:
    with FakeServer() as server:

        async def run() -> None:
            sessions = LoopSessions({}, 4)
            await get_models(sessions, server)
            sessions.close()

        asyncio.run(run())


@pytest.mark.usefixtures("quiet")
def test_a_loop_that_stands_still_is_closed_too() -> None:
    with FakeServer() as server:
        sessions = LoopSessions({}, 4)
        loop = asyncio.new_event_loop()
        loop.run_until_complete(get_models(sessions, server))
        session = loop.run_until_complete(sessions.of_this_loop()).session
        sessions.close()
        assert session.closed
        loop.close()


@pytest.mark.filterwarnings("ignore:unclosed transport:ResourceWarning")  # the loop's own
def test_sessions_of_a_loop_that_was_torn_down_are_marked_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with FakeServer() as server:
        sessions = LoopSessions({}, 4)
        loop = asyncio.new_event_loop()
        loop.run_until_complete(get_models(sessions, server))
        session = loop.run_until_complete(sessions.of_this_loop()).session
        loop.close()
        assert asyncio.run(get_models(sessions, server)) == 200
        assert session.closed
        sessions.close()
        gc.collect()
    assert caplog.records == []


@pytest.mark.usefixtures("quiet")
def test_sessions_that_nobody_closes_end_with_their_loop() -> None:
    with FakeServer() as server:
        asyncio.run(get_models(LoopSessions({}, 4), server))


def test_what_is_fetched_is_fetched_once_for_all_who_wait() -> None:
    calls: list[int] = []

    async def fetch(number: int) -> int:
        calls.append(number)
        await asyncio.sleep(0.01)
        return number

    fetched = SharedFetch(fetch)

    async def run() -> list[int]:
        assert fetched.value is None
        return [*await asyncio.gather(*(fetched.get(n) for n in range(5))), await fetched.get(9)]

    assert asyncio.run(run()) == [0] * 6
    assert asyncio.run(fetched.get(7)) == 0
    assert calls == [0]


def test_a_failure_reaches_all_who_wait_and_the_next_try_again() -> None:
    calls = 0

    async def fetch() -> str:
        nonlocal calls
        calls += 1
        await asyncio.sleep(0.01)
        if calls == 1:
            raise EngineError("down")
        return "up"

    fetched = SharedFetch(fetch)

    async def run() -> list[str | BaseException]:
        return await asyncio.gather(*(fetched.get() for _ in range(4)), return_exceptions=True)

    errors = asyncio.run(run())
    assert [str(error) for error in errors] == ["down"] * 4
    assert len({id(error) for error in errors}) == 4
    assert asyncio.run(fetched.get()) == "up"
    assert calls == 2


def test_one_who_gives_up_waiting_does_not_take_the_others_along() -> None:
    async def fetch() -> str:
        await asyncio.sleep(0.05)
        return "here"

    fetched = SharedFetch(fetch)

    async def run() -> str:
        first = asyncio.create_task(fetched.get())
        second = asyncio.create_task(fetched.get())
        await asyncio.sleep(0.01)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        return await second

    assert asyncio.run(run()) == "here"


@pytest.mark.usefixtures("quiet")
def test_a_fetch_that_its_loop_did_not_survive_begins_anew() -> None:
    calls = 0

    async def fetch() -> str:
        nonlocal calls
        calls += 1
        await asyncio.sleep(0.0 if calls > 1 else 3600)
        return "here"

    fetched = SharedFetch(fetch)

    async def impatient() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await fetched.get()

    asyncio.run(impatient())
    assert asyncio.run(fetched.get()) == "here"
