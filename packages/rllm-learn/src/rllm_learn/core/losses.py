"""Losses as pure functions of tensors, token by token; sums and counts, never means.

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
    count: float
    """What the total over the whole batch is divided by, summed over micro-batches."""
    stats: dict[str, Tensor] = field(default_factory=dict)
    """Further scalar sums over sampled tokens without gradient, reported divided by the number of
    sampled tokens."""


@dataclass(frozen=True, slots=True)
class TokenLosses:
    """The policy's own loss at each token. Made by the functions below."""

    values: Tensor
    """(B, T) with gradient; what stands outside the mask means nothing."""
    clipped: Tensor | None = None
    """(B, T) bool, where a bound took the gradient or a part of it; None where nothing bounds."""


def score_function(logprobs: Tensor, advantages: Tensor) -> TokenLosses:
    """Return -A log p: the gradient of the expected return, for tokens of the policy itself.

    Williams 1992, "Simple statistical gradient-following algorithms for connectionist
    reinforcement learning" (REINFORCE).

    Args:
        logprobs: (B, T) of the policy being learned, with gradient.
        advantages: (B, T).
    """
    return TokenLosses(-advantages * logprobs)


def clipped_surrogate(
    log_ratio: Tensor, advantages: Tensor, *, clip_low: float, clip_high: float
) -> TokenLosses:
    """Return -min(r A, clip(r, 1 - clip_low, 1 + clip_high) A).

    Schulman et al. 2017, "Proximal Policy Optimization", eq. 7; separate bounds as in Yu et al.
    2025, "DAPO", eq. 10. Where the clipped term is the smaller one there is no gradient.

    Args:
        log_ratio: (B, T) log r with gradient: logprob - logprob of the policy that sampled.
        advantages: (B, T).
        clip_low: How far below 1 the ratio may earn, in [0, 1].
        clip_high: How far above 1 the ratio may earn, at least 0.
    """
    ratio = log_ratio.exp()
    unclipped = ratio * advantages
    clipped = ratio.clamp(1.0 - clip_low, 1.0 + clip_high) * advantages
    return TokenLosses(-unclipped.minimum(clipped), clipped < unclipped)


def clipped_weight(
    logprobs: Tensor, log_ratio: Tensor, advantages: Tensor, *, max_ratio: float
) -> TokenLosses:
    """Return -sg(min(r, max_ratio)) A log p, where sg takes no gradient.

    MiniMax 2025, "MiniMax-M1", eq. 4 and 5 (CISPO): the weight is bounded, and no token loses its
    gradient.

    Args:
        logprobs: (B, T) of the policy being learned, with gradient.
        log_ratio: (B, T) log r.
        advantages: (B, T).
        max_ratio: Largest weight, above 0.
    """
    ratio = log_ratio.detach().exp()
    weights = ratio.clamp(max=max_ratio)
    return TokenLosses(-weights * advantages * logprobs, ratio > max_ratio)


def sequence_log_ratio(log_ratio: Tensor, mask: Tensor) -> Tensor:
    """Return at each sampled token the mean log ratio of its row; the gradient is the token's own.

    Zheng et al. 2025, "Group Sequence Policy Optimization", eq. 7: s = (p(y) / p_old(y))^(1/|y|);
    in the form of eq. 14, log s_t = sg(log s) + log p_t - sg(log p_t), whose gradient over a row of
    equal advantages is that of s, and which lets tokens of a row have advantages of their own.

    Args:
        log_ratio: (B, T) with gradient, 0 outside the mask.
        mask: (B, T) bool, True at sampled tokens.

    Returns:
        (B, T).
    """
    lengths = mask.sum(-1, keepdim=True).clamp(min=1)
    means = log_ratio.detach().sum(-1, keepdim=True) / lengths
    return means + log_ratio - log_ratio.detach()


def squared_value_error(
    values: Tensor,
    old_values: Tensor,
    returns: Tensor,
    *,
    value_clip: float | None,
    max_error: float | None,
) -> TokenLosses:
    """Return (V - R)^2 at each position, bounded in one or two ways.

    The squared error is that of Schulman et al. 2017, "Proximal Policy Optimization", eq. 9. With
    `value_clip` it is max((V - R)^2, (clip(V, V_old - c, V_old + c) - R)^2), the clipping of PPO's
    first implementation, analysed in Engstrom et al. 2020, "Implementation Matters in Deep Policy
    Gradients": a value that has moved further than c towards its target has no gradient. With
    `max_error` it is min((V - R)^2, max_error), RLlib's `vf_clip_param`: an error beyond the bound
    has no gradient.

    Args:
        values: (B, T) of the critic being learned, with gradient.
        old_values: (B, T) before the update.
        returns: (B, T), what the values should have been.
        value_clip: How far a value may move from its old one, above 0; None for any distance.
        max_error: Largest squared error, above 0; None for no bound.
    """
    errors = (values - returns).square()
    bounded = errors
    if value_clip is not None:
        near = old_values + (values - old_values).clamp(-value_clip, value_clip)
        bounded = bounded.maximum((near - returns).square())
    # Where V is still near V_old both errors are equal, and so are their gradients.
    clipped = bounded > errors
    if max_error is not None:
        clipped = clipped | (bounded > max_error)
        bounded = bounded.clamp(max=max_error)
    return TokenLosses(bounded, clipped)


def cross_entropy_loss(logprobs: Tensor, mask: Tensor) -> LossSum:
    """Sum of -log p over the tokens to be imitated; the count is their number.

    Args:
        logprobs: (B, T) of the policy being learned, with gradient.
        mask: (B, T) bool, True at tokens to be imitated.
    """
    return LossSum(total=-logprobs.masked_fill(~mask, 0.0).sum(), count=int(mask.sum()))
