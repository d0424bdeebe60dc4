"""Episodes that never wait share the event loop: with deadlines, and with each other."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref

from rllm_agents.loop_share import LoopShare


class Clock:
    """A clock that stands still until it is told to go on."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def pause_here() -> None:
    await LoopShare.of_this_loop().pause()


def test_a_pause_begins_another_share():
    async def work() -> None:
        clock = Clock()
        share = LoopShare(clock)
        assert share.is_spent, "nobody has given the loop back yet"
        await share.pause()
        assert not share.is_spent
        clock.now = 0.009
        assert not share.is_spent
        clock.now = 0.011
        assert share.is_spent
        await share.pause()
        assert not share.is_spent

    asyncio.run(work())


def test_all_who_run_in_one_round_share_one_time():
    clock, began = Clock(), []
    share = LoopShare(clock)

    async def work(name: str) -> None:
        for _ in range(3):
            began.append((name, share.is_spent))
            clock.now += 0.02
            await share.pause()

    async def both() -> None:
        await asyncio.gather(work("a"), work("b"))

    asyncio.run(both())
    # The second finds the time spent: the rounds take turns.
    assert began == [("a", True), ("b", True), *[("a", False), ("b", True)] * 2]


def test_those_in_line_go_on_in_its_order_a_few_at_a_time():
    async def work() -> list[str]:
        share, seen = LoopShare(), []

        async def wait_in_line(name: str) -> None:
            await share.pause()
            seen.append(name)

        waiting = [asyncio.create_task(wait_in_line(str(n))) for n in range(100)]
        while not all(task.done() for task in waiting):
            seen.append("others")
            await asyncio.sleep(0)
        assert not share.has_line
        return seen

    seen = asyncio.run(work())
    assert [name for name in seen if name != "others"] == [str(n) for n in range(100)]
    together = " ".join(seen).split("others")
    assert max(len(names.split()) for names in together) == 32


def test_those_who_are_cancelled_in_line_hold_nobody_up():
    async def work() -> None:
        share = LoopShare()
        waiting = [asyncio.create_task(share.pause()) for _ in range(100)]
        await asyncio.sleep(0)
        for task in waiting[1:-1]:
            task.cancel()
        for _ in range(4):
            await asyncio.sleep(0)
        assert [task.cancelled() for task in waiting] == [False, *[True] * 98, False]
        assert waiting[0].done() and waiting[-1].done() and not share.has_line

    asyncio.run(work())


def test_a_line_is_waited_for_and_not_those_who_join_it_later():
    async def work() -> None:
        share = LoopShare()

        async def come_back() -> None:
            while True:
                await share.pause()

        await share.let_line_go_on()
        waiting = [asyncio.create_task(share.pause()) for _ in range(100)]
        others = [asyncio.create_task(come_back()) for _ in range(10)]
        await asyncio.sleep(0)
        await asyncio.wait_for(share.let_line_go_on(), 30.0)
        await asyncio.sleep(0)
        assert all(task.done() for task in waiting)
        for other in others:
            other.cancel()

    asyncio.run(work())


def test_a_closed_loop_is_let_go_though_some_stood_in_line():
    async def leave_a_line_behind() -> None:
        for _ in range(100):
            pausing = pause_here()
            pausing.send(None)
            pausing.close()
        assert LoopShare.of_this_loop().has_line

    def closed_loop() -> weakref.ref[asyncio.AbstractEventLoop]:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(leave_a_line_behind())
        loop.close()
        return weakref.ref(loop)

    loops = [closed_loop() for _ in range(3)]
    asyncio.run(pause_here())
    gc.collect()
    assert [loop() for loop in loops] == [None] * 3


def test_a_timer_fires_between_pauses():
    async def work() -> bool:
        share = LoopShare.of_this_loop()
        fired = asyncio.Event()
        asyncio.get_running_loop().call_later(0.03, fired.set)
        end = time.perf_counter() + 30.0
        while not fired.is_set() and time.perf_counter() < end:
            if share.is_spent:
                await share.pause()
        return fired.is_set()

    assert asyncio.run(work())


def test_a_loop_that_ends_with_some_in_line_keeps_nobody_of_the_next_one():
    async def leave_a_line_behind() -> list[asyncio.Task[None]]:
        waiting = [asyncio.create_task(pause_here()) for _ in range(200)]
        await asyncio.sleep(0)
        assert LoopShare.of_this_loop().has_line
        return waiting

    for _ in range(2):
        waiting = asyncio.run(asyncio.wait_for(leave_a_line_behind(), 30.0))
        assert any(task.cancelled() for task in waiting)
        asyncio.run(asyncio.wait_for(pause_here(), 30.0))


def test_event_loops_that_take_turns_have_a_line_each():
    loops = [asyncio.new_event_loop() for _ in range(2)]
    waiting = [loop.create_task(pause_here()) for loop in loops for _ in range(100)]
    for _ in range(20):
        for loop in loops:
            loop.run_until_complete(asyncio.sleep(0))
    assert all(task.done() for task in waiting)
    for loop in loops:
        loop.close()
