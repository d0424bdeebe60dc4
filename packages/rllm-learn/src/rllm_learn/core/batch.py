"""From rollouts as plain token records to padded tensors.

`Rollout` is what an algorithm gives credit to, `TokenSequence` is what a learner learns from,
`TokenBatch` is one micro-batch of them on the device.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

Record = TypeVar("Record", bound=Any)
WHOLE_TIMES = 4
"""A packed micro-batch's whole sequences have at most this many times `micro_tokens` ids."""


class BatchError(ValueError):
    """A token record that cannot be learned from."""


@dataclass(frozen=True, slots=True)
class Scores:
    """What the learner says of a sampled sequence before it learns from it. Made by `score`."""

    policy: tuple[float, ...] | None = None
    """Logprobs under the policy as it is, one per position, 0 where nothing was sampled; None where
    nobody asked."""
    reference: tuple[float, ...] | None = None
    """Logprobs under the model as it was loaded, likewise."""
    values: tuple[float, ...] | None = None
    """What the critic expects to be earned from each sampled id on, itself included, likewise."""
    teacher: tuple[float, ...] | None = None
    """Logprobs under another model, the teacher, likewise."""


@dataclass(frozen=True, slots=True)
class SampledSequence:
    """One token sequence as it was sampled. Made from a rollout's token record."""

    token_ids: tuple[int, ...]
    """Prompt, completions and everything between, length L >= 2."""
    action_mask: tuple[bool, ...]
    """True where the policy chose the id, length L; never at position 0."""
    logprobs: tuple[float, ...]
    """The sampler's natural logarithms where the mask is True, 0.0 elsewhere, length L."""
    step_indices: tuple[int, ...] = ()
    """Step of the rollout, from 0, that each sampled id belongs to, length L; empty where unknown,
    which serves algorithms that give a rollout's steps equal credit."""
    scores: Scores = Scores()
    """Filled in for algorithms that ask for them."""
    adapter: str = ""
    """Which of the policies that learn sampled it; "" where one learns."""

    def __post_init__(self) -> None:
        """Check what the learner relies on.

        Raises:
            BatchError: Lengths differ, nothing was sampled, position 0 was, or a logprob of a
                sampled id is positive or not finite.
        """
        length = len(self.token_ids)
        if len(self.step_indices) not in (0, length):
            raise BatchError(f"{len(self.step_indices)} step indices for {length} positions")
        if not len(self.action_mask) == len(self.logprobs) == length:
            raise BatchError(
                "token_ids, action_mask and logprobs must have one length, got "
                f"{length}, {len(self.action_mask)} and {len(self.logprobs)}"
            )
        if not any(self.action_mask):
            raise BatchError(f"a sequence of {length} ids has no sampled id to learn from")
        if self.action_mask[0]:
            raise BatchError("position 0 cannot be sampled: nothing precedes it")
        for position, (sampled, logprob) in enumerate(
            zip(self.action_mask, self.logprobs, strict=True)
        ):
            # `not <=` is also True for NaN.
            if sampled and not -float("inf") < logprob <= 1e-6:
                raise BatchError(
                    f"logprob at position {position} must be finite and at most 0, got {logprob!r}"
                )

    @property
    def num_actions(self) -> int:
        """Number of sampled ids."""
        return sum(self.action_mask)

    @property
    def num_prompt_ids(self) -> int:
        """Number of ids before the first sampled one, at least 1."""
        return self.action_mask.index(True)


@dataclass(frozen=True, slots=True)
class Rollout:
    """One trajectory with its reward. Made from an Episode, read by an algorithm's `credit`."""

    group: int
    """Equal for rollouts of the same task that are compared with each other."""
    reward: float
    """Total reward of the trajectory, finite."""
    sequences: tuple[SampledSequence, ...]
    """All that was sampled in it."""
    greedy: bool = False
    """Whether it was decoded greedily, as a baseline rather than to be learned from."""
    role: str = ""
    """Name of the agent that played it; only rollouts of one role are compared."""
    ending: str = ""
    """Why it ended, in the words of `TerminationReason`."""
    step_rewards: tuple[float, ...] = ()
    """Reward of each step; their sum is `reward`. Empty where steps are unknown."""

    def __post_init__(self) -> None:
        """Refuse rewards that are not finite.

        Raises:
            BatchError: The reward, or a step's, is NaN or infinite.
        """
        for reward in (self.reward, *self.step_rewards):
            if not -float("inf") < reward < float("inf"):
                raise BatchError(f"reward must be finite, got {reward!r}")

    @property
    def num_actions(self) -> int:
        """Number of sampled ids in all its sequences."""
        return sum(sequence.num_actions for sequence in self.sequences)

    @property
    def response_length(self) -> int:
        """Ids after the first prompt, the environment's included, in its longest sequence."""
        if not self.sequences:
            return 0
        first_prompt = self.sequences[0].num_prompt_ids
        return max(len(sequence.token_ids) for sequence in self.sequences) - first_prompt


