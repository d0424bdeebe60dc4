"""Optimizers and the learning rate over time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from rllm_learn.core.precision import MasterWeights
from rllm_learn.core.sharding import part_of, whole


@dataclass(frozen=True, slots=True)
class LearningRate:
    """Learning rate as a function of the update: a linear warm-up, then constant or a cosine.

    An update is what one batch does, in however many optimizer steps: those of a batch stand
    between its number and the next.
    """

    peak: float
    """Reached after the warm-up; above 0."""
    warmup_updates: int = 0
    """Update i < warmup gets peak * (i + 1) / (warmup + 1)."""
    decay: Literal["constant", "cosine"] = "constant"
    total_updates: int = 0
    """Where the cosine reaches 0; read by `cosine` only. Loshchilov and Hutter 2016, "SGDR"."""

    def at(self, update: float) -> float:
        """Return the rate at a place among the updates, counted from 0: 2.5 is in the third."""
        if update < self.warmup_updates:
            return self.peak * (update + 1) / (self.warmup_updates + 1)
        if self.decay == "constant":
            return self.peak
        done = (update - self.warmup_updates) / max(self.total_updates - self.warmup_updates, 1)
        return self.peak * 0.5 * (1.0 + math.cos(math.pi * min(done, 1.0)))


class Optimizers:
    """AdamW over everything, or Muon over the inner matrices and AdamW over the rest.

    Loshchilov and Hutter 2017, "Decoupled Weight Decay Regularization"; Jordan et al. 2024,
    "Muon". Muon leaves a plateau in several times fewer updates when a model starts from
    nothing; AdamW is what adapters and pretrained models are tuned with.
    """

    def __init__(
        self,
        parameters: Mapping[str, nn.Parameter],
        *,
        betas: tuple[float, float],
        weight_decay: float = 0.0,
        muon_learning_rate: float | None = None,
    ):
        """Build them with a rate of 0; `step` sets it.

        Args:
            parameters: What is learned, by name.
            betas: Of AdamW.
            weight_decay: Of AdamW, at least 0.
            muon_learning_rate: Peak rate of Muon relative to AdamW's schedule; None for AdamW
                alone.
        """
        inner = {
            name: p
            for name, p in parameters.items()
            if muon_learning_rate is not None and p.ndim == 2 and "embed" not in name
        }
        rest = [p for name, p in parameters.items() if name not in inner]
        self._muon_learning_rate = muon_learning_rate
        self.all: list[torch.optim.Optimizer] = [
            torch.optim.AdamW(rest, lr=0.0, betas=betas, weight_decay=weight_decay)
        ]
        if inner:
            self.all.append(
                torch.optim.Muon(list(inner.values()), lr=0.0, momentum=0.95, weight_decay=0.0)
            )

    def step(self, learning_rate: float, *, peak: float) -> None:
        """Apply the gradients, with Muon's rate following the same curve as AdamW's.

        Args:
            learning_rate: AdamW's rate now.
            peak: AdamW's highest rate, above 0.
        """
        for optimizer in self.all:
            rate = learning_rate
            if isinstance(optimizer, torch.optim.Muon) and self._muon_learning_rate is not None:
                rate = self._muon_learning_rate * learning_rate / peak
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()

    def state_dict(self, *, keeps: bool = True) -> list[dict]:
        """Return the state of each optimizer, on the CPU.

        Args:
            keeps: False returns it without averages: this rank only helps others to gather them.
        """
        return [_mapped(o.state_dict(), lambda _, t: _gathered(t, keeps)) for o in self.all]

    def load_state_dict(self, states: list[dict]) -> None:
        """Restore what `state_dict` returned, whole on every rank."""
        for optimizer, state in zip(self.all, states, strict=True):
            held = [p for group in optimizer.param_groups for p in group["params"]]

            def own(index: int, tensor: Tensor, held: list[nn.Parameter] = held) -> Tensor:
                # The number of steps is a tensor of another shape, and the same on every rank.
                # Copies: steps change them in place, and a state may be loaded more than once.
                return (part_of(tensor, held[index]) if tensor.ndim else tensor).clone()

            optimizer.load_state_dict(_mapped(state, own))


class ParameterGroup:
    """Parameters that are clipped together and follow one schedule: the policy's, or the critic's.

    Apart from each other, so that the size of one's gradient does not scale the other's down.
    """

    def __init__(
        self,
        parameters: Mapping[str, nn.Parameter],
        learning_rate: LearningRate,
        *,
        betas: tuple[float, float],
        weight_decay: float,
        muon_learning_rate: float | None = None,
    ):
        """Take them, and make their optimizers.

        Args:
            parameters: By name.
            learning_rate: Over the updates.
            betas: See `Optimizers`.
            weight_decay: See `Optimizers`.
            muon_learning_rate: See `Optimizers`.
        """
        self._masters = MasterWeights(parameters)
        self.parameters = self._masters.parameters
        """What takes the updates: float32 copies of weights in low precision."""
        self.learning_rate = learning_rate
        self.optimizers = Optimizers(
            self.parameters,
            betas=betas,
            weight_decay=weight_decay,
            muon_learning_rate=muon_learning_rate,
        )

    def normalize(self, count: float, max_norm: float) -> float:
        """Divide the gradients by a count and scale them down to a 2-norm.

        Returns:
            Their norm before it was bounded, over the parts of all ranks.
        """
        for parameter in self.parameters.values():
            if parameter.grad is not None:
                parameter.grad.div_(count)
        norm = nn.utils.clip_grad_norm_(list(self.parameters.values()), max_norm)
        return whole(norm).item()

    def step(self, update: float) -> None:
        """Apply the gradients at the rate of a place among the updates."""
        self.optimizers.step(self.learning_rate.at(update), peak=self.learning_rate.peak)
        self._masters.publish()

    def state_dict(self, *, keeps: bool = True) -> dict[str, Any]:
        """Return parameters and the optimizers' state, whole, on the CPU.

        Args:
            keeps: False returns them empty: this rank only helps others to gather them.
        """
        parameters = {name: _gathered(p.detach(), keeps) for name, p in self.parameters.items()}
        return {"parameters": parameters, "optimizers": self.optimizers.state_dict(keeps=keeps)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned.

        Raises:
            ValueError: The state is of another model or another set of trained parameters.
        """
        saved = state["parameters"]
        if saved.keys() != self.parameters.keys():
            other = sorted(saved.keys() ^ self.parameters.keys())[:3]
            raise ValueError(
                f"the state holds other parameters than are trained here, for example {other}; "
                "resume with the model and the LoRA rank that it was saved with"
            )
        for name, parameter in self.parameters.items():
            if parameter.shape != saved[name].shape:
                raise ValueError(
                    f"{name} has shape {tuple(parameter.shape)} here and "
                    f"{tuple(saved[name].shape)} in the state"
                )
            parameter.data.copy_(part_of(saved[name].to(parameter.dtype), parameter))
        self._masters.publish()
        self.optimizers.load_state_dict(state["optimizers"])


def _gathered(tensor: Tensor, keeps: bool) -> Tensor:
    found = whole(tensor)
    return found.cpu() if keeps else torch.empty(0)


def _mapped(state: dict[str, Any], change: Callable[[int, Tensor], Tensor]) -> dict[str, Any]:
    """Return an optimizer's state with each tensor changed, given its parameter's index."""
    return {
        **state,
        "state": {
            index: {
                key: change(index, value) if isinstance(value, Tensor) else value
                for key, value in own.items()
            }
            for index, own in state["state"].items()
        },
    }
