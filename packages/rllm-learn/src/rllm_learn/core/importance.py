"""Weights that correct for a sampler whose probabilities differ from the learner's."""

from __future__ import annotations

import torch
from torch import Tensor


@torch.no_grad()
def importance_weights(
    policy_logprobs: Tensor,
    sampler_logprobs: Tensor,
    *,
    mask: Tensor,
    kind: str,
    level: str,
    cap: float,
    floor: float = 0.0,
) -> Tensor:
    """Return what the loss of each token is multiplied by, without gradient.

    w = policy's probability / sampler's probability of the token, or with level "sequence" the
    product of these over the row's sampled tokens.

    "truncated": min(w, cap). Yao et al. 2025, "Your efficient RL framework secretly brings you
    off-policy RL training" (TIS); Espeholt et al. 2018, "IMPALA", eq. 1.
    "masked": w where floor <= w <= cap, else 0. Zhao et al. 2025, "Small leak can sink a great
    ship: boost RL training on MoE with IcePop", of tokens between 0.5 and 5; Liu et al. 2025, "When
    speed kills stability: demystifying RL collapse from the training-inference mismatch" (MIS), of
    sequences, without a floor.

    Args:
        policy_logprobs: (B, T) of the learner's policy before the update.
        sampler_logprobs: (B, T) as reported when the tokens were drawn.
        mask: (B, T) bool, True at sampled tokens.
        kind: "truncated" or "masked".
        level: "token" or "sequence".
        cap: Largest weight, at least 1.
        floor: Of "masked", the smallest weight but 0, in [0, 1].

    Returns:
        (B, T) in [0, cap]; what stands outside the mask means nothing.
    """
    log_weights = (policy_logprobs - sampler_logprobs).masked_fill(~mask, 0.0)
    if level == "sequence":
        log_weights = log_weights.sum(-1, keepdim=True).expand_as(log_weights)
    weights = log_weights.exp()
    if kind == "truncated":
        return weights.clamp(max=cap)
    return weights.masked_fill((weights > cap) | (weights < floor), 0.0)
