"""The part of RLlib's configuration that says what happens when something is lost."""

from __future__ import annotations

from typing import Any, Self

from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

from rllm_learn.rllib.options import UNSET, given


class FaultsConfig(AlgorithmConfig):
    """Time-outs and restarts. Base of `LLMAlgorithmConfig`."""

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class)
        self.init_timeout_s = 300.0
        self.collective_timeout_s = 300.0
        self.hang_timeout_s = 60.0
        self.snapshot_every_updates = 1
        self.max_learner_restarts = 3

    def fault_tolerance(
        self,
        *,
        init_timeout_s: float = UNSET,
        collective_timeout_s: float = UNSET,
        hang_timeout_s: float = UNSET,
        snapshot_every_updates: int = UNSET,
        max_learner_restarts: int = UNSET,
        **settings: Any,
    ) -> Self:
        """Say what happens when something is lost.

        Args:
            init_timeout_s: Seconds after which actors that did not start are an error.
            collective_timeout_s: Seconds after which a learner that waits for others gives up.
            hang_timeout_s: Seconds without a sign of life after which a learner, env runner or
                engine is taken to hang, and is ended and started again; more than an engine's
                longest step.
            snapshot_every_updates: Updates between copies of the learners' state in memory, from
                which a group goes on whose rank was lost.
            max_learner_restarts: Restarts of learners in a row, without an update between them,
                after which `train` raises.
            settings: RLlib's own, of env runners.
        """
        super().fault_tolerance(**settings)
        self.init_timeout_s = given(init_timeout_s, self.init_timeout_s)
        self.collective_timeout_s = given(collective_timeout_s, self.collective_timeout_s)
        self.hang_timeout_s = given(hang_timeout_s, self.hang_timeout_s)
        self.snapshot_every_updates = given(snapshot_every_updates, self.snapshot_every_updates)
        self.max_learner_restarts = given(max_learner_restarts, self.max_learner_restarts)
        return self
