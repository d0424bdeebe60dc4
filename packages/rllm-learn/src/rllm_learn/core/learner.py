"""The learner: one copy of the policy and its optimizer. One update is exact however it is cut."""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from rllm_learn.core.batch import (
    SampledSequence,
    Scores,
    TokenBatch,
    TokenSequence,
    collate,
    make_micro_batches,
)
from rllm_learn.core.logprobs import PolicyOutput
from rllm_learn.core.losses import LossSum
from rllm_learn.core.model import (
    adapter_weights,
    has_adapters,
    merged_weights,
    trainable_parameters,
    without_adapters,
)
from rllm_learn.core.optimizer import LearningRate, Optimizers
from rllm_learn.core.parallel import Ranks, SingleRank, share_of
from rllm_learn.core.scoring import Scorer

LossFunction: TypeAlias = Callable[[PolicyOutput, TokenBatch], LossSum]
"""From what the policy predicts and the batch to a sum and a count."""


@dataclass(frozen=True)
class UpdateRule:
    """How one batch becomes an update."""

    learning_rate: LearningRate = field(default_factory=lambda: LearningRate(1e-3))
    betas: tuple[float, float] = (0.9, 0.99)
    """Decay rates of AdamW's two averages."""
    weight_decay: float = 0.0
    muon_learning_rate: float | None = None
    """Peak rate of Muon on inner matrices; None for AdamW alone."""
    max_grad_norm: float = 1.0
    """Gradients are scaled down to this 2-norm over all parameters."""
    micro_tokens: int = 4096
    """Positions of one forward and backward pass: bounds memory."""
    num_epochs: int = 1
    """Passes over each batch."""
    minibatch_sequences: int = 0
    """Sequences of one optimizer step; 0 makes one step of the whole batch."""
    temperature: float = 1.0
    """What the sampler divided the logits by."""
    seed: int = 0
    """Draws the order of minibatches."""


@dataclass(frozen=True, slots=True)
class UpdateReport:
    """What one update did. Made by the learner, read by the training loop."""

    metrics: dict[str, float]
    """Means over sampled tokens, gradient norm (before clipping), learning rate."""
    num_optimizer_steps: int
    """Steps that were applied."""
    num_skipped_steps: int
    """Steps left out because their gradient or loss was not finite."""


