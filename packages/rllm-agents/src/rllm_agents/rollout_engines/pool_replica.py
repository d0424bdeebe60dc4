"""One rollout engine of a pool, in a process of its own: what Ray runs there."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rllm_agents.errors import EngineError
from rllm_agents.rollout_engines import build_rollout_engine
from rllm_agents.rollout_engines.base import RolloutEngine
from rllm_agents.types import Completion, GenerationRequest

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WeightsPush:
    """Weights that every engine of a pool must have. Made by PoolWatch, loaded by replicas."""

    number: int
    """Of the push, from 1; later ones have higher numbers."""
    version: int
    """Of the weights."""
    tensors: tuple[Any]
    """A reference, in a tuple so that Ray passes it as it is, to tensors by name."""
    names: frozenset[str]
    """Of the tensors."""
    adapter_config: Mapping[str, Any] | None
    """Of a LoRA adapter; None for whole weights."""


@dataclass(frozen=True, slots=True)
class ReplicaFacts:
    """What an engine that can answer says of itself. Made by EngineReplica."""

    weights_version: int
    max_model_length: int | None


class EngineReplica:
    """Makes one rollout engine, loads what it lacks, and then serves.

    No request is sampled before `catch_up` was called: a process that was started again has the
    weights of its checkpoint only.
    """

    def __init__(
        self,
        engine: str | Callable[..., RolloutEngine],
        arguments: Mapping[str, Any],
        torch_threads: int | None,
    ) -> None:
        """Take what `make` makes.

        Args:
            engine: A name that `build_rollout_engine` knows, or a class.
            arguments: Keyword arguments of its class.
            torch_threads: Of one operation; None leaves it to torch.
        """
        self._engine_name, self._arguments = engine, dict(arguments)
        self._torch_threads = torch_threads
        self._making: asyncio.Task[Any] | None = None
        self._loading = asyncio.Lock()
        self._is_serving = asyncio.Event()
        self._num_loaded = 0

    async def make(self) -> None:
        """Return when the engine is there; what hinders it is raised for everyone who asks."""
        await self._made()

    async def catch_up(self, pushes: Sequence[WeightsPush]) -> int:
        """Load those weights that it has not loaded, in their order, and serve from then on.

        Returns:
            The version of its weights.

        Raises:
            EngineError: The engine refuses some of them.
        """
        engine = await self._made()
        async with self._loading:
            for push in pushes:
                if push.number > self._num_loaded:
                    tensors = await push.tensors[0]
                    if push.adapter_config is None:
                        await engine.load_weights(tensors, version=push.version)
                    else:
                        await engine.load_adapter(
                            tensors, push.adapter_config, version=push.version
                        )
                    self._num_loaded = push.number
            self._is_serving.set()
        return engine.weights_version

    async def ready(self) -> ReplicaFacts:
        """Return when requests are answered."""
        engine = await self._made()
        await self._is_serving.wait()
        return ReplicaFacts(engine.weights_version, getattr(engine, "max_model_length", None))

    async def generate(self, request: GenerationRequest) -> Completion:
        """Sample one completion.

        Raises:
            EngineError: The engine cannot answer this request.
        """
        await self._is_serving.wait()
        engine = await self._made()
        try:
            return await engine.generate(request)
        except EngineError:
            self._end_if_dead(engine)
            raise

    async def ping(self) -> None:
        """Return when the engine has got to its next step: one that hangs never does."""
        engine = await self._made()
        try:
            if hasattr(engine, "ping"):
                await engine.ping()
        except EngineError:
            self._end_if_dead(engine)
            raise

    async def sleep(self) -> None:
        """Let the engine sleep until it is needed again.

        Raises:
            EngineError: It cannot.
        """
        engine = await self._made()
        await engine.sleep()

    async def outlive(self) -> None:
        """Never return: the call fails when this process ends."""
        await asyncio.Event().wait()

    async def pid(self) -> int:
        """Return the number of this process."""
        return os.getpid()

    async def close(self) -> None:
        """Close the engine."""
        if self._making is not None:
            await asyncio.to_thread((await self._made()).close)

    async def end(self) -> None:
        """End this process and those that it started, however they are."""
        for child in _descendants(os.getpid()):
            _kill(child)
        os._exit(1)

    async def _made(self) -> Any:
        if self._making is None:
            self._making = asyncio.create_task(asyncio.to_thread(self._make))
        # One who waits may be cancelled; the engine is made nevertheless.
        return await asyncio.shield(self._making)

    def _make(self) -> Any:
        if self._torch_threads is not None:
            import torch  # takes seconds, and not every engine needs it

            torch.set_num_threads(self._torch_threads)
        if isinstance(self._engine_name, str):
            return build_rollout_engine(self._engine_name, self._arguments)
        return self._engine_name(**self._arguments)

    def _end_if_dead(self, engine: Any) -> None:
        """End this process where the engine's own is gone for good; Ray starts it again."""
        if not getattr(engine, "is_alive", True):
            logger.exception("the engine's process died; its actor ends and is started again")
            os._exit(1)


def _descendants(process: int) -> list[int]:
    """Return the processes that one has started, and theirs; Linux."""
    found = []
    try:
        tasks = os.listdir(f"/proc/{process}/task")
    except OSError:
        return []
    for task in tasks:
        try:
            with open(f"/proc/{process}/task/{task}/children") as file:
                children = [int(child) for child in file.read().split()]
        except OSError:
            continue
        for child in children:
            found += [*_descendants(child), child]
    return found


def _kill(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
