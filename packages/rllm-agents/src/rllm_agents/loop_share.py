"""Sharing the event loop: episodes that never wait let deadlines and other episodes in."""

from __future__ import annotations

import asyncio
import time

# Longest time that episodes keep the loop together.
_MAX_SECONDS = 0.01


class LoopShare:
    """How long episodes have kept the event loop, all of an engine taken together."""

    def __init__(self) -> None:
        self._since = 0.0
        self._marking: asyncio.AbstractEventLoop | None = None

    @property
    def is_spent(self) -> bool:
        """Whether the loop is to be given back at the next occasion: with `pause`."""
        return time.perf_counter() - self._since > _MAX_SECONDS

    async def pause(self) -> None:
        """Let everything in that waits for the loop."""
        loop = asyncio.get_running_loop()
        if self._marking is not loop:
            # Time counts from the loop's next round, not from each pause: all who run before it
            # pause as well.
            self._marking = loop
            loop.call_soon(self._mark)
        await asyncio.sleep(0)

    def _mark(self) -> None:
        self._marking = None
        self._since = time.perf_counter()
