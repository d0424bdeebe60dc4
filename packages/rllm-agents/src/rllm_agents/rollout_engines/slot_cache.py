"""Keys and values of many sequences as rows that outlive a forward pass.

A row holds one sequence; positions count from its own start, so sequences of any age share a
batch. Reused rows are not erased: position p of a row is written before any query at p or later
looks at it, and masks hide what lies behind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache

_MIN_POSITIONS = 64


@dataclass(frozen=True, slots=True)
class DecodeStep:
    """One new token in each of the rows 0..N-1, which all may look at `window` positions."""

    positions: Tensor
    """Where each row's new token goes, int64, shape ``(N,)``."""
    window: int


@dataclass(frozen=True, slots=True)
class FreshPrefill:
    """Whole new sequences, right-padded, from position 0; one may go to several rows."""

    rows: Tensor
    """Rows written, int64, shape ``(R,)``."""
    sources: Tensor
    """Which sequence of the batch each of these rows gets, int64, shape ``(R,)``."""


@dataclass(frozen=True, slots=True)
class ResumedPrefill:
    """New ends, right-padded, of sequences whose beginnings stand in the rows already."""

    rows: Tensor
    """One row per sequence of the batch, int64, shape ``(B,)``."""
    positions: Tensor
    """Where each new token goes, int64, shape ``(B, T)``."""
    window: int


class SlotCache(Cache):
    """Static rows behind the cache interface of transformers models.

    Set `plan` before each forward pass; the layers' calls of `update` follow it.
    """

    def __init__(self) -> None:
        super().__init__(layers=[])
        self.plan: DecodeStep | FreshPrefill | ResumedPrefill | None = None
        self.num_rows = 0
        self.num_positions = 0
        self._stores: dict[int, tuple[Tensor, Tensor]] = {}
        """Layer -> keys and values, each ``(num_rows, heads, num_positions, head size)``."""

    def reserve(self, num_rows: int, num_positions: int) -> None:
        """Grow to at least this many rows and positions, keeping what is stored."""
        if num_rows <= self.num_rows and num_positions <= self.num_positions:
            return
        self.num_rows = max(num_rows, self.num_rows)
        if num_positions > self.num_positions:
            self.num_positions = max(_MIN_POSITIONS, -(-num_positions // 64) * 64)
        for layer, (keys, values) in self._stores.items():
            self._stores[layer] = (self._enlarged(keys), self._enlarged(values))

    def clear(self) -> None:
        """Forget everything and give the memory back."""
        self._stores.clear()
        self.num_rows = self.num_positions = 0

    def move(self, source: int, target: int, length: int) -> None:
        """Copy the first `length` positions of row `source` over those of row `target`."""
        for store in self._stores.values():
            for tensor in store:
                tensor[target, :, :length] = tensor[source, :, :length]

    def swap(self, first: int, second: int, length: int) -> None:
        """Exchange the first `length` positions of two rows."""
        for store in self._stores.values():
            for tensor in store:
                held = tensor[first, :, :length].clone()
                tensor[first, :, :length] = tensor[second, :, :length]
                tensor[second, :, :length] = held

    def erase(self, row: int) -> None:
        """Zero a row: a masked NaN still spoils a weighted sum."""
        for store in self._stores.values():
            for tensor in store:
                tensor[row].zero_()

    def update(
        self,
        key_states: Tensor,
        value_states: Tensor,
        layer_idx: int,
        *args: Any,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor]:
        """Store new keys and values, return those that the new tokens may look at.

        Args:
            key_states: Shape ``(B, heads, T, head size)``; `value_states` likewise.
            value_states: See `key_states`.
            layer_idx: The calling layer.
            *args: What some models add for caches that rotate keys; not needed here.
            **kwargs: Likewise.
        """
        if layer_idx not in self._stores:
            self._stores[layer_idx] = (self._allocate(key_states), self._allocate(value_states))
        keys, values = self._stores[layer_idx]
        plan = self.plan
        if isinstance(plan, DecodeStep):
            count = len(plan.positions)
            rows = torch.arange(count, device=keys.device)
            keys[rows, :, plan.positions] = key_states[:, :, 0]
            values[rows, :, plan.positions] = value_states[:, :, 0]
            return keys[:count, :, : plan.window], values[:count, :, : plan.window]
        if isinstance(plan, FreshPrefill):
            length = key_states.shape[2]
            keys[plan.rows, :, :length] = key_states[plan.sources]
            values[plan.rows, :, :length] = value_states[plan.sources]
            return key_states, value_states
        if isinstance(plan, ResumedPrefill):
            rows = plan.rows.unsqueeze(1)
            keys[rows, :, plan.positions] = key_states.transpose(1, 2)
            values[rows, :, plan.positions] = value_states.transpose(1, 2)
            return keys[plan.rows, :, : plan.window], values[plan.rows, :, : plan.window]
        raise RuntimeError("SlotCache.plan must be set before a forward pass")

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return 0: a batch has no common length, positions and masks are passed explicitly."""
        return 0

    def get_mask_sizes(self, query_length: int, layer_idx: int) -> tuple[int, int]:
        """Return the sizes of a fresh prefill's mask, the only one that models make themselves."""
        return query_length, 0

    def _allocate(self, states: Tensor) -> Tensor:
        """Make the store for states of shape ``(B, heads, T, head size)``."""
        _, heads, _, head_size = states.shape
        return states.new_zeros(self.num_rows, heads, self.num_positions, head_size)

    def _enlarged(self, tensor: Tensor) -> Tensor:
        """Copy a store into one of the current size."""
        rows, heads, positions, head_size = tensor.shape
        larger = tensor.new_zeros(self.num_rows, heads, self.num_positions, head_size)
        larger[:rows, :, :positions] = tensor
        return larger
