"""Logprobs and values of sequences, without computing what is not needed.

Two savings, each used only where a check at the start shows that the model gives the same
logprobs:

- packing: the sequences of a micro-batch stand in one row without padding, equal prompts that
  follow each other stand there once (`packing`), and attention is computed for each of them alone
  (`packed_attention`);
- a head of its own: logits are computed only where an id was sampled, and in chunks that are
  computed again in the backward pass, so that (tokens x vocabulary) logits never stand whole in
  memory.

A critic's values are read from the same packed rows, at the positions that predict sampled ids: of
the policy's own hidden states in the same pass, or of those of the critic's trunk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import peft
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from rllm_learn.core.batch import SampledSequence, TokenBatch, TokenSequence, collate
from rllm_learn.core.critic import Critic
from rllm_learn.core.logprobs import PolicyOutput, scores_of
from rllm_learn.core.packed_attention import PACKED
from rllm_learn.core.packing import PackedRow
from rllm_learn.core.sharding import Pass

MAX_LOGITS = 2**26
"""Logits that stand in memory at once; 256 MiB in float32."""
_CHECK_SEQUENCES = ((0, 1, 7), (20, 4, 7), (20, 4, 16), (20, 4, 6), (40, 1, 3))
"""Text, prompt and length of each: some with equal prompts, followed by few and by many ids."""
_TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4}
_LOW_PRECISION_TOLERANCE = 0.1


class Scorer:
    """Scores the sampled ids of batches under a policy.

    Args:
        policy: A causal language model: called with ``input_ids`` (B, T) and ``use_cache``, it
            returns ``logits``. The savings are tried with models of transformers, with adapters of
            peft or not.
        temperature: What the sampler divided the logits by; above 0.
        max_logits: Logits that stand in memory at once, where the head is split.
        critic: Of this policy; None for no values.
        shard: Splits the weights of policy and critic over ranks; None leaves them whole.
    """

    def __init__(
        self,
        policy: nn.Module,
        *,
        temperature: float = 1.0,
        max_logits: int = MAX_LOGITS,
        critic: Critic | None = None,
        shard: Callable[[Pass], None] | None = None,
    ) -> None:
        self._policy: Any = policy
        self._model: Any = policy.get_base_model() if isinstance(policy, peft.PeftModel) else policy
        self._temperature = temperature
        self.packs = False
        """Whether sequences stand in one row without padding."""
        self.splits_head = False
        """Whether logits are computed in chunks."""
        self._max_logits = max_logits
        self._critic: Critic | None = None
        self._dtype = next(self._model.parameters()).dtype
        self._pass = Pass(policy) if critic is None else Pass(policy, critic)
        if shard is not None:
            shard(self._pass)
        if isinstance(self._model, PreTrainedModel):
            self._choose()
        self._critic = critic
        if self.packs and critic is not None and isinstance(critic.trunk, PreTrainedModel):
            critic.trunk.set_attn_implementation(PACKED)

    def __call__(self, batch: TokenBatch, *, with_values: bool = True) -> PolicyOutput:
        """Return the scores of a batch, with values where there is a critic.

        Args:
            batch: With at least one sampled id.
            with_values: False leaves the values out.
        """
        return PolicyOutput(*self._pass(self._scores_of, batch, with_values))

    def _scores_of(self, batch: TokenBatch, with_values: bool) -> tuple[Tensor, ...]:
        """Return logprobs, entropies and perhaps values, each (B, T)."""
        inputs, index = self._inputs(batch)
        place = batch.action_mask.nonzero(as_tuple=True)
        targets = batch.token_ids[place]
        critic = self._critic if with_values else None
        reads_trunk = critic is not None and critic.trunk is None
        states = None
        if self.splits_head:
            states = self._states(self._model.get_decoder(), inputs, index)
            logprobs, entropies = self._by_head(states, targets)
        else:
            wanted = {"output_hidden_states": True} if reads_trunk else {}
            output = self._policy(**inputs, **wanted, use_cache=False)
            states = output.hidden_states[-1][index] if reads_trunk else None
            logprobs, entropies = self._of_logits(output.logits[index], targets)
        found = [logprobs, entropies]
        if critic is not None:
            if critic.trunk is not None:
                states = self._states(critic.trunk, inputs, index)
            assert states is not None
            found.append(critic.values_of(states))
        return tuple(_placed(batch, of_sampled) for of_sampled in found)

    def values(self, batch: TokenBatch) -> Tensor:
        """Return the values of a batch (B, T) alone, without a word of the policy's.

        Raises:
            ValueError: There is no critic.
        """
        if self._critic is None:
            raise ValueError("there is no critic: make the learner with UpdateRule(critic=...)")
        return self._pass(self._values_of, batch, self._critic)

    def _values_of(self, batch: TokenBatch, critic: Critic) -> Tensor:
        inputs, index = self._inputs(batch)
        trunk = critic.trunk or self._model.get_decoder()
        return _placed(batch, critic.values_of(self._states(trunk, inputs, index)))

    def _inputs(self, batch: TokenBatch) -> tuple[dict[str, Any], tuple[Tensor, Tensor]]:
        """Return what a model takes, and where in its output sampled ids are predicted."""
        rows, columns = batch.action_mask.nonzero(as_tuple=True)
        if not self.packs:
            return {"input_ids": batch.token_ids}, (rows, columns - 1)
        packed_row = PackedRow.of(batch.lengths, batch.prompts)
        ids, positions = packed_row.of_padded(batch.token_ids)
        inputs = {"input_ids": ids, "position_ids": positions, "packed_row": packed_row}
        return inputs, (torch.zeros_like(rows), packed_row.places(rows, columns - 1))

    def _states(self, trunk: Any, inputs: dict[str, Any], index: tuple[Tensor, Tensor]) -> Tensor:
        """Return the last hidden states (N, H) that predict sampled ids."""
        return trunk(**inputs, use_cache=False).last_hidden_state[index]

    def _by_head(self, hidden: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        head = self._model.get_output_embeddings()

        def scores(part: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
            return self._of_logits(head(part), ids)

        size = max(1, self._max_logits // head.weight.shape[0])
        if len(hidden) <= size:
            return scores(hidden, targets)
        parts: list[Any] = [
            checkpoint(scores, part, ids, use_reentrant=False)
            for part, ids in zip(hidden.split(size), targets.split(size), strict=True)
        ]
        return torch.cat([part for part, _ in parts]), torch.cat([part for _, part in parts])

    def _of_logits(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        return scores_of(logits, targets, temperature=self._temperature)

    def _choose(self) -> None:
        """Use the savings that leave the logprobs of a few short sequences as they are."""
        batch = _check_batch(self._model)
        with torch.no_grad():
            expected = self(batch).logprobs
            self.splits_head = hasattr(self._model, "get_decoder")
            self.splits_head = self.splits_head and self._agrees(batch, expected)
            before = getattr(self._model.config, "_attn_implementation", None)
            if before != "sdpa":
                return
            self._model.set_attn_implementation(PACKED)
            self.packs = True
            self.packs = self._agrees(batch, expected)
            if not self.packs:
                self._model.set_attn_implementation(before)

    def _agrees(self, batch: TokenBatch, expected: Tensor) -> bool:
        try:
            got = self(batch).logprobs
        except (TypeError, ValueError, RuntimeError, AttributeError, NotImplementedError):
            self._pass.release()
            return False  # a model that works in another way
        tolerance = _TOLERANCE.get(self._dtype, _LOW_PRECISION_TOLERANCE)
        return bool(torch.allclose(got, expected, rtol=0.0, atol=tolerance))


def _placed(batch: TokenBatch, of_sampled: Tensor) -> Tensor:
    """Put what is known of each sampled id where it stands; 0 elsewhere, (B, T)."""
    empty = torch.zeros(batch.token_ids.shape, dtype=of_sampled.dtype, device=of_sampled.device)
    return empty.index_put(batch.action_mask.nonzero(as_tuple=True), of_sampled)


def _check_batch(model: Any) -> TokenBatch:
    vocabulary = model.get_input_embeddings().weight.shape[0]
    sequences = []
    for number, (text, prompt, length) in enumerate(_CHECK_SEQUENCES):
        said = [7 * (text + place + (place >= prompt) * number) for place in range(length)]
        sampled = SampledSequence(
            token_ids=tuple(token % vocabulary for token in said),
            action_mask=tuple(place >= prompt for place in range(length)),
            logprobs=(0.0,) * length,
        )
        sequences.append(TokenSequence(sampled, advantages=(0.0,) * length))
    return collate(sequences, device=next(model.parameters()).device)
