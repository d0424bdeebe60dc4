"""The critic: what is still to be earned from each state, learned beside the policy."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import peft
import torch
from torch import Tensor, nn

from rllm_learn.core.optimizer import LearningRate


@dataclass(frozen=True, slots=True)
class CriticRule:
    """Which critic there is, and at which rate it learns. Made from a configuration."""

    shares_trunk: bool
    """Whether it is a head on the policy's own trunk, or a model of its own."""
    learning_rate: LearningRate
    """Of the head, and of the critic's own trunk."""


class ValueHead(nn.Linear):
    """From a hidden state to one value, in float32 at least."""


class Critic(nn.Module):
    """A linear head on the last hidden states of a trunk.

    The value of an id is read where the id is predicted, before it is known. The head starts at 0,
    so that nothing is expected before anything was seen.
    """

    def __init__(self, policy: nn.Module, *, shares_trunk: bool):
        """Make a critic for a policy.

        Args:
            policy: A causal language model of transformers, with adapters of peft or not.
            shares_trunk: Whether hidden states are the policy's, whose trunk then learns values
                too. Else the critic starts as a copy of the trunk: with LoRA of the adapters alone,
                since frozen weights are the same tensors; else of all of it.

        Raises:
            ValueError: The policy has no trunk that gives hidden states.
        """
        super().__init__()
        model: Any = policy.get_base_model() if isinstance(policy, peft.PeftModel) else policy
        if not hasattr(model, "get_decoder"):
            raise ValueError(
                "a critic needs the hidden states of a transformers model, and "
                f"{type(model).__name__} has no get_decoder()"
            )
        decoder = model.get_decoder()
        self.trunk: nn.Module | None = None
        if not shares_trunk:
            frozen = {id(p): p for p in decoder.parameters() if not p.requires_grad}
            self.trunk = copy.deepcopy(decoder, frozen)
        first = next(decoder.parameters())
        self.head = ValueHead(
            model.config.get_text_config().hidden_size,
            1,
            device=first.device,
            dtype=torch.promote_types(first.dtype, torch.float32),
        )
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def values_of(self, states: Tensor) -> Tensor:
        """Return the values (N,) of hidden states (N, H) of the critic's trunk."""
        return self.head(states.to(self.head.weight.dtype)).squeeze(-1)
