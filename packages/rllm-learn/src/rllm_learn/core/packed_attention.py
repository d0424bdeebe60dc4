"""Attention within each of the sequences that stand in one row without padding.

On a CPU, and wherever torch's kernel does not apply, one call of scaled-dot-product attention for
sequences that follow each other with equal lengths, those of their prompts included; on a GPU in
half precision one call for all of them (`torch.nn.attention.varlen`). A prompt that stands once for
several sequences is attended to by each of them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from itertools import accumulate, groupby
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface

from rllm_learn.core.packing import PackedRow

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
    packed_row: PackedRow | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """Attend within each sequence of a row: query, key and value are (1, heads, N, size).

    Without ``packed_row`` it is transformers' own function.

    Returns:
        Shape (1, N, heads, size), and no weights.

    Raises:
        NotImplementedError: The layer caps its attention logits, which this function does not.
    """
    if packed_row is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, **options)
    if options.get("softcap") is not None:
        raise NotImplementedError("capped attention logits")
    window = options.pop("sliding_window", None)
    varlen = torch_varlen()
    if varlen is not None and _fits_varlen(query, value, options):
        scale = options.get("scaling")
        return attend_at_once(varlen, query, key, value, packed_row, scale, window), None
    runs = [
        (shared, own, len(list(run)))
        for (shared, own), run in groupby(zip(packed_row.shared, packed_row.own, strict=True))
    ]
    sizes = [own * count for _, own, count in runs]
    parts, prompt = [], (query, key, value)
    for (shared, own, count), *given in zip(
        runs, *(tensor.split(sizes, dim=2) for tensor in (query, key, value)), strict=True
    ):
        # (count, heads, own, size), of sequences of one length.
        q, k, v = (t[0].unflatten(1, (count, own)).transpose(0, 1) for t in given)
        if not shared:
            prompt = (q[-1:], k[-1:], v[-1:])
        output = _attend(module, (q, k, v), prompt, shared, window, options)
        parts.append(output.flatten(0, 1))
    return torch.cat(parts).unsqueeze(0), None


def _attend(
    module: nn.Module,
    own: Sequence[Tensor],
    prompt: Sequence[Tensor],
    shared: int,
    window: int | None,
    options: dict[str, Any],
) -> Tensor:
    """Return (B, n, heads, size) for the own positions of sequences of one length.

    Args:
        module: The layer.
        own: Query, key and value of these positions, (B, heads, n, size).
        prompt: Those of one sequence that begins with the `shared` positions before them.
        shared: How many stand before them; 0 for none.
        window: Positions that each one sees; None for all before.
        options: Of transformers' function.
    """
    q, k, v = own
    if window is not None and window >= shared + q.shape[2]:
        window = None
    if not shared:
        mask = None if window is None else _seen(q, 0, window)
        return sdpa_attention_forward(module, q, k, v, mask, **options)[0]
    before = [tensor[:, :, :shared].expand(len(q), -1, -1, -1) for tensor in prompt]
    k, v = (torch.cat(pair, dim=2) for pair in zip(before[1:], (k, v), strict=True))
    if q.shape[2] <= shared or window is not None:
        return sdpa_attention_forward(module, q, k, v, _seen(q, shared, window), **options)[0]
    # More than the prompt: with its queries again, and without a mask, less is computed.
    q = torch.cat((before[0], q), dim=2)
    return sdpa_attention_forward(module, q, k, v, None, **options)[0][:, shared:]


def attend_at_once(
    varlen: Callable[..., Any],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    packed_row: PackedRow,
    scale: float | None,
    window: int | None,
) -> Tensor:
    """Attend within each sequence of a row in one call; causal.

    Args:
        varlen: `torch.nn.attention.varlen.varlen_attn`, or what does the same.
        query: Shape (1, heads, N, size).
        key: Shape (1, heads or fewer, N, size): groups of heads of the query share one.
        value: As the key.
        packed_row: Where the sequences stand.
        scale: Factor of the scores; None is one over the square root of size.
        window: Positions that each one sees, itself among them; None is all before.

    Returns:
        Shape (1, N, heads, size).
    """
    bounds, longest, whole, kept = _whole_sequences(packed_row, query.device)
    rows = [tensor[0].transpose(0, 1).contiguous() for tensor in (query, key, value)]
    if whole is not None:
        rows = [row[whole] for row in rows]
    left = -1 if window is None else window - 1
    output: Tensor = varlen(
        *rows, bounds, bounds, longest, longest,
        scale=scale, window_size=(left, 0), enable_gqa=True,
    )  # fmt: skip
    return (output if kept is None else output[kept]).unsqueeze(0)


@functools.lru_cache(maxsize=4)  # all layers of a pass ask for the same
def _whole_sequences(
    packed_row: PackedRow, device: torch.device
) -> tuple[Tensor, int, Tensor | None, Tensor | None]:
    """Return bounds and greatest length of whole sequences, and how the row becomes these and back.

    The last two are None where the row holds them whole.
    """
    lengths = [a + b for a, b in zip(packed_row.shared, packed_row.own, strict=True)]
    bounds = torch.tensor([0, *accumulate(lengths)], dtype=torch.int32, device=device)
    if not any(packed_row.shared):
        return bounds, max(lengths), None, None
    return bounds, max(lengths), *packed_row.unshared(device)


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


def _seen(query: Tensor, before: int, window: int | None) -> Tensor:
    """Return (1, 1, n, before + n): True where a position sees another.

    Args:
        query: (B, heads, n, size), of positions that follow `before` others.
        before: How many.
        window: Positions that each one sees, itself among them; None is all before.
    """
    count = query.shape[2]
    seen = torch.ones(count, before + count, dtype=torch.bool, device=query.device).tril_(before)
    return (seen if window is None else seen.triu_(before - window + 1))[None, None]


def _no_mask(*_: Any, **__: Any) -> None:
    """Return no mask: a packed row has none, and nothing else is computed with this attention."""


AttentionInterface.register(PACKED, packed_attention)
AttentionMaskInterface.register(PACKED, _no_mask)
