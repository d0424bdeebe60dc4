"""The arguments that vLLM's engine is started with."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from rllm_agents.errors import UserError

DTYPES = ("float32", "bfloat16", "float16")
_GIB = 2**30
_MOST_DEFAULT_CACHE = 4 * _GIB
_CPU_BLOCK = 32
"""Positions of one block of keys and values: prefixes are shared in whole blocks."""
_GPU_SHARE = 0.5
"""A learner on the same GPU needs the other half."""


def engine_arguments(
    outline: PreTrainedModel,
    path: Path,
    *,
    device: str | None,
    dtype: str | None,
    max_batch_size: int,
    max_model_length: int,
    kv_cache_gib: float | None,
    extra: Mapping[str, Any],
) -> dict[str, Any]:
    """Return arguments of vLLM's `AsyncEngineArgs`; vLLM must have been imported.

    Args:
        outline: The model, values not needed.
        path: Its directory.
        device: Where the caller expects vLLM to sample, or None.
        dtype: A name of `DTYPES`, or None for the stored one.
        max_batch_size: Most sequences at once.
        max_model_length: Most tokens of a sequence.
        kv_cache_gib: Memory for keys and values, or None.
        extra: The user's own.

    Raises:
        UserError: A value is out of range, or an argument of `extra` is unknown or set here.
    """
    from vllm.platforms import current_platform

    if max_batch_size < 1:
        raise UserError(f"max_batch_size must be at least 1, got {max_batch_size}")
    if kv_cache_gib is not None and not kv_cache_gib > 0:
        raise UserError(f"kv_cache_gib must be above 0, got {kv_cache_gib!r}")
    if device is not None and device.partition(":")[0] != current_platform.device_type:
        raise UserError(
            f"device={device!r}, but the vLLM that is installed samples on "
            f"{current_platform.device_type}; leave the device unset, or install "
            "rllm-agents[cpu] or rllm-agents[gpu] as it should be"
        )
    # vLLM's own "auto" would turn float32 into a half precision.
    stored = str(getattr(outline.config, "dtype", None) or "float32").removeprefix("torch.")
    dtype = dtype or stored
    if dtype not in DTYPES:
        raise UserError(f"dtype must be one of {', '.join(DTYPES)}, got {dtype!r}")
    arguments: dict[str, Any] = {
        "model": str(path),
        "dtype": dtype,
        "max_model_len": max_model_length,
        "max_num_seqs": max_batch_size,
        # The behaviour policy's logprobs: after temperature, top-k and top-p.
        "logprobs_mode": "processed_logprobs",
        "skip_tokenizer_init": True,
        # Or the model's suggested temperature and top-p would silently apply.
        "generation_config": "vllm",
        "worker_extension_cls": "rllm_agents.rollout_engines.vllm_worker.WorkerExtension",
        "enable_prefix_caching": True,
        "disable_log_stats": True,
        "use_tqdm_on_load": False,
    }
    if current_platform.is_cpu():
        _check_cpu_attention(outline)
        cache = _cpu_cache_bytes(outline, dtype, max_batch_size, max_model_length)
        arguments |= {
            "enforce_eager": True,
            "block_size": _CPU_BLOCK,
            "kv_cache_memory_bytes": cache,
            # A seeded request whose prompt is cut in chunks ends vLLM's process on a CPU.
            "enable_chunked_prefill": False,
            "max_num_batched_tokens": max(max_model_length, 4096),
        }
    else:
        arguments["gpu_memory_utilization"] = _GPU_SHARE
    if kv_cache_gib is not None:
        arguments["kv_cache_memory_bytes"] = int(kv_cache_gib * _GIB)
    return arguments | _checked_extra(extra, arguments)


def _checked_extra(extra: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """Refuse arguments that vLLM does not know, or that would undo what this engine relies on."""
    from vllm.engine.arg_utils import AsyncEngineArgs

    known = [field.name for field in dataclasses.fields(AsyncEngineArgs)]
    of_lora = {"enable_lora", "max_lora_rank", "max_loras", "max_cpu_loras"}
    reserved = {*ours, *of_lora, "enable_sleep_mode"}
    for name in extra:
        if name not in known:
            nearest = ", ".join(difflib.get_close_matches(name, known, n=3)) or "none"
            raise UserError(f"vllm_args has no {name!r}; nearest: {nearest}")
        if name in reserved - {"gpu_memory_utilization", "enforce_eager"}:
            raise UserError(f"vllm_args may not set {name!r}: the engine sets it")
    return dict(extra)


def _cpu_cache_bytes(
    outline: PreTrainedModel, dtype: str, max_batch_size: int, max_model_length: int
) -> int:
    """Return memory for a full batch of full length, at most 4 GiB but one sequence at least."""
    config = outline.config.get_text_config()
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    item = 4 if dtype == "float32" else 2
    per_position = 2 * config.num_hidden_layers * heads * _head_size(outline) * item
    # Two blocks more than needed: vLLM keeps one for itself.
    per_sequence = (max_model_length + 2 * _CPU_BLOCK) * per_position
    return max(per_sequence, min(max_batch_size * per_sequence, _MOST_DEFAULT_CACHE))


def _check_cpu_attention(outline: PreTrainedModel) -> None:
    """Refuse a model that vLLM loads on a CPU, but whose first request ends its process."""
    from vllm.v1.attention.backends.cpu_attn import CPUAttentionBackend

    sizes = CPUAttentionBackend.get_supported_head_sizes()
    if _head_size(outline) not in sizes:
        raise UserError(
            f"vLLM has no attention on a CPU for heads of {_head_size(outline)} dimensions, only "
            f"for {', '.join(map(str, sizes))}; use engine=transformers for this model"
        )


def _head_size(outline: PreTrainedModel) -> int:
    config = outline.config.get_text_config()
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
