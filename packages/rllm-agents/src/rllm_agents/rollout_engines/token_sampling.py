"""Draw one token per row from a batch of logits, each row with its own parameters.

The distribution drawn from is the one whose logprobs are reported: temperature first, then top-k,
then top-p over what top-k left, renormalised. A greedy row takes the argmax and reports its
logprob at temperature 1, over the whole distribution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

GREEDY_BELOW = 1e-5
"""Temperatures under this are greedy: dividing by them overflows."""


@dataclass(frozen=True, slots=True)
class SamplingPlan:
    """The parameters of N rows as tensors. Made by SlotBatch, read by `draw_tokens`.

    A field is None when no row uses it, so that nothing is computed for it.
    """

    temperature: Tensor | None
    """Shape ``(N, 1)``; 1 for greedy rows."""
    greedy: Tensor | None
    """Shape ``(N,)``, bool."""
    top_k: Tensor | None
    """Shape ``(N, 1)``, at least 1; the vocabulary's size for rows that keep it whole."""
    top_p: Tensor | None
    """Shape ``(N, 1)`` in (0, 1]; 1 for rows that keep the whole distribution."""

    @classmethod
    def build(
        cls,
        *,
        temperature: np.ndarray,
        top_k: np.ndarray,
        top_p: np.ndarray,
        device: torch.device,
    ) -> SamplingPlan:
        """Make the plan of N rows from their sampling parameters, each of shape ``(N,)``."""
        greedy = temperature < GREEDY_BELOW
        temperature = np.where(greedy, 1.0, temperature)
        top_k = np.where(greedy | (top_k == 0), np.iinfo(np.int64).max, top_k)
        top_p = np.where(greedy, 1.0, top_p)

        def column(values: np.ndarray, used: np.ndarray, dtype: torch.dtype) -> Tensor | None:
            if not used.any():
                return None
            return torch.as_tensor(values, dtype=dtype, device=device).unsqueeze(1)

        return cls(
            temperature=column(temperature, temperature != 1.0, torch.float32),
            greedy=torch.as_tensor(greedy, device=device) if greedy.any() else None,
            top_k=column(top_k, top_k < np.iinfo(np.int64).max, torch.int64),
            top_p=column(top_p, top_p < 1.0, torch.float32),
        )


def draw_tokens(logits: Tensor, uniforms: Tensor, plan: SamplingPlan) -> tuple[Tensor, Tensor]:
    """Return one id per row and its logprob under the distribution it was drawn from.

    Args:
        logits: Shape ``(N, V)``.
        uniforms: One number in [0, 1) per row, float64, shape ``(N,)``; the only randomness.
        plan: The rows' parameters.

    Returns:
        Ids (int64) and natural logarithms (float32), each of shape ``(N,)``.
    """
    logprobs = behaviour_logprobs(logits, plan)
    ids = _invert_cdf(logprobs, uniforms)
    if plan.greedy is not None:
        ids = torch.where(plan.greedy, logprobs.argmax(dim=-1), ids)
    return ids, logprobs.gather(1, ids.unsqueeze(1)).squeeze(1)


def behaviour_logprobs(logits: Tensor, plan: SamplingPlan) -> Tensor:
    """Return the logprobs sampled from, ``-inf`` where excluded, float32, shape ``(N, V)``."""
    logits = logits.float()
    if plan.temperature is not None:
        logits = logits / plan.temperature
    if plan.top_k is not None or plan.top_p is not None:
        logits = _truncate(logits, plan)
    return torch.log_softmax(logits, dim=-1)


def _truncate(logits: Tensor, plan: SamplingPlan) -> Tensor:
    """Set the logits outside top-k and top-p to ``-inf``.

    Rows are sorted once, stably, so that ties are kept by lowest id and top-k keeps exactly k.
    """
    ordered, order = logits.sort(dim=-1, descending=True, stable=True)
    if plan.top_k is not None:
        rank = torch.arange(logits.shape[-1], device=logits.device)
        ordered = ordered.masked_fill(rank >= plan.top_k, -torch.inf)
    if plan.top_p is not None:
        probabilities = ordered.softmax(dim=-1)
        # A token stays while the mass before it is under top_p, so the first one always stays.
        mass_before = probabilities.cumsum(dim=-1) - probabilities
        outside = (mass_before >= plan.top_p) & (plan.top_p < 1.0)
        ordered = ordered.masked_fill(outside, -torch.inf)
    return torch.empty_like(logits).scatter_(1, order, ordered)


def _invert_cdf(logprobs: Tensor, uniforms: Tensor) -> Tensor:
    """Return per row the first id whose cumulative probability exceeds the row's uniform number.

    Summed in float64: in float32 the many small terms of a large vocabulary vanish beside the sum.
    """
    cdf = logprobs.exp().cumsum(dim=-1, dtype=torch.float64)
    # The factor keeps the target under the total also after rounding, so an id of probability 0 is
    # never drawn; the clamp is reached only by logits that are not finite.
    target = (uniforms * (1.0 - 1e-12) * cdf[:, -1]).unsqueeze(1)
    ids = torch.searchsorted(cdf, target, right=True).squeeze(1)
    return ids.clamp_(max=logprobs.shape[-1] - 1)
