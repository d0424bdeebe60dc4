"""What goes into the slot batch and what comes out."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from rllm_agents.types import FinishReason, SamplingParams, VersionSpan


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
    versions: list[tuple[int, int]] = field(default_factory=list, init=False)
    """Which weights sample it: index of the first of their ids within the completion, and their
    version. SlotBatch adds to it."""

    def sampled_by(self, version: int, num_sampled: int) -> None:
        """Note that the ids after the first `num_sampled` are sampled by this version."""
        if self.versions and self.versions[-1][0] == num_sampled:
            self.versions.pop()  # these weights have sampled nothing
        self.versions.append((num_sampled, version))


@dataclass(frozen=True, slots=True)
class SlotResult:
    """A finished request. Made by SlotBatch, read by TransformersEngine."""

    request: SlotRequest
    token_ids: list[int]
    logprobs: list[float]
    finish_reason: FinishReason
    is_finite: bool
    """False when the model's logits were not numbers; the ids mean nothing then."""

    @property
    def version_spans(self) -> tuple[VersionSpan, ...]:
        """Which weights sampled which of the ids, in order and without gaps."""
        starts = [*self.request.versions, (len(self.token_ids), 0)]
        return tuple(
            VersionSpan(start, stop, version) for (start, version), (stop, _) in pairwise(starts)
        )
