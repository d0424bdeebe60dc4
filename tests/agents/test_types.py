from __future__ import annotations

import pytest

from rllm_agents.types import Episode, SamplingParams, Step, TerminationReason, Trajectory


@pytest.mark.parametrize(
    "reason", ["env_done", "max_turns_exceeded", "timeout", "max_prompt_length_exceeded"]
)
def test_outcomes_are_no_failures(reason: str) -> None:
    assert not TerminationReason(reason).is_failure


@pytest.mark.parametrize("reason", ["env_exception", "env_bad_reward", "grader_error", "llm_error"])
def test_failures_are_told_apart(reason: str) -> None:
    assert TerminationReason(reason).is_failure


def test_the_reward_of_an_episode_is_the_sum_over_trajectories() -> None:
    episode = Episode(trajectories=[Trajectory(reward=0.25), Trajectory(reward=1.5)])
    assert episode.reward == 1.75


def test_a_failed_episode_has_no_reward_whatever_its_trajectories_say() -> None:
    episode = Episode(
        trajectories=[Trajectory(reward=1.0)], termination_reason=TerminationReason.LLM_ERROR
    )
    assert episode.failed
    assert episode.reward is None


def test_steps_of_an_episode_are_those_of_its_only_trajectory() -> None:
    step = Step(reward=1.0)
    assert Episode(trajectories=[Trajectory(steps=[step])]).steps == [step]
    with pytest.raises(ValueError, match="has 2 trajectories"):
        _ = Episode(trajectories=[Trajectory(), Trajectory()]).steps


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", -0.1),
        ("temperature", float("nan")),
        ("top_p", 0.0),
        ("top_p", 1.1),
        ("top_k", -1),
        ("max_tokens", 0),
    ],
)
def test_sampling_parameters_out_of_range_are_refused_by_name(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=field):
        SamplingParams(**{field: value})
