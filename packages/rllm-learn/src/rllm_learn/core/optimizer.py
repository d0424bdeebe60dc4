"""Optimizers and the learning rate over time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn


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

    def state_dict(self) -> list[dict]:
        """Return the state of each optimizer."""
        return [optimizer.state_dict() for optimizer in self.all]

    def load_state_dict(self, states: list[dict]) -> None:
        """Restore what `state_dict` returned."""
        for optimizer, state in zip(self.all, states, strict=True):
            optimizer.load_state_dict(state)


class ParameterGroup:
    """Parameters that are clipped together and follow one schedule: the policy's, or the critic's.

    Apart from each other, so that the size of one's gradient does not scale the other's down.
    """

    def __init__(
        self,
        parameters: Mapping[str, nn.Parameter],
        learning_rate: LearningRate,
        optimizers: Optimizers,
    ):
        """Take them.

        Args:
            parameters: By name.
            learning_rate: Over the updates.
            optimizers: Of these parameters.
        """
        self.parameters = dict(parameters)
        self.learning_rate = learning_rate
        self.optimizers = optimizers

    def normalize(self, count: float, max_norm: float) -> float:
        """Divide the gradients by a count and scale them down to a 2-norm.

        Returns:
            Their norm before it was bounded.
        """
        for parameter in self.parameters.values():
            if parameter.grad is not None:
                parameter.grad.div_(count)
        return nn.utils.clip_grad_norm_(list(self.parameters.values()), max_norm).item()

    def step(self, update: float) -> None:
        """Apply the gradients at the rate of a place among the updates."""
        self.optimizers.step(self.learning_rate.at(update), peak=self.learning_rate.peak)

    def state_dict(self) -> dict[str, Any]:
        """Return parameters and the optimizers' state."""
        return {
            "parameters": {name: p.detach().cpu() for name, p in self.parameters.items()},
            "optimizers": self.optimizers.state_dict(),
        }

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
            parameter.data.copy_(saved[name])
        self.optimizers.load_state_dict(state["optimizers"])
