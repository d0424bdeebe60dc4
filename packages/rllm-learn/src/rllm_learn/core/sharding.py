"""Weights split over the ranks of a process group, by FSDP2.

Zhao et al. 2023, "PyTorch FSDP". Of each matrix a rank holds some rows, and of its gradient and its
optimizer's averages the same rows. The whole of one layer is gathered while it computes, forward
and backward, and let go again.

Every rank has to pass forward and backward equally often, because each pass is a meeting of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

LOW_PRECISION = (torch.bfloat16, torch.float16)
"""In which a weight cannot take an update that is small beside it."""


class Pass(nn.Module):
    """Modules that compute together, in one call: what FSDP gathers, it gathers around the call."""

    def __init__(self, *modules: nn.Module) -> None:
        """Take the modules; they stay usable by themselves where weights are not split."""
        super().__init__()
        self.members = nn.ModuleList(modules)

    def forward(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a function returns that uses the modules.

        Args:
            function: Returns a tensor or a tuple of tensors.
            arguments: Of the function.
        """
        return function(*arguments)

    def release(self) -> None:
        """Let go of weights that are still gathered, because a pass ended with an error."""
        for unit in self.modules():
            if isinstance(unit, FSDPModule):
                unit.reshard()


def shard(module: Pass, mesh: DeviceMesh) -> None:
    """Split a module's weights over the ranks of a mesh, and move them to its device.

    Trained weights in low precision become float32, which takes the updates; they are gathered, and
    compute, in the precision that they had. Gradients are summed over ranks in float32 at least,
    and not averaged.

    Args:
        module: Not split before, equal on all ranks.
        mesh: Of one dimension.

    Raises:
        ValueError: A trained weight is part of two layers.
    """
    units = list(_units(module))
    _separate(units)
    for unit in units:
        fully_shard(unit, mesh=mesh, reshard_after_forward=True, mp_policy=_precision_of(unit))
        assert isinstance(unit, FSDPModule)
        unit.set_gradient_divide_factor(1.0)
        unit.set_force_sum_reduction_for_comms(True)


def whole(tensor: Tensor) -> Tensor:
    """Return a tensor of which this rank may hold a part alone; then all ranks have to call."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def part_of(tensor: Tensor, like: Tensor) -> Tensor:
    """Return the part of a whole tensor that this rank holds of another one of its shape.

    Args:
        tensor: Whole, equal on all ranks.
        like: Split or not; says which part, and on which device.
    """
    if not isinstance(like, DTensor):
        return tensor
    moved = tensor.to(like.device)
    # None: each rank cuts its part out of what it has, and nothing is sent.
    return distribute_tensor(moved, like.device_mesh, like.placements, src_data_rank=None)


def _units(module: Pass) -> Iterator[nn.Module]:
    """Yield the layers, innermost first, and last the module with all that is in none."""
    kinds = {
        kind for part in module.modules() for kind in getattr(part, "_no_split_modules", None) or ()
    }
    for part in reversed(list(module.modules())):
        if type(part).__name__ in kinds:
            yield part
    yield module


def _separate(units: list[nn.Module]) -> None:
    """Give each unit its own copy of a frozen weight that it shares with another.

    A critic's trunk shares those of the policy; a unit can only gather what is its own.
    """
    unit_of: dict[int, int] = {}
    for index, unit in enumerate(units):
        for part in unit.modules():
            unit_of.setdefault(id(part), index)
    owner: dict[int, int] = {}
    for part in units[-1].modules():
        for name, parameter in part.named_parameters(recurse=False):
            index = unit_of[id(part)]
            if owner.setdefault(id(parameter), index) == index:
                continue
            if parameter.requires_grad:
                raise ValueError(
                    f"{name} of {type(part).__name__} is trained and part of two layers, which "
                    "cannot be split over ranks: use sharding='replicate'"
                )
            setattr(part, name, nn.Parameter(parameter.detach().clone(), requires_grad=False))


def _precision_of(unit: nn.Module) -> MixedPrecisionPolicy:
    """Make trained weights of a unit float32, and return in what they are to compute."""
    dtypes = set()
    for parameter in unit.parameters():
        if parameter.requires_grad and parameter.dtype in LOW_PRECISION:
            dtypes.add(parameter.dtype)
            parameter.data = parameter.data.float()
    if not dtypes:
        return MixedPrecisionPolicy()
    return MixedPrecisionPolicy(param_dtype=dtypes.pop(), reduce_dtype=torch.float32)
