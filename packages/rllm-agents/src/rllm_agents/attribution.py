"""Whose tokens a workflow's calls are: each call to one step of one trajectory, or to none."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rllm_agents.call_log import RecordedCall, token_records
from rllm_agents.errors import EpisodeFailure
from rllm_agents.recorded_engine import fill_step, step_of
from rllm_agents.types import Episode, TerminationReason, Trajectory

_FAILURE = TerminationReason.WORKFLOW_EXCEPTION


def attribute_calls(episode: Episode, calls: Sequence[RecordedCall]) -> None:
    """Give every recorded call to exactly one step of one trajectory, with its exact tokens.

    Calls that nobody owns become a trajectory "unassigned" without a reward.

    Args:
        episode: Its steps and token records are filled in.
        calls: All of its run, by start.

    Raises:
        EpisodeFailure: A step holds a call that is another's or of another run, or steps cannot be
            told which call is theirs.
    """
    by_id = {call.output.call_id: call for call in calls}
    taken: dict[str, Trajectory] = {}
    for trajectory in episode.trajectories:
        for step in trajectory.steps:
            if step.model_output is None:
                continue
            call_id = step.model_output.call_id
            if call_id in taken or call_id not in by_id:
                what = "stands in two steps" if call_id in taken else "is not of this run"
                raise EpisodeFailure(_FAILURE, f"model call {call_id} {what}")
            taken[call_id] = trajectory
    for trajectory in episode.trajectories:
        _give_calls(
            trajectory,
            [c for c in calls if c.owner == trajectory.uid and c.output.call_id not in taken],
        )
        _seal(trajectory, by_id)
        taken |= {s.model_output.call_id: trajectory for s in trajectory.steps if s.model_output}
    left = [call for call in calls if call.output.call_id not in taken]
    if left:
        unassigned = Trajectory(name="unassigned", task=episode.task, reward=None)
        unassigned.steps = [step_of(call.output) for call in left]
        _seal(unassigned, by_id)
        episode.trajectories.append(unassigned)


def _give_calls(trajectory: Trajectory, calls: Sequence[RecordedCall]) -> None:
    """Match calls with the steps that hold none, in order: a trajectory's turns are in order."""
    empty = [step for step in trajectory.steps if step.model_output is None]
    if not empty:
        trajectory.steps += [step_of(call.output) for call in calls]
    elif len(empty) == len(calls):
        for step, call in zip(empty, calls, strict=True):
            fill_step(step, call.output)
    elif calls:
        raise EpisodeFailure(
            _FAILURE,
            f"trajectory {trajectory.name!r} has {len(empty)} steps without model_output for "
            f"{len(calls)} model calls; give each Step the output of its call",
        )


def _seal(trajectory: Trajectory, calls: Mapping[str, RecordedCall]) -> None:
    """Write the facts of its calls over what a trajectory says of them."""
    owned = []
    for index, step in enumerate(trajectory.steps):
        if step.model_output is not None:
            call = calls[step.model_output.call_id]
            fill_step(step, call.output)
            owned.append((index, call))
    if owned:
        trajectory.token_records = token_records(owned)


def check_rewards(episode: Episode) -> None:
    """Refuse rewards that are no finite numbers, and make floats of the others.

    Raises:
        EpisodeFailure: One is none; of trajectories, None is allowed.
    """
    for trajectory in episode.trajectories:
        place = f"of trajectory {trajectory.name!r}"
        if trajectory.reward is not None:
            trajectory.reward = finite_number(trajectory.reward, f"the reward {place}")
        for index, step in enumerate(trajectory.steps):
            step.reward = finite_number(step.reward, f"the reward of step {index} {place}")


def finite_number(value: Any, what: str) -> float:
    """Return a value as a float.

    Raises:
        EpisodeFailure: It is no finite number; `what` says what it is.
    """
    try:
        if isinstance(value, str | bytes):
            raise TypeError("text")
        number = float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        number = math.nan
    if not math.isfinite(number):
        raise EpisodeFailure(
            TerminationReason.ENV_BAD_REWARD,
            f"{what} must be a finite number, got {value!r:.120}",
        )
    return number
