"""Attention within each of the sequences that stand in one row without padding.

On a CPU, and wherever torch's kernel does not apply, one call of scaled-dot-product attention a
sequence; on a GPU in half precision one call for all of them (`torch.nn.attention.varlen`).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface

PACKED = "rllm_packed"
"""Name of this attention among those of transformers."""
_VARLEN_DTYPES = (torch.bfloat16, torch.float16)
_VARLEN_LARGEST_HEAD = 256
_VARLEN_ARGUMENTS = {"scale", "window_size", "enable_gqa"}


def packed_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    sequence_lengths: tuple[int, ...] | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """Attend within each sequence of a row: query, key and value are (1, heads, N, size).

    Without ``sequence_lengths`` it is transformers' own function.

    Returns:
        Shape (1, N, heads, size), and no weights.

    Raises:
        NotImplementedError: The layer caps its attention logits, which this function does not.
    """
    if sequence_lengths is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, **options)
    if options.get("softcap") is not None:
        raise NotImplementedError("capped attention logits")
    window = options.pop("sliding_window", None)
    varlen = torch_varlen()
    if varlen is not None and _fits_varlen(query, value, options):
        scale = options.get("scaling")
        return attend_at_once(varlen, query, key, value, sequence_lengths, scale, window), None
    parts = []
    for q, k, v in zip(
        *(t.split(sequence_lengths, dim=2) for t in (query, key, value)), strict=True
    ):
        mask = _window_mask(q, window) if window is not None and q.shape[2] > window else None
        output, _ = sdpa_attention_forward(module, q, k, v, mask, **options)
        parts.append(output)
    return torch.cat(parts, dim=1), None


def attend_at_once(
    varlen: Callable[..., Any],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    lengths: tuple[int, ...],
    scale: float | None,
    window: int | None,
) -> Tensor:
    """Attend within each sequence of a row in one call; causal.

    Args:
        varlen: `torch.nn.attention.varlen.varlen_attn`, or what does the same.
        query: Shape (1, heads, N, size).
        key: Shape (1, heads or fewer, N, size): groups of heads of the query share one.
        value: As the key.
        lengths: Of the sequences, N together.
        scale: Factor of the scores; None is one over the square root of size.
        window: Positions that each one sees, itself among them; None is all before.

    Returns:
        Shape (1, N, heads, size).
    """
    bounds = torch.tensor([0, *accumulate(lengths)], dtype=torch.int32, device=query.device)
    longest = max(lengths)
    rows = (tensor[0].transpose(0, 1).contiguous() for tensor in (query, key, value))
    left = -1 if window is None else window - 1
    output: Tensor = varlen(
        *rows, bounds, bounds, longest, longest,
        scale=scale, window_size=(left, 0), enable_gqa=True,
    )  # fmt: skip
    return output.unsqueeze(0)


@functools.cache
def torch_varlen() -> Callable[..., Any] | None:
    """Return torch's attention over sequences of many lengths; None where this torch has none."""
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return None
    is_known = set(inspect.signature(varlen_attn).parameters) >= _VARLEN_ARGUMENTS
    return varlen_attn if is_known else None


def _fits_varlen(query: Tensor, value: Tensor, options: dict[str, Any]) -> bool:
    """Whether torch's kernel takes it."""
    sizes = {query.shape[-1], value.shape[-1]}
    return (
        query.is_cuda
        and query.dtype in _VARLEN_DTYPES
        and len(sizes) == 1
        and max(sizes) <= _VARLEN_LARGEST_HEAD
        and not options.get("dropout")
    )


def _window_mask(query: Tensor, window: int) -> Tensor:
    """Return (1, 1, n, n): True where a position sees another, itself and the window - 1 before."""
    positions = torch.arange(query.shape[2], device=query.device)
    distance = positions[:, None] - positions[None, :]
    return ((distance >= 0) & (distance < window))[None, None]


def _no_mask(*_: Any, **__: Any) -> None:
    """Return no mask: a packed row has none, and nothing else is computed with this attention."""


AttentionInterface.register(PACKED, packed_attention)
AttentionMaskInterface.register(PACKED, _no_mask)
