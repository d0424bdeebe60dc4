"""Sharing the event loop: episodes that never wait let deadlines and other episodes in."""

from __future__ import annotations

import asyncio
import math
import time
import weakref
from collections import deque
from collections.abc import Callable

# Longest time that episodes keep the loop together.
_MAX_SECONDS = 0.01
# How many of those that stand in line go on in one round of the loop.
_AT_ONCE = 32


class LoopShare:
    """How long episodes have kept one event loop, all of them together, and who has given it back.

    Those stand in line and go on a few at a time: what an episode touches is still in the
    processor's caches where it plays turn after turn rather than one in a thousand does.

    Args:
        clock: Returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._since = -math.inf
        self._line: deque[asyncio.Future[None]] = deque()
        self._num_gone_on = 0

    @staticmethod
    def of_this_loop() -> LoopShare:
        """Return the one of the running event loop."""
        loop = asyncio.get_running_loop()
        share = _shares.get(loop)
        if share is None:
            # One that was closed with some in line is held by them.
            for closed in [other for other in list(_shares) if other.is_closed()]:
                del _shares[closed]
            share = _shares[loop] = LoopShare()
        return share

    @property
    def is_spent(self) -> bool:
        """Whether the loop is to be given back at the next occasion: with `pause`."""
        return self._clock() - self._since > _MAX_SECONDS

    @property
    def has_line(self) -> bool:
        """Whether somebody stands in line."""
        return bool(self._line)

    async def pause(self) -> None:
        """Let everything in that waits for the loop, and those that have paused before."""
        loop = asyncio.get_running_loop()
        if not self._line:
            loop.call_soon(self._go_on)
        place = loop.create_future()
        self._line.append(place)
        await place

    async def let_line_go_on(self) -> None:
        """Wait until all who stand in line now have gone on."""
        last = self._num_gone_on + len(self._line)
        while self._num_gone_on < last:
            await asyncio.sleep(0)

    def _go_on(self) -> None:
        """Begin another share for the first in line; the loop's other work comes before each."""
        self._since = self._clock()
        num_free = _AT_ONCE
        try:
            while self._line and num_free:
                place = self._line.popleft()
                self._num_gone_on += 1
                if not place.done():  # its task may have been cancelled
                    place.set_result(None)
                    num_free -= 1
        finally:
            if self._line:
                asyncio.get_running_loop().call_soon(self._go_on)


_shares: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, LoopShare] = (
    weakref.WeakKeyDictionary()
)
