"""Token records as a batch of verl: the arrays of its DataProto, without verl.

The layout is that of verl's agent loops: prompts padded on the left, responses on the right, and
between a response's completions what the environment said, where ``response_mask`` is 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rllm_agents.argument_checks import check_count
from rllm_agents.errors import UserError
from rllm_agents.metrics import task_key
from rllm_agents.types import Episode, TokenRecord, Trajectory

TENSORS = (
    "prompts",
    "responses",
    "input_ids",
    "attention_mask",
    "position_ids",
    "response_mask",
    "rollout_log_probs",
    "rm_scores",
    "token_level_scores",
)
"""Fields of a batch that are tensors in verl."""
NON_TENSORS = (
    "uid",
    "data_source",
    "episode_id",
    "trajectory_name",
    "record_index",
    "__num_turns__",
)
"""Fields that are NumPy arrays there."""


@dataclass(frozen=True, slots=True)
class VerlBatch:
    """What ``DataProto.from_dict(**)`` takes, as NumPy arrays. Made by `to_verl_batch`.

    With B rows, prompts of P and responses of R positions:

    - ``prompts`` (B, P) and ``responses`` (B, R): ids, padded on the left and on the right;
      ``input_ids`` (B, P+R): both.
    - ``attention_mask`` (B, P+R): 1 where there is a token. ``position_ids`` (B, P+R): how many
      tokens of the row come before; after its end, that of its last token.
    - ``response_mask`` (B, R): 1 where the model sampled the token. ``rollout_log_probs`` (B, R):
      the sampler's logprob there, 0.0 elsewhere.
    - ``rm_scores`` and ``token_level_scores`` (B, R): the trajectory's reward at the response's
      last token, 0.0 elsewhere.

    All are int64, save the last three, which are float32.
    """

    tensors: dict[str, np.ndarray]
    """By the names of `TENSORS`."""
    non_tensors: dict[str, np.ndarray]
    """By the names of `NON_TENSORS`, each of length B. ``uid`` is equal for episodes of one task:
    verl compares them as a group. ``__num_turns__`` counts messages, as verl does."""

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.tensors["prompts"])


@dataclass(frozen=True, slots=True)
class _Row:
    """One token record, and what it belongs to."""

    episode: Episode
    trajectory: Trajectory
    index: int
    record: TokenRecord

    @property
    def num_prompt(self) -> int:
        """Tokens before the first sampled one."""
        return self.record.turns[0].start

    @property
    def num_response(self) -> int:
        """All others."""
        return len(self.record.token_ids) - self.num_prompt


def to_verl_batch(
    episodes: Iterable[Episode],
    *,
    pad_token_id: int,
    prompt_length: int | None = None,
    response_length: int | None = None,
    data_source: str = "rllm",
) -> VerlBatch:
    """Arrange the token records of episodes as a batch of verl.

    Each token record is a row, so a trajectory whose history was rewritten has several, each with
    the trajectory's reward. Failed episodes and trajectories without a reward are left out.

    Args:
        episodes: With token records.
        pad_token_id: Stands where there is no token; masks are 0 there.
        prompt_length: P, for example verl's ``data.max_prompt_length``; None: the longest.
        response_length: R, for example verl's ``data.max_response_length``; None: the longest.
        data_source: What verl's validation groups its figures by.

    Raises:
        UserError: There is no row, an episode has sampled text and no tokens, or a row is longer
            than P or R.
    """
    rows = [row for episode in episodes for row in _rows(episode)]
    if not rows:
        raise UserError("there is no token record with a reward among the episodes")
    num_prompt = _fitting("prompt_length", prompt_length, rows, [r.num_prompt for r in rows])
    num_response = _fitting(
        "response_length", response_length, rows, [r.num_response for r in rows]
    )
    length = num_prompt + num_response
    input_ids = np.full((len(rows), length), pad_token_id, np.int64)
    attention_mask = np.zeros((len(rows), length), np.int64)
    response_mask = np.zeros((len(rows), num_response), np.int64)
    log_probs = np.zeros((len(rows), num_response), np.float32)
    scores = np.zeros((len(rows), num_response), np.float32)
    for i, row in enumerate(rows):
        start, stop = num_prompt - row.num_prompt, num_prompt + row.num_response
        input_ids[i, start:stop] = row.record.token_ids
        attention_mask[i, start:stop] = 1
        log_probs[i, : row.num_response] = row.record.logprobs[row.num_prompt :]
        for turn in row.record.turns:
            response_mask[i, turn.start - row.num_prompt : turn.stop - row.num_prompt] = 1
        scores[i, row.num_response - 1] = row.trajectory.reward
    tensors = {
        "prompts": input_ids[:, :num_prompt],
        "responses": input_ids[:, num_prompt:],
        "input_ids": input_ids,
        "attention_mask": attention_mask,
        "position_ids": np.maximum(np.cumsum(attention_mask, axis=1) - 1, 0),
        "response_mask": response_mask,
        "rollout_log_probs": log_probs,
        "rm_scores": scores,
        "token_level_scores": scores.copy(),
    }
    return VerlBatch(tensors, _non_tensors(rows, data_source))


def write_verl_batch(path: str | Path, batch: VerlBatch) -> None:
    """Save a batch as one file, which neither needs this package nor pickles code.

    ``.npz``: the arrays by name, for `numpy.load`. ``.pt``: ``{"tensors": ..., "non_tensors":
    ...}`` with torch tensors and lists, for ``torch.load(path, weights_only=True)``; verl's
    ``DataProto.from_dict(**loaded)`` takes it.

    Raises:
        UserError: The name ends in something else, or the file cannot be written.
    """
    path = Path(path)
    try:
        if path.suffix == ".npz":
            # Text as fixed-width Unicode: arrays of objects would be pickled.
            arrays: dict[str, Any] = dict(batch.tensors)
            arrays |= {k: np.array(v.tolist()) for k, v in batch.non_tensors.items()}
            np.savez_compressed(path, **arrays)
        elif path.suffix == ".pt":
            import torch  # takes seconds, and NumPy's form needs none

            torch.save(
                {
                    "tensors": {k: torch.from_numpy(v.copy()) for k, v in batch.tensors.items()},
                    "non_tensors": {k: v.tolist() for k, v in batch.non_tensors.items()},
                },
                path,
            )
        else:
            raise UserError(f"a batch is saved as .npz or .pt, got {str(path)!r}")
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from error


def _rows(episode: Episode) -> Iterator[_Row]:
    """Yield the rows of an episode; none where it has no outcome."""
    if episode.failed:
        return
    for trajectory in episode.trajectories:
        if trajectory.reward is None:
            continue
        if trajectory.steps and not trajectory.token_records:
            raise UserError(
                f"episode {episode.id!r} has text and no token ids: play it with a tokenizer, and "
                "save it with its tokens"
            )
        for index, record in enumerate(trajectory.token_records):
            if record.turns:
                yield _Row(episode, trajectory, index, record)


def _fitting(name: str, given: int | None, rows: list[_Row], lengths: list[int]) -> int:
    """Return how many positions there are for each row."""
    longest = max(lengths)
    if given is None:
        return longest
    check_count(name, given)
    if given < longest:
        row = rows[lengths.index(longest)]
        raise UserError(
            f"{name}={given}, but episode {row.episode.id!r} has {longest} tokens there; raise it, "
            "or leave such episodes out"
        )
    return given


def _non_tensors(rows: list[_Row], data_source: str) -> dict[str, np.ndarray]:
    numbers: dict[str, str] = {}
    uids = [numbers.setdefault(task_key(r.episode.task), str(len(numbers))) for r in rows]
    columns: dict[str, Any] = {
        "uid": uids,
        "data_source": [data_source] * len(rows),
        "episode_id": [row.episode.id for row in rows],
        "trajectory_name": [row.trajectory.name for row in rows],
        "record_index": [row.index for row in rows],
        # An answer to each message of a user or a tool.
        "__num_turns__": [2 * len(row.record.turns) for row in rows],
    }
    return {
        name: np.array(values, np.int32 if isinstance(values[0], int) else object)
        for name, values in columns.items()
    }
