"""Sharing the event loop: episodes that never wait let deadlines and other episodes in."""

from __future__ import annotations

import asyncio
import time
from collections import deque

# Longest time that episodes keep the loop together.
_MAX_SECONDS = 0.01
# How many of those that stand in line go on in one round of the loop.
_AT_ONCE = 16


class LoopShare:
    """How long episodes have kept the event loop, all of an engine taken together.

    Those that have given it back stand in line, and go on a few at a time: what an episode touches
    is still in the processor's caches where it plays turn after turn rather than one in a thousand.
    """

    def __init__(self) -> None:
        self._since = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._line: deque[asyncio.Future[None]] = deque()

    @property
    def is_spent(self) -> bool:
        """Whether the loop is to be given back at the next occasion: with `pause`."""
        return time.perf_counter() - self._since > _MAX_SECONDS

    async def pause(self) -> None:
        """Let everything in that waits for the loop, and those that have paused before."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # an earlier one may have ended with some in line
            self._loop, self._line = loop, deque()
        if not self._line:
            loop.call_soon(self._go_on)
        place = loop.create_future()
        self._line.append(place)
        await place

    def _go_on(self) -> None:
        """Begin another share for the first in line; the loop's other work comes before each."""
        self._since = time.perf_counter()
        for _ in range(min(_AT_ONCE, len(self._line))):
            place = self._line.popleft()
            if not place.done():
                place.set_result(None)
        if self._line and self._loop is not None:
            self._loop.call_soon(self._go_on)
