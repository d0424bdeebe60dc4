"""Sequences in one row without padding, where a prompt that several of them have stands once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class PackedRow:
    """Where sequences stand in one row. Made by `PackedRow.of`, read by scorer and attention.

    The first of those that follow each other with equal prompts stands there whole, each of the
    others without its prompt: in a causal model the hidden states of equal prompts are equal, so
    they are computed once, and their gradients add up.
    """

    shared: tuple[int, ...]
    """Ids at the start of each sequence that are those of the last one that has 0 here."""
    own: tuple[int, ...]
    """Ids of each sequence that stand in the row; `shared` and these are its length."""

    @classmethod
    def of(cls, lengths: Sequence[int], prompts: Sequence[tuple[int, int]]) -> PackedRow:
        """Lay out sequences in their order.

        Args:
            lengths: Of the sequences.
            prompts: A number, equal for equal prompts, and the length of each one's prompt, which
                is shorter than itself.
        """
        pairs = zip(prompts, [None, *prompts], strict=False)
        shared = tuple(prompt[1] if prompt == before else 0 for prompt, before in pairs)
        own = (length - first for length, first in zip(lengths, shared, strict=True))
        return cls(shared, tuple(own))

    def of_padded(self, token_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Return ids and positions (1, N) of the row.

        Args:
            token_ids: (B, T), a sequence a row, padded to the right.
        """
        rows = list(zip(token_ids, self.shared, self.own, strict=True))
        ids = [row[shared : shared + own] for row, shared, own in rows]
        device = token_ids.device
        positions = [torch.arange(shared, shared + own, device=device) for _, shared, own in rows]
        return torch.cat(ids).unsqueeze(0), torch.cat(positions).unsqueeze(0)

    def places(self, rows: Tensor, columns: Tensor) -> Tensor:
        """Return where in the row positions of sequences stand.

        Args:
            rows: (N,) which sequence.
            columns: (N,) which of its positions.
        """
        starts = [0, *accumulate(self.own)][:-1]
        first, whole = [], 0
        for start, shared in zip(starts, self.shared, strict=True):
            whole = whole if shared else start
            first.append(whole)
        # Two numbers a sequence: what its own columns and those of its prompt are counted from.
        begins = [start - shared for start, shared in zip(starts, self.shared, strict=True)]
        table = torch.tensor([begins, first, self.shared], device=rows.device)
        own, prompt, shared_ids = table[:, rows]
        return columns + torch.where(columns < shared_ids, prompt, own)

    def unshared(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return how the row is made of, and from, one in which each sequence stands whole.

        Returns:
            Indices (M,) that make the whole sequences of the row, and indices (N,) that make the
            row of them.
        """
        lengths = torch.tensor([a + b for a, b in zip(self.shared, self.own, strict=True)])
        rows = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
        columns = torch.cat([torch.arange(length) for length in lengths.tolist()])
        kept = columns >= torch.tensor(self.shared)[rows]
        return self.places(rows, columns).to(device), kept.nonzero().squeeze(-1).to(device)
