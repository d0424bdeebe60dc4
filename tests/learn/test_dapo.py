from __future__ import annotations

import pytest

from rllm_learn.algorithms import DAPO, DAPOConfig
from rllm_learn.core.batch import Rollout, SampledSequence
from rllm_learn.errors import ConfigError


def rollout(group: int, reward: float, length: int = 1) -> Rollout:
    """A rollout with a prompt of two tokens and a response of `length`."""
    mask = (False, False) + (True,) * length
    sequence = SampledSequence((1,) * len(mask), mask, (-1.0,) * len(mask))
    return Rollout(group, reward, (sequence,))


def algorithm(**settings) -> DAPO:
    return DAPO(DAPOConfig(**{"group_size": 2, "max_length": 100, **settings}))


def groups(*rewards: tuple[float, float]) -> list[Rollout]:
    return [rollout(group, reward) for group, pair in enumerate(rewards) for reward in pair]


MIXED, UNIFORM = (1.0, 0.0), (1.0, 1.0)


@pytest.mark.parametrize(
    ("played", "num_refills", "wanted"),
    [
        ([MIXED, MIXED, MIXED, MIXED], 0, 0),
        ([MIXED, MIXED, MIXED, UNIFORM], 0, 2),  # 1 missing, 3/4 mixed: 4/3, rounded up
        ([MIXED, UNIFORM, UNIFORM, UNIFORM], 0, 4),  # 3 missing, 1/4 mixed: 12, but 4 at most
        ([UNIFORM] * 4, 0, 4),
        ([UNIFORM] * 4, 3, 0),  # asked often enough
        ([MIXED, UNIFORM, UNIFORM, UNIFORM, MIXED, MIXED, MIXED, MIXED], 1, 0),
    ],
)
def test_how_many_tasks_more_are_played(played, num_refills, wanted):
    assert algorithm().refill(groups(*played), 4, num_refills) == wanted


def test_all_failed_rollouts_are_no_reason_to_stop_asking():
    assert algorithm().refill([], 4, 0) == 4
    assert algorithm(max_refills=0).refill([], 4, 0) == 0


def test_long_responses_lose_reward_and_uniform_groups_stay_out_whatever_their_lengths():
    rollouts = [
        rollout(0, 1.0, 90),  # 20 tokens of buffer: half of the penalty
        rollout(0, 0.0, 80),
        rollout(1, 1.0, 100),  # uniform before the penalty
        rollout(1, 1.0, 10),
    ]
    credit = algorithm(overlong_buffer=20).credit(rollouts, {})
    # Rewards 0.5 and 0: mean 0.25, deviation 0.353553, advantages +-0.707107.
    assert [s.advantages[2] for s in credit.sequences] == pytest.approx(
        [0.707107, -0.707107], abs=1e-5
    )
    assert credit.metrics == {
        "uniform_groups": 0.5,
        "mixed_groups": 1.0,
        "overlong_penalty": -0.25,
    }


def test_a_step_takes_the_penalty_at_its_end():
    def stepped(reward, length):
        one = rollout(0, reward, length)
        steps = (-1, -1, 0) + (1,) * (length - 1)
        sampled = SampledSequence(
            one.sequences[0].token_ids, one.sequences[0].action_mask, (-1.0,) * len(steps), steps
        )
        return Rollout(0, reward, (sampled,), step_rewards=(0.0, reward))

    credit = algorithm(overlong_buffer=20, step_credit="per_step", gamma=0.0).credit(
        [stepped(1.0, 100), stepped(0.5, 10)], {}
    )
    # With gamma 0 a return is the step's own reward: 0 and 0 at step 0, 0 and 0.5 at step 1.
    assert [s.advantages[2] for s in credit.sequences] == [0.0, 0.0]
    assert [s.advantages[3] for s in credit.sequences] == pytest.approx(
        [-0.707107, 0.707107], abs=1e-5
    )


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"overlong_buffer": 101}, r"in \[0, 100\]"),
        ({"max_refills": -1}, "0 or more"),
        ({"max_length": "${rollout.max_response_length}"}, "max_length must be >= 1"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, words):
    with pytest.raises(ConfigError, match=words):
        algorithm(**settings)
