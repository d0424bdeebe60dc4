from __future__ import annotations

import pytest

from rllm_agents import Episode, Step, TerminationReason, TokenRecord, Trajectory, TurnSpan
from rllm_learn.algorithms import PlannedRollout
from rllm_learn.errors import TrainingError
from rllm_learn.records import to_rollouts, to_sampled_sequence

RECORD = TokenRecord(
    token_ids=(1, 2, 3, 4, 5, 6),
    logprobs=(0.0, 0.0, -0.1, -0.2, 0.0, -0.3),
    turns=(TurnSpan(2, 4, 0, 7), TurnSpan(5, 6, 1, 7)),
)


def episode(reward, *, reason=TerminationReason.ENV_DONE, records=(RECORD,)):
    trajectory = Trajectory(steps=[Step()], reward=reward, token_records=records)
    return Episode(id="e", termination_reason=reason, trajectories=[trajectory])


def test_the_spans_of_all_turns_are_marked_as_sampled():
    sequence = to_sampled_sequence(RECORD)
    assert sequence.action_mask == (False, False, True, True, False, True)
    assert sequence.token_ids == RECORD.token_ids
    assert sequence.logprobs == RECORD.logprobs


def test_failed_episodes_are_left_out_and_the_others_keep_their_groups():
    plan = [PlannedRollout(i, group=i, greedy=i == 2) for i in range(3)]
    failed = episode(None, reason=TerminationReason.ENV_EXCEPTION)
    rollouts = to_rollouts([episode(1.0), failed, episode(0.0)], plan)
    assert [(r.group, r.reward, r.greedy) for r in rollouts] == [(0, 1.0, False), (2, 0.0, True)]


def test_an_episode_that_never_asked_the_model_counts_without_sequences():
    unplayed = Episode(
        termination_reason=TerminationReason.MAX_PROMPT_LENGTH_EXCEEDED,
        trajectories=[Trajectory(reward=0.0)],
    )
    (rollout,) = to_rollouts([unplayed], [PlannedRollout(0, 0)])
    assert (rollout.reward, rollout.sequences) == (0.0, ())


def test_text_without_token_ids_is_refused():
    with pytest.raises(TrainingError, match="text only"):
        to_rollouts([episode(1.0, records=())], [PlannedRollout(0, 0)])


def test_episodes_must_match_the_plan_one_to_one():
    with pytest.raises(ValueError, match="zip"):
        to_rollouts([episode(1.0)], [])


def test_a_rollout_knows_its_role_its_ending_and_the_rewards_of_its_steps():
    steps = [Step(reward=0.25), Step(reward=0.5)]
    trajectory = Trajectory(name="solver", steps=steps, reward=0.75, token_records=(RECORD,))
    played = Episode(termination_reason=TerminationReason.TIMEOUT, trajectories=[trajectory])
    (rollout,) = to_rollouts([played], [PlannedRollout(0, 3)])
    assert (rollout.group, rollout.role, rollout.ending) == (3, "solver", "timeout")
    assert rollout.step_rewards == (0.25, 0.5)
    assert rollout.sequences[0].step_indices == (-1, -1, 0, 0, -1, 1)


def test_what_the_steps_do_not_account_for_was_earned_at_the_last_one():
    trajectory = Trajectory(steps=[Step(reward=0.25), Step()], reward=1.0, token_records=(RECORD,))
    (rollout,) = to_rollouts([Episode(trajectories=[trajectory])], [PlannedRollout(0, 0)])
    assert rollout.step_rewards == (0.25, 0.75)


def test_each_trajectory_that_the_policy_played_is_a_rollout_with_its_own_reward():
    def played(name, reward, records=(RECORD,)):
        return Trajectory(name=name, steps=[Step()], reward=reward, token_records=records)

    game = Episode(
        trajectories=[played("first", 1.0), played("opponent", 0.5, ()), played("second", -1.0)]
    )
    rollouts = to_rollouts([game], [PlannedRollout(0, 0)])
    assert [(r.role, r.reward) for r in rollouts] == [("first", 1.0), ("second", -1.0)]
