"""Logprobs and entropies of tokens from logits."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class PolicyOutput:
    """What the policy says of the sampled ids of a micro-batch. Made by ``Scorer``, read by losses.

    All have a gradient; all are 0 where nothing was sampled, where losses do not look.
    """

    logprobs: Tensor
    """(B, T) natural logarithms."""
    entropies: Tensor
    """(B, T) entropies of the predictions in nats."""
    values: Tensor | None = None
    """(B, T) what the critic expects to be earned from each id on; None without a critic."""

    @classmethod
    def of_logits(
        cls, logits: Tensor, token_ids: Tensor, *, temperature: float = 1.0
    ) -> PolicyOutput:
        """Make it of whole logits; position 0, which nothing predicts, is 0.

        Args:
            logits: (B, T, V), as the model gave them for ``token_ids``.
            token_ids: (B, T) integers in [0, V).
            temperature: What the sampler divided the logits by; above 0.
        """
        predictions, ids = logits[:, :-1], token_ids[:, 1:]
        found = (
            logprobs_of(predictions, ids, temperature=temperature),
            entropies_of(predictions, temperature=temperature),
        )
        return cls(*(torch.nn.functional.pad(values, (1, 0)) for values in found))


def logprobs_of(logits: Tensor, token_ids: Tensor, *, temperature: float = 1.0) -> Tensor:
    """Return log p(id) of each id under the logits that predict it.

    Args:
        logits: (..., V), as the model gave them for the position before each id.
        token_ids: (...) integers in [0, V).
        temperature: What the logits are divided by, as the sampler did; above 0.

    Returns:
        (...) natural logarithms, float32 at least.
    """
    predictions = _at_least_float32(logits) / temperature
    chosen = predictions.gather(-1, token_ids.unsqueeze(-1)).squeeze(-1)
    return chosen - predictions.logsumexp(-1)


def entropies_of(logits: Tensor, *, temperature: float = 1.0) -> Tensor:
    """Return the entropy in nats of each prediction.

    Args:
        logits: (..., V).
        temperature: What the logits are divided by; above 0.

    Returns:
        (...) in [0, log V], float32 at least.
    """
    log_probs = (_at_least_float32(logits) / temperature).log_softmax(-1)
    return -(log_probs.exp() * log_probs).sum(-1)


def _at_least_float32(logits: Tensor) -> Tensor:
    return logits if logits.dtype == torch.float64 else logits.float()
