"""A rollout engine over the engines of a pool, for whichever process runs episodes."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import ray
from ray.exceptions import ActorDiedError, RayActorError, RayError, RayTaskError

from rllm_agents.errors import AgentsError, EngineError, TransientError, in_words
from rllm_agents.rollout_engines.pool_routing import Routing
from rllm_agents.types import Completion, GenerationRequest

if TYPE_CHECKING:
    from torch import Tensor

logger = logging.getLogger(__name__)

MOST_LOSSES = 3
"""Engines that may be lost over one request: one that ends every engine must not have them all."""
_SECONDS_BETWEEN_LOOKS = 0.1


class PoolClient:
    """Sends each request to one engine of a pool, and to another when that one is lost.

    Can be sent to other processes; each keeps its own account of what it has in flight. Raises of
    `generate`: `EngineError` when the request is refused or three engines were lost over it,
    `TransientError` when no engine answers for `start_timeout`.
    """

    def __init__(
        self, replicas: Sequence[Any], *, max_model_length: int | None, start_timeout: float
    ) -> None:
        """Take handles of `EngineReplica` actors.

        Args:
            replicas: At least one.
            max_model_length: Most tokens of a prompt and its completion; None leaves it to limits
                elsewhere.
            start_timeout: Seconds that a request waits while all engines are lost.
        """
        self._replicas = list(replicas)
        self._start_timeout = start_timeout
        self.max_model_length = max_model_length
        self._routing = Routing(len(self._replicas))
        self._returning: dict[int, concurrent.futures.Future[Any]] = {}
        self._gone: set[int] = set()

    def __reduce__(self) -> tuple[Any, ...]:
        return _client, (self._replicas, self.max_model_length, self._start_timeout)

    @property
    def weights_version(self) -> int:
        """Not known here: each completion carries its own.

        Raises:
            EngineError: Always.
        """
        raise EngineError("a client of a pool knows no version; completions carry theirs")

    async def generate(self, request: GenerationRequest) -> Completion:
        """Sample one completion, on another engine where one is lost."""
        lost: RayActorError | None = None
        for _ in range(MOST_LOSSES):
            number = await self._choose(request.session_id)
            self._routing.begin(number)
            try:
                return await self._ask(self._replicas[number], request)
            except RayActorError as error:
                self._lose(number, error)
                lost = error
            finally:
                self._routing.end(number)
        raise EngineError(f"{MOST_LOSSES} rollout engines were lost over a request; last: {lost}")

    async def load_weights(self, tensors: Mapping[str, Tensor], *, version: int) -> None:
        """Refuse: weights are loaded through the EnginePool, by whoever made it.

        Raises:
            EngineError: Always.
        """
        raise EngineError("weights of a pool are loaded through its EnginePool, not a client")

    def close(self) -> None:
        """Leave the engines to the EnginePool that they belong to."""

    async def _ask(self, replica: Any, request: GenerationRequest) -> Completion:
        answer = replica.generate.remote(request)
        try:
            return await answer
        except asyncio.CancelledError:
            ray.cancel(answer)  # the engine gives up the completion
            raise
        except RayActorError:
            raise
        except RayError as error:
            cause = error.cause if isinstance(error, RayTaskError) else error
            if isinstance(cause, AgentsError):
                raise cause from None
            raise EngineError(f"a rollout engine failed: {in_words(cause)}") from error

    async def _choose(self, session_id: str) -> int:
        """Return the number of an engine that is there; waits where none is."""
        deadline = time.monotonic() + self._start_timeout
        while True:
            if not ray.is_initialized():
                raise EngineError("the pool of rollout engines is gone: Ray was shut down")
            self._look_for_lost()
            number = self._routing.choose(session_id)
            if number is not None:
                return number
            if len(self._gone) == len(self._replicas):
                raise EngineError("the pool of rollout engines is closed")
            if time.monotonic() > deadline:
                raise TransientError(
                    f"none of {len(self._replicas)} rollout engines answered for "
                    f"start_timeout={self._start_timeout:g} s"
                )
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)

    def _lose(self, number: int, error: RayActorError) -> None:
        if number in self._returning:
            return  # another request has found it out
        first = str(error).strip().splitlines()[0]
        logger.warning("rollout engine %d was lost; its requests go to others: %s", number, first)
        self._routing.lose(number)
        self._returning[number] = self._ready(number)

    def _look_for_lost(self) -> None:
        """Take back engines that were started again and have their weights."""
        for number, future in list(self._returning.items()):
            if number in self._gone or not future.done():
                continue
            error = future.exception()
            if error is None:
                del self._returning[number]
                self._routing.find(number)
            elif isinstance(error, ActorDiedError):
                self._gone.add(number)
            else:
                self._returning[number] = self._ready(number)

    def _ready(self, number: int) -> concurrent.futures.Future[Any]:
        return self._replicas[number].ready.remote().future()


def _client(replicas: list[Any], max_model_length: int | None, start_timeout: float) -> PoolClient:
    return PoolClient(replicas, max_model_length=max_model_length, start_timeout=start_timeout)