@dataclass(frozen=True, slots=True)
class ValueTargets:
    """What a critic learns from a sequence. Made by an algorithm, read by its loss."""

    returns: tuple[float, ...]
    """What the values should have been, one per position."""
    weights: tuple[float, ...]
    """What the critic's loss at each position is multiplied by; 0 where there is nothing to
    predict."""


@dataclass(frozen=True, slots=True)
class TokenSequence:
    """One sequence to learn from, with its credit. Made by an algorithm, read by the learner."""

    sampled: SampledSequence
    advantages: tuple[float, ...]
    """One per position, read only where the action mask is True; length L."""
    weight: float = 1.0
    """What the loss of each of its sampled ids is multiplied by."""
    count: float | None = None
    """What it adds to the number that the sum of losses is divided by; None is the number of its
    sampled ids, so that with weight 1 the loss is the mean over sampled ids."""
    targets: ValueTargets | None = None
    """Of the critic, where the algorithm has one."""
    role: str = ""
    """Name of the agent whose it is, where roles have losses of their own."""

    def __post_init__(self) -> None:
        """Refuse lengths that differ.

        Raises:
            BatchError: There is not one advantage, or target of the critic, per position.
        """
        length = len(self.sampled.token_ids)
        if len(self.advantages) != length:
            raise BatchError(f"{len(self.advantages)} advantages for {length} positions")
        targets = self.targets
        if targets and not len(targets.returns) == len(targets.weights) == length:
            raise BatchError(
                f"{len(targets.returns)} returns and {len(targets.weights)} weights of them for "
                f"{length} positions"
            )

    def __len__(self) -> int:
        """Number of ids."""
        return len(self.sampled.token_ids)


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """Right-padded tensors of B sequences, T the longest.

    No attention mask is needed: attention is causal, padding stands to the right, and what is
    computed at padding is masked out of every sum.
    """

    token_ids: Tensor
    """(B, T) int64, padded with 0."""
    action_mask: Tensor
    """(B, T) bool."""
    sampler_logprobs: Tensor
    """(B, T) float32."""
    advantages: Tensor
    """(B, T) float32."""
    lengths: tuple[int, ...]
    """Ids of each row that are no padding."""
    prompts: tuple[tuple[int, int], ...]
    """Number and length of each row's prompt, what stands before its first sampled id; rows with
    equal prompts have equal pairs."""
    weights: Tensor
    """(B, 1) float32: what the losses of a row's sampled ids are multiplied by."""
    count: float
    """What these sequences add to the divisor of the loss."""
    policy_logprobs: Tensor | None = None
    """(B, T) float32, under the policy before the update; None where they were not asked for."""
    reference_logprobs: Tensor | None = None
    """(B, T) float32, under the model as loaded; None where they were not asked for."""
    values: Tensor | None = None
    """(B, T) float32, of the critic before the update; None where they were not asked for."""
    returns: Tensor | None = None
    """(B, T) float32, what the values should have been; None without a critic."""
    value_weights: Tensor | None = None
    """(B, T) float32: what the critic's losses are multiplied by, 0 where it predicts nothing."""
    roles: tuple[str, ...] = ()
    """`TokenSequence.role` of each row."""

    @property
    def num_actions(self) -> int:
        """Number of sampled ids in the batch."""
        return int(self.action_mask.sum())


def collate(
    sequences: Sequence[TokenSequence], *, device: torch.device | str = "cpu"
) -> TokenBatch:
    """Pad sequences to the longest of them.

    Args:
        sequences: At least one.
        device: Where the tensors live.

    Raises:
        BatchError: There is no sequence.
    """
    if not sequences:
        raise BatchError("cannot collate an empty batch")
    width = max(len(s) for s in sequences)

    def pad(rows: Iterable[Sequence], dtype: torch.dtype) -> Tensor:
        padded = [[*row, *[0] * (width - len(row))] for row in rows]
        return torch.tensor(padded, dtype=dtype, device=device)

    def pad_scores(rows: Sequence[tuple[float, ...] | None]) -> Tensor | None:
        known = [row for row in rows if row is not None]
        return pad(known, torch.float32) if len(known) == len(rows) else None

    return TokenBatch(
        token_ids=pad((s.sampled.token_ids for s in sequences), torch.int64),
        action_mask=pad((s.sampled.action_mask for s in sequences), torch.bool),
        sampler_logprobs=pad((s.sampled.logprobs for s in sequences), torch.float32),
        advantages=pad((s.advantages for s in sequences), torch.float32),
        lengths=tuple(len(s) for s in sequences),
        prompts=_numbered_prompts([s.sampled for s in sequences]),
        weights=torch.tensor([[s.weight] for s in sequences], device=device),
        count=sum(s.sampled.num_actions if s.count is None else s.count for s in sequences),
        policy_logprobs=pad_scores([s.sampled.scores.policy for s in sequences]),
        reference_logprobs=pad_scores([s.sampled.scores.reference for s in sequences]),
        values=pad_scores([s.sampled.scores.values for s in sequences]),
        returns=pad_scores([s.targets and s.targets.returns for s in sequences]),
        value_weights=pad_scores([s.targets and s.targets.weights for s in sequences]),
        roles=tuple(s.role for s in sequences),
    )


