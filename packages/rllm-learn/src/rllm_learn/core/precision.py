"""Weights that compute in low precision, and their float32 copies, which take the updates."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from rllm_learn.core.sharding import LOW_PRECISION


class MasterWeights:
    """What the optimizer steps: each weight, or a float32 copy where it has low precision.

    Two neighbouring numbers of bfloat16 are 1/256 to 1/128 of their size apart, and a usual update
    is smaller, so that without the copies most weights would never move. Gradients of micro-batches
    are added up in float32 too. Micikevicius et al. 2017, "Mixed Precision Training".
    """

    def __init__(self, parameters: Mapping[str, nn.Parameter]):
        """Make the copies, and let gradients of the originals be added to theirs.

        Args:
            parameters: What is learned, by name. Their own `grad` is None after each backward pass
                where there is a copy.
        """
        self._originals = {n: p for n, p in parameters.items() if p.dtype in LOW_PRECISION}
        copies = {n: nn.Parameter(p.detach().float()) for n, p in self._originals.items()}
        self.parameters = {name: copies.get(name, p) for name, p in parameters.items()}
        """What the optimizer is given, by name."""
        for name, original in self._originals.items():
            original.register_post_accumulate_grad_hook(_Mover(copies[name]))

    @torch.no_grad()
    def publish(self) -> None:
        """Round the copies to the weights that compute."""
        for name, original in self._originals.items():
            original.copy_(self.parameters[name])


class _Mover:
    """Adds a gradient to that of a copy."""

    def __init__(self, copy: nn.Parameter):
        self._copy = copy

    def __call__(self, original: Tensor) -> None:
        assert original.grad is not None
        if self._copy.grad is None:
            self._copy.grad = original.grad.float()
        else:
            self._copy.grad += original.grad
        original.grad = None
