"""Logprobs and entropies of tokens from logits."""

from __future__ import annotations

import torch
from torch import Tensor


def logprobs_of(logits: Tensor, token_ids: Tensor, *, temperature: float = 1.0) -> Tensor:
    """Return log p(id) of each id under the logits that predict it.

    Args:
        logits: (N, V), as the model gave them for the position before each id.
        token_ids: (N,) integers in [0, V).
        temperature: What the logits are divided by, as the sampler did; above 0.

    Returns:
        (N,) natural logarithms, float32 at least.
    """
    predictions = _at_least_float32(logits) / temperature
    chosen = predictions.gather(-1, token_ids.unsqueeze(-1)).squeeze(-1)
    return chosen - predictions.logsumexp(-1)


@torch.no_grad()
def entropies_of(logits: Tensor, *, temperature: float = 1.0) -> Tensor:
    """Return the entropy in nats of each prediction; no gradient.

    Args:
        logits: (N, V).
        temperature: What the logits are divided by; above 0.

    Returns:
        (N,) in [0, log V], float32 at least.
    """
    log_probs = (_at_least_float32(logits) / temperature).log_softmax(-1)
    return -(log_probs.exp() * log_probs).sum(-1)


def _at_least_float32(logits: Tensor) -> Tensor:
    return logits if logits.dtype == torch.float64 else logits.float()
