from __future__ import annotations

import os
import signal

import pytest
from learn_fakes import sequence

from rllm_agents import Episode, TerminationReason
from rllm_learn.algorithms import GRPO, GRPOConfig
from rllm_learn.core.batch import Rollout
from rllm_learn.core.learner import UpdateReport
from rllm_learn.step import Progress, Sample, train_step

SAMPLED = sequence([1, 2], sampled=[1]).sampled


class ListSampler:
    """Answers every plan with the rewards it was given, and remembers what was published."""

    def __init__(self, rewards):
        self.rewards = rewards
        self.published = []
        self.tasks_played = []

    def sample(self, plan, tasks, step):
        self.tasks_played = [tasks[p.task_index] for p in plan]
        rollouts = [
            Rollout(p.group, reward, (SAMPLED,))
            for p, reward in zip(plan, self.rewards, strict=True)
        ]
        episodes = [Episode(termination_reason=TerminationReason.ENV_DONE) for _ in plan]
        return Sample(rollouts, episodes, {"train/reward": sum(self.rewards) / len(plan)})

    def publish(self, weights, version):
        self.published.append((dict(weights), version))


class CountingLearner:
    """Counts the sequences it is given."""

    def __init__(self, during_update=lambda: None):
        self.seen = []
        self.during_update = during_update

    def update(self, sequences, loss):
        self.during_update()
        self.seen.append(len(sequences))
        return UpdateReport({"loss": 0.5}, num_optimizer_steps=1, num_skipped_steps=0)

    def export_weights(self):
        return {"w": len(self.seen)}


def run(rewards, learner=None, group_size=2):
    sampler, learner = ListSampler(rewards), learner or CountingLearner()
    algorithm = GRPO(GRPOConfig(group_size=group_size))
    tasks = [{"seed": i} for i in range(len(rewards) // group_size)]
    progress = Progress(step=6, weights_version=4)
    report = train_step(sampler, learner, algorithm, tasks, progress)
    return report, sampler, learner, progress


def test_a_step_learns_and_publishes_the_next_version():
    report, sampler, learner, progress = run([1.0, 0.0, 1.0, 1.0])
    assert learner.seen == [2]
    assert sampler.published == [({"w": 1}, 5)]
    assert progress == Progress(step=7, weights_version=5)
    assert report.skipped is None
    assert report.metrics["learner/loss"] == 0.5
    assert report.metrics["train/uniform_groups"] == 0.5


def test_all_members_of_a_group_play_the_same_task():
    _, sampler, *_ = run([1.0, 0.0, 1.0, 0.0, 0.0, 0.0], group_size=3)
    assert sampler.tasks_played == [{"seed": 0}] * 3 + [{"seed": 1}] * 3


@pytest.mark.parametrize(
    ("rewards", "words"),
    [
        ([0.0, 0.0, 0.0, 0.0], "all rewards are 0 (4 x env_done)"),
        ([1.0, 1.0, 0.0, 0.0], "no two rollouts of a task have different rewards (4 x env_done)"),
    ],
)
def test_a_step_without_differences_says_so_and_leaves_the_weights(rewards, words):
    report, sampler, learner, progress = run(rewards)
    assert report.skipped == words
    assert (learner.seen, sampler.published) == ([], [])
    assert progress == Progress(step=7, weights_version=4)


def test_an_interrupt_during_the_update_waits_until_its_weights_are_published():
    learner = CountingLearner(lambda: os.kill(os.getpid(), signal.SIGINT))
    sampler = ListSampler([1.0, 0.0])
    algorithm = GRPO(GRPOConfig(group_size=2))
    progress = Progress(step=6, weights_version=4)
    with pytest.raises(KeyboardInterrupt):
        train_step(sampler, learner, algorithm, [{"seed": 0}], progress)
    assert sampler.published == [({"w": 1}, 5)]
    assert progress == Progress(step=7, weights_version=5)
