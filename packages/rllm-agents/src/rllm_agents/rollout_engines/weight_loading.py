"""Copy published weights into a model that is in use."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from rllm_agents.errors import EngineError


def copy_weights(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Overwrite parameters and persistent buffers in place, all or none.

    Tied weights share their memory, so one name of a tie suffices; under several names the values
    must agree.

    Args:
        model: Whose `state_dict` gives the names.
        tensors: New values by name; any subset, dtype and device.

    Raises:
        EngineError: A name is unknown, a shape differs, a value is no tensor, or two names of one
            tied weight come with different values. Nothing is changed then.
    """
    targets: dict[str, Tensor] = model.state_dict(keep_vars=True)
    by_memory: dict[int, str] = {}
    for name, tensor in tensors.items():
        target = targets.get(name)
        if target is None:
            nearest = difflib.get_close_matches(name, targets, n=3)
            raise EngineError(
                f"the model has no weight {name!r}; nearest: {', '.join(nearest) or 'none'}"
            )
        if not isinstance(tensor, Tensor):
            raise EngineError(f"weight {name!r} must be a tensor, got {type(tensor).__name__}")
        if tensor.shape != target.shape:
            raise EngineError(
                f"weight {name!r} must have shape {tuple(target.shape)}, got {tuple(tensor.shape)}"
            )
        twin = by_memory.setdefault(target.data_ptr(), name)
        if twin != name and not torch.equal(tensors[twin].to(tensor), tensor):
            raise EngineError(f"{twin!r} and {name!r} are one tied weight but their values differ")
    with torch.no_grad():
        for name, tensor in tensors.items():
            targets[name].copy_(tensor)
