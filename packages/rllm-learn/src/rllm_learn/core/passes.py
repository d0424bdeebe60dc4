"""Backward passes of micro-batches, equally many on ranks that have to meet in each."""

from __future__ import annotations

import torch

from rllm_learn.core.batch import FILLER, TokenBatch, TokenSequence
from rllm_learn.core.logprobs import PolicyOutput
from rllm_learn.core.losses import LossSum
from rllm_learn.core.parallel import Ranks


def as_often_as_others(
    micro_batches: list[list[TokenSequence]], ranks: Ranks
) -> list[list[TokenSequence]]:
    """Add fillers, where ranks split weights, up to the number of the rank with most.

    Args:
        micro_batches: Of this rank; perhaps none.
        ranks: Who have to pass equally often.
    """
    if not ranks.shards:
        return micro_batches
    counts = ranks.gather({"count": len(micro_batches)})
    most = max(int(figures["count"]) for figures in counts)
    return micro_batches + [FILLER] * (most - len(micro_batches))


def backward(
    loss: LossSum, output: PolicyOutput, batch: TokenBatch, local: dict[str, float]
) -> None:
    """Add a micro-batch's gradients to the parameters', and its figures to those of others.

    Args:
        loss: Of the batch.
        output: What the loss was made of.
        batch: Scored.
        local: Sums over micro-batches by name, and the largest gap to the sampler; starts at 0.
    """
    loss.total.backward()
    local["loss"] += loss.total.item()
    local["count"] += loss.count
    for name, value in loss.stats.items():
        local[name] += value.item()
    local["entropy"] += output.entropies.detach().sum().item()
    gaps = (output.logprobs.detach() - batch.sampler_logprobs)[batch.action_mask]
    local["gap"] += gaps.abs().sum().item()
    local["divergence"] += (gaps.expm1() - gaps).sum().item()
    local["num_actions"] += gaps.numel()
    local["gap_max"] = max(local["gap_max"], gaps.abs().max().item())


def backward_of_nothing(output: PolicyOutput) -> None:
    """Pass backward as others do, and add 0 to each gradient.

    Args:
        output: Of a filler, with values where there is a critic.
    """
    reached = output.logprobs.sum()
    if output.values is not None:
        reached = reached + output.values.sum()
    (reached * 0.0).backward()


def release_cache(device: torch.device) -> None:
    """Return the GPU memory that torch only keeps for later: an engine may share the GPU."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
