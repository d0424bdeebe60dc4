"""Logprobs and entropies of tokens from logits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


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
        found = scores_of(logits[:, :-1], token_ids[:, 1:], temperature=temperature)
        return cls(*(torch.nn.functional.pad(values, (1, 0)) for values in found))


def scores_of(
    logits: Tensor, token_ids: Tensor, *, temperature: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Return log p(id) of each id, and the entropy of the prediction that it is drawn from.

    Args:
        logits: (..., V), as the model gave them for the position before each id.
        token_ids: (...) integers in [0, V).
        temperature: What the logits are divided by, as the sampler did; above 0.

    Returns:
        (...) natural logarithms and (...) entropies in [0, log V] nats, float32 at least.
    """
    predictions = logits if logits.dtype == torch.float64 else logits.float()
    if temperature != 1.0:
        predictions = predictions / temperature
    logprobs, entropies = _LogprobsAndEntropies.apply(predictions, token_ids)  # pyright: ignore[reportGeneralTypeIssues]
    return logprobs, entropies


class _LogprobsAndEntropies(torch.autograd.Function):
    """Both from one log-softmax; of all (..., V) it alone is kept for the backward pass.

    With p the softmax of the logits z, d log p_i / d z_j = [i = j] - p_j and d H / d z_j =
    -p_j (log p_j + H).
    """

    @staticmethod
    def forward(ctx: Any, predictions: Tensor, token_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Return both, each (...), of predictions (..., V)."""
        log_probs = predictions.log_softmax(-1)
        logprobs = log_probs.gather(-1, token_ids.unsqueeze(-1)).squeeze(-1)
        entropies = -(log_probs.exp() * log_probs).sum(-1)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(log_probs, token_ids, entropies)
        return logprobs, entropies

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, of_logprobs: Tensor | None, of_entropies: Tensor | None
    ) -> tuple[Tensor, None]:
        """Return the gradient of the predictions; most losses do not look at entropies."""
        log_probs, token_ids, entropies = ctx.saved_tensors
        factor = torch.zeros_like(entropies) if of_logprobs is None else of_logprobs
        factor = factor.unsqueeze(-1)
        probabilities = log_probs.exp()
        if of_entropies is None:
            gradient = probabilities.mul_(-factor)
        else:
            gradient = log_probs + entropies.unsqueeze(-1)
            gradient = gradient.mul_(of_entropies.unsqueeze(-1)).add_(factor)
            gradient = gradient.mul_(probabilities).neg_()
        return gradient.scatter_add_(-1, token_ids.unsqueeze(-1), factor), None
