"""Several engines of one kind as Ray actors, behind the one rollout engine protocol."""

from __future__ import annotations

import contextlib
import logging
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import ray
from ray.exceptions import RayActorError, RayTaskError

from rllm_agents.argument_checks import check_count
from rllm_agents.errors import AgentsError, EngineError, UserError
from rllm_agents.loop_thread import LoopThread
from rllm_agents.rollout_engines import ROLLOUT_ENGINES, find_engine
from rllm_agents.rollout_engines.base import RolloutEngine
from rllm_agents.rollout_engines.pool_client import PoolClient
from rllm_agents.rollout_engines.pool_replica import EngineReplica, ReplicaFacts
from rllm_agents.rollout_engines.pool_watch import PoolWatch
from rllm_agents.types import Completion, GenerationRequest

if TYPE_CHECKING:
    from torch import Tensor

_POOLED = tuple(
    name
    for name, entry in ROLLOUT_ENGINES.items()
    if entry.takes_model and not entry.is_remote and name != "pool"
)


class EnginePool:
    """A `RolloutEngine` over several engines of one kind, each an actor of Ray.

    A request goes to the engine that has its session's prefix, a new session to the one with least
    to do. An engine that dies or hangs is started again, gets the weights that were loaded so far,
    and only then requests; those that it had are sampled by others.
    """

    def __init__(  # noqa: PLR0913  (what one pool may be told)
        self,
        engine: str | Callable[..., RolloutEngine],
        *,
        num_engines: int = 2,
        model: Any = None,
        tokenizer: Any = None,
        stop_token_ids: Iterable[int] | None = None,
        engine_args: Mapping[str, Any] | None = None,
        max_model_length: int | None = None,
        num_cpus: float = 1.0,
        num_gpus: float | None = None,
        torch_threads: int | None = None,
        hang_timeout: float = 60.0,
        start_timeout: float = 600.0,
        wait: bool = True,
    ) -> None:
        """Start the engines. Starts Ray on this machine too, unless it runs or is connected to.

        Args:
            engine: "transformers", "vllm", or a class of your own that Ray can send.
            num_engines: How many.
            model: Of every engine, as `engine` takes it: a directory that each machine has.
            tokenizer: Of every engine.
            stop_token_ids: Of every engine.
            engine_args: More keyword arguments of the engine's class.
            max_model_length: Most tokens of a prompt and its completion; by default what the
                engines say.
            num_cpus: That Ray reserves for each engine.
            num_gpus: That Ray reserves for each, a fraction where several share one; by default 1
                (vLLM: `tensor_parallel_size`) where Ray has GPUs.
            torch_threads: Of one operation in an engine's process; None leaves it to torch.
            hang_timeout: Seconds without an answer to a ping after which an engine is taken to
                hang; more than its longest step.
            start_timeout: Seconds that an engine may take to start, and that a request waits while
                no engine is there.
            wait: Return when all engines answer; otherwise `readiness` tells.

        Raises:
            UserError: A value is out of range, an engine refuses its arguments, or Ray has not the
                resources.
            EngineError: An engine does not start.
        """
        check_count("num_engines", num_engines)
        for name, seconds in (("hang_timeout", hang_timeout), ("start_timeout", start_timeout)):
            if not seconds > 0:
                raise UserError(f"{name} must be above 0 seconds, got {seconds!r}")
        if isinstance(engine, str):
            if engine not in _POOLED:
                raise UserError(
                    f"engine of a pool must be {' or '.join(_POOLED)}, or a class, got {engine!r}"
                )
            find_engine(engine)
        given = {"model": model, "tokenizer": tokenizer, "stop_token_ids": stop_token_ids}
        arguments = {
            **(engine_args or {}),
            **{name: value for name, value in given.items() if value is not None},
        }
        starts_ray = not ray.is_initialized()
        if starts_ray:
            ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
        gpus = _gpus_each(arguments) if num_gpus is None else num_gpus
        self._asked = {"CPU": num_cpus * num_engines, "GPU": gpus * num_engines}
        self._start_timeout = start_timeout
        self._replicas: list[Any] = [
            ray.remote(EngineReplica)
            .options(
                num_cpus=num_cpus,
                num_gpus=gpus,
                # What was being sampled is asked for again by whoever asked, since Ray cannot know
                # on which engine it is best asked.
                max_restarts=-1,
                max_task_retries=0,
                max_concurrency=10_000,
            )
            .remote(engine, arguments, torch_threads)
            for _ in range(num_engines)
        ]
        self._watch = PoolWatch(
            self._replicas, hang_timeout=hang_timeout, start_timeout=start_timeout
        )
        self._loop = LoopThread("engine-pool")
        self._end = weakref.finalize(self, _close, self._loop, self._watch, starts_ray)
        self.client = PoolClient(
            self._replicas, max_model_length=max_model_length, start_timeout=start_timeout
        )
        """Samples from the pool; can be sent to other processes."""
        try:
            self._loop.run(self._watch.start())
            if wait:
                self._wait(self.readiness(), is_own_ray=starts_ray)
        except BaseException:
            self.close()
            raise

    @property
    def weights_version(self) -> int:
        """Version of the weights that were loaded last; 0 are those the engines were made with."""
        return self._watch.weights_version

    @property
    def max_model_length(self) -> int | None:
        """Most tokens of a prompt and its completion together; None: no bound here."""
        return self.client.max_model_length

    async def generate(self, request: GenerationRequest) -> Completion:
        """Sample one completion, on another engine where one is lost.

        Raises:
            EngineError: The request is refused, or three engines were lost over it; as
                TransientError, when no engine answers for `start_timeout`.
        """
        return await self.client.generate(request)

    async def load_weights(self, tensors: Mapping[str, Tensor], *, version: int) -> None:
        """Exchange weights in all engines; a subset is allowed.

        Engines that are lost meanwhile are not waited for: they load them before they serve.

        Args:
            tensors: As the engines' `load_weights` takes them.
            version: What `Completion.weights_version` says from then on.

        Raises:
            EngineError: The engines refuse them, and keep what they had.
        """
        await self._loop.call(self._watch.publish(tensors, None, version))

    async def load_adapter(
        self, tensors: Mapping[str, Tensor], config: Mapping[str, Any], *, version: int
    ) -> None:
        """Make a LoRA adapter the newest in all engines, which must be vLLM's.

        Args:
            tensors: As peft's `get_peft_model_state_dict` names them.
            config: What `adapter_config.json` holds.
            version: What `Completion.weights_version` says from then on.

        Raises:
            EngineError: The engines refuse it, and keep what they had.
        """
        await self._loop.call(self._watch.publish(tensors, dict(config), version))

    async def sleep(self) -> None:
        """Let all engines, which must be vLLM's, sleep until they are needed again.

        Raises:
            EngineError: One was not started for that, or could not.
        """
        await self._loop.call(self._watch.sleep())

    def readiness(self) -> list[Any]:
        """Return a reference for each engine that resolves when it can answer."""
        return [replica.ready.remote() for replica in self._replicas]

    def process_ids(self) -> list[int]:
        """Return the number of each engine's process, on its machine."""
        return ray.get([replica.pid.remote() for replica in self._replicas])

    def close(self) -> None:
        """End the engines, and Ray where the pool started it; again does nothing."""
        self._end()

    def _wait(self, readiness: list[Any], *, is_own_ray: bool) -> None:
        """Return when every engine can answer."""
        if is_own_ray:
            self._check_resources()  # nothing will be added to them
        done, late = ray.wait(readiness, num_returns=len(readiness), timeout=self._start_timeout)
        try:
            facts: list[ReplicaFacts] = ray.get(done)
        except RayTaskError as error:
            if isinstance(error.cause, AgentsError):
                raise error.cause from None
            raise EngineError(f"a rollout engine did not start: {error.cause}") from error
        except RayActorError as error:
            raise EngineError(f"a rollout engine's process ended at its start: {error}") from error
        if late:
            self._check_resources()
            raise EngineError(
                f"{len(late)} of {len(readiness)} rollout engines were not there after "
                f"start_timeout={self._start_timeout:g} s"
            )
        if self.client.max_model_length is None:
            self.client.max_model_length = facts[0].max_model_length

    def _check_resources(self) -> None:
        """Refuse what Ray does not have at all.

        Raises:
            UserError: With what is asked for and what is there.
        """
        cluster = ray.cluster_resources()
        for kind, number in self._asked.items():
            if number > cluster.get(kind, 0.0) + 1e-6:
                raise UserError(
                    f"{len(self._replicas)} engines need {number:g} {kind} together, Ray has "
                    f"{cluster.get(kind, 0.0):g}: ask for fewer engines, or for a fraction each "
                    f"(num_{kind.lower()}s)"
                )


def _gpus_each(arguments: Mapping[str, Any]) -> float:
    """Return how many GPUs an engine takes where Ray has some."""
    if not ray.cluster_resources().get("GPU"):
        return 0.0
    return float((arguments.get("vllm_args") or {}).get("tensor_parallel_size", 1))


def _close(loop: LoopThread, watch: PoolWatch, starts_ray: bool) -> None:
    if ray.is_initialized():
        with contextlib.suppress(Exception):
            loop.run(watch.stop())
    loop.close()
    if starts_ray:
        ray.shutdown()
