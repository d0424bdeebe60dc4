"""Advantages as pure functions of rewards. No tensors, no configuration, no state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence


def group_relative(
    rewards: Sequence[float], groups: Sequence[int], *, divide_by_std: bool = True
) -> list[float]:
    """Return how much better each reward is than its group's mean.

    A_i = (r_i - mean_g) / (std_g + 1e-6), where mean and standard deviation (with Bessel's
    correction, n - 1) are over the group g of i. A group of equal rewards, or of one member,
    yields zeros. Shao et al. 2024, "DeepSeekMath", section 4.1.2. Without the division it is the
    estimator of Liu et al. 2025, "Understanding R1-Zero-Like Training" (Dr. GRPO).

    Args:
        rewards: Total reward of each rollout, shape (N,).
        groups: Equal for rollouts of one task; any integers, any order, shape (N,).
        divide_by_std: Whether to divide by the group's standard deviation.

    Returns:
        Advantages, shape (N,), in the order of `rewards`.
    """
    members: dict[int, list[float]] = defaultdict(list)
    for reward, group in zip(rewards, groups, strict=True):
        members[group].append(reward)
    mean, scale = {}, {}
    for group, values in members.items():
        mean[group] = sum(values) / len(values)
        variance = sum((v - mean[group]) ** 2 for v in values) / max(len(values) - 1, 1)
        scale[group] = variance**0.5 + 1e-6 if divide_by_std else 1.0
    return [
        0.0 if is_uniform(members[group]) else (reward - mean[group]) / scale[group]
        for reward, group in zip(rewards, groups, strict=True)
    ]


def is_uniform(rewards: Sequence[float]) -> bool:
    """Whether all rewards are equal, so that comparing them teaches nothing."""
    return max(rewards) - min(rewards) < 1e-9
