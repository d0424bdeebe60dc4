"""Load the policy: a causal language model, with LoRA adapters or in full."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import peft
import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM

from rllm_learn.core.sharding import whole


@dataclass(frozen=True, slots=True)
class PolicySpec:
    """Which model is trained, and which part of it. Made from a configuration, read here."""

    path: Path
    """A directory that transformers' `from_pretrained` reads."""
    lora_rank: int = 8
    """Rank of the adapters on every linear layer but the head; 0 trains all parameters."""
    lora_alpha: float = 16.0
    """Adapters are scaled by alpha / rank."""
    dtype: str = "float32"
    """Of the weights that compute: `float32`, `bfloat16` or `float16`. Adapters are float32 always,
    and the learner steps float32 copies of trained weights that are not."""
    device: str = "cpu"
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass: less memory, about a third more time."""
    seed: int = 0
    """Draws the adapters' first values."""


def load_policy(spec: PolicySpec) -> nn.Module:
    """Load the model and make exactly what is trained require gradients.

    Hu et al. 2021, "LoRA": W + (alpha / r) B A, B starting at zero, so that the policy starts as
    the model that was loaded.

    Returns:
        The model, in evaluation mode (no dropout: the logprobs learned from must be those that
        were sampled from); a `peft.PeftModel` with LoRA.
    """
    model: Any = AutoModelForCausalLM.from_pretrained(spec.path, dtype=getattr(torch, spec.dtype))
    if spec.gradient_checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
        model.enable_input_require_grads()
    if spec.lora_rank:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(spec.seed)
            model = peft.get_peft_model(
                model,
                peft.LoraConfig(
                    r=spec.lora_rank,
                    lora_alpha=spec.lora_alpha,  # pyright: ignore[reportArgumentType]
                    target_modules="all-linear",
                    task_type="CAUSAL_LM",
                ),
            )
    model.to(spec.device)
    # Checkpointing is only active in training mode; these models have no other use for it.
    model.train(spec.gradient_checkpointing)
    return model


def trainable_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters that learn, by name, in the model's order."""
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


def has_adapters(model: nn.Module) -> bool:
    """Whether LoRA adapters learn, and not the model's own parameters."""
    return isinstance(model, peft.PeftModel)


@contextmanager
def without_adapters(model: nn.Module) -> Iterator[None]:
    """Let a model with LoRA adapters predict as it did when it was loaded.

    Raises:
        ValueError: The model has no adapters.
    """
    if not isinstance(model, peft.PeftModel):
        raise ValueError("the policy has no LoRA adapters to switch off")
    with model.disable_adapter():
        yield


def merged_weights(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Yield what differs from the model as loaded, under the loaded model's parameter names.

    With LoRA that is W + (alpha / r) B A of each adapted layer, computed in float32; without it,
    every trainable parameter. A sampler that copies these holds the policy's weights exactly.
    Where weights are split over ranks, one tensor after the other is gathered, on all of them.

    Yields:
        Name, and a tensor that shares no memory with the model.
    """
    if not isinstance(model, peft.PeftModel):
        for name, parameter in trainable_parameters(model).items():
            yield name, _copy(parameter)
        return
    for name, module in model.get_base_model().named_modules():
        # Only linear layers are adapted (`target_modules="all-linear"`), so this finds them all.
        if isinstance(module, peft.tuners.lora.Linear):
            layer: Any = module
            base: Any = layer.get_base_layer()
            merged = whole(base.weight.detach()).float()
            for adapter in layer.active_adapters:
                down, up = layer.lora_A[adapter].weight, layer.lora_B[adapter].weight
                product = whole(up.detach()) @ whole(down.detach())
                merged = merged + (product * layer.scaling[adapter]).float()
            yield f"{name}.weight", merged.to(base.weight.dtype)


def adapter_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return the LoRA matrices under the names of peft's adapter files.

    Returns:
        Copies, which share no memory with the model.

    Raises:
        ValueError: The model has no adapters.
    """
    if not isinstance(model, peft.PeftModel):
        raise ValueError("the policy has no LoRA adapters; train with model.lora_rank above 0")
    state = peft.get_peft_model_state_dict(model)
    return {name: _copy(tensor) for name, tensor in state.items()}


def save_policy(
    model: nn.Module, target: Path, *, dtypes: Mapping[str, torch.dtype], writes: bool = True
) -> None:
    """Write a policy as `save_pretrained` does: with LoRA the adapters, else the whole model.

    Args:
        model: As `load_policy` made it; its weights may be split over ranks, which then all call.
        target: Directory.
        dtypes: Of trained parameters by name, as they are to be written.
        writes: False only helps other ranks to gather.
    """
    state: dict[str, Tensor] = {}
    held: dict[int, Tensor] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if has_adapters(model) and not parameter.requires_grad:
            continue
        # Tied weights stay one tensor, so that they are written once.
        if id(parameter) not in held:
            found = whole(parameter.detach())
            held[id(parameter)] = found.to(dtypes.get(name, found.dtype)).cpu() if writes else found
        if writes:
            state[name] = held[id(parameter)]
        else:
            held[id(parameter)] = torch.empty(0)
    if writes:
        policy: Any = model
        buffers = {} if has_adapters(model) else policy.state_dict()
        policy.save_pretrained(target, state_dict={**buffers, **state})
        if not has_adapters(model) and len(set(dtypes.values())) == 1:
            # Split weights are float32 here, which the written configuration must not say.
            policy.config.dtype = next(iter(dtypes.values()))
            policy.config.save_pretrained(target)


def _copy(tensor: Tensor) -> Tensor:
    """Return a whole tensor that shares no memory."""
    found = whole(tensor.detach())
    return found.clone() if found.data_ptr() == tensor.data_ptr() else found


def adapter_config(spec: PolicySpec) -> dict[str, Any]:
    """Return what an `adapter_config.json` says of the adapters that `load_policy` makes.

    Raises:
        ValueError: The policy has no adapters.
    """
    if not spec.lora_rank:
        raise ValueError("the policy has no LoRA adapters; train with model.lora_rank above 0")
    return {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "r": spec.lora_rank,
        "lora_alpha": spec.lora_alpha,
        "target_modules": "all-linear",
        "bias": "none",
    }
