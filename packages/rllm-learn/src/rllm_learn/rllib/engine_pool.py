"""Rollout engines as Ray actors, shared by training and evaluation; one that dies is replaced.

`PoolEngine` is a `RolloutEngine` for whoever runs episodes: it sends each trajectory to one actor,
where its prefix is stored, and to another when that one is lost. A lost actor is started again by
Ray and fetches the newest weights from `WeightStore` before it answers anybody.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import ray
from ray.exceptions import RayActorError
from torch import Tensor

from rllm_agents.errors import EngineError
from rllm_agents.types import Completion, GenerationRequest
from rllm_learn.assembly import policy_engine
from rllm_learn.sampler import push_weights

logger = logging.getLogger(__name__)

_RETRY_SECONDS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Pauses before each try of what a lost engine did not do; together, as long as a start takes."""


class WeightStore:
    """An actor that knows the newest weights, for engines that start later."""

    def __init__(self) -> None:
        self._newest: tuple[Any, int] | None = None

    def put(self, boxed: list[Any], version: int) -> None:
        """Remember weights.

        Args:
            boxed: A list of one reference, so that Ray passes it as it is.
            version: Of the weights.
        """
        self._newest = boxed[0], version

    def get(self) -> tuple[list[Any], int] | None:
        """Return the reference, in a list, and the version; None before the first update."""
        return None if self._newest is None else ([self._newest[0]], self._newest[1])


class EngineActor:
    """One rollout engine in a process of its own."""

    def __init__(
        self,
        name: str,
        arguments: Mapping[str, Any],
        sets: Mapping[str, str | None],
        store: Any,
        adapter_config: Mapping[str, Any] | None,
        torch_threads: int | None,
    ) -> None:
        """Start the engine.

        Args:
            name: Of the engine, as `build_rollout_engine` knows it.
            arguments: Of its class.
            sets: See `RolePlan.sets`.
            store: The WeightStore.
            adapter_config: What peft says of LoRA matrices; None where whole weights are published.
            torch_threads: Of one operation; None leaves it to torch.
        """
        if torch_threads is not None:
            import torch

            torch.set_num_threads(torch_threads)
        self._arguments = (name, dict(arguments), dict(sets))
        self._store = store
        self._adapter_config = adapter_config
        self._engine: Any = None
        self._starting = asyncio.Lock()

    async def ready(self) -> int:
        """Return the version of the weights once the engine can answer."""
        return (await self._started()).weights_version

    async def generate(self, request: GenerationRequest) -> Completion:
        """Sample one completion.

        Raises:
            EngineError: The engine cannot answer this request.
        """
        engine = await self._started()
        try:
            return await engine.generate(request)
        except EngineError:
            # An engine whose own process is gone stays gone; Ray starts this actor again.
            if not getattr(engine, "is_alive", True):
                logger.exception("the engine's process died; its actor ends and is started again")
                os._exit(1)
            raise

    async def load(self, boxed: list[Any], version: int) -> int:
        """Exchange weights; returns the version that is sampled from now."""
        engine = await self._started()
        if engine.weights_version < version:
            await self._push(engine, boxed, version)
        return engine.weights_version

    async def _started(self) -> Any:
        """Return the engine, made and brought up to date by the first caller."""
        async with self._starting:
            if self._engine is None:
                engine: Any = policy_engine(*self._arguments)
                newest = await self._store.get.remote()
                if newest is not None:
                    await self._push(engine, *newest)
                self._engine = engine
        return self._engine

    async def _push(self, engine: Any, boxed: list[Any], version: int) -> None:
        weights: dict[str, Tensor] = await boxed[0]
        await push_weights(engine, weights, version=version, adapter_config=self._adapter_config)


