"""Several learners that act as one: sums over ranks, and whose share of a batch is whose.

Every rank is given the same sequences in the same order and takes its share of each minibatch, so
which sequences make one optimizer step does not depend on the number of ranks. Gradients and counts
are summed over ranks and divided once by the global count, so neither does the update.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, Protocol

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh

from rllm_learn.core.batch import SampledSequence, TokenSequence, by_prompt
from rllm_learn.core.sharding import Pass, shard

_BUCKET_ELEMENTS = 32 * 2**20
"""Most numbers of one collective: bounds the copy that it takes."""
_LOTS_A_RANK = 4
"""A lot has at most the positions of an even share of all ids, divided by this."""


class Ranks(Protocol):
    """One rank's view of the group that it learns in."""

    rank: int
    """From 0."""
    size: int
    """Number of ranks, at least 1."""

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Replace each gradient by its sum over ranks; a missing one counts as 0."""
        ...

    def gather(self, figures: dict[str, float]) -> list[dict[str, float]]:
        """Return the figures of all ranks, in the order of ranks."""
        ...

    @property
    def shards(self) -> bool:
        """Whether weights are split over ranks, which then have to pass equally often."""
        ...

    def shard(self, module: Pass) -> None:
        """Split a module's weights over ranks, where that is what these ranks do."""
        ...


class SingleRank:
    """A learner alone: its sums are the sums."""

    rank = 0
    size = 1
    shards = False

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Leave gradients as they are."""

    def gather(self, figures: dict[str, float]) -> list[dict[str, float]]:
        """Return the figures, in a list."""
        return [figures]

    def shard(self, module: Pass) -> None:
        """Leave the weights whole."""


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """A process group that ranks join. Made where learners are started."""

    size: int
    """Number of ranks, at least 1."""
    address: str
    """Where rank 0 listens, as "tcp://host:port"."""
    timeout_seconds: float
    """After which a rank that waits for others gives up."""
    sharding: Literal["replicate", "fsdp"] = "replicate"
    """Whether each rank holds all weights, or a part of each (FSDP2)."""


class ProcessGroupRanks:
    """Ranks of a torch process group: one process each, gloo on CPUs, nccl on GPUs."""

    def __init__(
        self,
        *,
        rank: int,
        size: int,
        address: str,
        device: torch.device,
        timeout_seconds: float,
        sharding: Literal["replicate", "fsdp"] = "replicate",
    ) -> None:
        """Join the group; returns when all ranks have.

        Args:
            rank: Of this process.
            size: Number of ranks.
            address: Where rank 0 listens, as "tcp://host:port".
            device: Of the parameters.
            timeout_seconds: After which a rank that waits for others gives up.
            sharding: See `GroupSpec`.
        """
        self.rank = rank
        self.size = size
        self.shards = sharding == "fsdp"
        dist.init_process_group(
            # Gradients travel where they are; figures are exchanged on the CPU.
            "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo",
            init_method=address,
            rank=rank,
            world_size=size,
            timeout=timedelta(seconds=timeout_seconds),
        )
        self._mesh = init_device_mesh(device.type, (size,)) if self.shards else None

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Sum over ranks in buckets of one dtype, the same on every rank.

        Where weights are split, their gradients have been summed in the backward passes.
        """
        if self.shards:
            return
        bucket: list[nn.Parameter] = []
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            size = sum(p.numel() for p in bucket) + parameter.numel()
            if bucket and (size > _BUCKET_ELEMENTS or bucket[0].dtype != parameter.dtype):
                _sum_bucket(bucket)
                bucket = []
            bucket.append(parameter)
        if bucket:
            _sum_bucket(bucket)

    def gather(self, figures: dict[str, float]) -> list[dict[str, float]]:
        """Exchange small mappings; ranks may have different names in them."""
        gathered: list[Any] = [None] * self.size
        dist.all_gather_object(gathered, figures)
        return gathered

    def shard(self, module: Pass) -> None:
        """Split a module's weights over the ranks with `sharding="fsdp"`."""
        if self._mesh is not None:
            shard(module, self._mesh)

    def close(self) -> None:
        """Leave the group."""
        dist.destroy_process_group()


def share_of(sequences: Sequence[TokenSequence], ranks: Ranks) -> list[TokenSequence]:
    """Return this rank's sequences; see `shares`. One rank alone keeps their order."""
    if ranks.size == 1:
        return list(sequences)
    share = shares([sequence.sampled for sequence in sequences], ranks.size)[ranks.rank]
    return [sequences[index] for index in share]


def shares(sequences: Sequence[SampledSequence], size: int) -> list[list[int]]:
    """Return the indices of each rank's sequences: the largest lot first, to who has least.

    A lot is of one prompt, which its rank computes once (see `PackedRow`) and which is counted
    once; its positions are bounded, so that no large group is one rank's alone. Shares are disjoint
    and together all sequences; a rank may get none.

    Args:
        sequences: In any order.
        size: Number of ranks.
    """
    largest = sum(len(sequence.token_ids) for sequence in sequences) / (_LOTS_A_RANK * size)
    lots: list[list[int]] = []
    sizes: list[int] = []
    for group in by_prompt(sequences):
        for place, index in enumerate(group):
            length = len(sequences[index].token_ids)
            own = length - sequences[index].num_prompt_ids
            if place and sizes[-1] + own <= largest:
                lots[-1].append(index)
                sizes[-1] += own
            else:
                lots.append([index])
                sizes.append(length)
    loads = [(0, rank) for rank in range(size)]
    found: list[list[int]] = [[] for _ in range(size)]
    for positions, lot in sorted(zip(sizes, lots, strict=True), key=lambda sized: -sized[0]):
        load, rank = heapq.heappop(loads)
        heapq.heappush(loads, (load + positions, rank))
        found[rank] += lot
    return found


def _sum_bucket(parameters: Sequence[nn.Parameter]) -> None:
    gradients = [_gradient(parameter) for parameter in parameters]
    flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
    dist.all_reduce(flat)
    start = 0
    for gradient in gradients:
        gradient.copy_(flat[start : start + gradient.numel()].view_as(gradient))
        start += gradient.numel()


def _gradient(parameter: nn.Parameter) -> Tensor:
    assert parameter.grad is not None
    return parameter.grad
