"""LoRA adapters as peft writes them: read, checked, and merged into a model's weights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from rllm_agents.errors import UserError

_PREFIX = "base_model.model."
_UNSUPPORTED = ("use_dora", "lora_bias", "rank_pattern", "alpha_pattern", "modules_to_save")


@dataclass(frozen=True)
class LoraAdapter:
    """An adapter's matrices. Made by `from_path`, merged by whoever loads it."""

    config: Mapping[str, Any]
    """What `adapter_config.json` holds."""
    tensors: Mapping[str, Tensor]
    """By the names of `adapter_model.safetensors`."""

    @classmethod
    def from_path(cls, path: str | Path) -> LoraAdapter:
        """Read an adapter's directory.

        Raises:
            UserError: There is none, it is damaged, or of a kind that cannot be merged.
        """
        directory = Path(path).expanduser()
        try:
            config = json.loads((directory / "adapter_config.json").read_text("utf-8"))
            tensors = load_file(directory / "adapter_model.safetensors")
        except (OSError, ValueError, SafetensorError) as error:
            raise UserError(f"{str(path)!r} holds no LoRA adapter: {error}") from error
        if not isinstance(config, dict) or config.get("peft_type") != "LORA":
            raise UserError(f"{str(path)!r} holds no LoRA adapter, its adapter_config.json says")
        for name in _UNSUPPORTED:
            if config.get(name):
                raise UserError(f"the adapter in {str(path)!r} has {name}, which is not supported")
        if config.get("bias", "none") != "none":
            raise UserError(f"the adapter in {str(path)!r} trains biases, which is not supported")
        return cls(config, tensors)

    @property
    def weight_names(self) -> list[str]:
        """Names of the model's weights that it changes."""
        ends = ".lora_A.weight"
        names = [name for name in self.tensors if name.endswith(ends)]
        return [name.removeprefix(_PREFIX).removesuffix(ends) + ".weight" for name in names]

    def merged(self, base: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return W + (alpha / r) B A of each weight it changes (Hu et al. 2021, "LoRA").

        With `use_rslora` the factor is alpha / sqrt(r). Computed in float32.

        Args:
            base: The model's own weights by name.

        Raises:
            UserError: A matrix is missing, or shapes are not those of the model.
        """
        rank, alpha = self.config.get("r", 0), self.config.get("lora_alpha", 0)
        scale = alpha / (rank**0.5 if self.config.get("use_rslora") else rank)
        merged = {}
        for name in self.weight_names:
            key = _PREFIX + name.removesuffix(".weight")
            down, up = (
                self.tensors[f"{key}.lora_A.weight"],
                self.tensors.get(f"{key}.lora_B.weight"),
            )
            weight = base[name]
            if up is None or (up.shape[0], down.shape[1]) != tuple(weight.shape):
                raise UserError(
                    f"the adapter's matrices of {name} do not fit the model's shape "
                    f"{tuple(weight.shape)}; is it an adapter of this model?"
                )
            change = scale * (up.float() @ down.float())
            merged[name] = (weight.float() + change).to(weight.dtype)
        if not merged:
            raise UserError("the adapter changes no weight")
        return merged

    def is_finite(self) -> bool:
        """Whether every number is finite."""
        return all(bool(torch.isfinite(tensor).all()) for tensor in self.tensors.values())
