"""Check published weights against a model, and copy them into one that is in use."""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rllm_agents.errors import EngineError


@dataclass(frozen=True, slots=True)
class WeightSlot:
    """One weight of a model under one of its names. Made from a model, read by the check."""

    shape: torch.Size
    identity: Hashable
    """Equal for the names of one tied weight."""


def check_weights(
    slots: Mapping[str, WeightSlot], tensors: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Refuse weights that are not the model's.

    Args:
        slots: The model's weights by name.
        tensors: New values by name; any subset, dtype and device.

    Returns:
        One entry for each weight, under the first of its names that came.

    Raises:
        EngineError: A name is unknown, a shape differs, a value is no tensor, or two names of one
            tied weight come with different values.
    """
    first_names: dict[Hashable, str] = {}
    for name, tensor in tensors.items():
        slot = slots.get(name)
        if slot is None:
            nearest = difflib.get_close_matches(name, slots, n=3)
            raise EngineError(
                f"the model has no weight {name!r}; nearest: {', '.join(nearest) or 'none'}"
            )
        if not isinstance(tensor, Tensor):
            raise EngineError(f"weight {name!r} must be a tensor, got {type(tensor).__name__}")
        if tensor.shape != slot.shape:
            raise EngineError(
                f"weight {name!r} must have shape {tuple(slot.shape)}, got {tuple(tensor.shape)}"
            )
        twin = first_names.setdefault(slot.identity, name)
        if twin != name and not torch.equal(tensors[twin].to(tensor), tensor):
            raise EngineError(f"{twin!r} and {name!r} are one tied weight but their values differ")
    return {name: tensors[name] for name in first_names.values()}


def copy_weights(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Overwrite parameters and persistent buffers in place, all or none.

    Tied weights share their memory, so one name of a tie suffices; under several names the values
    must agree.

    Args:
        model: Whose `state_dict` gives the names.
        tensors: New values by name; any subset, dtype and device.

    Raises:
        EngineError: As `check_weights` says. Nothing is changed then.
    """
    targets: dict[str, Tensor] = model.state_dict(keep_vars=True)
    slots = {name: WeightSlot(t.shape, t.data_ptr()) for name, t in targets.items()}
    with torch.no_grad():
        for name, tensor in check_weights(slots, tensors).items():
            targets[name].copy_(tensor)
