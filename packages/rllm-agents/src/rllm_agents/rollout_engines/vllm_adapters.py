"""LoRA adapters in a running vLLM: one for each version of the weights that is still in use."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors.torch import save_file
from torch import Tensor

from rllm_agents.errors import EngineError, UserError
from rllm_agents.rollout_engines.vllm_process import first_line

if TYPE_CHECKING:
    from vllm.lora.request import LoRARequest

VLLM_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Ranks that vLLM can be started with; adapters of a lower rank fit too."""

_MEMORY_DIR = Path("/dev/shm")


def vllm_rank(max_rank: int) -> int:
    """Return the rank to start vLLM with for adapters of at most `max_rank`.

    Raises:
        UserError: `max_rank` is out of range.
    """
    if not 1 <= max_rank <= VLLM_RANKS[-1]:
        raise UserError(f"max_lora_rank must be in [1, {VLLM_RANKS[-1]}], got {max_rank}")
    return next(rank for rank in VLLM_RANKS if rank >= max_rank)


@dataclass(slots=True)
class _Loaded:
    """An adapter that vLLM holds."""

    version: int
    request: LoRARequest
    num_users: int = 0
    """Completions that are being sampled with it."""


class AdapterVersions:
    """Keeps as many versions as vLLM can sample from at once; the newest is used.

    vLLM's process dies when a request names an adapter that it cannot find, and mixes up results
    when a name is used twice. So each version has a number, a name and a directory that no other
    has, is there before a request names it, and stays until the last of them has ended. All methods
    run on one event loop.
    """

    def __init__(self, engine: Any, *, max_rank: int, max_versions: int) -> None:
        """Take the engine.

        Args:
            engine: vLLM's `AsyncLLM`, started for LoRA.
            max_rank: Highest rank of an adapter.
            max_versions: Most adapters that are held at once, at least 2: the newest stays until
                its successor is there.
        """
        self._engine = engine
        self._max_rank = max_rank
        self._max_versions = max_versions
        place = _MEMORY_DIR if _MEMORY_DIR.is_dir() else None
        self._directory = Path(tempfile.mkdtemp(prefix="rllm-adapters-", dir=place))
        self._held: list[_Loaded] = []
        self._num_made = 0
        self._changing = asyncio.Lock()
        self._released = asyncio.Condition()

    async def load(
        self, tensors: Mapping[str, Tensor], config: Mapping[str, Any], version: int
    ) -> None:
        """Make an adapter the newest; waits for room while older ones are in use.

        Args:
            tensors: As peft's `get_peft_model_state_dict` names them.
            config: What `adapter_config.json` holds.
            version: Of the weights.

        Raises:
            EngineError: vLLM refuses the adapter; the newest stays what it was.
        """
        rank = config.get("r")
        if not isinstance(rank, int) or not 1 <= rank <= self._max_rank:
            raise EngineError(
                f"an adapter's rank must be in [1, {self._max_rank}], got {rank!r}; the engine's "
                "max_lora_rank sets the limit"
            )
        async with self._changing:
            await self._make_room()
            self._num_made += 1
            path = self._directory / str(self._num_made)
            path.mkdir()
            (path / "adapter_config.json").write_text(json.dumps(dict(config)), "utf-8")
            save_file(
                {name: t.detach().cpu().contiguous() for name, t in tensors.items()},
                path / "adapter_model.safetensors",
            )
            from vllm.lora.request import LoRARequest

            request = LoRARequest(f"version-{version}-{self._num_made}", self._num_made, str(path))
            try:
                await self._engine.add_lora(request)
            except Exception as error:
                shutil.rmtree(path, ignore_errors=True)
                raise EngineError(f"vLLM refuses the adapter: {first_line(error)}") from error
            self._held.append(_Loaded(version, request))

    @asynccontextmanager
    async def newest(self) -> AsyncIterator[tuple[LoRARequest | None, int]]:
        """Hold the newest adapter, or None and 0 where there is none yet, for one completion."""
        if not self._held:
            yield None, 0
            return
        loaded = self._held[-1]
        loaded.num_users += 1
        try:
            yield loaded.request, loaded.version
        finally:
            loaded.num_users -= 1
            if loaded.num_users == 0:
                async with self._released:
                    self._released.notify_all()

    def close(self) -> None:
        """Delete the adapters' files."""
        shutil.rmtree(self._directory, ignore_errors=True)

    async def _make_room(self) -> None:
        """Wait until one more fits, and forget older ones that nothing uses."""
        async with self._released:
            await self._released.wait_for(
                lambda: sum(h.num_users > 0 for h in self._held[:-1]) + 2 <= self._max_versions
            )
        for loaded in [h for h in self._held[:-1] if h.num_users == 0]:
            self._held.remove(loaded)
            await self._engine.remove_lora(loaded.request.lora_int_id)
            shutil.rmtree(loaded.request.lora_path, ignore_errors=True)
