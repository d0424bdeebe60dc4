"""What goes into the slot batch and what comes out."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rllm_agents.types import FinishReason, SamplingParams


@dataclass(slots=True, eq=False)
class SlotRequest:
    """One completion to sample. Made by TransformersEngine, read by SlotBatch."""

    prompt_ids: np.ndarray
    """int64, at least one id."""
    sampling: SamplingParams
    max_tokens: int
    """Prompt and completion together fit the model."""
    session_id: str
    """Equal for the turns of one conversation; empty for none."""
    random: np.random.Generator
    row: int = field(default=-1, init=False)
    """Where it stands now; SlotBatch moves it."""


@dataclass(frozen=True, slots=True)
class SlotResult:
    """A finished request. Made by SlotBatch, read by TransformersEngine."""

    request: SlotRequest
    token_ids: list[int]
    logprobs: list[float]
    finish_reason: FinishReason
    weights_version: int
    is_finite: bool
    """False when the model's logits were not numbers; the ids mean nothing then."""
