from __future__ import annotations

import math
import os
import signal
import time
from dataclasses import replace

import pytest
from learn_fakes import sequence

from rllm_agents import Episode, TerminationReason, Trajectory
from rllm_learn.algorithms import (
    DAPO,
    GRPO,
    REINFORCE,
    DAPOConfig,
    GRPOConfig,
    REINFORCEConfig,
    ReMax,
    ReMaxConfig,
)
from rllm_learn.core.batch import Rollout, Scores
from rllm_learn.core.learner import UpdateReport
from rllm_learn.step import Progress, Sample, train_step

SAMPLED = sequence([1, 2], sampled=[1]).sampled


class ListSampler:
    """Answers every plan with the rewards it was given, and remembers what was published."""

    def __init__(self, rewards):
        self.rewards = rewards
        self.published = []
        self.tasks_played = []
        self.rounds = []

    def sample(self, plan, tasks, step, *, first_index=0):
        self.tasks_played += [tasks[p.task_index] for p in plan]
        self.rounds.append((first_index, [p.group for p in plan]))
        rewards = self.rewards[first_index : first_index + len(plan)]
        rollouts = [
            Rollout(p.group, reward, (SAMPLED,), greedy=p.greedy)
            for p, reward in zip(plan, rewards, strict=True)
        ]
        episodes = [
            Episode(
                termination_reason=TerminationReason.ENV_DONE,
                trajectories=[Trajectory(reward=reward)],
            )
            for reward in rewards
        ]
        return Sample(list(plan), episodes, rollouts)

    def publish(self, weights, version):
        self.published.append((dict(weights), version))


class Counting:
    """Tasks that are the numbers of their positions."""

    def batch(self, first, num_tasks):
        return [{"seed": first + i} for i in range(num_tasks)]


class CountingLearner:
    """Counts the sequences it is given; scores each with its place in the call."""

    def __init__(self, during_update=lambda: None):
        self.seen = []
        self.learned = []
        self.steps = []
        self.during_update = during_update

    def score(self, sequences, kinds):
        assert kinds == {"policy", "reference"}
        return [Scores((0.0, -0.1 * i), (0.0, -0.2 * i)) for i in range(len(sequences))]

    def update(self, sequences, loss, *, step=None):
        self.during_update()
        self.seen.append(len(sequences))
        self.steps.append(step)
        self.learned.append(sequences)
        return UpdateReport({"loss": 0.5}, num_optimizer_steps=1, num_skipped_steps=0)

    def export_weights(self):
        return {"w": len(self.seen)}


def run(rewards, *, group_size=2, algorithm=None, num_tasks=None, memory=None):
    sampler, learner = ListSampler(rewards), CountingLearner()
    algorithm = algorithm or GRPO(GRPOConfig(group_size=group_size))
    progress = Progress(step=6, weights_version=4, tasks_drawn=10, memory=memory or {})
    num_tasks = num_tasks or len(rewards) // group_size
    report = train_step(sampler, learner, algorithm, Counting(), progress, num_tasks=num_tasks)
    return report, sampler, learner, progress


def test_a_step_learns_and_publishes_the_next_version():
    report, sampler, learner, progress = run([1.0, 0.0, 1.0, 1.0])
    assert learner.seen == [2]
    assert learner.steps == [6]
    assert sampler.published == [({"w": 1}, 5)]
    assert progress == Progress(step=7, weights_version=5, tasks_drawn=12)
    assert report.skipped is None
    assert report.metrics["learner/loss"] == 0.5
    assert report.metrics["train/uniform_groups"] == 0.5
    assert report.sequences == learner.learned[0]


def test_a_step_says_when_it_began_and_where_its_time_went():
    before = time.time()
    report, *_ = run([1.0, 0.0])
    whole = time.time() - before
    assert before <= report.metrics["time/began"] <= before + whole
    parts = [
        report.metrics[f"time/{part}_seconds"] for part in ("sample", "score", "learn", "sync")
    ]
    assert min(parts) >= 0.0
    assert sum(parts) <= whole + 0.01


def test_all_members_of_a_group_play_the_same_task():
    _, sampler, *_ = run([1.0, 0.0, 1.0, 0.0, 0.0, 0.0], group_size=3)
    assert sampler.tasks_played == [{"seed": 10}] * 3 + [{"seed": 11}] * 3


