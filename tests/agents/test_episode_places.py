from __future__ import annotations

import asyncio

import pytest

from rllm_agents.episode_places import EpisodePlaces
from rllm_agents.rollout_requests import RolloutRequest
from rllm_agents.types import Episode


def requests(*ids):
    return [RolloutRequest({}, id) for id in ids]


class Gate:
    """Plays episodes that end when they are told to."""

    def __init__(self):
        self.begun = []
        self._ends = {}

    async def play(self, request):
        self.begun.append(request.id)
        self._ends[request.id] = asyncio.Event()
        await self._ends[request.id].wait()
        return Episode(id=request.id)

    async def end(self, *ids):
        for id in ids:
            self._ends[id].set()
        for _ in range(5):
            await asyncio.sleep(0)


async def settled():
    for _ in range(5):
        await asyncio.sleep(0)


def test_requests_of_an_earlier_call_go_first_though_they_come_to_wait_later():
    async def run():
        gate, places = Gate(), EpisodePlaces(2)
        first = places.in_turn(requests("a", "b", "c"), gate.play)
        second = places.in_turn(requests("d", "e"), gate.play)
        tasks = [asyncio.create_task(first(r)) for r in requests("a", "b")]
        await settled()
        tasks += [asyncio.create_task(second(r)) for r in requests("e", "d")]
        await settled()
        tasks.append(asyncio.create_task(first(*requests("c"))))
        await settled()
        assert gate.begun == ["a", "b"]
        await gate.end("b")
        assert gate.begun == ["a", "b", "c"]
        await gate.end("a")
        assert gate.begun == ["a", "b", "c", "d"]
        await gate.end("c", "d")
        await gate.end("e")
        assert [(await task).id for task in tasks] == ["a", "b", "e", "d", "c"]

    asyncio.run(run())


def test_a_place_is_free_again_after_a_failure_and_after_a_cancellation():
    async def broken(request):
        raise RuntimeError("no")

    async def run():
        gate, places = Gate(), EpisodePlaces(1)
        with pytest.raises(RuntimeError):
            await places.in_turn(requests("x"), broken)(*requests("x"))
        play = places.in_turn(requests("a", "b", "c"), gate.play)
        playing, waiting, last = (asyncio.create_task(play(r)) for r in requests("a", "b", "c"))
        await settled()
        waiting.cancel()
        playing.cancel()
        await settled()
        assert gate.begun == ["a", "c"]
        # A place that is given away in the moment of its cancellation is passed on.
        await gate.end("c")
        assert (await last).id == "c"

    asyncio.run(run())


def test_each_event_loop_has_its_own_places():
    places = EpisodePlaces(1)

    async def leave_one_behind():
        task = asyncio.create_task(places.in_turn(requests("a"), Gate().play)(*requests("a")))
        await settled()
        assert not task.done()

    async def play(request):
        return Episode(id=request.id)

    async def run():
        return await places.in_turn(requests("b"), play)(*requests("b"))

    asyncio.run(leave_one_behind())
    assert asyncio.run(run()).id == "b"
