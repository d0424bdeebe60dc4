"""An advantage estimator and a loss of one's own, registered here and chosen by name.

uv run python examples/own_loss.py num_steps=20
cd examples && uv run rllm train algorithm.advantage=own_loss:best_of_group \
        algorithm.loss=own_loss:dual_clip
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence

import torch
from torch import Tensor

from rllm_learn import AgentTrainer, register_advantage, register_loss
from rllm_learn.config import load_config
from rllm_learn.core.losses import TokenLosses, clipped_surrogate


@register_advantage("best_of_group")
def best_of_group(values: Sequence[float], keys: Sequence[Hashable]) -> list[float]:
    """Return 1 for the best of a group that is not uniform, -0.25 for its others."""
    groups: dict[Hashable, list[float]] = {}
    for value, key in zip(values, keys, strict=True):
        groups.setdefault(key, []).append(value)
    advantages = []
    for value, key in zip(values, keys, strict=True):
        best, worst = max(groups[key]), min(groups[key])
        advantages.append(0.0 if best == worst else 1.0 if value == best else -0.25)
    return advantages


@register_loss("dual_clip")
def dual_clip(logprobs: Tensor, log_ratio: Tensor, advantages: Tensor, mask: Tensor) -> TokenLosses:
    """Return PPO's clipped surrogate, bounded at -3 A too where A < 0.

    Ye et al. 2020, "Mastering Complex Control in MOBA Games with Deep Reinforcement Learning": the
    ratio of a token that became much likelier and is bad would else make the loss as large as it
    likes.
    """
    losses = clipped_surrogate(log_ratio, advantages, clip_low=0.2, clip_high=0.2)
    bounded = torch.minimum(losses.values, -3.0 * advantages)
    return TokenLosses(torch.where(advantages < 0, bounded, losses.values), losses.clipped)


if __name__ == "__main__":
    names = ["algorithm.advantage=best_of_group", "algorithm.loss=dual_clip"]
    summary = AgentTrainer(config=load_config("grpo_trainer", [*names, *sys.argv[1:]])).train()
    print(f"{summary['pass_at_1_before']:.3f} -> {summary['pass_at_1_after']:.3f}")
