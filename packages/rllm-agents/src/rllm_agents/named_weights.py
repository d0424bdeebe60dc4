"""Several sets of weights of one model that sample in one engine: learned ones and frozen ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rllm_agents.adapter_turns import AdapterTurns
from rllm_agents.errors import EngineError
from rllm_agents.rollout_engines.base import RolloutEngine
from rllm_agents.types import Completion, GenerationRequest

if TYPE_CHECKING:
    from torch import Tensor

POLICY = "policy"
"""The set that a request without a name is sampled by."""
MARK = ":"
"""Stands between the name of a set and that of a weight, in `load_weights`."""


class NamedWeightsEngine:
    """A rollout engine whose requests say which set of weights samples them.

    The sets take turns: completions of one are sampled together, and weights are exchanged between
    them. Each set is that of the model as it lies on disk but for the weights that it changes. A
    completion carries the version under which its own set was loaded, whatever the others do.

    Args:
        engine: Samples; its `load_weights` takes whole weights.
        model: Directory of the model that the engine was made with.
        adapters: Names of the sets, beside "policy", and the LoRA adapter's directory that a
            frozen one holds; None for a set that is the model itself until it is loaded.

    Raises:
        UserError: A directory holds no adapter, or none of this model's.
    """

    def __init__(
        self, engine: RolloutEngine, model: Path, adapters: Mapping[str, str | Path | None]
    ) -> None:
        self._engine: Any = engine
        self._model = model
        self._sets: dict[str, tuple[dict[str, Tensor], int]] = {POLICY: ({}, 0)}
        for name, path in adapters.items():
            self._sets[name] = ({} if path is None else _merged(path, model), 0)
        self._turns = AdapterTurns(self)
        self._held: str | None = POLICY
        self._held_version = 0
        self._changed: set[str] = set()
        self._num_exchanges = 0

    @property
    def adapter(self) -> str | None:
        """The set that samples now; None where a newer one of its name waits to be loaded."""
        return self._held

    @property
    def weights_version(self) -> int:
        """Highest version of a set."""
        return max(version for _, version in self._sets.values())

    @property
    def max_model_length(self) -> int | None:
        """Most tokens of a prompt and its completion; None: no bound."""
        return getattr(self._engine, "max_model_length", None)

    @property
    def is_alive(self) -> bool:
        """Whether the engine can answer."""
        return getattr(self._engine, "is_alive", True)

    async def generate(self, request: GenerationRequest) -> Completion:
        """Sample one completion when it is the turn of its set.

        Raises:
            EngineError: There is no such set, or the engine cannot answer the request.
        """
        name = request.adapter or POLICY
        if name not in self._sets:
            raise EngineError(
                f"no set of weights is named {name!r:.80}; there are {', '.join(self._sets)}"
            )
        async with self._turns.turn(name):
            version = self._held_version
            completion = await self._engine.generate(replace(request, adapter=""))
        return replace(completion, weights_version=version, version_spans=())

    async def load_weights(self, tensors: Mapping[str, Tensor], *, version: int) -> None:
        """Replace whole sets; completions that begin afterwards carry `version`.

        Args:
            tensors: By ``<set>:<weight>``, or by the weight's name for the set "policy". A set
                that occurs is the model with these weights; the others stay.
            version: Of all sets that occur.

        Raises:
            EngineError: There is no such set; nothing is changed then.
        """
        found: dict[str, dict[str, Tensor]] = defaultdict(dict)
        for key, tensor in tensors.items():
            name, _, weight = key.rpartition(MARK)
            found[name or POLICY][weight] = tensor
        unknown = found.keys() - self._sets.keys()
        if unknown:
            raise EngineError(
                f"no set of weights is named {', '.join(sorted(unknown))}; there are "
                f"{', '.join(self._sets)}"
            )
        for name, weights in found.items():
            self._sets[name] = weights, version
            if self._held == name:
                self._held = None

    async def activate(self, name: str | None) -> None:
        """Load a set; nothing is being sampled meanwhile."""
        from rllm_agents.rollout_engines.checkpoint_files import read_weights  # loads torch

        assert name is not None  # every request is somebody's
        weights, version = self._sets[name]
        restored = read_weights(self._model, sorted(self._changed - weights.keys()))
        tensors = {**restored, **weights}
        if tensors:
            self._num_exchanges += 1
            await self._engine.load_weights(tensors, version=self._num_exchanges)
        self._changed = set(weights)
        # A newer one may have come while this one was being loaded.
        self._held = name if self._sets[name][0] is weights else None
        self._held_version = version

    async def sleep(self) -> None:
        """Let the engine, which must be vLLM's, sleep until it is needed again.

        Raises:
            EngineError: It cannot.
        """
        await self._engine.sleep()

    def close(self) -> None:
        """Free the engine's resources; again does nothing."""
        self._engine.close()


def _merged(path: str | Path, model: Path) -> dict[str, Tensor]:
    """Return the weights that an adapter changes, merged in float32."""
    from rllm_agents.rollout_engines.adapters import LoraAdapter  # loads torch
    from rllm_agents.rollout_engines.checkpoint_files import read_weights

    adapter = LoraAdapter.from_path(path)
    base = read_weights(model, adapter.weight_names)
    return adapter.merged({name: weight.float() for name, weight in base.items()})
