"""Losses as pure functions that return sums and counts, never means.

The learner adds the sums of all micro-batches (and of all ranks) and divides once by the total
count. So the gradient does not depend on how a batch is cut.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor


@dataclass(frozen=True, slots=True)
class LossSum:
    """A loss over one micro-batch, not yet normalised. Made by a loss, read by the learner."""

    total: Tensor
    """Scalar with gradient: the sum over what is counted."""
    count: int
    """What the total over the whole batch is divided by, summed over micro-batches."""
    stats: dict[str, Tensor] = field(default_factory=dict)
    """Further scalar sums without gradient, reported divided by the total count."""


def clipped_policy_loss(
    logprobs: Tensor,
    old_logprobs: Tensor,
    *,
    advantages: Tensor,
    mask: Tensor,
    clip_low: float,
    clip_high: float,
) -> LossSum:
    """Sum of -min(r A, clip(r, 1 - clip_low, 1 + clip_high) A) over sampled tokens.

    r = exp(logprob - old logprob). Schulman et al. 2017, "Proximal Policy Optimization", eq. 7;
    separate bounds as in Yu et al. 2025, "DAPO", eq. 10. The count is the number of tokens, so
    that the learner's division gives the mean over all tokens of the batch.

    Args:
        logprobs: (B, T) of the policy being learned, with gradient.
        old_logprobs: (B, T) of the policy that sampled.
        advantages: (B, T).
        mask: (B, T) bool, True at sampled tokens.
        clip_low: How far below 1 the ratio may earn, in [0, 1].
        clip_high: How far above 1 the ratio may earn, at least 0.

    Returns:
        The sum, the number of tokens, and the stats `clip_fraction` (tokens whose gradient the
        clip removed) and `kl` (k3 estimate of KL(old || new), Schulman 2020, "Approximating KL
        divergence": (r - 1) - log r).
    """
    log_ratio = (logprobs - old_logprobs).masked_fill(~mask, 0.0)
    ratio = log_ratio.exp()
    unclipped = ratio * advantages
    clipped = ratio.clamp(1.0 - clip_low, 1.0 + clip_high) * advantages
    per_token = -unclipped.minimum(clipped)
    is_clipped = (clipped < unclipped) & mask
    return LossSum(
        total=per_token.masked_fill(~mask, 0.0).sum(),
        count=int(mask.sum()),
        stats={
            "clip_fraction": is_clipped.sum().float(),
            "kl": (ratio - 1.0 - log_ratio).sum().detach(),
        },
    )


def cross_entropy_loss(logprobs: Tensor, mask: Tensor) -> LossSum:
    """Sum of -log p over the tokens to be imitated; the count is their number.

    Args:
        logprobs: (B, T) of the policy being learned, with gradient.
        mask: (B, T) bool, True at tokens to be imitated.
    """
    return LossSum(total=-logprobs.masked_fill(~mask, 0.0).sum(), count=int(mask.sum()))
