"""One rank of a learner group, in a process of its own."""

from __future__ import annotations

import socket
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import ray
import torch
from torch import Tensor

from rllm_learn.core.batch import SampledSequence, Scores, TokenSequence
from rllm_learn.core.learner import LossFunction, UpdateReport, UpdateRule
from rllm_learn.core.learner_set import LearnerPlan
from rllm_learn.core.model import PolicySpec
from rllm_learn.core.parallel import GroupSpec, ProcessGroupRanks
from rllm_learn.learners import load_learners
from rllm_learn.rllib.liveness import Living


class LearnerActor(Living):
    """Holds a `Learner`; all ranks of a group hold equal ones, or parts of equal weights."""

    def __init__(self, rank: int, torch_threads: int | None) -> None:
        """Begin without a policy; `build` loads it.

        Args:
            rank: Of this process in its group.
            torch_threads: Of one operation; None leaves it to torch.
        """
        if torch_threads is not None:
            torch.set_num_threads(torch_threads)
        self._rank = rank
        self._learner: Any = None

    def address(self) -> str:
        """Return where this process can be met, as torch takes it."""
        with socket.socket() as probe:
            probe.bind(("", 0))
            port = probe.getsockname()[1]
        return f"tcp://{ray.util.get_node_ip_address()}:{port}"

    def build(
        self,
        spec: PolicySpec,
        rule: UpdateRule,
        *,
        exports_adapter: bool,
        keeps_reference: bool,
        plan: LearnerPlan,
        group: GroupSpec,
    ) -> None:
        """Join the group and load the policy.

        Args:
            spec: Which policy.
            rule: How it learns.
            exports_adapter: See `Learner`.
            keeps_reference: See `Learner`.
            plan: Which policies learn.
            group: Of the ranks; a rank alone joins none.
        """
        ranks = None
        if group.size > 1:
            device = torch.device(spec.device)
            ranks = ProcessGroupRanks(rank=self._rank, device=device, **asdict(group))
        self._learner = load_learners(
            spec,
            rule,
            plan,
            exports_adapter=exports_adapter,
            keeps_reference=keeps_reference,
            ranks=ranks,
        )

    def score(self, sequences: Sequence[SampledSequence], kinds: Collection[str]) -> list[Scores]:
        """Score this rank's share of a batch."""
        return self.learner.score(sequences, kinds)

    def update(
        self, sequences: Sequence[TokenSequence], loss: LossFunction, step: int | None
    ) -> UpdateReport:
        """Take this rank's part in one update."""
        return self.learner.update(sequences, loss, step=step)

    def export_weights(self) -> Mapping[str, Tensor]:
        """Return what differs from the model as loaded; ranks but the first help to gather it."""
        weights = self.learner.export_weights()
        return {name: tensor.cpu() for name, tensor in weights.items() if self._rank == 0}

    def state_dict(self) -> dict[str, Any]:
        """Return all that the next update depends on; ranks but the first help to gather it."""
        state = self.learner.state_dict()
        return state if self._rank == 0 else {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self.learner.load_state_dict(state)

    def apply(self, function: Any) -> Any:
        """Call a function with this rank's `Learner`, or `LearnerSet`."""
        return function(self.learner)

    @property
    def learner(self) -> Any:
        """The learner, once `build` has made it."""
        assert self._learner is not None, "build() comes first"
        return self._learner
