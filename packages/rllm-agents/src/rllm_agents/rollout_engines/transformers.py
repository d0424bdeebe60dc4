"""Sample from a transformers model in this process: the engine that needs no server.

`TransformersEngine` keeps up to `max_batch_size` sequences in a continuous batch over any causal
language model of the transformers library, on a CPU or a GPU. It is right for small models, for
tests and for machines without vLLM.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from rllm_agents.errors import EngineError, UserError
from rllm_agents.rollout_engines.decoding import completion_text
from rllm_agents.rollout_engines.model_loading import (
    check_full_attention,
    check_slot_forward,
    load_model,
    load_tokenizer,
    max_positions,
    num_embeddings,
    stop_ids_of,
)
from rllm_agents.rollout_engines.request_checks import check_token_request
from rllm_agents.rollout_engines.slot_batch import SlotBatch
from rllm_agents.rollout_engines.slot_driver import SlotDriver
from rllm_agents.rollout_engines.slot_records import SlotRequest
from rllm_agents.rollout_engines.weight_loading import copy_weights
from rllm_agents.types import Completion, GenerationRequest


class TransformersEngine:
    """A `RolloutEngine` over a transformers model in this process.

    Many calls of `generate` share one continuous batch. Episodes whose environments answer at once
    take part in the very next step, so their batches, and with equal seeds their tokens, are the
    same in every run. See `SlotDriver` for the concurrency and `SlotBatch` for the sampling.
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
        check_full_attention(self._model, self._max_model_length)
        self._stops = stop_ids_of(self._model, self._tokenizer, stop_token_ids)
        self._num_embeddings = num_embeddings(self._model)
        self._batch = SlotBatch(
            self._model,
            stop_token_ids=self._stops,
            vocabulary_size=check_slot_forward(self._model, self._max_model_length),
            max_batch_size=max_batch_size,
            max_model_length=self._max_model_length,
        )
        self._driver = SlotDriver(self._batch)

    @property
    def weights_version(self) -> int:
        """Version of the weights that sample now; 0 are those it was made with."""
        return self._batch.weights_version

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
        result = await self._driver.sample(self._slot_request(request))
        spans = result.version_spans
        if not result.is_finite:
            raise EngineError(
                "the model's logits were not finite numbers; its weights "
                f"(version {spans[-1].weights_version}) or dtype are broken"
            )
        return Completion(
            text=completion_text(self._tokenizer, result.token_ids, result.finish_reason),
            finish_reason=result.finish_reason,
            token_ids=tuple(result.token_ids),
            logprobs=tuple(result.logprobs),
            weights_version=spans[0].weights_version,
            version_spans=spans if len(spans) > 1 else (),
        )

    async def ping(self) -> None:
        """Return when the step that runs now has ended.

        Raises:
            EngineError: The engine is closed.
        """
        await self._driver.ping()

    async def load_weights(
        self, tensors: Mapping[str, Tensor], *, version: int, in_flight: bool = False
    ) -> None:
        """Copy new weights into the model, between two steps.

        Args:
            tensors: By the names of the model's `state_dict`; a subset is allowed. Tied weights
                may come under any of their names.
            version: What `Completion.weights_version` says from then on.
            in_flight: What is being sampled goes on with the new weights, its keys and values
                computed again, and says so in its `version_spans` (Piche et al. 2025,
                "PipelineRL"). By default it is sampled to its end first, and requests that come
                meanwhile wait and are sampled by the new weights.

        Raises:
            EngineError: A name or a shape is not the model's; nothing is changed then.
        """

        def change() -> None:
            copy_weights(self._model, tensors)
            self._batch.weights_version = version

        await self._driver.change(change, in_flight=in_flight)

    def close(self) -> None:
        """Fail what is waiting, end the thread and forget what is stored. May be called again."""
        self._driver.close()

    def _slot_request(self, request: GenerationRequest) -> SlotRequest:
        """Check a request and turn it into what the batch takes."""
        max_tokens = check_token_request(
            request,
            num_embeddings=self._num_embeddings,
            max_model_length=self._max_model_length,
        )
        seed = request.sampling.seed
        return SlotRequest(
            prompt_ids=np.array(request.prompt_ids, dtype=np.int64),
            sampling=request.sampling,
            max_tokens=max_tokens,
            session_id=request.session_id,
            random=np.random.default_rng(None if seed is None else seed % 2**128),
        )
