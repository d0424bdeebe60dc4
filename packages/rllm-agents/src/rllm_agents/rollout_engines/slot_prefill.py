"""Forward passes that store keys and values of many tokens at once in rows of the slot cache."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from rllm_agents.rollout_engines.slot_cache import FreshPrefill, ResumedPrefill, SlotCache


class SlotPrefill:
    """Computes sequences that begin at position 0, and ends of sequences that are stored already.

    Args:
        model: Whose keys and values are stored.
        cache: Where; it has room for the rows and positions asked for.
        max_model_length: The model's positions.
    """

    def __init__(self, model: PreTrainedModel, cache: SlotCache, max_model_length: int) -> None:
        self._model = model
        self._cache = cache
        self._max_model_length = max_model_length

    def fresh(
        self, sequences: Sequence[np.ndarray], rows: Sequence[int], sources: Sequence[int]
    ) -> None:
        """Compute distinct sequences once each and store them.

        Args:
            sequences: Ids from position 0.
            rows: Where they are stored; a sequence may go to several.
            sources: For each of `rows`, which of the sequences it holds.
        """
        ids = padded(sequences)
        self._cache.plan = FreshPrefill(self._tensor(rows), self._tensor(sources))
        positions = torch.arange(ids.shape[1], device=self._model.device).unsqueeze(0)
        # Padding stands at the right, where causal attention alone hides it.
        self._model.base_model(
            input_ids=self._tensor(ids),
            position_ids=positions.expand(len(sequences), -1),
            past_key_values=self._cache,
            use_cache=True,
        )

    def resumed(self, ends: Sequence[np.ndarray], rows: Sequence[int], starts: np.ndarray) -> None:
        """Store further ids of sequences whose beginnings are stored.

        Args:
            ends: Ids to add, one array a row.
            rows: Where.
            starts: Position of the first of them, one a row.
        """
        ids = padded(ends)
        # Padding would reach past the model's last position; what it computes is never read.
        places = np.minimum(starts[:, None] + np.arange(ids.shape[1]), self._max_model_length - 1)
        window = int(places.max()) + 1
        self._cache.reserve(self._cache.num_rows, window)
        positions = self._tensor(places)
        self._cache.plan = ResumedPrefill(self._tensor(rows), positions, window)
        self._model.base_model(
            input_ids=self._tensor(ids),
            position_ids=positions,
            attention_mask=causal_mask(positions, window, self._model.dtype),
            past_key_values=self._cache,
            use_cache=True,
        )

    def _tensor(self, values: np.ndarray | Sequence[int]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values)).to(self._model.device)


def causal_mask(positions: Tensor, window: int, dtype: torch.dtype) -> Tensor:
    """Return the additive mask of tokens at `positions` ``(B, T)``: ``(B, 1, T, window)``."""
    hidden = torch.arange(window, device=positions.device) > positions.unsqueeze(-1)
    mask = torch.zeros(hidden.shape, dtype=dtype, device=positions.device)
    return mask.masked_fill_(hidden, torch.finfo(dtype).min).unsqueeze(1)


def padded(sequences: Sequence[np.ndarray]) -> np.ndarray:
    """Stack sequences, padded at the right with id 0, int64, shape ``(B, T)``."""
    ids = np.zeros((len(sequences), max(map(len, sequences))), dtype=np.int64)
    for row, sequence in zip(ids, sequences, strict=True):
        row[: len(sequence)] = sequence
    return ids
