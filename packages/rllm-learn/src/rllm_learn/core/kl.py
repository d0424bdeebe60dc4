"""Estimates of the KL divergence between two policies, from logprobs of sampled tokens."""

from __future__ import annotations

from torch import Tensor

KL_ESTIMATORS = ("k1", "k2", "k3")
"""Names that `kl_estimate` knows."""


def kl_estimate(logprobs: Tensor, reference_logprobs: Tensor, estimator: str) -> Tensor:
    """Return an estimate of KL(policy || reference) at each token that the policy sampled.

    Schulman 2020, "Approximating KL divergence", with d = log policy - log reference:

        k1 = d                     unbiased, of either sign
        k2 = d^2 / 2               biased, never negative; its gradient is that of the KL
        k3 = exp(-d) - 1 + d       unbiased, never negative, of low variance

    Args:
        logprobs: Of the policy, any shape.
        reference_logprobs: Of the reference, the same shape.
        estimator: One of `KL_ESTIMATORS`.

    Returns:
        Nats, the same shape.

    Raises:
        ValueError: There is no such estimator.
    """
    difference = logprobs - reference_logprobs
    if estimator == "k1":
        return difference
    if estimator == "k2":
        return difference.square() / 2
    if estimator == "k3":
        return (-difference).exp() - 1 + difference
    raise ValueError(f"estimator must be one of {', '.join(KL_ESTIMATORS)}, got {estimator!r}")
