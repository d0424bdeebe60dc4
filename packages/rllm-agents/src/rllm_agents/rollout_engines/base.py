"""What every rollout engine offers: a prompt in, one completion with its weights version out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from rllm_agents.types import Completion, GenerationRequest

if TYPE_CHECKING:
    from torch import Tensor


class RolloutEngine(Protocol):
    """Samples completions. Many calls of `generate` run at once on one event loop.

    An engine with an attribute `max_model_length` that is not None is never asked for a prompt and
    completion of more tokens than that together. One with ``async def prepare(self) -> None`` has
    it awaited before the first prompt of each episode; it may learn its length there, and raises
    EngineError where it cannot work at all. One with ``async def ping(self) -> None`` answers it
    between two of its steps: who watches over engines takes a long silence for a hang.
    """

    @property
    def weights_version(self) -> int:
        """Version of the weights that the next completion is sampled from."""
        ...

    async def generate(self, request: GenerationRequest) -> Completion:
        """Sample one completion.

        Token engines read `request.prompt_ids`, text engines `request.messages`. Cancelling the
        call gives up the completion and frees what it held.

        Raises:
            EngineError: When the engine cannot answer this request.
        """
        ...

    async def load_weights(self, tensors: Mapping[str, Tensor], *, version: int) -> None:
        """Replace weights; completions that begin afterwards carry `version`.

        Args:
            tensors: New values by parameter name of the Hugging Face model; a subset is allowed.
            version: The new `weights_version`.

        Raises:
            EngineError: When a name or shape is not the model's, or the engine has no weights.
        """
        ...

    def close(self) -> None:
        """Free the engine's resources; calling it again does nothing."""
        ...
