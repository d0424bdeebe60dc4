"""Read single weights of a checkpoint, without loading the model."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from safetensors import SafetensorError, safe_open
from torch import Tensor

from rllm_agents.errors import EngineError


def read_weights(checkpoint: Path, names: Sequence[str]) -> dict[str, Tensor]:
    """Return weights of a model directory by name.

    Args:
        checkpoint: A directory with safetensors files.
        names: As the files have them.

    Raises:
        EngineError: A file or a name is not there.
    """
    found: dict[str, Tensor] = {}
    try:
        for file, held in _files(checkpoint, names).items():
            with safe_open(checkpoint / file, framework="pt") as tensors:
                found.update({name: tensors.get_tensor(name) for name in held})
    except (OSError, KeyError, ValueError, SafetensorError) as error:
        raise EngineError(
            f"{', '.join(names[:3])} cannot be read from {checkpoint}: {error}"
        ) from error
    return found


def _files(checkpoint: Path, names: Sequence[str]) -> dict[str, list[str]]:
    """Return which file of the checkpoint holds which of the names."""
    index = checkpoint / "model.safetensors.index.json"
    weight_map = json.loads(index.read_text("utf-8"))["weight_map"] if index.is_file() else {}
    files: dict[str, list[str]] = defaultdict(list)
    for name in names:
        files[weight_map.get(name, "model.safetensors")].append(name)
    return files
