"""Advantages as pure functions of rewards. No tensors, no configuration, no state."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence


def group_relative(
    rewards: Sequence[float], groups: Sequence[Hashable], *, divide_by_std: bool = True
) -> list[float]:
    """Return how much better each reward is than its group's mean.

    A_i = (r_i - mean_g) / (std_g + 1e-6), where mean and standard deviation (with Bessel's
    correction, n - 1) are over the group g of i. A group of equal rewards, or of one member,
    yields zeros. Shao et al. 2024, "DeepSeekMath", section 4.1.2. Without the division it is the
    estimator of Liu et al. 2025, "Understanding R1-Zero-Like Training" (Dr. GRPO).

    Args:
        rewards: Total reward of each rollout, shape (N,).
        groups: Equal for rollouts that are compared; any keys, any order, shape (N,).
        divide_by_std: Whether to divide by the group's standard deviation.

    Returns:
        Advantages, shape (N,), in the order of `rewards`.
    """
    members: dict[Hashable, list[float]] = defaultdict(list)
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


def leave_one_out(rewards: Sequence[float], groups: Sequence[Hashable]) -> list[float]:
    """Return how much better each reward is than the mean of the others of its group.

    A_i = r_i - sum_(j != i) r_j / (n - 1). Kool et al. 2019, "Buy 4 REINFORCE samples, get a
    baseline for free!"; Ahmadian et al. 2024, "Back to basics: revisiting REINFORCE-style
    optimization" (RLOO), section 3.3. A group of equal rewards, or of one member, yields zeros.

    Args:
        rewards: Shape (N,).
        groups: Equal for rewards that are compared; any keys, any order, shape (N,).

    Returns:
        Advantages, shape (N,), in the order of `rewards`.
    """
    members: dict[Hashable, list[float]] = defaultdict(list)
    for reward, group in zip(rewards, groups, strict=True):
        members[group].append(reward)
    return [
        0.0
        if is_uniform(members[group])
        else reward - (sum(members[group]) - reward) / (len(members[group]) - 1)
        for reward, group in zip(rewards, groups, strict=True)
    ]


def discounted_returns(rewards: Sequence[float], gamma: float = 1.0) -> list[float]:
    """Return at each step the rewards from it on: G_t = r_t + gamma G_(t + 1).

    Sutton and Barto 2018, "Reinforcement Learning", eq. 3.9.

    Args:
        rewards: Of the steps, in order.
        gamma: Discount of a step, in [0, 1].
    """
    returns = []
    total = 0.0
    for reward in reversed(rewards):
        total = reward + gamma * total
        returns.append(total)
    return returns[::-1]


def generalized_advantages(
    rewards: Sequence[float], values: Sequence[float], *, gamma: float, lambda_: float
) -> list[float]:
    """Return at each action how much better it turned out than the critic expected.

    A_t = d_t + gamma lambda A_(t + 1) with d_t = r_t + gamma V_(t + 1) - V_t; after the last action
    V and A are 0. Schulman et al. 2015, "High-Dimensional Continuous Control Using Generalized
    Advantage Estimation", eq. 11 and 16. With lambda 1 it is the discounted return less V_t.

    Args:
        rewards: Of one rollout's actions, in order, shape (N,).
        values: What the critic expected before each action, shape (N,).
        gamma: Discount of an action, in [0, 1].
        lambda_: Share of what is learned from actions further ahead, in [0, 1].

    Returns:
        Advantages, shape (N,); the critic's targets are these plus `values`.
    """
    following = [*values[1:], 0.0]
    errors = [r + gamma * n - v for r, v, n in zip(rewards, values, following, strict=True)]
    return discounted_returns(errors, gamma * lambda_)


def explained_variance(targets: Sequence[float], predictions: Sequence[float]) -> float:
    """Return 1 - Var(targets - predictions) / Var(targets).

    1 where the predictions are right but for a constant, 0 where they are no better than one, below
    0 where they are worse; 0 where the targets do not vary.

    Args:
        targets: Shape (N,).
        predictions: Shape (N,).
    """
    if not targets or is_uniform(targets):
        return 0.0
    errors = [t - p for t, p in zip(targets, predictions, strict=True)]
    return 1.0 - _variance(errors) / _variance(targets)


def standardized(values: Sequence[float]) -> list[float]:
    """Return (x - mean) / (standard deviation + 1e-8) over all values; equal values yield zeros.

    The deviation is that of the values themselves (divided by n). Hu et al. 2025,
    "REINFORCE++: stabilizing critic-free policy optimization with global normalization", there over
    all tokens of a batch.
    """
    if not values or is_uniform(values):
        return [0.0] * len(values)
    mean = math.fsum(values) / len(values)
    deviation = math.sqrt(_variance(values))
    return [(value - mean) / (deviation + 1e-8) for value in values]


def overlong_penalty(length: int, *, max_length: int, buffer: int) -> float:
    """Return what a long response loses: 0 up to max_length - buffer, then down to -1.

    Yu et al. 2025, "DAPO", eq. 13 (soft overlong punishment):
    (max_length - buffer - length) / buffer within the buffer, -1 beyond `max_length`.

    Args:
        length: Of the response, in tokens.
        max_length: Limit of the response.
        buffer: Tokens before the limit over which the penalty grows; 0 for no penalty at all.

    Returns:
        A number in [-1, 0].
    """
    if buffer == 0:
        return 0.0
    return min(0.0, max(-1.0, (max_length - buffer - length) / buffer))


def is_uniform(rewards: Sequence[float]) -> bool:
    """Whether all rewards are equal, so that comparing them teaches nothing."""
    return max(rewards) - min(rewards) < 1e-9


def _variance(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((v - mean) ** 2 for v in values) / len(values)
