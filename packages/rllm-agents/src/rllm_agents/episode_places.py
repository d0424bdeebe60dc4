"""How many episodes are in flight at once, over all calls of an engine: earlier requests first."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import weakref
from collections.abc import Sequence

from rllm_agents.player import PlayEpisode
from rllm_agents.rollout_requests import RolloutRequest
from rllm_agents.types import Episode


class EpisodePlaces:
    """A number of places on each event loop, given to who has waited longest.

    Order is that of the calls, and within a call that of its requests, whenever they come to wait:
    a batch that was begun earlier is never kept up by a later one.

    Args:
        num_places: Most episodes in flight, at least 1.
    """

    def __init__(self, num_places: int) -> None:
        self._num_places = num_places
        self._tickets = itertools.count()
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Places] = (
            weakref.WeakKeyDictionary()
        )

    def in_turn(self, requests: Sequence[RolloutRequest], play: PlayEpisode) -> PlayEpisode:
        """Return what plays each of these requests when it is its turn.

        Args:
            requests: Of one call, with ids that differ.
            play: What plays one of them.
        """
        tickets = {request.id: next(self._tickets) for request in requests}
        places = self._loops.setdefault(asyncio.get_running_loop(), _Places(self._num_places))

        async def play_in_turn(request: RolloutRequest) -> Episode:
            await places.take(tickets[request.id])
            try:
                return await play(request)
            finally:
                places.pass_on()

        return play_in_turn


class _Places:
    """The places of one event loop."""

    def __init__(self, num_free: int) -> None:
        self._num_free = num_free
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    async def take(self, ticket: int) -> None:
        """Wait for a place; the lowest ticket goes first."""
        if self._num_free:
            self._num_free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (ticket, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.pass_on()  # the place came together with the cancellation
            raise

    def pass_on(self) -> None:
        """Give a place that was taken to who is next, or keep it free."""
        while self._waiting:
            _, turn = heapq.heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                return
        self._num_free += 1
