"""Sampling in rounds, so that what is sampled together does not depend on who was quicker."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rllm_agents.errors import EngineError
from rllm_agents.player import PlayEpisode
from rllm_agents.rollout_engines.base import RolloutEngine
from rllm_agents.rollout_requests import RolloutRequest
from rllm_agents.types import Completion, Episode, GenerationRequest

if TYPE_CHECKING:
    from torch import Tensor

_episode: ContextVar[str] = ContextVar("rllm_lockstep_episode", default="")
"""Id of the request whose episode the running task plays."""


@dataclass(frozen=True, slots=True, eq=False)
class _Asking:
    """Somebody who waits for the next round."""

    episode: str
    request: GenerationRequest
    turn: asyncio.Future[None]

    @property
    def place(self) -> tuple[Any, ...]:
        """Where it stands in the round: who asked first is chance, seeds and prompts are not."""
        sampling = self.request.sampling
        return (sampling.seed or 0, self.episode, self.request.prompt_ids or ())


class Lockstep:
    """A rollout engine in front of another, which is asked once every episode in flight asks.

    The rows of a batch are computed together, so that the last bits of a logprob depend on which
    rows they are, and with them, now and then, a sampled token. Without rounds that is decided by
    how long environments take. In rounds it follows from the requests alone: all episodes in
    flight are sampled together, in the order of their seeds, and those that end make room for
    others before anybody is sampled again. The price is that quick episodes wait for slow ones at
    each turn.

    It holds for episodes that ask for one completion at a time.

    Args:
        engine: What samples; it stays the caller's to close.
    """

    def __init__(self, engine: RolloutEngine) -> None:
        self._engine: Any = engine
        self._playing: set[str] = set()
        self._asking: list[_Asking] = []

    def in_rounds(self, play: PlayEpisode) -> PlayEpisode:
        """Return what plays an episode as `play` does, and counts it among those in flight."""

        async def play_in_rounds(request: RolloutRequest) -> Episode:
            token = _episode.set(request.id)
            self._playing.add(request.id)
            try:
                return await play(request)
            finally:
                _episode.reset(token)
                self._playing.discard(request.id)
                self._look()

        return play_in_rounds

    @property
    def weights_version(self) -> int:
        """Version of the weights that sample now."""
        return self._engine.weights_version

    @property
    def max_model_length(self) -> int | None:
        """Most tokens of a prompt and its completion; None: no bound."""
        return getattr(self._engine, "max_model_length", None)

    async def prepare(self) -> None:
        """Let the engine get ready, where it has to."""
        prepare = getattr(self._engine, "prepare", None)
        if prepare is not None:
            await prepare()

    async def generate(self, request: GenerationRequest) -> Completion:
        """Sample one completion in the next round.

        Raises:
            EngineError: The engine cannot answer, or nobody knows which episode asks.
        """
        if not _episode.get():
            raise EngineError(
                "sampling in rounds needs episodes that call the engine themselves, and this call "
                "came from elsewhere, such as a program behind the gateway: leave lockstep (or "
                "deterministic=true) off"
            )
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._asking.append(_Asking(_episode.get(), request, turn))
        self._look()
        await turn
        return await self._engine.generate(request)

    async def load_weights(self, tensors: Mapping[str, Tensor], *, version: int) -> None:
        """Replace the engine's weights."""
        await self._engine.load_weights(tensors, version=version)

    def close(self) -> None:
        """Do nothing: the engine is its owner's to close."""

    def _look(self) -> None:
        """Begin a round if all ask, once whoever takes an ended episode's place has begun."""
        asyncio.get_running_loop().call_soon(self._begin_round)

    def _begin_round(self) -> None:
        # Callers may have been cancelled, or their event loop with them.
        self._asking = [a for a in self._asking if not a.turn.done()]
        if self._playing <= {a.episode for a in self._asking}:
            asking, self._asking = sorted(self._asking, key=lambda a: a.place), []
            for one in asking:
                one.turn.set_result(None)  # they are resumed, and ask the engine, in this order