def select_rows(record: Record, rows: Sequence[int], num_rows: int) -> Record:
    """Return a record of tensors with some of its rows; gradients flow through.

    Args:
        record: A dataclass whose tensors, and tuples, of length `num_rows` hold a row each.
        rows: Indices.
        num_rows: Of the record.
    """
    changes: dict[str, Any] = {}
    for item in fields(record):
        value = getattr(record, item.name)
        if isinstance(value, Tensor) and value.dim() and value.shape[0] == num_rows:
            changes[item.name] = value[list(rows)]
        elif isinstance(value, tuple) and len(value) == num_rows:
            changes[item.name] = tuple(value[row] for row in rows)
    return replace(record, **changes)


FILLER = [TokenSequence(SampledSequence((0, 0), (False, True), (0.0, 0.0)), (0.0, 0.0))]
"""A micro-batch of nothing to learn from, for a rank that has to pass as often as others."""


def make_micro_batches(
    sequences: Sequence[TokenSequence], micro_tokens: int, *, packed: bool = False
) -> list[list[TokenSequence]]:
    """Cut sequences into micro-batches of at most `micro_tokens` positions.

    One that is longer than `micro_tokens` forms a micro-batch alone: the budget bounds memory, it
    drops nothing.

    Args:
        sequences: In any order.
        micro_tokens: Budget of positions; at least 1.
        packed: Whether a micro-batch takes one row (see `PackedRow`): then sequences with equal
            prompts follow each other, and a prompt is counted once; since attention keeps whole
            sequences, their ids are bounded too, by `WHOLE_TIMES` the budget. Else it takes the
            padded area B x T, and sequences are sorted by length, so that little is padded.

    Raises:
        BatchError: The budget is below 1.
    """
    if micro_tokens < 1:
        raise BatchError(f"micro_tokens must be at least 1, got {micro_tokens}")
    if packed:
        return _rows(sequences, micro_tokens)
    batches: list[list[TokenSequence]] = []
    for sequence in sorted(sequences, key=len):  # ascending: the newest is the widest
        current = batches[-1] if batches else []
        if current and (len(current) + 1) * len(sequence) <= micro_tokens:
            current.append(sequence)
        else:
            batches.append([sequence])
    return batches


def _rows(sequences: Sequence[TokenSequence], micro_tokens: int) -> list[list[TokenSequence]]:
    batches: list[list[TokenSequence]] = []
    in_row = whole = 0
    for group in by_prompt([sequence.sampled for sequence in sequences]):
        for place, index in enumerate(group):
            sequence = sequences[index]
            in_row += len(sequence) - (sequence.sampled.num_prompt_ids if place else 0)
            whole += len(sequence)
            if batches and in_row <= micro_tokens and whole <= WHOLE_TIMES * micro_tokens:
                batches[-1].append(sequence)
            else:
                batches.append([sequence])
                in_row = whole = len(sequence)
    return batches


def by_prompt(sequences: Sequence[SampledSequence]) -> list[list[int]]:
    """Return indices of sequences in groups of equal prompts.

    What is long stands behind what is short, in a group and among groups.
    """
    groups: dict[tuple[int, ...], list[int]] = {}
    for index, sequence in enumerate(sequences):
        groups.setdefault(sequence.token_ids[: sequence.num_prompt_ids], []).append(index)

    def length(index: int) -> int:
        return len(sequences[index].token_ids)

    ordered = [sorted(group, key=length) for group in groups.values()]
    return sorted(ordered, key=lambda group: length(group[-1]))


def _numbered_prompts(sequences: Sequence[SampledSequence]) -> tuple[tuple[int, int], ...]:
    numbers: dict[tuple[int, ...], int] = {}
    lengths = [sequence.num_prompt_ids for sequence in sequences]
    return tuple(
        (numbers.setdefault(sequence.token_ids[:length], len(numbers)), length)
        for sequence, length in zip(sequences, lengths, strict=True)
    )