class Learner:
    """Holds the policy that learns. `update` is the only thing that changes its weights."""

    def __init__(
        self,
        policy: nn.Module,
        rule: UpdateRule,
        *,
        exports_adapter: bool = False,
        keeps_reference: bool = False,
        teacher: nn.Module | None = None,
        ranks: Ranks | None = None,
    ):
        """Take a policy, as `load_policy` made it, and build its optimizer.

        Args:
            policy: What learns.
            rule: How.
            exports_adapter: Whether `export_weights` returns LoRA matrices and not merged weights.
            keeps_reference: Whether `score` may be asked for the model as it is now: a frozen copy
                where all parameters learn; with LoRA, no copy but the model without its adapters.
            teacher: A causal language model with the same vocabulary, on the policy's device, that
                `score` may be asked for; it is never changed.
            ranks: The group that this learner is one of; None: it learns alone. All ranks start
                from the same policy and rule, and stay equal.
        """
        self.policy = policy
        self._ranks = ranks or SingleRank()
        self._exports_adapter = exports_adapter
        self._reference: nn.Module | None = None
        if keeps_reference and not has_adapters(policy):
            self._reference = copy.deepcopy(policy).requires_grad_(False)
        self._scorer = Scorer(policy, temperature=rule.temperature)
        self._reference_scorer = self._scorer
        if self._reference is not None:
            self._reference_scorer = Scorer(self._reference, temperature=rule.temperature)
        self._keeps_reference = keeps_reference
        self._teacher_scorer: Scorer | None = None
        if teacher is not None:
            self._teacher_scorer = Scorer(
                teacher.requires_grad_(False), temperature=rule.temperature
            )
        self.rule = rule
        self.parameters = trainable_parameters(policy)
        self.device = next(iter(self.parameters.values())).device
        self.optimizers = Optimizers(
            self.parameters,
            betas=rule.betas,
            weight_decay=rule.weight_decay,
            muon_learning_rate=rule.muon_learning_rate,
        )
        self.num_updates = 0
        """Optimizer steps so far, skipped ones included: the position in the schedule."""

    @torch.no_grad()
    def score(self, sequences: Sequence[SampledSequence], kinds: Collection[str]) -> list[Scores]:
        """Return what the policy, the reference or the teacher says of sequences, in their order.

        A learner scores all sequences that it is given, also one of several ranks.

        Args:
            sequences: In any order.
            kinds: Of "policy", the policy as it is, "reference", the model as it was when this
                learner was made, and "teacher".

        Raises:
            ValueError: The reference is asked for but was not kept, or a teacher where there is
                none.
        """
        if "teacher" in kinds and self._teacher_scorer is None:
            raise ValueError("the learner has no teacher; make it with teacher=model")
        if "reference" in kinds and not self._keeps_reference:
            raise ValueError("the learner keeps no reference; make it with keeps_reference=True")
        found: dict[int, dict[str, tuple[float, ...]]] = defaultdict(dict)
        wrapped = [TokenSequence(s, advantages=(0.0,) * len(s.token_ids)) for s in sequences]
        position = {id(item): index for index, item in enumerate(wrapped)}
        packed = self._scorer.packs
        for micro_batch in make_micro_batches(wrapped, self.rule.micro_tokens, packed=packed):
            batch = collate(micro_batch, device=self.device)
            for kind in kinds:
                rows = self._predict(batch, kind).logprobs.tolist()
                for item, row in zip(micro_batch, rows, strict=True):
                    found[position[id(item)]][kind] = tuple(row[: len(item)])
        return [Scores(**found[index]) for index in range(len(wrapped))]

    def _predict(self, batch: TokenBatch, kind: str) -> PolicyOutput:
        if kind == "policy":
            return self._scorer(batch)
        if kind == "teacher" and self._teacher_scorer is not None:
            return self._teacher_scorer(batch)
        if self._reference is not None:
            return self._reference_scorer(batch)
        with without_adapters(self.policy):
            return self._scorer(batch)

    def update(self, sequences: Sequence[TokenSequence], loss: LossFunction) -> UpdateReport:
        """Learn from sequences: one optimizer step a minibatch, `num_epochs` times over.

        Args:
            sequences: At least one, in any order.
            loss: Called once a micro-batch.

        Returns:
            The loss divided by its count, and means of stats over all sampled tokens. `sampler_gap`
            and `sampler_gap_max` (absolute differences of the policy's logprobs and the sampler's)
            are of the first step alone: only there are the weights those that sampled.
        """
        sums: dict[str, float] = defaultdict(float)
        reports = [self._step(batch, loss, sums) for batch in self._minibatches(sequences)]
        gap, gap_max, num_gap = reports[0][1:]
        loss_mean = sums.pop("loss") / (sums.pop("count") or 1.0)
        norms = sums.pop("grad_norm", 0.0)
        num_actions = sums.pop("num_actions")
        applied = sum(finite for finite, *_ in reports)
        return UpdateReport(
            metrics={
                "loss": loss_mean,
                **{name: total / num_actions for name, total in sums.items()},
                "grad_norm": norms / len(reports),
                "learning_rate": self.rule.learning_rate.at(self.num_updates - 1),
                "sampler_gap": gap / max(num_gap, 1),
                "sampler_gap_max": gap_max,
            },
            num_optimizer_steps=applied,
            num_skipped_steps=len(reports) - applied,
        )

    def export_weights(self) -> dict[str, Tensor]:
        """Return what differs from the model as loaded.

        Returns:
            Merged weights under the loaded model's names, or the adapters' under peft's.
        """
        if self._exports_adapter:
            return adapter_weights(self.policy)
        return dict(merged_weights(self.policy))

    def state_dict(self) -> dict[str, Any]:
        """Return all that the next update depends on, besides the frozen weights."""
        return {
            "parameters": {name: p.detach().cpu() for name, p in self.parameters.items()},
            "optimizers": self.optimizers.state_dict(),
            "num_updates": self.num_updates,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned.

        Raises:
            ValueError: The state is of another model or another set of trained parameters.
        """
        saved = state["parameters"]
        if saved.keys() != self.parameters.keys():
            other = sorted(saved.keys() ^ self.parameters.keys())[:3]
            raise ValueError(
                f"the state holds other parameters than this policy trains, for example {other}; "
                "resume with the model and the LoRA rank that it was saved with"
            )
        for name, parameter in self.parameters.items():
            if parameter.shape != saved[name].shape:
                raise ValueError(
                    f"{name} has shape {tuple(parameter.shape)} here and "
                    f"{tuple(saved[name].shape)} in the state"
                )
            parameter.data.copy_(saved[name])
        self.optimizers.load_state_dict(state["optimizers"])
        self.num_updates = state["num_updates"]

    def _minibatches(self, sequences: Sequence[TokenSequence]) -> Iterator[list[TokenSequence]]:
        size = self.rule.minibatch_sequences or len(sequences)
        for _ in range(self.rule.num_epochs):
            # The order depends on the seed and the update's number alone, so a resumed run
            # draws what an uninterrupted one would.
            order = torch.Generator().manual_seed(self.rule.seed * 1_000_003 + self.num_updates)
            indices = torch.randperm(len(sequences), generator=order).tolist()
            for start in range(0, len(indices), size):
                yield [sequences[i] for i in indices[start : start + size]]

    def _step(
        self, minibatch: list[TokenSequence], loss: LossFunction, sums: dict[str, float]
    ) -> tuple[bool, float, float, int]:
        """Take one optimizer step; return whether it was finite, and the gap to the sampler.

        Gradients of sums are added up over micro-batches and divided once by the total count.
        """
        local: dict[str, float] = defaultdict(float)
        gap_max = 0.0
        share = share_of(minibatch, self._ranks)
        packed = self._scorer.packs
        for micro_batch in make_micro_batches(share, self.rule.micro_tokens, packed=packed):
            batch = collate(micro_batch, device=self.device)
            output = self._scorer(batch)
            loss_sum = loss(output, batch)
            loss_sum.total.backward()
            local["loss"] += loss_sum.total.item()
            local["count"] += loss_sum.count
            for name, value in loss_sum.stats.items():
                local[name] += value.item()
            local["entropy"] += output.entropies.detach().sum().item()
            gaps = (output.logprobs.detach() - batch.sampler_logprobs)[batch.action_mask].abs()
            local["gap"] += gaps.sum().item()
            local["num_actions"] += gaps.numel()
            gap_max = max(gap_max, gaps.max().item())
        self._ranks.sum_gradients(list(self.parameters.values()))
        of_ranks = self._ranks.gather({**local, "gap_max": gap_max})
        total: dict[str, float] = defaultdict(float)
        for figures in of_ranks:
            for name, value in figures.items():
                total[name] += value
        gap_max = max(figures["gap_max"] for figures in of_ranks)
        for name in total.keys() - {"gap", "gap_max"}:
            sums[name] += total[name]
        finite = self._apply(total["loss"], total["count"], sums)
        return finite, total["gap"], gap_max, int(total["num_actions"])

    def _apply(self, total: float, count: float, sums: dict[str, float]) -> bool:
        """Normalise, clip and apply the gradients, or drop them if anything is not finite."""
        gradients = [p.grad for p in self.parameters.values() if p.grad is not None]
        for gradient in gradients:
            gradient.div_(count or 1.0)
        norm = nn.utils.clip_grad_norm_(
            list(self.parameters.values()), self.rule.max_grad_norm
        ).item()
        finite = math.isfinite(norm) and math.isfinite(total)
        if finite:
            schedule = self.rule.learning_rate
            self.optimizers.step(schedule.at(self.num_updates), peak=schedule.peak)
            sums["grad_norm"] += norm
        self.num_updates += 1
        for parameter in self.parameters.values():
            parameter.grad = None
        return finite
