"""The sequences being sampled, one per row, and the step that gives each its next token.

Rows 0..N-1 are active, so that a decode step reads slices of the cache. Prefill stores all of a
prompt but its last token; that one is the input of the row's first decode step, so every token is
sampled in one place. Rows of finished turns stay until their place is needed, and the session's
next turn prefills only what is new.

Everything here runs in one thread; `SlotDriver` hands requests in and results out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from rllm_agents.rollout_engines.slot_cache import DecodeStep, SlotCache
from rllm_agents.rollout_engines.slot_prefill import SlotPrefill, causal_mask
from rllm_agents.rollout_engines.slot_records import SlotRequest, SlotResult
from rllm_agents.rollout_engines.token_sampling import SamplingPlan, draw_tokens
from rllm_agents.types import FinishReason

_UNIFORMS = 64
"""Random numbers drawn at once for a row."""
_WINDOW = 16
"""Attended positions are rounded up to a multiple of this."""
_PREFILL_TOKENS = 4096
"""Most tokens, padding included, of one prefill pass with more than one sequence."""

_Item = TypeVar("_Item")

_ROW = np.dtype(
    [
        ("length", np.int64),  # tokens of the sequence: prompt and what is sampled so far
        ("cached", np.int64),  # of these, how many have keys and values stored
        ("prompt_length", np.int64),
        ("final_length", np.int64),  # the length at which max_tokens is reached
        ("temperature", np.float64),
        ("top_k", np.int64),
        ("top_p", np.float64),
    ]
)


class SlotBatch:
    """Up to `max_batch_size` sequences in rows of one cache."""

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        stop_token_ids: Iterable[int],
        vocabulary_size: int,
        max_batch_size: int,
        max_model_length: int,
    ) -> None:
        self._model = model
        self._device = model.device
        self._dtype = model.dtype
        self._max_batch_size = max_batch_size
        self._stops = np.zeros(vocabulary_size, dtype=bool)
        self._stops[list(stop_token_ids)] = True
        self._cache = SlotCache()
        self._prefills = SlotPrefill(model, self._cache, max_model_length)
        # Fresh zeros cost no memory until they are written, so rows of full length are free.
        self._tokens = np.zeros((max_batch_size, max_model_length), dtype=np.int64)
        self._logprobs = np.zeros((max_batch_size, max_model_length), dtype=np.float32)
        self._uniforms = np.zeros((max_batch_size, _UNIFORMS))
        self._rows = np.zeros(max_batch_size, dtype=_ROW)
        self._owners: list[SlotRequest | str | None] = []
        """Per row: the active request, the session whose finished turn it keeps, or nobody."""
        self._kept: dict[str, int] = {}
        """Session -> its kept row, least recently used first."""
        self._num_active = 0
        self._plan: SamplingPlan | None = None
        """Parameters of the active rows as tensors; None after their set has changed."""
        self._is_renewed = False
        """Whether the active rows' keys and values are of other weights and must be computed."""
        self.weights_version = 0
        """Stands with every token that is sampled; set by who changes the model's weights."""

    @property
    def num_active(self) -> int:
        """How many requests are being sampled."""
        return self._num_active

    @property
    def num_free(self) -> int:
        """How many requests the next step can admit."""
        return self._max_batch_size - self._num_active

    def reset(self) -> None:
        """Drop every request and all stored keys and values."""
        self._owners.clear()
        self._kept.clear()
        self._cache.clear()
        self._num_active = 0
        self._plan = None
        self._is_renewed = False

    def renew(self) -> None:
        """Go on with other weights: what is stored is dropped, and computed again where needed."""
        if not self._num_active:
            self.reset()
            return
        for row in self._kept.values():
            self._owners[row] = None
        self._kept.clear()
        for request in self._active():
            row = self._rows[request.row]
            row["cached"] = 0
            request.sampled_by(self.weights_version, int(row["length"] - row["prompt_length"]))
        self._is_renewed = True

    @torch.inference_mode()
    def step(
        self, admitted: Sequence[SlotRequest], cancelled: Sequence[SlotRequest] = ()
    ) -> list[SlotResult]:
        """Drop `cancelled`, prefill `admitted`, sample one token for every active row.

        Args:
            admitted: New requests, at most `num_free` plus the cancelled ones.
            cancelled: Active requests that nobody waits for any more.

        Returns:
            The requests that are finished by this token.
        """
        for request in cancelled:
            self._owners[request.row] = None
        self._num_active -= len(cancelled)
        if admitted:
            self._place(admitted)
            # Closing gaps may exchange a row that is new with one that is kept.
            self._cache.reserve(len(self._owners), self._cache.num_positions)
        if admitted or cancelled or self._plan is None:
            self._close_gaps()
            self._plan = None
        if admitted or self._is_renewed:
            self._prefill(self._active() if self._is_renewed else admitted)
            self._is_renewed = False
        return self._decode() if self._num_active else []

    # Rows

    def _active(self) -> list[SlotRequest]:
        return [owner for owner in self._owners if isinstance(owner, SlotRequest)]

    def _place(self, requests: Sequence[SlotRequest]) -> None:
        """Give every request a row: its session's kept one where there is one."""
        newcomers = []
        for request in requests:
            row = self._kept.pop(request.session_id, None)
            if row is None:
                newcomers.append(request)
                continue
            stored = self._tokens[row, : self._rows["cached"][row]]
            # The last id stays out: it is the input of the first decode step.
            self._enter(request, row, cached=_num_shared(stored, request.prompt_ids[:-1]))
        for request, row in zip(newcomers, self._take_rows(len(newcomers)), strict=True):
            self._enter(request, row, cached=0)

    def _take_rows(self, count: int) -> list[int]:
        """Return `count` rows that nobody owns, by growing first, then by forgetting kept ones."""
        free = [row for row, owner in enumerate(self._owners) if owner is None]
        if len(free) < count:
            # Twice the active rows leave room to keep finished turns; powers of two grow rarely.
            wanted = 1 << (2 * (self._num_active + count) - 1).bit_length()
            wanted = min(wanted, self._max_batch_size)
            free.extend(range(len(self._owners), wanted))
            self._owners.extend([None] * (wanted - len(self._owners)))
        while len(free) < count:
            session_id = next(iter(self._kept))
            free.append(self._kept.pop(session_id))
        return free[:count]

    def _enter(self, request: SlotRequest, row: int, *, cached: int) -> None:
        """Make a request the owner of a row and write its host-side state."""
        length = len(request.prompt_ids)
        sampling = request.sampling
        self._owners[row] = request
        request.row = row
        request.sampled_by(self.weights_version, 0)
        self._tokens[row, :length] = request.prompt_ids
        self._rows[row] = (
            length,
            cached,
            length,
            length + request.max_tokens,
            sampling.temperature,
            sampling.top_k,
            sampling.top_p,
        )
        self._num_active += 1

    def _close_gaps(self) -> None:
        """Move the last active rows into the gaps before them, so that active rows come first."""
        count = self._num_active
        gaps = [row for row in range(count) if not isinstance(self._owners[row], SlotRequest)]
        strays = [
            row
            for row in range(count, len(self._owners))
            if isinstance(self._owners[row], SlotRequest)
        ]
        for gap, stray in zip(gaps, strays, strict=True):
            self._exchange(gap, stray)

    def _exchange(self, gap: int, stray: int) -> None:
        """Swap an active row with one that is kept or free."""
        owner, other = self._owners[stray], self._owners[gap]
        cached = int(self._rows["cached"][stray])
        if other is None:
            length = int(self._rows["length"][stray])
            self._cache.move(stray, gap, cached)
        else:
            length = int(self._rows["length"][[gap, stray]].max())
            self._cache.swap(gap, stray, max(cached, int(self._rows["cached"][gap])))
        pair, reverse = [gap, stray], [stray, gap]
        for table in (self._tokens, self._logprobs):
            table[pair, :length] = table[reverse, :length]
        self._uniforms[gap] = self._uniforms[stray]
        self._rows[pair] = self._rows[reverse]
        self._owners[gap], self._owners[stray] = owner, other
        if isinstance(owner, SlotRequest):
            owner.row = gap
        if isinstance(other, str):
            self._kept[other] = stray

    # Forward passes

    def _prefill(self, requests: Sequence[SlotRequest]) -> None:
        """Store keys and values of each request's sequence so far, its last id excepted."""
        fresh: dict[bytes, list[SlotRequest]] = {}
        resumed = []
        for request in requests:
            if self._rows["cached"][request.row]:
                resumed.append(request)
            elif len(self._stored(request)):
                # Samples of one task share their prompt: it is computed once.
                fresh.setdefault(self._stored(request).tobytes(), []).append(request)
        rows = [request.row for request in requests]
        self._cache.reserve(len(self._owners), int(self._rows["length"][rows].max()))
        for group in _packed([(len(self._stored(g[0])), g) for g in fresh.values()]):
            self._prefills.fresh(
                [self._stored(requests[0]) for requests in group],
                [request.row for requests in group for request in requests],
                [index for index, requests in enumerate(group) for _ in requests],
            )
        ends = [(len(self._stored(r)) - int(self._rows["cached"][r.row]), r) for r in resumed]
        for batch in _packed([end for end in ends if end[0]]):
            starts = self._rows["cached"][[request.row for request in batch]]
            self._prefills.resumed(
                [self._stored(r)[start:] for r, start in zip(batch, starts, strict=True)],
                [request.row for request in batch],
                starts,
            )
        self._rows["cached"][rows] = self._rows["length"][rows] - 1

    def _stored(self, request: SlotRequest) -> np.ndarray:
        """Return the ids whose keys and values the next decode step needs."""
        return self._tokens[request.row, : self._rows["length"][request.row] - 1]

    def _decode(self) -> list[SlotResult]:
        """Feed every active row's last token, sample the next, return what is finished."""
        count = self._num_active
        rows = self._rows[:count]
        last = rows["length"] - 1
        window = int(last.max()) + 1
        self._cache.reserve(len(self._owners), window)
        window = min(-(-window // _WINDOW) * _WINDOW, self._cache.num_positions)
        every = np.arange(count)
        positions = self._tensor(last)
        self._cache.plan = DecodeStep(positions, window)
        logits = self._model(
            input_ids=self._tensor(self._tokens[every, last]).unsqueeze(1),
            position_ids=positions.unsqueeze(1),
            attention_mask=causal_mask(positions.unsqueeze(1), window, self._dtype),
            past_key_values=self._cache,
            use_cache=True,
        ).logits[:, -1]
        ids, logprobs = draw_tokens(
            logits, self._tensor(self._next_uniforms(every)), self._sampling_plan()
        )
        chosen = ids.cpu().numpy()
        self._tokens[every, last + 1] = chosen
        self._logprobs[every, last + 1] = logprobs.cpu().numpy()
        rows["cached"] += 1
        rows["length"] += 1
        done = self._stops[chosen] | (rows["length"] >= rows["final_length"])
        return [self._finish(int(row)) for row in np.flatnonzero(done)]

    def _next_uniforms(self, every: np.ndarray) -> np.ndarray:
        """Return one number in [0, 1) per active row, the next of its own stream."""
        rows = self._rows[: len(every)]
        column = (rows["length"] - rows["prompt_length"]) % _UNIFORMS
        for row in np.flatnonzero(column == 0):
            owner = self._owners[row]
            assert isinstance(owner, SlotRequest)
            self._uniforms[row] = owner.random.random(_UNIFORMS)
        return self._uniforms[every, column]

    def _sampling_plan(self) -> SamplingPlan:
        """Return the active rows' parameters, rebuilt when their set has changed."""
        if self._plan is None:
            rows = self._rows[: self._num_active]
            self._plan = SamplingPlan.build(
                temperature=rows["temperature"],
                top_k=rows["top_k"],
                top_p=rows["top_p"],
                device=self._device,
            )
        return self._plan

    def _finish(self, row: int) -> SlotResult:
        """Take a finished request out of its row, which is kept for its session's next turn."""
        request = self._owners[row]
        assert isinstance(request, SlotRequest)
        start, stop = len(request.prompt_ids), int(self._rows["length"][row])
        sampled = slice(start, stop)
        logprobs = self._logprobs[row, sampled]
        self._owners[row] = None
        self._num_active -= 1
        self._plan = None
        is_finite = bool(np.isfinite(logprobs).all())
        if not is_finite:
            self._cache.erase(row)
        elif request.session_id:
            previous = self._kept.pop(request.session_id, None)
            if previous is not None:
                self._owners[previous] = None
            self._kept[request.session_id] = row
            self._owners[row] = request.session_id
        ids = self._tokens[row, sampled].tolist()
        reason: FinishReason = "stop" if self._stops[ids[-1]] else "length"
        return SlotResult(request, ids, logprobs.tolist(), reason, is_finite)

    def _tensor(self, values: np.ndarray | list[int]) -> Tensor:
        """Copy host values to the model's device."""
        return torch.from_numpy(np.ascontiguousarray(values)).to(self._device)


def _num_shared(first: np.ndarray, second: np.ndarray) -> int:
    """Count the leading ids that two sequences have in common."""
    count = min(len(first), len(second))
    differs = first[:count] != second[:count]
    return int(differs.argmax()) if differs.any() else count


def _packed(items: list[tuple[int, _Item]]) -> list[list[_Item]]:
    """Split items, given with their lengths, into batches of similar length and bounded area."""
    batches: list[list[_Item]] = []
    longest = 0
    for length, item in sorted(items, key=lambda pair: -pair[0]):
        if not batches or longest * (len(batches[-1]) + 1) > _PREFILL_TOKENS:
            batches.append([])
            longest = length
        batches[-1].append(item)
    return batches
