"""Several adapters of one model that act at the same time, by turns of its weights."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Protocol

from rllm_agents.errors import EngineError
from rllm_agents.rollout_engines.base import RolloutEngine
from rllm_agents.types import Completion, GenerationRequest

if TYPE_CHECKING:
    from torch import Tensor


class AdapterHolder(Protocol):
    """What the weights are exchanged in; LLMPolicy is one."""

    @property
    def adapter(self) -> str | None:
        """The adapter that acts; None for the model alone."""
        ...

    async def activate(self, name: str | None) -> None:
        """Let another one act."""
        ...


class AdapterTurns:
    """Lets completions of one adapter run together, and those of different ones never.

    Whoever has waited longest says which adapter is next, and all who wait for that one at the
    exchange go with it, so that players who take turns in many matches exchange weights once a
    turn. Later completions of the present adapter do not overtake those who wait for another. All
    calls are made on one event loop.

    Args:
        holder: Whose adapters they are.
    """

    def __init__(self, holder: AdapterHolder) -> None:
        self._holder = holder
        self._waiting: dict[object, str | None] = {}
        self._admitted: set[object] = set()
        self._num_users = 0
        self._changed = asyncio.Condition()

    @contextlib.asynccontextmanager
    async def turn(self, name: str | None) -> AsyncIterator[None]:
        """Hold an adapter, or the model alone, for one completion."""
        await self._enter(name)
        try:
            yield
        finally:
            self._num_users -= 1
            async with self._changed:
                self._changed.notify_all()

    async def _enter(self, name: str | None) -> None:
        ticket = object()
        self._waiting[ticket] = name
        async with self._changed:
            try:
                await self._changed.wait_for(lambda: self._may_enter(ticket, name))
                if self._holder.adapter != name:
                    await self._holder.activate(name)
                    self._admitted = {t for t, other in self._waiting.items() if other == name}
                self._num_users += 1
            finally:
                del self._waiting[ticket]
                self._admitted.discard(ticket)
                self._changed.notify_all()

    def _may_enter(self, ticket: object, name: str | None) -> bool:
        is_held = self._holder.adapter == name
        if ticket in self._admitted:
            # Newer weights of the adapter may have come since; then the first one loads them.
            return is_held or not self._num_users
        is_first = next(iter(self._waiting)) is ticket
        # Those who were admitted to the present adapter and have not entered yet come first.
        return is_first and (is_held or not (self._num_users or self._admitted))


class AdapterEngine:
    """A rollout engine that samples with one adapter. Made by `LLMPolicy.player`.

    Args:
        turns: Of the model's adapters.
        engine: The model's engine.
        name: The adapter; None for the model alone.
    """

    def __init__(self, turns: AdapterTurns, engine: RolloutEngine, name: str | None) -> None:
        self._turns, self._engine, self._name = turns, engine, name

    @property
    def weights_version(self) -> int:
        """Version of the weights that are loaded now; each exchange raises it."""
        return self._engine.weights_version

    @property
    def max_model_length(self) -> int | None:
        """Most tokens of a prompt and its completion; None: no bound."""
        return getattr(self._engine, "max_model_length", None)

    async def generate(self, request: GenerationRequest) -> Completion:
        """Sample one completion when it is the adapter's turn.

        Raises:
            EngineError: The engine cannot answer the request.
        """
        async with self._turns.turn(self._name):
            return await self._engine.generate(request)

    async def load_weights(self, tensors: Mapping[str, Tensor], *, version: int) -> None:
        """Refuse: the weights are the policy's.

        Raises:
            EngineError: Always.
        """
        raise EngineError("a player's weights are its policy's; load adapters into that")

    def close(self) -> None:
        """Do nothing: the engine is the policy's to close."""
