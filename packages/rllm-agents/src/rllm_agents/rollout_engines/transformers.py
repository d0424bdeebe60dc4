"""Sample from a transformers model in this process: the engine that needs no server.

`TransformersEngine` keeps up to `max_batch_size` sequences in a continuous batch over any causal
language model of the transformers library, on a CPU or a GPU. It is right for small models, for
tests and for machines without vLLM.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from rllm_agents.errors import EngineError, UserError
from rllm_agents.rollout_engines.model_loading import (
    check_slot_forward,
    load_model,
    load_tokenizer,
    max_positions,
    num_embeddings,
    stop_ids_of,
)
from rllm_agents.rollout_engines.slot_batch import SlotBatch, SlotRequest, SlotResult
from rllm_agents.rollout_engines.weight_loading import copy_weights
from rllm_agents.types import Completion, GenerationRequest

_QUIET_ROUNDS = 8
"""Rounds of the event loop without a new request after which the next step is launched."""

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    """A request and whom to tell."""

    request: SlotRequest
    future: asyncio.Future[Completion]


@dataclass(frozen=True, slots=True, eq=False)
class _WeightUpdate:
    """New weights and whom to tell."""

    tensors: Mapping[str, Tensor]
    version: int
    future: asyncio.Future[None]


class TransformersEngine:
    """A `RolloutEngine` over a transformers model in this process.

    One task in the running event loop drives the batch while there is work; each step runs in a
    thread of its own. Between steps the loop is given time until no new request appears, so that
    episodes whose environments answer at once take part in the very next step: their batches, and
    with equal seeds their tokens, are the same in every run.
    """

    def __init__(
        self,
        model: str | PreTrainedModel,
        *,
        tokenizer: PreTrainedTokenizerBase | None = None,
        stop_token_ids: Iterable[int] | None = None,
        max_batch_size: int = 256,
        max_model_length: int | None = None,
        device: str | torch.device | None = None,
        dtype: str | torch.dtype | None = None,
    ) -> None:
        """Load or take over a model.

        Args:
            model: A directory that `from_pretrained` reads, "tiny", or a model. A model belongs to
                the engine from here on: `load_weights` overwrites its parameters.
            tokenizer: Decodes completions to text; by default the one beside a path's weights.
                Without any, `Completion.text` is empty.
            stop_token_ids: Ids that end a completion; by default the model's and the tokenizer's.
            max_batch_size: Most sequences sampled at once.
            max_model_length: Most tokens of a prompt and its completion; by default the model's
                positions.
            device: Where to load a path to: by default a GPU if there is one, else the CPU.
            dtype: Of the weights of a path, such as "float32"; by default as they are stored.

        Raises:
            UserError: A value is out of range, or the path holds no model.
            EngineError: The model's attention cannot be batched by rows.
        """
        if max_batch_size < 1:
            raise UserError(f"max_batch_size must be at least 1, got {max_batch_size}")
        self._model = load_model(model, device=device, dtype=dtype)
        self._tokenizer = tokenizer or load_tokenizer(model)
        self._max_model_length = max_positions(self._model, max_model_length)
        self._stops = stop_ids_of(self._model, self._tokenizer, stop_token_ids)
        self._num_embeddings = num_embeddings(self._model)
        self._batch = SlotBatch(
            self._model,
            stop_token_ids=self._stops,
            vocabulary_size=check_slot_forward(self._model, self._max_model_length),
            max_batch_size=max_batch_size,
            max_model_length=self._max_model_length,
        )
        self._weights_version = 0
        self._queued: list[_Waiting] = []
        self._active: dict[SlotRequest, _Waiting] = {}
        self._updates: list[_WeightUpdate] = []
        self._has_answered = True
        self._driver: asyncio.Task[None] | None = None
        self._thread = concurrent.futures.ThreadPoolExecutor(1, "rllm-transformers-engine")
        self._closed = False

    @property
    def weights_version(self) -> int:
        """Version of the weights that sample now; 0 are those it was made with."""
        return self._weights_version

    @property
    def stop_token_ids(self) -> frozenset[int]:
        """Ids that end a completion."""
        return self._stops

    @property
    def max_model_length(self) -> int:
        """Most tokens of a prompt and its completion together."""
        return self._max_model_length

    async def generate(self, request: GenerationRequest) -> Completion:
        """Sample one completion; cancelling the caller frees its place.

        Raises:
            EngineError: The prompt is empty, has unknown ids, or does not fit with `max_tokens`;
                the engine is closed; or a step failed.
        """
        slot_request = self._slot_request(request)
        self._start_driver()
        future: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        self._queued.append(_Waiting(slot_request, future))
        return await future

    async def load_weights(self, tensors: Mapping[str, Tensor], *, version: int) -> None:
        """Copy new weights into the model, once what is being sampled is finished.

        Requests that come meanwhile wait and are sampled by the new weights.

        Args:
            tensors: By the names of the model's `state_dict`; a subset is allowed. Tied weights
                may come under any of their names.
            version: What `Completion.weights_version` says from then on.

        Raises:
            EngineError: A name or a shape is not the model's; nothing is changed then.
        """
        self._refuse_if_closed()
        self._start_driver()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._updates.append(_WeightUpdate(tensors, version, future))
        await future

    def close(self) -> None:
        """Stop, fail what is waiting, forget what is stored. May be called again."""
        if self._closed:
            return
        self._closed = True
        driver = self._driver
        if driver is not None and not driver.done() and not driver.get_loop().is_closed():
            driver.cancel()
        self._thread.shutdown(wait=True)
        self._drop_all(EngineError("the transformers engine was closed"))

    # Requests

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise EngineError("the transformers engine is closed; make a new one")

    def _slot_request(self, request: GenerationRequest) -> SlotRequest:
        """Check a request and turn it into what the batch takes."""
        self._refuse_if_closed()
        if not request.prompt_ids:
            raise EngineError(
                "the transformers engine needs prompt_ids with at least one id; "
                "give the execution engine the model's tokenizer"
            )
        prompt_ids = np.array(request.prompt_ids, dtype=np.int64)
        if prompt_ids.min() < 0 or prompt_ids.max() >= self._num_embeddings:
            raise EngineError(
                f"prompt_ids must be in [0, {self._num_embeddings}), the model's vocabulary, got "
                f"{prompt_ids.min()} to {prompt_ids.max()}; is the tokenizer that of the model?"
            )
        room = self._max_model_length - len(prompt_ids)
        max_tokens = request.sampling.max_tokens
        if room < (max_tokens or 1):
            raise EngineError(
                f"a prompt of {len(prompt_ids)} tokens and max_tokens={max_tokens or 1} exceed "
                f"the model's {self._max_model_length} positions; shorten the prompt, lower "
                "max_tokens, or leave it None to use what is left"
            )
        seed = request.sampling.seed
        return SlotRequest(
            prompt_ids=prompt_ids,
            sampling=request.sampling,
            max_tokens=max_tokens or room,
            session_id=request.session_id,
            random=np.random.default_rng(None if seed is None else seed % 2**128),
        )

    # The driver

    def _start_driver(self) -> None:
        """Make sure that a driver runs in this event loop."""
        loop = asyncio.get_running_loop()
        driver = self._driver
        if driver is not None and not driver.done():
            if driver.get_loop() is loop:
                return
            if not driver.get_loop().is_closed():
                raise EngineError(
                    "the transformers engine is at work in another event loop; "
                    "use one engine per loop"
                )
            self._drop_all(EngineError("the event loop was closed"))
        self._has_answered = True
        self._driver = loop.create_task(self._drive())

    async def _drive(self) -> None:
        """Step the batch until nothing is left to do."""
        try:
            while self._queued or self._active or self._updates:
                await self._settle()
                if self._updates and not self._active:
                    await self._update_weights(self._updates.pop(0))
                else:
                    await self._step()
        except BaseException as error:
            # Whatever it is, nobody may be left waiting.
            self._drop_all(error)
            if not isinstance(error, Exception):
                raise

    async def _settle(self) -> None:
        """Let resumed callers run until they have asked for what they need next.

        Where nobody was resumed there is nothing to wait for, and one round lets others run.
        """
        quiet = 0
        while quiet < (_QUIET_ROUNDS if self._has_answered else 1):
            before = len(self._queued)
            await asyncio.sleep(0)
            quiet = quiet + 1 if len(self._queued) == before else 0

    async def _step(self) -> None:
        """Admit what fits, run one step in the thread, answer whoever is finished."""
        cancelled = [w for w in self._active.values() if w.future.cancelled()]
        for waiting in cancelled:
            del self._active[waiting.request]
        admitted = self._admit(len(cancelled))
        if not self._active and not cancelled:
            return
        try:
            results = await self._in_thread(
                lambda: self._batch.step(
                    [w.request for w in admitted], [w.request for w in cancelled]
                )
            )
        except Exception as error:
            self._fail_active(error)
            return
        self._has_answered = bool(results)
        for result in results:
            self._answer(self._active.pop(result.request), result)

    def _admit(self, num_cancelled: int) -> list[_Waiting]:
        """Move queued requests that fit to the active ones; none while new weights wait."""
        queued = [w for w in self._queued if not w.future.done()]
        room = 0 if self._updates else self._batch.num_free + num_cancelled
        admitted, self._queued = queued[:room], queued[room:]
        self._active.update((w.request, w) for w in admitted)
        return admitted

    def _answer(self, waiting: _Waiting, result: SlotResult) -> None:
        """Give a result to whoever waits for it."""
        if waiting.future.done():
            return
        if not result.is_finite:
            waiting.future.set_exception(
                EngineError(
                    "the model's logits were not finite numbers; its weights "
                    f"(version {self._weights_version}) or dtype are broken"
                )
            )
            return
        waiting.future.set_result(
            Completion(
                text=self._text(result),
                finish_reason=result.finish_reason,
                token_ids=tuple(result.token_ids),
                logprobs=tuple(result.logprobs),
                weights_version=self._weights_version,
            )
        )

    def _text(self, result: SlotResult) -> str:
        """Decode a completion without its stop token and other control tokens."""
        if self._tokenizer is None:
            return ""
        ids = result.token_ids[:-1] if result.finish_reason == "stop" else result.token_ids
        return str(
            self._tokenizer.decode(
                ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
            )
        )

    async def _update_weights(self, update: _WeightUpdate) -> None:
        """Copy new weights in the thread and forget all keys and values of the old ones."""
        if update.future.done():
            return

        def copy() -> None:
            copy_weights(self._model, update.tensors)
            self._batch.reset()

        try:
            await self._in_thread(copy)
        except Exception as error:
            if not update.future.done():
                update.future.set_exception(error)
            return
        self._weights_version = update.version
        if not update.future.done():
            update.future.set_result(None)

    async def _in_thread(self, work: Callable[[], _Result]) -> _Result:
        """Run `work` in the engine's thread; not even a cancellation leaves it running."""
        job = self._thread.submit(work)
        try:
            return await asyncio.wrap_future(job)
        except asyncio.CancelledError:
            concurrent.futures.wait([job])
            raise

    def _fail_active(self, error: Exception) -> None:
        """Fail what was in the batch of a failed step; what is queued goes on."""
        self._has_answered = True
        failed = list(self._active.values())
        self._active.clear()
        self._batch.reset()
        for waiting in failed:
            if not waiting.future.done():
                failure = EngineError(
                    f"a sampling step of {len(failed)} requests failed: "
                    f"{type(error).__name__}: {error}"
                )
                failure.__cause__ = error
                waiting.future.set_exception(failure)

    def _drop_all(self, reason: BaseException) -> None:
        """Leave no request, no update and no row behind."""
        futures: list[asyncio.Future[Any]] = [
            *(w.future for w in self._queued),
            *(w.future for w in self._active.values()),
            *(u.future for u in self._updates),
        ]
        self._queued.clear()
        self._active.clear()
        self._updates.clear()
        self._batch.reset()
        for future in futures:
            if future.done() or future.get_loop().is_closed():
                continue
            if isinstance(reason, asyncio.CancelledError):
                future.cancel()
            else:
                future.set_exception(reason)