@pytest.mark.parametrize(
    ("rewards", "words"),
    [
        ([0.0, 0.0, 0.0, 0.0], "all rewards are 0 (4 x env_done)"),
        ([1.0, 1.0, 0.0, 0.0], "no rollout differs from what it is compared with (4 x env_done)"),
    ],
)
def test_a_step_without_differences_says_so_and_leaves_the_weights(rewards, words):
    report, sampler, learner, progress = run(rewards)
    assert report.skipped == words
    assert (learner.seen, sampler.published) == ([], [])
    assert progress == Progress(step=7, weights_version=4, tasks_drawn=12)


def test_an_interrupt_during_the_update_waits_until_its_weights_are_published():
    learner = CountingLearner(lambda: os.kill(os.getpid(), signal.SIGINT))
    sampler = ListSampler([1.0, 0.0])
    algorithm = GRPO(GRPOConfig(group_size=2))
    progress = Progress(step=6, weights_version=4)
    recorded = []
    with pytest.raises(KeyboardInterrupt):
        train_step(
            sampler, learner, algorithm, Counting(), progress, num_tasks=1, record=recorded.append
        )
    assert [report.metrics["learner/loss"] for report in recorded] == [0.5]
    assert sampler.published == [({"w": 1}, 5)]
    assert progress == Progress(step=7, weights_version=5, tasks_drawn=1)


def test_greedy_rollouts_are_no_part_of_the_training_reward():
    report, *_ = run([0.0, 1.0, 0.0, 1.0], algorithm=ReMax(ReMaxConfig(group_size=2)))
    assert report.metrics["train/reward"] == 1.0
    assert report.metrics["train/greedy_reward"] == 0.0
    assert report.metrics["train/episodes"] == 2


def test_groups_that_teach_nothing_are_replaced_by_further_tasks():
    # Two tasks: one uniform; half were mixed, so one that is missing asks for two more. Of these
    # one is mixed: enough.
    algorithm = DAPO(DAPOConfig(group_size=2, max_length=64))
    rewards = [1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0]
    report, sampler, learner, progress = run(rewards, algorithm=algorithm, num_tasks=2)
    assert sampler.rounds == [(0, [0, 0, 1, 1]), (4, [2, 2, 3, 3])]
    assert [task["seed"] for task in sampler.tasks_played] == [10, 10, 11, 11, 12, 12, 13, 13]
    assert learner.seen == [4]
    assert progress.tasks_drawn == 14
    assert report.metrics["train/reward"] == 0.5  # of all that was played


def test_refills_are_bounded():
    algorithm = DAPO(DAPOConfig(group_size=2, max_length=64, max_refills=2))
    report, sampler, *_ = run([1.0] * 6, algorithm=algorithm, num_tasks=1)
    assert [first for first, _ in sampler.rounds] == [0, 2, 4]
    assert report.skipped == "all rewards are 1 (6 x env_done)"


def test_scores_reach_the_sequences_that_they_are_of():
    config = GRPOConfig(group_size=2, kl_coefficient=0.5, kl_place="reward")
    _, _, learner, _ = run([1.0, 1.0], algorithm=GRPO(config))
    # KL of the second's one sampled token is -0.1 - (-0.2) = 0.1, of the first's 0: rewards 1 and
    # 0.95, so that the advantages are +-0.7071.
    (first, second) = learner.learned[0]
    assert (first.sampled.scores.policy, second.sampled.scores.policy) == ((0.0, 0.0), (0.0, -0.1))
    assert first.advantages[1] == pytest.approx(0.7071, abs=1e-4)
    assert second.advantages[1] == pytest.approx(-0.7071, abs=1e-4)


def test_what_an_algorithm_remembers_is_part_of_the_progress():
    algorithm = REINFORCE(REINFORCEConfig(rollouts_per_task=2, baseline="running"))
    _, _, learner, progress = run(
        [1.0, 0.0], algorithm=algorithm, num_tasks=1, memory={"baseline": 0.25}
    )
    assert [s.advantages[1] for s in learner.learned[0]] == [0.75, -0.25]
    assert progress.memory == pytest.approx({"baseline": 0.9 * 0.25 + 0.1 * 0.5})


class Forgetful(REINFORCE):
    """Remembers what is no number."""

    def credit(self, rollouts, memory):
        credit = super().credit(rollouts, memory)
        return replace(credit, memory={"baseline": math.nan})


def test_what_is_not_finite_is_not_remembered():
    algorithm = Forgetful(REINFORCEConfig(rollouts_per_task=2, baseline="running"))
    *_, progress = run([1.0, 0.0], algorithm=algorithm, num_tasks=1, memory={"baseline": 0.25})
    assert progress.memory == {"baseline": 0.25}
