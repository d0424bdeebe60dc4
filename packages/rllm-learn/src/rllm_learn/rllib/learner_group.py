"""The learner group: one learner in this process, or several in processes that act as one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import ray
import torch
from ray.exceptions import RayError
from ray.rllib.core.learner.learner_group import LearnerGroup
from torch import Tensor

from rllm_learn.core.batch import SampledSequence, Scores, TokenSequence
from rllm_learn.core.learner import Learner, LossFunction, UpdateReport, UpdateRule
from rllm_learn.core.learner_set import LearnerPlan, save_policies
from rllm_learn.core.model import PolicySpec
from rllm_learn.core.parallel import GroupSpec, shares
from rllm_learn.errors import LearnError
from rllm_learn.learners import load_learners
from rllm_learn.rllib.learner_actor import LearnerActor
from rllm_learn.rllib.liveness import SIGNS_OF_LIFE, finish
from rllm_learn.rllib.readiness import wait_until_ready

logger = logging.getLogger(__name__)

STATE_FILE = "learner.pt"


class LearnersLost(LearnError):
    """A rank died or failed; the whole group was started again from its last good state."""


class LLMLearnerGroup(LearnerGroup):
    """RLlib's `LearnerGroup` for language models: `update` takes token sequences.

    Ranks are Ray actors that hold equal copies of the policy, or parts of one. When one is lost or
    hangs, all are started again, because the others wait for it in a collective, and go on from the
    state after the last update that all of them finished.
    """

    # RLlib's constructor builds learners of its own; this class shares its interface alone.
    def __init__(  # pyright: ignore[reportMissingSuperCall]
        self,
        *,
        config: Any,
        spec: PolicySpec,
        rule: UpdateRule,
        exports_adapter: bool,
        keeps_reference: bool = False,
        plan: LearnerPlan | None = None,
        torch_threads: int | None = None,
        actor_options: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Start the learners.

        Args:
            config: An `LLMAlgorithmConfig`; `num_learners` 0 learns in this process, more with
                weights that are whole or split, as `sharding` says.
            spec: Which policy.
            rule: How it learns.
            exports_adapter: See `Learner`.
            keeps_reference: See `Learner`.
            plan: Which policies learn; None for one.
            torch_threads: Of one operation in a learner's process.
            actor_options: Ray's options of each actor: CPUs, GPUs, placement.

        Raises:
            ConfigError: Ray has not the resources.
            StartError: A learner could not be started.
        """
        self.config = config
        self._spec = spec
        self._rule = rule
        self._keeps: dict[str, Any] = {
            "exports_adapter": exports_adapter,
            "keeps_reference": keeps_reference,
            "plan": plan or LearnerPlan(),
        }
        self._torch_threads = torch_threads
        self._actor_options = actor_options
        self._workers: list[Any] = []
        self._learner: Any = None
        self._worker_manager = None
        self._is_shut_down = False
        self._ts_dropped = 0
        self._snapshot: Any = None
        self._exported: Mapping[str, Tensor] | None = None
        self._updates_since_snapshot = 0
        self.num_restarts = 0
        """How often the group was started again."""
        if config.num_learners == 0:
            self._learner = load_learners(spec, rule, **self._keeps)
        else:
            self._start()
            self._take_snapshot()

    @property
    def is_local(self) -> bool:
        """Whether the learner lives in this process."""
        return self._learner is not None

    @property
    def is_remote(self) -> bool:
        """Whether learners are Ray actors."""
        return self._learner is None

    def __len__(self) -> int:
        """Number of learner actors; 0 where the learner lives in this process."""
        return len(self._workers)

    def score(self, sequences: Sequence[SampledSequence], kinds: Collection[str]) -> list[Scores]:
        """Return what a model says of sequences; see `Learner.score`.

        Each rank scores a share of them.

        Raises:
            LearnersLost: As `update`.
        """
        if self._learner is not None:
            return self._learner.score(sequences, kinds)
        dealt = shares(sequences, len(self._workers))
        refs = [
            worker.score.remote([sequences[i] for i in share], frozenset(kinds))
            for worker, share in zip(self._workers, dealt, strict=True)
        ]
        scores: dict[int, Scores] = {}
        for share, own in zip(dealt, self._finish(refs), strict=True):
            scores.update(zip(share, own, strict=True))
        return [scores[index] for index in range(len(sequences))]

    def update(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, sequences: Sequence[TokenSequence], loss: LossFunction, *, step: int | None = None
    ) -> UpdateReport:
        """Learn from sequences, whoever has which share of them; see `Learner.update`.

        Raises:
            LearnersLost: A rank was lost or failed. The group is there again, in the state after
                its last update.
        """
        if self._learner is not None:
            return self._learner.update(sequences, loss, step=step)
        self._exported = None
        # One copy in the object store, however many ranks read it.
        boxed = ray.put(list(sequences))
        reports = self._on_all("update", boxed, loss, step)
        # Asked for before the snapshot: once there is one, the update must not be made again, and a
        # step that cannot publish what it came to is played again.
        exported = self._on_all("export_weights")[0]
        self._updates_since_snapshot += 1
        if self._updates_since_snapshot >= self.config.snapshot_every_updates:
            self._take_snapshot()
        self._exported = exported
        return reports[0]

    def export_weights(self) -> Mapping[str, Tensor]:
        """Return what differs from the model as loaded, of rank 0, once all have gathered it.

        Raises:
            LearnersLost: As `update`.
        """
        if self._learner is not None:
            return self._learner.export_weights()
        exported, self._exported = self._exported, None  # of the last update, kept for one asker
        return self._on_all("export_weights")[0] if exported is None else exported

    def state_dict(self) -> dict[str, Any]:
        """Return all that the next update depends on, of rank 0, once all have gathered it.

        Raises:
            LearnersLost: As `update`.
        """
        return self._learner.state_dict() if self._learner else self._on_all("state_dict")[0]

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore on every rank what `state_dict` returned."""
        if self._learner is not None:
            self._learner.load_state_dict(state)
            return
        self._exported = None
        self._on_all("load_state_dict", ray.put(state))
        self._take_snapshot()

    def foreach_learner(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, func: Callable[[Learner], Any]
    ) -> list[Any]:
        """Call a function with the `Learner` of each rank and return what it returned, in order."""
        if self._learner is not None:
            return [func(self._learner)]
        self._exported = None  # it may change weights
        return self._on_all("apply", func)

    def save_policy(self, target: Path) -> None:
        """Write the policy as `save_pretrained` does, from rank 0."""
        self.foreach_learner(lambda learner: save_policies(learner, target))

    # What RLlib's `Checkpointable` asks for.

    def get_state(self, components: Any = None, **kwargs: Any) -> dict[str, Any]:
        """Return `state_dict()`; parts of it cannot be asked for."""
        return self.state_dict()

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what `get_state` returned."""
        self.load_state_dict(state)

    def get_checkpointable_components(self) -> list[Any]:
        """Return none: the state is one."""
        return []

    def save_to_path(self, path: Any = None, **kwargs: Any) -> str:
        """Write the state; what it does not hold are the frozen weights."""
        place = Path(str(path))
        place.mkdir(parents=True, exist_ok=True)
        torch.save(self.state_dict(), place / STATE_FILE)
        return str(place)

    def restore_from_path(self, path: Any, **kwargs: Any) -> None:
        """Read what `save_to_path` wrote; the number of learners may be another one.

        Raises:
            ValueError: It is the state of another model, or of another LoRA rank.
        """
        state = torch.load(Path(str(path)) / STATE_FILE, weights_only=True)
        self.load_state_dict(state)

    def shutdown(self) -> None:
        """End the actors; again does nothing."""
        self._kill()
        self._is_shut_down = True

    def __del__(self) -> None:
        """Leave actors to Ray, which ends them with their last handle."""

    def _start(self) -> None:
        size = self.config.num_learners
        # Ray's types do not know of concurrency groups.
        remote: Any = ray.remote
        self._workers = [
            # Not restarted by Ray: a rank alone cannot join a group that runs.
            remote(concurrency_groups=dict(SIGNS_OF_LIFE))(LearnerActor)
            .options(max_restarts=0, **self._actor_options[rank])
            .remote(rank, self._torch_threads)
            for rank in range(size)
        ]
        options = self._actor_options
        asked = {
            "CPU": sum(o.get("num_cpus", 0.0) for o in options),
            "GPU": sum(o.get("num_gpus", 0.0) for o in options),
        }
        timeout = self.config.init_timeout_s
        met = [worker.address.remote() for worker in self._workers]
        wait_until_ready({"learners": met}, asked, timeout=timeout)
        group = GroupSpec(
            size, ray.get(met[0]), self.config.collective_timeout_s, self.config.sharding
        )
        built = [
            worker.build.remote(
                self._spec,
                self._rule,
                **self._keeps,
                group=group,
            )
            for worker in self._workers
        ]
        wait_until_ready({"learners (loading the policy)": built}, asked, timeout=timeout)

    def _kill(self) -> None:
        for worker in self._workers:
            ray.kill(worker)
        self._workers = []

    def _restart(self, reason: object) -> None:
        """Start all ranks again from the last snapshot."""
        first = next(iter(str(reason).strip().splitlines()), type(reason).__name__)
        logger.warning(
            "a learner was lost (%s); all %d start again from the state after update %d",
            first,
            self.config.num_learners,
            self._snapshot_update(),
        )
        self._kill()
        self._start()
        if self._snapshot is not None:
            self._wait([w.load_state_dict.remote(self._snapshot) for w in self._workers])
        self._updates_since_snapshot = 0
        self.num_restarts += 1

    def _snapshot_update(self) -> int:
        state: Any = {"num_updates": 0} if self._snapshot is None else ray.get(self._snapshot)
        return state["num_updates"]

    def _take_snapshot(self) -> None:
        """Keep rank 0's state in the object store, owned by this process."""
        self._snapshot = ray.put(self.state_dict())
        self._updates_since_snapshot = 0

    def _on_all(self, method: str, *arguments: Any) -> list[Any]:
        return self._finish([getattr(w, method).remote(*arguments) for w in self._workers])

    def _finish(self, refs: list[Any]) -> list[Any]:
        """Return the results in order, or start the group again at the first failure.

        The failure is noticed while other ranks still wait for the one that is lost.
        """
        try:
            return self._wait(refs)
        except RayError as error:
            self._restart(error)
            raise LearnersLost(f"a learner was lost and all were started again: {error}") from error

    def _wait(self, refs: list[Any]) -> list[Any]:
        """Return the results of calls of the first ranks, in their order."""
        calls = dict(zip(refs, self._workers, strict=False))
        return finish(calls, hang_timeout=self.config.hang_timeout_s)
