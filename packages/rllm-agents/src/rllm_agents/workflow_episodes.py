"""From the end of an attempt at a workflow to its Episode."""

from __future__ import annotations

import math

from rllm_agents.attempts import AttemptEnd
from rllm_agents.attribution import attribute_calls, check_rewards
from rllm_agents.call_threads import contain_on_loop
from rllm_agents.errors import (
    EpisodeFailure,
    TerminationEvent,
    failure_info,
    in_words,
)
from rllm_agents.recorded_engine import Run, step_of
from rllm_agents.retries import leaves_of
from rllm_agents.rollout_requests import RolloutRequest
from rllm_agents.types import Episode, TerminationReason, Trajectory
from rllm_agents.workflow import Workflow
from rllm_envs.errors import GradingError, ReferenceAnswerError


def to_episode(
    workflow: Workflow, request: RolloutRequest, run: Run, end: AttemptEnd
) -> tuple[Episode, BaseException | None]:
    """Sum up an attempt, whatever became of it.

    Returns:
        The Episode, and what failed if anything did.
    """
    outcome = end.outcome
    if outcome is None:
        reason, error = TerminationReason.TIMEOUT, None
    elif outcome.error is None:
        reason, error = TerminationReason.ENV_DONE, None
    else:
        reason, error = _reason_of(outcome.error, "the workflow")
    returned = None if outcome is None else outcome.value

    def finish() -> Episode:
        return _finished(workflow, request, run, returned, reason)

    finished = contain_on_loop(finish)
    if finished.error is not None:
        # What failed first explains the rest.
        first = outcome.error if outcome is not None and error is not None else None
        first = first or finished.error
        return failed_episode(request, run, first, "the episode of"), first
    episode: Episode = finished.value
    if error is not None:
        episode.error = str(error)
        episode.info |= failure_info(error, None)
    if episode.failed:
        _withdraw_rewards(episode)
    episode.metrics = {**_figures(episode, run), **episode.metrics}
    return episode, None if outcome is None else outcome.error


def failed_episode(request: RolloutRequest, run: Run, error: BaseException, what: str) -> Episode:
    """Return the Episode of a workflow that could not be made, or whose result is broken.

    Args:
        request: What was asked.
        run: What was sampled; it is kept to be looked at, in no one's name.
        error: What failed.
        what: Of the workflow, failed.
    """
    reason, failure = _reason_of(error, f"{what} the workflow")
    if failure is None:  # a TerminationEvent, where there is nothing to end
        reason = TerminationReason.WORKFLOW_EXCEPTION
        failure = EpisodeFailure(reason, f"{what} the workflow raised {in_words(error)}")
    episode = Episode(
        id=request.id,
        task=request.task,
        termination_reason=reason,
        error=str(failure),
        info=failure_info(failure, None),
    )
    if run.log.calls:
        steps = [step_of(call.output) for call in run.log.calls]
        episode.trajectories = [Trajectory(name="unassigned", steps=steps, reward=None)]
    episode.metrics = _figures(episode, run)
    return episode


def _finished(
    workflow: Workflow,
    request: RolloutRequest,
    run: Run,
    returned: object,
    reason: TerminationReason,
) -> Episode:
    """Make the Episode and have the workflow judge it, where it has not done so itself."""
    if returned is not None and not isinstance(returned, Episode):
        raise EpisodeFailure(
            TerminationReason.WORKFLOW_EXCEPTION,
            f"run of the workflow must return an Episode or None, got {type(returned).__name__}",
        )
    is_judged = returned is not None
    episode = returned if returned is not None else workflow.collect_trajectories()
    if not episode.trajectories:
        episode.trajectories = workflow.collect_trajectories().trajectories
    episode.id, episode.task = request.id, request.task
    episode.termination_reason = episode.termination_reason or reason
    for trajectory in episode.trajectories:
        if trajectory.task is None:
            trajectory.task = request.task
    attribute_calls(episode, run.log.calls)
    if episode.failed:
        return episode
    check_rewards(episode)
    for trajectory in episode.trajectories:
        following = 0.0
        for step in reversed(trajectory.steps):
            step.mc_return = following = step.reward + following
    if is_judged:
        for trajectory in episode.trajectories:
            workflow.compute_trajectory_reward(trajectory)
    else:
        workflow.postprocess_episode(episode)
    check_rewards(episode)
    return episode


def _reason_of(error: BaseException, what: str) -> tuple[TerminationReason, EpisodeFailure | None]:
    """Why an episode ended that raised, and the failure if it is one."""
    known = next(
        (e for e in leaves_of(error) if isinstance(e, EpisodeFailure | TerminationEvent)), None
    )
    if known is not None:
        if isinstance(known, EpisodeFailure):
            return known.reason, known
        failure = EpisodeFailure(known.reason, str(known)) if known.reason.is_failure else None
        return known.reason, failure
    is_grading = isinstance(error, GradingError | ReferenceAnswerError)
    reason = TerminationReason.GRADER_ERROR if is_grading else TerminationReason.WORKFLOW_EXCEPTION
    failure = EpisodeFailure(reason, f"{what} raised {in_words(error)}")
    failure.__cause__ = error
    return reason, failure


def _withdraw_rewards(episode: Episode) -> None:
    """Leave nothing that looks like a judgement."""
    episode.is_correct = False
    for trajectory in episode.trajectories:
        trajectory.reward = None


def _figures(episode: Episode, run: Run) -> dict[str, float]:
    calls = run.log.calls
    return {
        "num_steps": float(sum(len(t.steps) for t in episode.trajectories)),
        "num_calls": float(run.num_calls),
        "failed_calls": float(run.num_failed_calls),
        "prompt_tokens": math.fsum(len(c.output.prompt_ids) for c in calls if c.previous is None),
        "response_tokens": math.fsum(len(c.output.completion_ids) for c in calls),
        "llm_seconds": run.llm_seconds,
        "env_seconds": math.fsum(session.seconds for session in run.env_sessions),
    }
