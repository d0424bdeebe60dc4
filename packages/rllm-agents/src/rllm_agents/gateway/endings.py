"""From the turns of a session to the Episode that evaluations count and learners train on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rllm_agents.gateway.turns import Turn, token_records
from rllm_agents.types import Episode, TerminationReason, Trajectory


@dataclass(frozen=True, slots=True)
class Ending:
    """How a session ended. Made by who ends it, read by `to_episode`."""

    reward: float | None
    """Of the whole episode; None where it failed."""
    is_correct: bool | None = None
    """Whether the task is solved; None takes whether the reward is above 0."""
    reason: TerminationReason = TerminationReason.ENV_DONE
    error: str | None = None
    """What failed, in words."""
    info: Mapping[str, Any] = field(default_factory=dict)
    """Added to the last step's."""

    def __post_init__(self) -> None:
        """Refuse a reward that does not go with the reason; raises ValueError."""
        is_missing = self.reward is None
        if is_missing != self.reason.is_failure:
            raise ValueError(f"reward={self.reward!r} does not go with the reason {self.reason}")
        if self.reward is not None and not math.isfinite(self.reward):
            raise ValueError(f"reward must be a finite number, got {self.reward!r}")


def to_episode(
    id: str,
    task: Any,
    turns: Sequence[Turn],
    ending: Ending,
    *,
    gamma: float = 1.0,
    seconds: Mapping[str, float],
) -> Episode:
    """Sum a session up: one trajectory with a step for each call, in the order of the answers.

    Args:
        id: Of the episode.
        task: What was played.
        turns: All of the session.
        ending: Reward and reason; the reward is the last step's.
        gamma: Discount of `Step.mc_return`.
        seconds: Added to the metrics.
    """
    steps = [turn.step for turn in turns]
    reward = ending.reward or 0.0
    if steps:
        steps[-1].reward = reward
        steps[-1].done = ending.reason is TerminationReason.ENV_DONE
        steps[-1].info.update(ending.info)
    for place, step in enumerate(reversed(steps)):
        step.mc_return = reward * gamma**place
    is_correct = reward > 0 if ending.is_correct is None else ending.is_correct
    trajectory = Trajectory(
        task=task, steps=steps, reward=ending.reward, token_records=token_records(turns)
    )
    return Episode(
        id=id,
        task=task,
        termination_reason=ending.reason,
        is_correct=is_correct and not ending.reason.is_failure,
        trajectories=[trajectory],
        metrics={
            "num_steps": float(len(steps)),
            "prompt_tokens": float(len(steps[0].prompt_ids) if steps else 0),
            "response_tokens": float(sum(len(step.response_ids) for step in steps)),
            **seconds,
        },
        error=ending.error,
    )
