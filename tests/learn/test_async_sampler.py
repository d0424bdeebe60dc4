"""The bound on staleness, and what becomes of tasks, errors and interrupts."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import threading
import time
from contextlib import contextmanager

import pytest
import torch

from rllm_agents import Episode, TerminationReason, Trajectory
from rllm_agents.loop_thread import LoopThread
from rllm_agents.types import TokenRecord, TurnSpan, VersionSpan
from rllm_learn.algorithms import GRPO, GRPOConfig
from rllm_learn.assembly import assemble, choose_sampler
from rllm_learn.async_sampler import AheadRule, AsyncSampler
from rllm_learn.config import TrainerConfig, to_settings
from rllm_learn.core.learner import UpdateReport
from rllm_learn.errors import ConfigError, TrainingError
from rllm_learn.players import GivenPlayers, choose_players
from rllm_learn.sampler import PlanSampler
from rllm_learn.step import Progress, train_step


class Counting:
    """Tasks that are the numbers of their positions."""

    def batch(self, first, num_tasks):
        return [{"number": first + i} for i in range(num_tasks)]


class FakePlay:
    """Plays episodes of a few tokens on an event loop, each sampled by the weights of its time."""

    def __init__(self, seed=0):
        self.version = 0
        self.begun = []
        self.cancelled = []
        self._random = random.Random(seed)

    async def episode(self, request):
        """Sample four tokens at random moments."""
        versions = []
        for _ in range(4):
            await asyncio.sleep(self._random.choice((0, 0, 0.001, 0.003)))
            versions.append(self.version)
        return versions

    async def play(self, requests):
        self.begun += [r.task["number"] for r in requests]
        try:
            played = await asyncio.gather(*map(self.episode, requests))
        except asyncio.CancelledError:
            self.cancelled += [r.task["number"] for r in requests]
            raise
        return [
            _episode(request, versions, reward=float(index % 2))
            for index, (request, versions) in enumerate(zip(requests, played, strict=True))
        ]

    async def push(self, version):
        self.version = version


def _episode(request, versions, reward):
    spans = tuple(VersionSpan(i, i + 1, version) for i, version in enumerate(versions))
    turn = TurnSpan(1, 1 + len(versions), 0, versions[0], spans)
    record = TokenRecord(tuple(range(1 + len(versions))), (0.0, *[-0.5] * len(versions)), (turn,))
    trajectory = Trajectory(reward=reward, task=request.task, token_records=(record,))
    return Episode(
        id=request.id,
        task=request.task,
        termination_reason=TerminationReason.ENV_DONE,
        trajectories=[trajectory],
    )


class FakeLearner:
    """Takes a while over each update."""

    def __init__(self, during_update=lambda: None):
        self.during_update = during_update

    def score(self, sequences, kinds):
        raise AssertionError("nobody asks for scores")

    def update(self, sequences, loss, *, step=None):
        self.during_update()
        return UpdateReport({"loss": 0.0}, num_optimizer_steps=1, num_skipped_steps=0)

    def export_weights(self):
        return {}


class Run:
    """Training steps over fakes; `learned` are the numbers of tasks, step by step."""

    def __init__(self, play, learner, thread, *, max_staleness, num_steps, progress=None):
        self.progress = progress or Progress()
        self.learner = learner
        self.algorithm = GRPO(GRPOConfig(group_size=2))
        plain = PlanSampler(
            play=lambda requests: pytest.fail("played outside the thread"),
            push=lambda weights, version: thread.run(play.push(version)),
            temperature=1.0,
            seed=0,
            max_failure_share=0.0,
        )
        self.sampler = AsyncSampler(
            plain,
            AheadRule(max_staleness, num_tasks=3, num_steps=num_steps),
            begin=lambda requests: thread.start(play.play(requests)),
            plan=self.algorithm.plan,
            tasks=Counting(),
            progress=self.progress,
        )
        self.learned = []

    def step(self):
        report = train_step(
            self.sampler, self.learner, self.algorithm, Counting(), self.progress, num_tasks=3
        )
        self.learned.append([e.task["number"] for e in report.episodes])
        return report


@contextmanager
def loop_thread():
    thread = LoopThread("test")
    try:
        yield thread
    finally:
        thread.close()


def numbers(step):
    """What a step learns from: three tasks, each twice, after those of the steps before."""
    return [3 * step + i for i in range(3) for _ in range(2)]


@pytest.mark.parametrize("max_staleness", [0, 1, 2, 5])
@pytest.mark.parametrize("seed", range(5))
def test_no_token_is_older_than_the_bound_and_each_task_is_learned_from_once(max_staleness, seed):
    delays = random.Random(seed)
    learner = FakeLearner(lambda: time.sleep(delays.choice((0.0, 0.001, 0.004))))
    play = FakePlay(seed)
    with loop_thread() as thread:
        run = Run(play, learner, thread, max_staleness=max_staleness, num_steps=8)
        for step in range(8):
            before = run.progress.weights_version
            report = run.step()
            ages = [
                before - span.weights_version
                for episode in report.episodes
                for span in episode.trajectory.token_records[0].turns[0].version_spans
            ]
            assert 0 <= min(ages) <= max(ages) <= max_staleness
            assert report.metrics["async/staleness_max"] == max(ages)
            assert report.metrics["async/staleness_mean"] == pytest.approx(sum(ages) / len(ages))
            stale = sum(age > 0 for age in ages) / len(ages)
            assert report.metrics["async/stale_tokens"] == pytest.approx(stale)
            for name in ("sampler_idle", "learner_idle"):
                assert 0.0 <= report.metrics[f"async/{name}"] <= 1.0
            assert run.learned[step] == numbers(step)
    # Nothing is played twice, nor for steps that never come.
    assert sorted(play.begun) == sorted(n for step in range(8) for n in numbers(step))
    assert run.progress == Progress(step=8, weights_version=8, tasks_drawn=24)


class PausingPlay(FakePlay):
    """Episodes of the second step sample one token, then wait for new weights."""

    def __init__(self):
        super().__init__()
        self.has_paused = threading.Event()

    async def episode(self, request):
        first = self.version
        if request.task["number"] >= 3:
            self.has_paused.set()
            while self.version == first:
                await asyncio.sleep(0)
        return [first, self.version]


def test_an_episode_goes_on_with_new_weights_and_its_tokens_keep_their_versions():
    play = PausingPlay()
    learner = FakeLearner(lambda: play.has_paused.wait(10))
    with loop_thread() as thread:
        run = Run(play, learner, thread, max_staleness=1, num_steps=2)
        assert run.step().metrics["async/staleness_max"] == 0.0
        figures = run.step().metrics
    # Six episodes of a token by version 0 and one by version 1, learned from by version 1.
    assert figures["async/staleness_mean"] == 0.5
    assert figures["async/staleness_max"] == 1.0
    assert figures["async/stale_tokens"] == 0.5
    assert figures["async/mixed_episodes"] == 1.0


class BrokenPlay(FakePlay):
    """Cannot play the tasks of the second step."""

    async def episode(self, request):
        if request.task["number"] >= 3:
            raise RuntimeError("the engine is gone")
        return [self.version]


def test_an_error_of_the_sampler_ends_the_run_at_the_step_it_belongs_to():
    with loop_thread() as thread:
        run = Run(BrokenPlay(), FakeLearner(), thread, max_staleness=2, num_steps=5)
        run.step()
        with pytest.raises(RuntimeError, match="the engine is gone"):
            run.step()
        assert run.progress.step == 1


class EndlessPlay(FakePlay):
    """The tasks of the second step never end."""

    async def episode(self, request):
        if request.task["number"] >= 3:
            await asyncio.Event().wait()
        return [self.version]


def test_an_error_of_the_learner_ends_the_run_and_what_is_in_flight():
    def fail():
        raise RuntimeError("out of memory")

    play = EndlessPlay()
    with loop_thread() as thread:
        run = Run(play, FakeLearner(fail), thread, max_staleness=1, num_steps=5)
        with pytest.raises(RuntimeError, match="out of memory"):
            run.step()
    assert play.cancelled == numbers(1)
    assert run.progress == Progress()


def test_after_an_interrupt_the_run_goes_on_with_the_tasks_that_were_in_flight():
    class Interrupting(EndlessPlay):
        has_interrupted = False

        async def episode(self, request):
            if request.task["number"] == 5 and not self.has_interrupted:
                self.has_interrupted = True
                os.kill(os.getpid(), signal.SIGINT)
            return await super().episode(request)

    with loop_thread() as thread:
        run = Run(Interrupting(), FakeLearner(), thread, max_staleness=1, num_steps=4)
        with pytest.raises(KeyboardInterrupt):
            while True:
                run.step()
    done = run.progress.step
    assert done <= 1  # the second step's episodes never end
    with loop_thread() as thread:
        again = Run(
            FakePlay(), FakeLearner(), thread, max_staleness=1, num_steps=4, progress=run.progress
        )
        while again.progress.step < 4:
            again.step()
    assert again.learned == [numbers(step) for step in range(done, 4)]


def test_failed_episodes_are_counted_by_the_step_that_they_are_of():
    class Failing(FakePlay):
        async def play(self, requests):
            episodes = await super().play(requests)
            if requests[0].task["number"] >= 3:
                episodes[0].termination_reason = TerminationReason.ENV_EXCEPTION
            return episodes

    with loop_thread() as thread:
        run = Run(Failing(), FakeLearner(), thread, max_staleness=1, num_steps=3)
        run.step()
        with pytest.raises(TrainingError, match="1 of 6 episodes of step 1 failed"):
            run.step()


def small(**changes):
    settings = {
        "num_steps": 3,
        "tasks_per_step": 4,
        "algorithm": {"group_size": 4},
        "rollout": {"max_response_length": 64},
        "eval": {"num_tasks": 8},
        **changes,
    }
    return to_settings(settings, TrainerConfig, config_name="grpo_trainer")


def played_and_learned(runner):
    """Train the bundled model for three steps; return what was sampled, and the learner's state."""
    config = small()
    players = choose_players(config, GivenPlayers())
    parts = assemble(config, players, (None, None), runner)
    progress = Progress()
    sampler = choose_sampler(config, parts, progress)
    sampled = []
    try:
        while progress.step < 3:
            report = train_step(
                sampler, parts.learner, parts.algorithm, parts.tasks, progress, num_tasks=4
            )
            sampled += [e.trajectory.token_records for e in report.episodes]
        return type(sampler), sampled, parts.learner.state_dict()
    finally:
        parts.close()


