"""vLLM's sleep mode: its memory for somebody else while nothing is sampled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from rllm_agents.errors import EngineError
from rllm_agents.rollout_engines.vllm_process import first_line

_WEIGHTS_TO_HOST = 1
"""vLLM's level: weights move to the host's memory, keys and values are dropped."""


class SleepMode:
    """Puts vLLM's engine to sleep, and wakes it for whoever needs it. All on the engine's loop."""

    def __init__(self, engine: Any) -> None:
        """Take an engine that is awake.

        Args:
            engine: vLLM's `AsyncLLM`, started with `enable_sleep_mode`.
        """
        self._engine = engine
        self._is_asleep = False
        self._changing = asyncio.Lock()
        self._num_users = 0
        self._unused = asyncio.Event()
        self._unused.set()

    async def sleep(self) -> None:
        """Give the memory back once nothing uses the engine any more; asleep, do nothing.

        Raises:
            EngineError: vLLM could not.
        """
        async with self._changing:
            await self._unused.wait()
            if not self._is_asleep:
                await _done(self._engine.sleep(_WEIGHTS_TO_HOST, "wait"), "fall asleep")
                self._is_asleep = True

    @asynccontextmanager
    async def awake(self) -> AsyncIterator[None]:
        """Keep the engine awake inside the block, and wake it before where it sleeps.

        Raises:
            EngineError: vLLM could not wake it, for example because its memory is in use.
        """
        async with self._changing:
            if self._is_asleep:
                await _done(self._engine.wake_up(), "wake up")
                self._is_asleep = False
            self._num_users += 1
            self._unused.clear()
        try:
            yield
        finally:
            self._num_users -= 1
            if self._num_users == 0:
                self._unused.set()


async def _done(work: Any, what: str) -> None:
    try:
        await work
    except Exception as error:
        raise EngineError(f"vLLM's engine could not {what}: {first_line(error)}") from error
