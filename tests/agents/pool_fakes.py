"""An engine for pools that is steered by files, so that a test can reach into its process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rllm_agents.errors import EngineError, UserError
from rllm_agents.types import Completion, GenerationRequest, SamplingParams


class FileEngine:
    """Answers ``<process> <sum of its weights>``, while there is no file that says otherwise.

    In `place`: ``hold`` holds answers back; ``stuck-<process>`` pings; ``broken`` lets new engines
    fail; ``refuse`` lets weights, and sleep, be refused. ``asked-<process>-<n>`` are the requests
    it was given, ``cancelled-<n>`` those that were given up, ``slept-<process>`` was told to sleep.
    """

    max_model_length = 77

    def __init__(self, place: str, first: float = 0.0) -> None:
        # As every real engine has: weights are read without a pause for the import.
        import torch  # noqa: F401

        self._place = Path(place)
        if (self._place / "broken").exists():
            raise UserError("first must not be broken")
        self._weights: dict[str, float] = {"first": first}
        self.weights_version = 0
        self._num_asked = 0

    async def generate(self, request: GenerationRequest) -> Completion:
        if request.prompt_ids == (0,):
            raise EngineError("id 0 is not in the vocabulary")
        if request.prompt_ids == (9,):
            os._exit(1)
        self._num_asked += 1
        (self._place / f"asked-{os.getpid()}-{self._num_asked}").touch()
        try:
            while (self._place / "hold").exists():
                await asyncio.sleep(0.02)
        except asyncio.CancelledError:
            (self._place / f"cancelled-{os.getpid()}").touch()
            raise
        text = f"{os.getpid()} {sum(self._weights.values()):g}"
        return Completion(text=text, finish_reason="stop", weights_version=self.weights_version)

    async def ping(self) -> None:
        while (self._place / f"stuck-{os.getpid()}").exists():
            await asyncio.sleep(0.02)

    async def load_weights(self, tensors: Mapping[str, Any], *, version: int) -> None:
        if (self._place / "refuse").exists():
            raise EngineError("no such weights")
        self._weights |= {name: float(tensor) for name, tensor in tensors.items()}
        self.weights_version = version

    async def sleep(self) -> None:
        if (self._place / "refuse").exists():
            raise EngineError("not tired")
        (self._place / f"slept-{os.getpid()}").touch()

    def close(self) -> None:
        (self._place / f"closed-{os.getpid()}").touch()


def ask(session_id: str = "", prompt_ids: tuple[int, ...] = (1,)) -> GenerationRequest:
    return GenerationRequest(
        messages=(), prompt_ids=prompt_ids, sampling=SamplingParams(), session_id=session_id
    )
