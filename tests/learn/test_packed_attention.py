"""Attention over a packed row: one call for all sequences is what one call for each is."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from rllm_learn.core.packed_attention import attend_at_once, packed_attention, torch_varlen
from rllm_learn.core.packing import PackedRow

ROWS = {
    "apart": PackedRow(shared=(0, 0, 0, 0), own=(7, 1, 12, 3)),
    "prompts shared": PackedRow(shared=(0, 4, 4, 4, 0, 0, 3, 3), own=(7, 1, 1, 12, 5, 5, 4, 3)),
}
"""The second with fewer and more positions than their prompt, some equally many."""
HEADS, SHARED, SIZE = 4, 2, 8


class Layer(nn.Module):
    """What transformers' function asks of a layer."""

    num_key_value_groups = HEADS // SHARED
    is_causal = True


def by_definition(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor,
    max_q: int,
    max_k: int,
    *,
    scale: float | None,
    window_size: tuple[int, int],
    enable_gqa: bool,
) -> Tensor:
    """What torch documents of `varlen_attn`, position by position."""
    assert cu_seq_q.dtype == torch.int32 and torch.equal(cu_seq_q, cu_seq_k)
    bounds = cu_seq_q.tolist()
    assert max_q == max_k == max(b - a for a, b in pairwise(bounds))
    assert enable_gqa
    left, right = window_size
    factor = SIZE**-0.5 if scale is None else scale
    output = torch.zeros_like(query)
    for start, stop in pairwise(bounds):
        for place in range(start, stop):
            first = start if left < 0 else max(start, place - left)
            for head in range(HEADS):
                shared = head // (HEADS // SHARED)
                seen = slice(first, place + right + 1)
                weights = (key[seen, shared] @ query[place, head] * factor).softmax(0)
                output[place, head] = weights @ value[seen, shared]
    return output


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("window", [None, 1, 5])
@pytest.mark.parametrize("scale", [None, 0.25])
def test_one_call_is_what_a_call_a_sequence_is(
    row: PackedRow, window: int | None, scale: float | None
) -> None:
    torch.manual_seed(0)
    query, key, value = given = [
        torch.randn(1, heads, sum(row.own), SIZE, dtype=torch.float64, requires_grad=True)
        for heads in (HEADS, SHARED, SHARED)
    ]
    options: dict[str, Any] = {} if window is None else {"sliding_window": window}
    each, _ = packed_attention(
        Layer(), query, key, value, None, packed_row=row, scaling=scale, **options
    )
    at_once = attend_at_once(by_definition, query, key, value, row, scale, window)
    assert at_once.shape == (1, sum(row.own), HEADS, SIZE)
    assert torch.allclose(each, at_once, rtol=0, atol=1e-12)
    factors = torch.randn_like(each)
    for one, other in zip(
        torch.autograd.grad((each * factors).sum(), given),
        torch.autograd.grad((at_once * factors).sum(), given),
        strict=True,
    ):
        assert torch.allclose(one, other, rtol=0, atol=1e-12)


@pytest.mark.skipif(torch_varlen() is None, reason="this torch has no varlen_attn")
def test_torchs_kernel_takes_these_arguments() -> None:
    import inspect

    varlen = torch_varlen()
    assert varlen is not None
    tensor = torch.zeros(1)
    inspect.signature(varlen).bind(
        *[tensor] * 5, 1, 1, scale=None, window_size=(-1, 0), enable_gqa=True
    )


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("window", [None, 5])
def test_on_a_gpu_both_are_the_same_but_for_rounding(row: PackedRow, window: int | None) -> None:
    torch.manual_seed(0)
    single: Any = [
        torch.randn(1, heads, sum(row.own), 64, device="cuda", requires_grad=True)
        for heads in (HEADS, SHARED, SHARED)
    ]
    half: Any = [tensor.detach().bfloat16().requires_grad_() for tensor in single]
    options: dict[str, Any] = {} if window is None else {"sliding_window": window}
    each, _ = packed_attention(Layer(), *single, None, packed_row=row, **options)
    at_once, _ = packed_attention(Layer(), *half, None, packed_row=row, **options)
    assert torch.allclose(each, at_once.float(), rtol=0.02, atol=0.02)
    wanted = torch.autograd.grad(each.square().sum(), single)
    for one, other in zip(
        wanted, torch.autograd.grad(at_once.float().square().sum(), half), strict=True
    ):
        assert torch.allclose(one, other.float(), rtol=0.05, atol=0.05)