class PoolEngine:
    """A `RolloutEngine` over engine actors. Safe to send to other processes.

    Raises of `generate`: `EngineError`, when the request is refused, or no actor answers for a
    minute.
    """

    def __init__(self, actors: Sequence[Any], *, max_model_length: int | None) -> None:
        """Take handles of `EngineActor`s.

        Args:
            actors: At least one.
            max_model_length: Most tokens of a prompt and its completion; None leaves it to limits
                elsewhere.
        """
        self._actors = list(actors)
        self.max_model_length = max_model_length

    @property
    def weights_version(self) -> int:
        """Not known here: each completion carries its own.

        Raises:
            EngineError: Always.
        """
        raise EngineError("a pool of engines has no one version; completions carry theirs")

    async def generate(self, request: GenerationRequest) -> Completion:
        """Sample one completion, on another actor where one is lost."""
        first = zlib.crc32(request.session_id.encode()) % len(self._actors)
        lost: Exception | None = None
        for attempt, pause in enumerate(_RETRY_SECONDS):
            await asyncio.sleep(pause)
            actor = self._actors[(first + attempt) % len(self._actors)]
            try:
                return await actor.generate.remote(request)
            except RayActorError as error:
                lost = error
                logger.warning("a rollout engine was lost; the request goes to another: %s", error)
        raise EngineError(f"no rollout engine answers; the last error: {lost}")

    async def load_weights(self, tensors: Mapping[str, Tensor], *, version: int) -> None:
        """Refuse: weights are published by the driver, through `EnginePool`."""
        raise EngineError("weights of a pool are published by the algorithm that owns it")

    def close(self) -> None:
        """Leave the actors to the algorithm that owns them."""


class EnginePool:
    """The driver's side: starts the actors, publishes weights, ends them."""

    def __init__(
        self,
        size: int,
        *,
        name: str,
        arguments: Mapping[str, Any],
        sets: Mapping[str, str | None] | None = None,
        adapter_config: Mapping[str, Any] | None,
        torch_threads: int | None,
        max_model_length: int | None,
        actor_options: Sequence[Mapping[str, Any]],
    ) -> None:
        """Ask Ray for the actors; `readiness` references tell when they are there.

        Args:
            size: Number of engines, at least 1.
            name: Of the engine.
            arguments: Of its class.
            sets: See `RolePlan.sets`; None for the policy alone.
            adapter_config: Of LoRA matrices, or None.
            torch_threads: Of one operation in an engine's process.
            max_model_length: See PoolEngine.
            actor_options: Ray's options of each actor: CPUs, GPUs, placement.
        """
        self._store: Any = ray.remote(WeightStore).options(num_cpus=0, max_restarts=0).remote()
        self._actors: list[Any] = [
            ray.remote(EngineActor)
            .options(
                # A restarted engine fetches its weights; what was being sampled is asked for again
                # by whoever asked, since Ray cannot know on which engine it is best asked.
                max_restarts=-1,
                max_task_retries=0,
                max_concurrency=10_000,
                **actor_options[index],
            )
            .remote(name, arguments, sets or {}, self._store, adapter_config, torch_threads)
            for index in range(size)
        ]
        self.client = PoolEngine(self._actors, max_model_length=max_model_length)

    def readiness(self) -> list[Any]:
        """Return a reference for each engine that resolves when it can answer."""
        return [actor.ready.remote() for actor in self._actors]

    def publish(self, weights: Mapping[str, Tensor], version: int) -> None:
        """Make weights the newest on every engine; returns when all sample from them.

        Raises:
            EngineError: An engine refuses them, or does not come back.
        """
        boxed = [ray.put(dict(weights))]
        # First the store: an engine that starts from here on has them.
        ray.get(self._store.put.remote(boxed, version))
        self._boxed = boxed  # the object lives as long as its owner holds it
        for index, actor in enumerate(self._actors):
            for pause in _RETRY_SECONDS:
                try:
                    ray.get(actor.load.remote(boxed, version))
                    break
                except RayActorError as error:
                    logger.warning("rollout engine %d was lost; it starts again: %s", index, error)
                    time.sleep(pause)
            else:
                raise EngineError(f"rollout engine {index} does not come back")

    def close(self) -> None:
        """End the actors."""
        for actor in [*self._actors, self._store]:
            ray.kill(actor)