def flat(state) -> dict:
    """Tensors and numbers of a nested state, by path."""
    if isinstance(state, list | tuple):
        state = dict(enumerate(state))
    if isinstance(state, dict):
        return {(k, *rest): v for k, inner in state.items() for rest, v in flat(inner).items()}
    return {(): state}


def test_without_staleness_everything_is_bit_for_bit_as_in_a_synchronous_run():
    with asyncio.Runner() as runner:
        kind, sampled, state = played_and_learned(runner)
    assert kind is PlanSampler
    with loop_thread() as thread:
        other_kind, other_sampled, other_state = played_and_learned(thread)
    assert other_kind is AsyncSampler
    assert sampled == other_sampled  # ids, logprobs and versions
    first, second = flat(state), flat(other_state)
    assert first.keys() == second.keys()
    assert sum(isinstance(value, torch.Tensor) for value in first.values()) > 10
    for path, value in first.items():
        other = second[path]
        assert torch.equal(value, other) if isinstance(value, torch.Tensor) else value == other


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"algorithm": {"name": "rloo"}}, "algorithm=rloo has no probability ratio"),
        ({"algorithm": {"name": "dapo"}}, "set algorithm.max_refills=0"),
    ],
)
def test_what_does_not_go_with_older_samples_is_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        small(**changes, rollout={"max_staleness": 2})


def test_players_with_weights_of_their_own_are_refused():
    config = to_settings(
        {
            "env": {"id": "rllm/Nim-v0"},
            "rollout": {"max_staleness": 1},
            "players": {"player_1": {"opponent": "snapshot"}},
        },
        TrainerConfig,
        config_name="grpo_trainer",
    )
    players = choose_players(config, GivenPlayers())
    with loop_thread() as thread, pytest.raises(ConfigError, match="policy@snapshot play beside"):
        assemble(config, players, (None, None), thread)


def test_importance_weights_let_an_algorithm_without_a_ratio_learn_from_older_samples():
    settings = {"name": "rloo", "importance": "truncated"}
    config = small(algorithm=settings, rollout={"max_staleness": 2})
    assert config.rollout.max_staleness == 2
    assert small(algorithm={"name": "dapo", "max_refills": 0}, rollout={"max_staleness": 1})
