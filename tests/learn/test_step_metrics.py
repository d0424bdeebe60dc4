from __future__ import annotations

from concurrent.futures import Future
from time import time as wall_clock

import pytest

from rllm_agents import Episode, TerminationReason, TokenRecord, Trajectory
from rllm_agents.types import Step, TurnSpan, VersionSpan
from rllm_learn.step_metrics import (
    MAX_NAMES,
    IdleTimes,
    TimeSplit,
    episode_metrics,
    reward_parts,
    staleness_metrics,
)


def played(reward, *spans, prompt=2, info=None, reason=TerminationReason.ENV_DONE, **more):
    """An episode whose turns sampled as many tokens as `spans` say, after a prompt."""
    turns, start = [], prompt
    for index, length in enumerate(spans):
        turns.append(TurnSpan(start, start + length, index, 0))
        start += length
    record = TokenRecord(tuple(range(start)), (0.0,) * start, tuple(turns))
    step = Step(info=info if info is not None else {})
    trajectory = Trajectory(reward=reward, steps=[step], token_records=(record,))
    return Episode(termination_reason=reason, trajectories=[trajectory], **more)


def test_metrics_are_means_over_episodes_with_an_outcome():
    episodes = [
        played(1.0, 3, 1, is_correct=True),
        played(0.5, 8, prompt=4),
        played(None, 100, reason=TerminationReason.ENV_EXCEPTION),
        played(0.0, 3, reason=TerminationReason.MAX_RESPONSE_LENGTH_EXCEEDED, prompt=6),
    ]
    assert episode_metrics(episodes) == {
        "train/reward": 0.5,
        "train/success": pytest.approx(1 / 3),
        "train/episodes": 4.0,
        "train/failed_episodes": 1.0,
        "train/turns": pytest.approx(4 / 3),
        "train/prompt_tokens": 4.0,
        "train/response_tokens": 5.0,
        "train/response_tokens_min": 3.0,
        "train/response_tokens_max": 8.0,
        "ended/env_done": 0.5,
        "ended/env_exception": 0.25,
        "ended/max_response_length_exceeded": 0.25,
    }


def test_no_episodes_give_zeros():
    assert set(episode_metrics([]).values()) == {0.0}


def test_reward_parts_are_means_of_the_numbers_that_graders_and_workflows_give():
    def graded(metadata, **metrics):
        return played(1.0, 1, info={"metadata": metadata}, metrics=metrics)

    parts = reward_parts(
        [
            graded({"format": 1, "answer": 0.5, "outcome": "wrong", "text": "ignored"}, drafts=2.0),
            graded({"format": 0, "outcome": "passed", "broken": float("nan")}, drafts=4.0),
            graded({"format": True, "outcome": "passed", "list": [1]}),
        ]
    )
    assert parts == {
        "answer": 0.5,
        "drafts": 3.0,
        "format": pytest.approx(2 / 3),
        "outcome_passed": pytest.approx(2 / 3),
        "outcome_wrong": pytest.approx(1 / 3),
    }


def test_what_the_engine_measured_is_no_part_of_the_reward():
    measured = {"llm_seconds": 2.0, "total_seconds": 3.0, "num_steps": 4.0, "drafts": 1.0}
    metrics = episode_metrics([played(1.0, 1, metrics=measured), played(1.0, 1)])
    assert metrics["time/episode_llm_seconds"] == 2.0
    assert metrics["time/episode_total_seconds"] == 3.0
    assert [name for name in metrics if name.startswith("reward/")] == ["reward/drafts"]


def test_each_players_reward_is_a_part():
    episode = Episode(
        termination_reason=TerminationReason.ENV_DONE,
        trajectories=[Trajectory(name="x", reward=1.0), Trajectory(name="o", reward=-1.0)],
    )
    assert reward_parts([episode]) == {"x": 1.0, "o": -1.0}


