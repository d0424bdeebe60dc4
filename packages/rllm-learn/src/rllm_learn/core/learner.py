"""The learner: one copy of the policy and its optimizer. One update is exact however it is cut."""

from __future__ import annotations

import copy
import functools
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from rllm_learn.core.batch import (
    FILLER,
    SampledSequence,
    Scores,
    TokenBatch,
    TokenSequence,
    collate,
    make_micro_batches,
)
from rllm_learn.core.critic import Critic, CriticRule
from rllm_learn.core.logprobs import PolicyOutput
from rllm_learn.core.losses import LossSum
from rllm_learn.core.model import (
    adapter_weights,
    has_adapters,
    merged_weights,
    save_policy,
    trainable_parameters,
    without_adapters,
)
from rllm_learn.core.optimizer import LearningRate, ParameterGroup
from rllm_learn.core.parallel import Ranks, SingleRank, share_of
from rllm_learn.core.passes import (
    as_often_as_others,
    backward,
    backward_of_nothing,
    release_cache,
)
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
    """Positions of one forward and backward pass: bounds memory; see `make_micro_batches`."""
    num_epochs: int = 1
    """Passes over each batch."""
    minibatch_sequences: int = 0
    """Sequences of one optimizer step; 0 makes one step of the whole batch."""
    temperature: float = 1.0
    """What the sampler divided the logits by."""
    seed: int = 0
    """Draws the order of minibatches."""
    critic: CriticRule | None = None
    """The critic that learns beside the policy; None for none."""


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
                from the same policy and rule, and stay equal. Where they split weights, models may
                be given on the CPU, however large.

        Raises:
            ValueError: Muon, whose steps are of whole matrices, is to learn weights that are split.
        """
        self.policy = policy
        self._ranks = ranks or SingleRank()
        if self.shards and rule.muon_learning_rate is not None:
            raise ValueError("Muon steps whole matrices, which ranks with split weights lack")
        self._exports_adapter = exports_adapter
        self._reference: nn.Module | None = None
        if keeps_reference and not has_adapters(policy):
            self._reference = copy.deepcopy(policy).requires_grad_(False)
        self.critic: Critic | None = None
        """Learns values, where the rule has a critic."""
        if rule.critic is not None:
            self.critic = Critic(policy, shares_trunk=rule.critic.shares_trunk)
        self._dtypes = {name: p.dtype for name, p in trainable_parameters(policy).items()}
        score: Callable[..., Scorer] = functools.partial(
            Scorer, temperature=rule.temperature, shard=self._ranks.shard
        )
        self._scorer = score(policy, critic=self.critic)
        self._reference_scorer = self._scorer
        if self._reference is not None:
            self._reference_scorer = score(self._reference)
        self._keeps_reference = keeps_reference
        self._teacher_scorer: Scorer | None = None
        if teacher is not None:
            self._teacher_scorer = score(teacher.requires_grad_(False))
        self.rule = rule
        self._groups = _parameter_groups(policy, self.critic, rule)
        self.parameters = self._groups["policy"].parameters
        """What takes the policy's updates, by name."""
        self.optimizers = self._groups["policy"].optimizers
        self.device = next(policy.parameters()).device
        self.num_updates = 0
        """Optimizer steps so far, skipped ones included."""

    @property
    def shards(self) -> bool:
        """Whether weights are split over ranks: then all ranks call each method, equally often."""
        return self._ranks.shards

    @torch.no_grad()
    def score(self, sequences: Sequence[SampledSequence], kinds: Collection[str]) -> list[Scores]:
        """Return what policy, reference, teacher or critic say of sequences, in their order.

        A learner scores all sequences that it is given, also one of several ranks. Where weights
        are split, ranks may be given different ones, or none, but all have to be asked.

        Args:
            sequences: In any order.
            kinds: Of "policy", the policy as it is, "reference", the model as it was when this
                learner was made, "teacher", and "values", the critic's.

        Raises:
            ValueError: The reference is asked for but was not kept, a teacher where there is none,
                or values without a critic.
        """
        if "teacher" in kinds and self._teacher_scorer is None:
            raise ValueError("the learner has no teacher; make it with teacher=model")
        if "reference" in kinds and not self._keeps_reference:
            raise ValueError("the learner keeps no reference; make it with keeps_reference=True")
        found: dict[int, dict[str, tuple[float, ...]]] = defaultdict(dict)
        wrapped = [TokenSequence(s, advantages=(0.0,) * len(s.token_ids)) for s in sequences]
        position = {id(item): index for index, item in enumerate(wrapped)}
        packed = all(s.packs for s in (self._scorer, self._teacher_scorer or self._scorer))
        cut = make_micro_batches(wrapped, self.rule.micro_tokens, packed=packed)
        for micro_batch in as_often_as_others(cut, self._ranks):
            batch = collate(micro_batch, device=self.device)
            for kind, scores in self._predict(batch, kinds).items():
                if micro_batch is FILLER:
                    continue
                rows = scores.tolist()
                for item, row in zip(micro_batch, rows, strict=True):
                    found[position[id(item)]][kind] = tuple(row[: len(item)])
        release_cache(self.device)
        return [Scores(**found[index]) for index in range(len(wrapped))]

    def _predict(self, batch: TokenBatch, kinds: Collection[str]) -> dict[str, Tensor]:
        """Return (B, T) of each kind, with values and the policy's logprobs of one pass."""
        found: dict[str, Tensor] = {}
        if "policy" in kinds:
            output = self._scorer(batch, with_values="values" in kinds)
            found["policy"] = output.logprobs
            if output.values is not None:
                found["values"] = output.values
        if "values" in kinds and "values" not in found:
            found["values"] = self._scorer.values(batch)
        if "reference" in kinds and self._reference is not None:
            found["reference"] = self._reference_scorer(batch).logprobs
        elif "reference" in kinds:
            with without_adapters(self.policy):
                found["reference"] = self._scorer(batch, with_values=False).logprobs
        if "teacher" in kinds and self._teacher_scorer is not None:
            found["teacher"] = self._teacher_scorer(batch).logprobs
        return found

    def update(
        self, sequences: Sequence[TokenSequence], loss: LossFunction, *, step: int | None = None
    ) -> UpdateReport:
        """Learn from sequences: one optimizer step a minibatch, `num_epochs` times over.

        Args:
            sequences: At least one, in any order.
            loss: Called once a micro-batch.
            step: Which of the run's steps this is, counted from 0: where the learning rate's
                schedule stands, whatever steps before came to. None where each update is one
                optimizer step and none is left out: then it counts them itself.

        Returns:
            The loss divided by its count, and means of stats over all sampled tokens. `sampler_gap`
            and `sampler_gap_max` (absolute differences of the policy's logprobs and the sampler's)
            and `sampler_kl` (the KL divergence of the policy from the sampler, by r - 1 - log r of
            Schulman 2020, "Approximating KL divergence") are of the first step alone: only there
            are the weights those that were published last.
        """
        sums: dict[str, float] = defaultdict(float)
        reports, position = [], 0.0
        for index, batch in enumerate(self._minibatches(sequences)):
            share = index / self._num_minibatches(sequences)
            position = float(self.num_updates) if step is None else step + share
            reports.append(self._step(batch, loss, sums, position))
        release_cache(self.device)
        gap, divergence, gap_max, num_gap = reports[0][1:]
        loss_mean = sums.pop("loss") / (sums.pop("count") or 1.0)
        norms = {_norm_name(g): sums.pop(_norm_name(g), 0.0) / len(reports) for g in self._groups}
        num_actions = sums.pop("num_actions")
        applied = sum(finite for finite, *_ in reports)
        return UpdateReport(
            metrics={
                "loss": loss_mean,
                **{name: total / num_actions for name, total in sums.items()},
                **norms,
                "learning_rate": self.rule.learning_rate.at(position),
                "sampler_gap": gap / max(num_gap, 1),
                "sampler_gap_max": gap_max,
                "sampler_kl": divergence / max(num_gap, 1),
            },
            num_optimizer_steps=applied,
            num_skipped_steps=len(reports) - applied,
        )

    def export_weights(self) -> dict[str, Tensor]:
        """Return what differs from the model as loaded.

        Returns:
            Merged weights under the loaded model's names, or the adapters' under peft's. Where
            weights are split, on the CPU on rank 0, and empty on others.
        """
        if self._exports_adapter:
            weights: Iterable[tuple[str, Tensor]] = adapter_weights(self.policy).items()
        else:
            weights = merged_weights(self.policy)
        found = {}
        for name, tensor in weights:
            own = tensor.to(self._dtypes.get(name, tensor.dtype))
            if self._answers:
                found[name] = own.cpu() if self.shards else own
        return found

    def state_dict(self) -> dict[str, Any]:
        """Return all that the next update depends on, besides the frozen weights.

        Returns:
            Whole tensors on the CPU, for any number of ranks to go on from. Where weights are
            split, rank 0 has them, and tensors of others are empty.
        """
        groups = {name: g.state_dict(keeps=self._answers) for name, g in self._groups.items()}
        state = {"num_updates": self.num_updates, **groups["policy"]}
        if "critic" in groups:
            state["critic"] = groups["critic"]
        return state

    def save_policy(self, target: Path) -> None:
        """Write the policy to a directory as `save_pretrained` does; the first rank writes."""
        save_policy(self.policy, target, dtypes=self._dtypes, writes=self._ranks.rank == 0)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned, whole on every rank.

        Raises:
            ValueError: The state is of another model or another set of trained parameters, or of a
                learner that has a critic where this one has none, or the other way round.
        """
        if ("critic" in state) != (self.critic is not None):
            raise ValueError(
                f"the state is of a learner {'with' if 'critic' in state else 'without'} a critic, "
                "this one is not; resume with the algorithm that it was saved with"
            )
        self._groups["policy"].load_state_dict(state)
        if self.critic is not None:
            self._groups["critic"].load_state_dict(state["critic"])
        self.num_updates = state["num_updates"]

    @property
    def _answers(self) -> bool:
        """Whether this rank is one that has whole weights to return."""
        return self._ranks.rank == 0 or not self.shards

    def _num_minibatches(self, sequences: Sequence[TokenSequence]) -> int:
        size = self.rule.minibatch_sequences or len(sequences)
        return self.rule.num_epochs * math.ceil(len(sequences) / size)

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
        self,
        minibatch: list[TokenSequence],
        loss: LossFunction,
        sums: dict[str, float],
        position: float,
    ) -> tuple[bool, float, float, float, int]:
        """Take one optimizer step; return whether it was finite, and the gap to the sampler.

        Gradients of sums are added up over micro-batches and divided once by the total count.
        """
        local: dict[str, float] = defaultdict(float)
        share = share_of(minibatch, self._ranks)
        packed = self._scorer.packs
        cut = make_micro_batches(share, self.rule.micro_tokens, packed=packed)
        for micro_batch in as_often_as_others(cut, self._ranks):
            batch = collate(micro_batch, device=self.device)
            output = self._scorer(batch)
            if micro_batch is FILLER:
                backward_of_nothing(output)
            else:
                backward(loss(output, batch), output, batch, local)
        gap_max = local.pop("gap_max", 0.0)
        self._ranks.sum_gradients([p for g in self._groups.values() for p in g.parameters.values()])
        of_ranks = self._ranks.gather({**local, "gap_max": gap_max})
        total: dict[str, float] = defaultdict(float)
        for figures in of_ranks:
            for name, value in figures.items():
                total[name] += value
        gap_max = max(figures["gap_max"] for figures in of_ranks)
        for name in total.keys() - {"gap", "divergence", "gap_max"}:
            sums[name] += total[name]
        finite = self._apply(total["loss"], total["count"], sums, position)
        return finite, total["gap"], total["divergence"], gap_max, int(total["num_actions"])

    def _apply(self, total: float, count: float, sums: dict[str, float], position: float) -> bool:
        """Normalise, clip and apply the gradients, or drop them if anything is not finite."""
        limit = self.rule.max_grad_norm
        norms = {name: g.normalize(count or 1.0, limit) for name, g in self._groups.items()}
        finite = math.isfinite(total) and all(map(math.isfinite, norms.values()))
        if finite:
            for name, group in self._groups.items():
                group.step(position)
                sums[_norm_name(name)] += norms[name]
        self.num_updates += 1
        for group in self._groups.values():
            for parameter in group.parameters.values():
                parameter.grad = None
        return finite


def _parameter_groups(
    policy: nn.Module, critic: nn.Module | None, rule: UpdateRule
) -> dict[str, ParameterGroup]:
    """Return what learns, with its optimizers."""
    shared: dict[str, Any] = {"betas": rule.betas, "weight_decay": rule.weight_decay}
    groups = {
        "policy": ParameterGroup(
            trainable_parameters(policy),
            rule.learning_rate,
            muon_learning_rate=rule.muon_learning_rate,
            **shared,
        )
    }
    if rule.critic is not None and critic is not None:
        own = trainable_parameters(critic)
        groups["critic"] = ParameterGroup(own, rule.critic.learning_rate, **shared)
    return groups


def _norm_name(group: str) -> str:
    """Return the name of a group's gradient norm among the metrics."""
    return "grad_norm" if group == "policy" else f"{group}_grad_norm"
