"""Keeps the engines of a pool alive and up to date: what the owner of a pool does beside it.

An engine's process that ends is noticed by a call that never returns; one that hangs, by a ping
that is not answered within `hang_timeout`. Ray starts a process again that was lost or ended here;
it gets all weights that were loaded so far before it answers a request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import ray
from ray.exceptions import RayActorError, RayError, RayTaskError

from rllm_agents.errors import EngineError, in_words
from rllm_agents.rollout_engines.pool_replica import WeightsPush

if TYPE_CHECKING:
    from torch import Tensor

logger = logging.getLogger(__name__)

_PINGS_PER_TIMEOUT = 10
_LONGEST_BETWEEN_PINGS = 5.0
_SECOND_LOOK = 1.0
_END_SECONDS = 2.0
_SECONDS_BETWEEN_LOOKS = 0.5
_SECONDS_TO_TELL = 1.0
"""Until a process that failed to start is ended: others who asked it get to know why."""
_CLOSE_SECONDS = 10.0
_LONGEST_PAUSE = 60.0
"""Between two starts of an engine that does not start."""


class PoolWatch:
    """Watches replicas and loads weights into them. All methods run on one event loop.

    Args:
        replicas: Handles of `EngineReplica` actors that Ray starts again when they end.
        hang_timeout: Seconds in which an engine that is there must answer a ping.
        start_timeout: Seconds in which a process must be there, with its engine and weights.
    """

    def __init__(
        self, replicas: Sequence[Any], *, hang_timeout: float, start_timeout: float
    ) -> None:
        self._replicas = list(replicas)
        self._hang_timeout = hang_timeout
        self._start_timeout = start_timeout
        self._between_pings = min(hang_timeout / _PINGS_PER_TIMEOUT, _LONGEST_BETWEEN_PINGS)
        self._pushes: list[WeightsPush] = []
        self._num_pushes = 0
        self._publishing = asyncio.Lock()
        self._made: set[int] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self.weights_version = 0
        """Of the weights that were loaded last."""

    async def start(self) -> None:
        """Watch every replica until `stop`."""
        self._tasks = [
            asyncio.create_task(self._watch(number)) for number in range(len(self._replicas))
        ]

    async def publish(
        self,
        tensors: Mapping[str, Tensor],
        adapter_config: Mapping[str, Any] | None,
        version: int,
    ) -> None:
        """Make weights the newest; returns when no engine samples from older ones any more.

        An engine that is lost meanwhile gets them before it serves again, and is not waited for.

        Raises:
            EngineError: The engines refuse them; they keep what they had.
        """
        async with self._publishing:
            before = self._pushes, self.weights_version
            self._num_pushes += 1
            push = WeightsPush(
                number=self._num_pushes,
                version=version,
                # In a thread: pings go on while it is copied.
                tensors=(await asyncio.to_thread(_stored, tensors),),
                names=frozenset(tensors),
                adapter_config=adapter_config,
            )
            # From here on whoever starts gets them; who is there is told.
            self._pushes = [*(p for p in self._pushes if not _replaces(push, p)), push]
            self.weights_version = version
            told = sorted(self._made)
            answers = await asyncio.gather(
                *(_answer(self._replicas[number].catch_up.remote(self._pushes)) for number in told)
            )
            refused = [answer for answer in answers if isinstance(answer, RayTaskError)]
            if refused:
                self._pushes, self.weights_version = before
                for number, answer in zip(told, answers, strict=True):
                    if answer is None:  # it has what the others refuse
                        await self._restart(number)
                raise EngineError(f"the pool's engines refuse the weights: {_words_of(refused[0])}")

    async def sleep(self) -> None:
        """Let every engine that is there sleep until its next request; a lost one need not.

        Raises:
            EngineError: One cannot.
        """
        calls = [_answer(self._replicas[number].sleep.remote()) for number in sorted(self._made)]
        refused = [a for a in await asyncio.gather(*calls) if isinstance(a, RayTaskError)]
        if refused:
            raise EngineError(f"a rollout engine does not sleep: {_words_of(refused[0])}")

    async def stop(self) -> None:
        """Watch no more and end the replicas, in ten seconds at most."""
        made = sorted(self._made)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        closing = [
            asyncio.ensure_future(_answer(self._replicas[number].close.remote())) for number in made
        ]
        if closing:
            await asyncio.wait(closing, timeout=_CLOSE_SECONDS)
        for replica in self._replicas:
            ray.kill(replica)

    async def _watch(self, number: int) -> None:
        """Start and keep one replica, again and again, as long as there is Ray."""
        pause = 1.0
        # Without Ray, a call of a replica would start another one.
        while ray.is_initialized():
            try:
                if await self._begin(number):
                    pause = 1.0
                    await self._keep(number)
                    continue
            except Exception as error:
                logger.warning("rollout engine %d cannot be watched: %s", number, in_words(error))
            finally:
                self._made.discard(number)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _begin(self, number: int) -> bool:
        """Wait until a replica serves; whether it does."""
        replica = self._replicas[number]
        try:
            await self._process(number)
            async with asyncio.timeout(self._start_timeout):
                await replica.make.remote()
                # Nothing comes between these two lines: either `publish` tells it of newer
                # weights, or it finds them here.
                self._made.add(number)
                await replica.catch_up.remote(self._pushes)
                return True
        except RayActorError as error:
            logger.warning("rollout engine %d ended at its start: %s", number, _words_of(error))
            return False
        except TimeoutError:
            reason = f"it took longer than start_timeout={self._start_timeout:g} s"
        except RayTaskError as error:
            reason = _words_of(error)
        logger.warning("rollout engine %d did not start: %s", number, reason)
        await asyncio.sleep(_SECONDS_TO_TELL)
        await self._restart(number)
        return False

    async def _process(self, number: int) -> None:
        """Return when a replica's process is there; that may take until Ray has room for it."""
        while ray.is_initialized():
            try:
                await self._replicas[number].pid.remote()
                return
            except RayActorError:  # as long as it is being started again
                await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
        raise EngineError("Ray was shut down")

    async def _keep(self, number: int) -> None:
        """Ping a replica; return when its process is lost, or was ended because it hangs."""
        replica = self._replicas[number]
        ending = asyncio.ensure_future(_answer(replica.outlive.remote()))
        try:
            while ray.is_initialized():
                ping = asyncio.ensure_future(_answer(replica.ping.remote()))
                if not await self._is_answered(ping, ending):
                    ping.cancel()
                    logger.warning(
                        "rollout engine %d hangs: no answer to a ping for hang_timeout=%g s; it is "
                        "started again",
                        number,
                        self._hang_timeout,
                    )
                    await self._restart(number)
                    return
                if ping.done() and isinstance(error := ping.result(), RayTaskError):
                    logger.warning(
                        "rollout engine %d is started again: %s", number, _words_of(error)
                    )
                    await self._restart(number)
                    return
                await asyncio.wait({ending}, timeout=self._between_pings)
                if ending.done():
                    logger.warning("rollout engine %d was lost; Ray starts it again", number)
                    return
        finally:
            ending.cancel()

    async def _is_answered(self, ping: asyncio.Future[Any], ending: asyncio.Future[Any]) -> bool:
        """Whether a ping is answered in time, or its replica is lost."""
        # A second look: where this process itself was stopped for long, its clock is over at once.
        for seconds in (self._hang_timeout, _SECOND_LOOK):
            await asyncio.wait({ping, ending}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if ping.done() or ending.done():
                return True
        return False

    async def _restart(self, number: int) -> None:
        """End a replica's process and those of its engine; Ray starts it again."""
        self._made.discard(number)
        replica = self._replicas[number]
        # Its own way first: only it knows the processes that vLLM has started.
        ended = asyncio.ensure_future(_answer(replica.end.remote()))
        await asyncio.wait({ended}, timeout=_END_SECONDS)
        if not ended.done():
            ended.cancel()
            ray.kill(replica, no_restart=False)


def _stored(tensors: Mapping[str, Tensor]) -> Any:
    """Put tensors where Ray's processes find them; returns the reference."""
    return ray.put({name: tensor.detach().cpu() for name, tensor in tensors.items()})


def _replaces(new: WeightsPush, old: WeightsPush) -> bool:
    """Whether nothing of an older push is left once a newer one is loaded."""
    return new.adapter_config is not None or old.names <= new.names


async def _answer(call: Any) -> RayError | None:
    """Return what a call raised, None where it returned."""
    try:
        await call
    except (RayActorError, RayTaskError) as error:
        return error
    return None


def _words_of(error: RayError) -> str:
    """Return what went wrong in a replica, in one line."""
    cause = error.cause if isinstance(error, RayTaskError) else error
    return (str(cause).strip() or type(cause).__name__).splitlines()[0]
