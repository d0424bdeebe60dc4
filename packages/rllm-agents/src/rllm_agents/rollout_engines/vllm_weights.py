"""What can be pushed into a running vLLM: names, ties and fused groups of a model's weights.

vLLM stores some matrices together (query, key and value; gate and up) with their biases, and
loads such a module only as a whole: a part of it leaves the rest undefined, without an error.
`WeightPlan` completes what comes from the checkpoint, or refuses it.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig, PreTrainedModel

from rllm_agents.errors import EngineError, UserError
from rllm_agents.rollout_engines.checkpoint_files import read_weights
from rllm_agents.rollout_engines.weight_loading import WeightSlot, check_weights

_MEMORY_DIR = Path("/dev/shm")


def load_outline(path: Path) -> PreTrainedModel:
    """Return a model without values: its names, shapes, ties and configurations.

    Raises:
        UserError: The directory holds no causal language model.
    """
    try:
        config = AutoConfig.from_pretrained(path)
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config)
        if (path / "generation_config.json").is_file():
            model.generation_config = GenerationConfig.from_pretrained(path)
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"cannot load a causal language model from {path}: {error}") from error
    return model


class WeightPlan:
    """Turns new weights into a set that vLLM can load."""

    def __init__(
        self, outline: PreTrainedModel, checkpoint: Path, fused: Mapping[str, Sequence[str]]
    ) -> None:
        """Work out names and groups.

        Args:
            outline: The model, values not needed.
            checkpoint: Directory of the weights that the engine was started with.
            fused: Name of each module that vLLM makes of several -> the names of those.
        """
        named = outline.state_dict(keep_vars=True)
        self._slots = {name: WeightSlot(t.shape, id(t)) for name, t in named.items()}
        self._checkpoint = checkpoint
        self._fused_name = {part: whole for whole, parts in fused.items() for part in parts}
        self._groups: dict[str, list[str]] = defaultdict(list)
        for name in named:
            self._groups[self._group_of(name)].append(name)
        self._pushed: set[str] = set()

    def complete(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the tensors, and what vLLM must load together with them.

        The rest of a group is taken from the checkpoint, where it has never been pushed.

        Raises:
            EngineError: A name or shape is not the model's, or the rest of a group was pushed
                before and is missing now.
        """
        checked = check_weights(self._slots, tensors)
        missing = [
            other
            for group in dict.fromkeys(map(self._group_of, checked))
            for other in self._groups[group]
            if other not in checked
        ]
        stale = [name for name in missing if name in self._pushed]
        if stale:
            raise EngineError(
                f"vLLM holds {', '.join(stale)} in one matrix with some of the weights that "
                "were sent, and cannot change a part of it; send them together"
            )
        try:
            return {**checked, **read_weights(self._checkpoint, missing)}
        except EngineError as error:
            raise EngineError(
                f"vLLM needs {', '.join(missing)} beside the weights that were sent: {error}; "
                "send them too"
            ) from error

    def note(self, names: Sequence[str]) -> None:
        """Remember which weights are no longer those of the checkpoint."""
        self._pushed.update(names)

    def _group_of(self, name: str) -> str:
        """Return the module that vLLM keeps a weight in."""
        path, _, _ = name.rpartition(".")
        parent, _, module = path.rpartition(".")
        return f"{parent}.{self._fused_name.get(module, module)}"


@contextmanager
def weights_file(tensors: Mapping[str, Tensor]) -> Iterator[Path]:
    """Write tensors to a safetensors file, in memory where the system has a place for that."""
    place = _MEMORY_DIR if _MEMORY_DIR.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="rllm-weights-", dir=place) as directory:
        path = Path(directory) / "weights.safetensors"
        save_file({name: t.detach().cpu().contiguous() for name, t in tensors.items()}, path)
        yield path
