"""Episodes that never wait share the event loop: with deadlines, and with each other."""

from __future__ import annotations

import asyncio
import time

from rllm_agents.loop_share import LoopShare


def busy_until_spent(share: LoopShare) -> None:
    while not share.is_spent:
        pass


def test_a_pause_begins_another_share():
    async def work() -> None:
        share = LoopShare()
        assert share.is_spent, "nobody has given the loop back yet"
        await share.pause()
        assert not share.is_spent
        busy_until_spent(share)
        await share.pause()
        assert not share.is_spent

    asyncio.run(work())


def test_all_who_run_in_one_round_share_one_time():
    share, began = LoopShare(), []

    async def work(name: str) -> None:
        for _ in range(3):
            busy_until_spent(share)
            began.append(name)
            await share.pause()

    async def both() -> None:
        await asyncio.gather(work("a"), work("b"))

    asyncio.run(both())
    # The second finds the time spent and pauses at once: the rounds take turns.
    assert began == ["a", "b"] * 3


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
        return seen

    seen = asyncio.run(work())
    assert [name for name in seen if name != "others"] == [str(n) for n in range(100)]
    together = " ".join(seen).split("others")
    assert max(len(names.split()) for names in together) == 16


def test_one_that_is_cancelled_in_line_holds_nobody_up():
    async def work() -> None:
        share = LoopShare()
        first, second, third = (asyncio.create_task(share.pause()) for _ in range(3))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.wait_for(asyncio.gather(first, third), 30.0)
        assert second.cancelled()
        await asyncio.wait_for(share.pause(), 30.0)

    asyncio.run(work())


def test_a_timer_fires_between_pauses():
    async def work() -> bool:
        share = LoopShare()
        fired = asyncio.Event()
        await share.pause()
        asyncio.get_running_loop().call_later(0.03, fired.set)
        end = time.perf_counter() + 30.0
        while not fired.is_set() and time.perf_counter() < end:
            busy_until_spent(share)
            await share.pause()
        return fired.is_set()

    assert asyncio.run(work())


def test_a_loop_that_ended_in_a_pause_is_not_waited_for():
    share = LoopShare()

    async def leave() -> None:
        task = asyncio.create_task(share.pause())
        await asyncio.sleep(0)
        asyncio.get_running_loop().stop()
        await task

    loop = asyncio.new_event_loop()
    task = loop.create_task(leave())
    loop.run_forever()
    task.cancel()
    loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
    loop.close()

    asyncio.run(share.pause())
    assert not share.is_spent
