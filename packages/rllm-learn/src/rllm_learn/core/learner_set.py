"""Several policies that learn side by side, and frozen copies of them to play against."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from rllm_learn.core.batch import SampledSequence, Scores, TokenSequence
from rllm_learn.core.learner import Learner, LossFunction, UpdateReport
from rllm_learn.core.model import PolicySpec

SNAPSHOT = "@snapshot"
"""Ends the name of a policy's frozen copy."""
MARK = ":"
"""Stands between the name of a policy and that of a weight."""


@dataclass(frozen=True)
class LearnerPlan:
    """Which policies learn. Made from settings, read where learners are made."""

    names: tuple[str, ...] = ("policy",)
    """At least one; sequences without a name are the first one's."""
    snapshots: tuple[str, ...] = ()
    """Of those, the ones that frozen copies are kept of."""
    snapshot_every: int = 10
    """Updates between two copies."""
    teacher: PolicySpec | None = None
    """The model that sequences are scored with beside the policies; None for none."""


class LearnerSet:
    """A learner for each policy, as one. Each sequence is learned by the policy that sampled it."""

    def __init__(self, learners: Mapping[str, Learner], plan: LearnerPlan):
        """Take learners.

        Args:
            learners: One for each of the plan's names.
            plan: Which of them are copied, and how often.
        """
        self.learners = {name: learners[name] for name in plan.names}
        self._plan = plan
        self._snapshots: dict[str, dict[str, Tensor]] = {}
        self.num_updates = 0
        """Batches learned from so far."""

    def score(self, sequences: Sequence[SampledSequence], kinds: Collection[str]) -> list[Scores]:
        """Return what each sequence's own policy, or its reference, says of it, in their order."""
        found: dict[int, Scores] = {}
        dealt = self._dealt([s.adapter for s in sequences])
        for name, learner in self.learners.items():
            # Other ranks may have sequences of a policy that this one has none of.
            if name in dealt or learner.shards:
                indices = dealt.get(name, [])
                own = [sequences[i] for i in indices]
                found.update(zip(indices, learner.score(own, kinds), strict=True))
        return [found[index] for index in range(len(sequences))]

    def update(
        self, sequences: Sequence[TokenSequence], loss: LossFunction, *, step: int | None = None
    ) -> UpdateReport:
        """Let each policy learn from its sequences; one without any stays as it is.

        Args:
            sequences: Of all policies.
            loss: See `Learner.update`.
            step: See `Learner.update`.

        Returns:
            Figures of all. Where several policies learn, names of metrics begin with the policy's.
        """
        metrics: dict[str, float] = {}
        num_steps = num_skipped = 0
        for name, indices in self._dealt([s.sampled.adapter for s in sequences]).items():
            report = self.learners[name].update([sequences[i] for i in indices], loss, step=step)
            mark = f"{name}/" if len(self.learners) > 1 else ""
            metrics |= {f"{mark}{key}": value for key, value in report.metrics.items()}
            num_steps += report.num_optimizer_steps
            num_skipped += report.num_skipped_steps
        self.num_updates += 1
        if self.num_updates % self._plan.snapshot_every == 0:
            for name in self._plan.snapshots:
                weights = self.learners[name].export_weights()
                self._snapshots[name] = {key: t.cpu().clone() for key, t in weights.items()}
        return UpdateReport(metrics, num_steps, num_skipped)

    def export_weights(self) -> dict[str, Tensor]:
        """Return the weights of all policies and copies, by ``<policy>:<weight>``."""
        sets: dict[str, Mapping[str, Tensor]] = {
            name: learner.export_weights() for name, learner in self.learners.items()
        }
        sets |= {f"{name}{SNAPSHOT}": weights for name, weights in self._snapshots.items()}
        return {f"{name}{MARK}{key}": t for name, own in sets.items() for key, t in own.items()}

    def state_dict(self) -> dict[str, Any]:
        """Return all that the next update and the next match depend on."""
        return {
            "learners": {name: learner.state_dict() for name, learner in self.learners.items()},
            "snapshots": self._snapshots,
            "num_updates": self.num_updates,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned.

        Raises:
            ValueError: The state is of other policies.
        """
        if state.get("learners", {}).keys() != self.learners.keys():
            raise ValueError(
                f"the state holds the policies {', '.join(state.get('learners', ['one']))}, and "
                f"{', '.join(self.learners)} learn here; resume with the players of before"
            )
        for name, learner in self.learners.items():
            learner.load_state_dict(state["learners"][name])
        self._snapshots = state["snapshots"]
        self.num_updates = state["num_updates"]

    def _dealt(self, adapters: Sequence[str]) -> dict[str, list[int]]:
        """Return by policy, in the plan's order, the places of its sequences."""
        found: dict[str, list[int]] = defaultdict(list)
        for index, adapter in enumerate(adapters):
            found[adapter or self._plan.names[0]].append(index)
        return {name: found[name] for name in self.learners if name in found}


def make_learners(make: Callable[[nn.Module | None], Learner], plan: LearnerPlan) -> Any:
    """Return what learns a plan's policies: a Learner where one learns and none is copied.

    Args:
        make: Loads a policy and makes its learner; the policy it is given, if any, has the frozen
            weights to share.
        plan: Which policies.
    """
    first = make(None)
    if len(plan.names) == 1 and not plan.snapshots:
        return first
    learners = {plan.names[0]: first}
    for name in plan.names[1:]:
        learners[name] = make(first.policy)
    return LearnerSet(learners, plan)


def share_frozen(policy: nn.Module, other: nn.Module | None) -> nn.Module:
    """Let a policy use the frozen weights of another of the same model, in place of its own."""
    if other is not None:
        held = dict(other.named_parameters())
        for name, parameter in policy.named_parameters():
            if not parameter.requires_grad:
                parameter.data = held[name].data
    return policy


def save_policies(learner: Any, target: Path) -> None:
    """Write what learns as `save_pretrained` does; several policies in directories of their names.

    Args:
        learner: A Learner or a LearnerSet.
        target: Directory.
    """
    if not isinstance(learner, LearnerSet):
        learner.save_policy(target)
        return
    for name, own in learner.learners.items():
        own.save_policy(target / name if len(learner.learners) > 1 else target)
