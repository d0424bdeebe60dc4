"""Logprobs and entropies of tokens from logits."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor


class PolicyOutput:
    """What the policy predicts for one micro-batch. Made by the learner, read by losses."""

    def __init__(self, logits: Tensor, token_ids: Tensor, *, temperature: float = 1.0):
        """Work out logprobs.

        Args:
            logits: (B, T, V), as the model gave them for `token_ids`.
            token_ids: (B, T) integers in [0, V).
            temperature: What the sampler divided the logits by; above 0.
        """
        self._logits = logits
        self._temperature = temperature
        self.logprobs = token_logprobs(logits, token_ids, temperature=temperature)
        """(B, T) with gradient; see `token_logprobs`."""

    @cached_property
    def entropies(self) -> Tensor:
        """(B, T) in nats, see `token_entropies`; their gradient costs memory only if read."""
        return token_entropies(self._logits, temperature=self._temperature)


def token_logprobs(logits: Tensor, token_ids: Tensor, *, temperature: float = 1.0) -> Tensor:
    """Return log p(id_t | ids before t) at each position t.

    The model's output at t - 1 predicts position t; position 0 has no prediction and gets 0.

    Args:
        logits: (B, T, V), as the model gave them for `token_ids`.
        token_ids: (B, T) integers in [0, V).
        temperature: What the logits are divided by, as the sampler did; above 0.

    Returns:
        (B, T) natural logarithms, float32 at least.
    """
    predictions = _at_least_float32(logits[:, :-1]) / temperature
    chosen = predictions.gather(-1, token_ids[:, 1:].unsqueeze(-1)).squeeze(-1)
    logprobs = chosen - predictions.logsumexp(-1)
    return torch.nn.functional.pad(logprobs, (1, 0))


def token_entropies(logits: Tensor, *, temperature: float = 1.0) -> Tensor:
    """Return the entropy in nats of the prediction of each position, 0 at position 0.

    Args:
        logits: (B, T, V).
        temperature: What the logits are divided by; above 0.

    Returns:
        (B, T) in [0, log V], float32 at least.
    """
    log_probs = (_at_least_float32(logits[:, :-1]) / temperature).log_softmax(-1)
    entropies = -(log_probs.exp() * log_probs).sum(-1)
    return torch.nn.functional.pad(entropies, (1, 0))


def _at_least_float32(logits: Tensor) -> Tensor:
    return logits if logits.dtype == torch.float64 else logits.float()