def test_names_from_users_code_are_cleaned_and_few():
    hostile = {f"part {i}": 1.0 for i in range(1000)} | {"a\n=b" * 100: 2.0, 7: 3.0}
    parts = reward_parts([played(1.0, 1, info={"metadata": hostile})] * 2)
    assert len(parts) == MAX_NAMES
    assert all(len(name) <= 60 and "\n" not in name and " " not in name for name in parts)
    assert reward_parts([played(1.0, 1, info={"metadata": "text"})]) == {}
    assert reward_parts([played(1.0, 1, info=["no", "mapping"])]) == {}


def test_the_parts_of_a_steps_time_add_up():
    # Readings: begin, sample 1 to 4, score 4 to 5, learn 6 to 8, sync 8 to 8.5, end.
    readings = iter([0.0, 1.0, 4.0, 4.0, 5.0, 6.0, 8.0, 8.0, 8.5, 10.0])
    cpu = iter([100.0, 107.5])
    time = TimeSplit(clock=lambda: next(readings), cpu_clock=lambda: next(cpu))
    for name in ("sample", "score", "learn", "sync"):
        with time.phase(name):
            pass
    episodes = [played(1.0, 20), played(None, 10, reason=TerminationReason.LLM_ERROR)]
    metrics = time.metrics(episodes=episodes, learned_tokens=44)
    assert 0.0 < metrics.pop("time/began") <= wall_clock()
    assert metrics == {
        "time/sample_seconds": 3.0,
        "time/score_seconds": 1.0,
        "time/learn_seconds": 2.0,
        "time/sync_seconds": 0.5,
        "time/step_seconds": 10.0,
        "time/step_cpu_seconds": 7.5,
        "time/idle_seconds": 7.0,
        "time/episodes_per_second": 0.2,
        "time/sampled_tokens_per_second": 10.0,
        "time/learned_tokens_per_second": 22.0,
    }


def test_who_waits_is_measured_between_the_steps_of_an_asynchronous_run():
    now = 100.0
    times = IdleTimes(clock=lambda: now)
    first, second = Future(), Future()
    now = 101.0  # a second in which nothing is in flight
    times.begun(first)
    times.begun(second)
    now = 103.0
    first.set_result(None)
    with times.learner_waits():
        now = 106.0
        second.set_result(None)
    now = 110.0  # the sampler has had nothing to do for four seconds
    figures = times.metrics([])
    assert figures["async/sampler_idle"] == pytest.approx(5 / 10)
    assert figures["async/learner_idle"] == pytest.approx(3 / 10)
    third = Future()
    now = 112.0
    times.begun(third)
    now = 114.0
    assert times.metrics([])["async/sampler_idle"] == pytest.approx(2 / 4)


def test_staleness_counts_the_tokens_that_are_learned_from():
    # Five tokens: two by version 3, two by version 5, one by version 4 in a turn of its own.
    spans = (VersionSpan(0, 2, 3), VersionSpan(2, 4, 5))
    turns = (TurnSpan(1, 5, 0, 3, spans), TurnSpan(6, 7, 1, 4))
    record = TokenRecord(tuple(range(7)), (0.0,) * 7, turns)
    done, broken = TerminationReason.ENV_DONE, TerminationReason.ENV_EXCEPTION
    mixed = Episode(termination_reason=done, trajectories=[Trajectory(token_records=(record,))])
    fresh = TokenRecord(tuple(range(6)), (0.0,) * 6, (TurnSpan(1, 6, 0, 5),))
    others = [
        Episode(termination_reason=done, trajectories=[Trajectory(token_records=(fresh,))]),
        Episode(termination_reason=broken, trajectories=[Trajectory(token_records=(record,))]),
        Episode(
            termination_reason=done,
            trajectories=[Trajectory(info={"learns": False}, token_records=(record,))],
        ),
    ]
    assert staleness_metrics([mixed, *others], version=5) == {
        "async/staleness_mean": pytest.approx((2 * 2 + 1) / 10),
        "async/staleness_max": 2.0,
        "async/stale_tokens": pytest.approx(3 / 10),
        "async/mixed_episodes": pytest.approx(1 / 2),
    }
