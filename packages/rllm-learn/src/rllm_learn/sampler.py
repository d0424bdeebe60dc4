"""The sampler: plays what an algorithm plans, wherever episodes are run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor

from rllm_agents import Episode, RolloutRequest, SamplingParams
from rllm_learn.algorithms import PlannedRollout
from rllm_learn.errors import TrainingError
from rllm_learn.records import to_rollouts
from rllm_learn.step import Sample


class PlanSampler:
    """Turns a plan into requests, has them played, and checks what comes back."""

    def __init__(
        self,
        *,
        play: Callable[[Sequence[RolloutRequest]], list[Episode]],
        push: Callable[[Mapping[str, Tensor], int], None],
        temperature: float,
        seed: int,
        max_failure_share: float,
        adapters: Mapping[str, str] | None = None,
        rest: Callable[[], None] = lambda: None,
    ):
        """Take what it drives.

        Args:
            play: Runs one episode of each request with the newest weights, in their order.
            push: Makes weights the newest, under a version.
            temperature: Of rollouts that are not greedy.
            seed: With the step and the rollout's place in the plan, seeds its sampling.
            max_failure_share: Share of failed episodes in a step beyond which the run stops.
            adapters: By role, the policy that learns from it; see `to_rollouts`.
            rest: Called when episodes have been played and it is for the learner to go on.
        """
        self._rest = rest
        self._play = play
        self._push = push
        self._temperature = temperature
        self._seed = seed
        self._max_failure_share = max_failure_share
        self._adapters = adapters

    def sample(
        self,
        plan: Sequence[PlannedRollout],
        tasks: Sequence[dict[str, Any]],
        step: int,
        *,
        first_index: int = 0,
    ) -> Sample:
        """Play every planned rollout; the same seed, step and weights give the same rollouts.

        Args:
            plan: What is played.
            tasks: What the plan's task indices stand for.
            step: Number of the step.
            first_index: Rollouts that this step has played already.

        Raises:
            TrainingError: More episodes failed than `max_failure_share`; their reasons are named.
        """
        episodes = self._play(self.requests(plan, tasks, step, first_index=first_index))
        self._rest()
        return self.collect(plan, episodes, step)

    def requests(
        self,
        plan: Sequence[PlannedRollout],
        tasks: Sequence[dict[str, Any]],
        step: int,
        *,
        first_index: int = 0,
    ) -> list[RolloutRequest]:
        """Return what is to be played; arguments as `sample` has them."""
        return [
            RolloutRequest(
                task=dict(tasks[planned.task_index]),
                id=f"step-{step}/task-{planned.task_index}/rollout-{index}",
                sampling=SamplingParams(
                    temperature=0.0 if planned.greedy else self._temperature,
                    seed=rollout_seed(self._seed, step, index),
                ),
            )
            for index, planned in enumerate(plan, start=first_index)
        ]

    def collect(self, plan: Sequence[PlannedRollout], episodes: list[Episode], step: int) -> Sample:
        """Check what was played, and turn it into records.

        Args:
            plan: What was played.
            episodes: In its order.
            step: Number of the step.

        Raises:
            TrainingError: More episodes failed than `max_failure_share`; their reasons are named.
        """
        self._check_failures(episodes, step)
        return Sample(list(plan), episodes, to_rollouts(episodes, plan, self._adapters))

    def publish(self, weights: Mapping[str, Tensor], version: int) -> None:
        """Sample from these weights from now on."""
        self._push(weights, version)

    def _check_failures(self, episodes: Sequence[Episode], step: int) -> None:
        failed = [e for e in episodes if e.failed]
        if len(failed) <= self._max_failure_share * len(episodes):
            return
        reasons = Counter(f"{e.termination_reason}: {e.error}" for e in failed).most_common(3)
        listed = "; ".join(f"{count} x {reason}" for reason, count in reasons)
        raise TrainingError(
            f"{len(failed)} of {len(episodes)} episodes of step {step} failed, more than "
            f"rollout.max_failure_share={self._max_failure_share:g} allows: {listed}"
        )


async def push_weights(
    engine: Any,
    weights: Mapping[str, Tensor],
    *,
    version: int,
    adapter_config: Mapping[str, Any] | None,
    in_flight: bool = False,
) -> None:
    """Put weights into a running rollout engine.

    Args:
        engine: A rollout engine; one that takes adapters, where there is a configuration of them.
        weights: What `Learner.export_weights` returned.
        version: Of the weights.
        adapter_config: What peft says of LoRA matrices; None for whole weights.
        in_flight: Whether completions that are being sampled go on with whole weights that are new.
            With adapters they never do: each keeps the one that it began with.
    """
    if adapter_config is None and in_flight:
        await engine.load_weights(weights, version=version, in_flight=True)
    elif adapter_config is None:
        await engine.load_weights(weights, version=version)
    else:
        await engine.load_adapter(weights, adapter_config, version=version)


def rollout_seed(seed: int, step: int, index: int) -> int:
    """Return a sampling seed that no other rollout of the run has, for fewer than 2**20 a step."""
    return ((seed * 2**20 + step) * 2**20 + index) % 2**63
