"""Figures of evaluations against numbers worked by hand; tasks, the oracle, episodes as text."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from rllm_agents import AgentExecutionEngine, ChatAgent, Episode, SamplingParams, Step, Trajectory
from rllm_agents.errors import EngineError, UserError
from rllm_agents.evaluation import (
    OracleEnv,
    env_takes,
    env_tasks,
    evaluate_tasks,
    evaluation_requests,
    oracle_misses,
    summarize,
    write_episodes,
)
from rllm_agents.types import Message, TerminationReason
from rllm_envs import BaseEnv, GymEnv, RllmEnvsError


class QuizEnv(BaseEnv):
    """Asks for a number; the task's `answer` is right. Fails in `reset` where it is None."""

    blocking = False

    def __init__(self, task: dict[str, Any]) -> None:
        self.task = task

    @staticmethod
    def from_dict(info: dict[str, Any]) -> QuizEnv:
        return QuizEnv(info)

    def reset(self) -> tuple[str, dict[str, Any]]:
        if self.task["answer"] is None:
            raise ValueError("no answer")
        return str(self.task["question"]), {}

    def step(self, action: str) -> tuple[str, float, bool, dict[str, Any]]:
        return "", float(action == self.task["answer"]), True, {}


def quiz_engine(respond: Any) -> AgentExecutionEngine:
    return AgentExecutionEngine(
        agent_class=ChatAgent,
        env_class=QuizEnv,
        engine_name="scripted",
        rollout_engine_args={"responses": respond},
    )


def oracle_engine(env_args: dict[str, Any]) -> AgentExecutionEngine:
    return AgentExecutionEngine(
        agent_class=ChatAgent,
        env_class=OracleEnv,
        env_args=env_args,
        engine_name="scripted",
        rollout_engine_args={"responses": [""]},
    )


def say_question(messages: Sequence[Message]) -> str:
    return messages[-1]["content"]


# Figures


def test_figures_equal_those_counted_by_hand() -> None:
    tasks = [{"question": q, "answer": a} for q, a in (("1", "1"), ("2", "0"), ("3", "3"))]
    tasks.append({"question": "4", "answer": None})
    with quiz_engine(say_question) as engine:
        result = asyncio.run(evaluate_tasks(engine, tasks, samples_per_task=2))
    assert result.num_tasks == 4
    assert result.num_failed == 2
    assert result.pass_at_1 == pytest.approx(2 / 3)
    assert result.pass_at_k is not None
    assert list(result.pass_at_k.estimates) == [1, 2]
    assert result.mean_reward == pytest.approx(4 / 6)
    assert result.terminations == {"env_done": 6, "env_exception": 2}
    assert result.mean_turns == pytest.approx(6 / 8)
    assert [e.id for e in result.episodes] == [f"{i}-{j}" for i in range(4) for j in range(2)]
    figures = json.loads(json.dumps(result.figures(), allow_nan=False))
    assert figures["pass_at_k"]["2"]["value"] == pytest.approx(2 / 3)
    assert (figures["num_episodes"], figures["num_failed"]) == (8, 2)


def test_sampled_tokens_are_counted_over_all_turns() -> None:
    steps = [Step(response_ids=[1, 2, 3]), Step(response_ids=[4])]
    played = Episode(
        id="0",
        task={},
        termination_reason=TerminationReason.ENV_DONE,
        trajectories=[Trajectory(steps=steps)],
    )
    empty = Episode(id="1", task={}, termination_reason=TerminationReason.TIMEOUT)
    result = summarize([played, empty], num_tasks=2)
    assert (result.mean_response_tokens, result.mean_turns) == (2.0, 1.0)


def test_when_every_episode_failed_the_first_failure_is_told() -> None:
    with quiz_engine(say_question) as engine:
        result = asyncio.run(evaluate_tasks(engine, [{"question": "1", "answer": None}]))
    assert result.figures()["pass_at_1"] is None
    with pytest.raises(EngineError, match=r"all 1 episodes failed.*ValueError: no answer"):
        _ = result.pass_at_1


def test_every_sample_has_a_stream_of_its_own_that_only_the_seed_decides() -> None:
    tasks = [{"question": str(i)} for i in range(5)]
    sampling = SamplingParams(temperature=0.5, seed=99)
    requests = evaluation_requests(tasks, samples_per_task=3, sampling=sampling, seed=1)
    seeds = [r.sampling.seed for r in requests if r.sampling]
    assert len(set(seeds)) == 15
    assert {r.sampling.temperature for r in requests if r.sampling} == {0.5}
    again = evaluation_requests(tasks[:2], samples_per_task=3, seed=1)
    assert [r.sampling.seed for r in again if r.sampling] == seeds[:6]
    other = evaluation_requests(tasks, samples_per_task=3, seed=2)
    assert not {r.sampling.seed for r in other if r.sampling} & set(seeds)


def test_no_tasks_and_no_samples_are_refused() -> None:
    with pytest.raises(UserError, match="no tasks"):
        evaluation_requests([])
    with pytest.raises(UserError, match="samples_per_task must be at least 1, got 0"):
        evaluation_requests([{}], samples_per_task=0)


# Tasks


def test_an_env_draws_different_tasks_of_the_split() -> None:
    tasks, env_args = env_tasks("rllm/Calculator-v0", num_tasks=20)
    assert env_args == {"env_id": "rllm/Calculator-v0", "env_kwargs": {"split": "test"}}
    questions = [GymEnv.from_dict({**task, **env_args}).reset()[0]["question"] for task in tasks]
    assert len(set(questions)) == 20
    train, train_args = env_tasks("rllm/Calculator-v0", split="train", num_tasks=20)
    trained = {GymEnv.from_dict({**t, **train_args}).reset()[0]["question"] for t in train}
    assert not trained & set(questions)


def test_a_split_given_to_the_env_itself_wins() -> None:
    _, env_args = env_tasks("rllm/Calculator-v0", env_kwargs={"split": "all"}, num_tasks=2)
    assert env_args["env_kwargs"] == {"split": "all"}


class PlainTextEnv(gymnasium.Env[str, str]):
    """A text environment of somebody else, which knows no splits."""

    observation_space = gymnasium.spaces.Text(20)
    action_space = gymnasium.spaces.Text(20)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        return str(self.np_random.integers(10**6)), {}

    def step(self, action: str):
        return "", 1.0, True, False, {}


def test_an_env_that_knows_no_splits_is_not_given_one() -> None:
    gymnasium.register("agents-tests/Plain-v0", entry_point=PlainTextEnv)
    try:
        tasks, env_args = env_tasks("agents-tests/Plain-v0", num_tasks=3, first_seed=5)
        assert not env_takes("agents-tests/Plain-v0", "split")
    finally:
        del gymnasium.registry["agents-tests/Plain-v0"]
    assert tasks == [{"seed": 5}, {"seed": 6}, {"seed": 7}]
    assert env_args["env_kwargs"] == {}


def write_rows(path: Path, rows: Sequence[object]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return str(path)


ROWS = [{"question": f"{i} + 1?", "answer": str(i + 1)} for i in range(4)]


def test_rows_of_a_data_set_are_the_tasks_all_or_the_first(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "rows.jsonl", ROWS)
    tasks, env_args = env_tasks("rllm/Math-v0", dataset=path)
    assert tasks == ROWS
    assert env_args == {"env_id": "rllm/Math-v0", "env_kwargs": {}}
    assert env_tasks("rllm/Math-v0", dataset=path, num_tasks=2)[0] == ROWS[:2]
    with pytest.raises(UserError, match=r"num_tasks=5, but .* has 4 rows"):
        env_tasks("rllm/Math-v0", dataset=path, num_tasks=5)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"question": "2?"}, "row 5: needs one of the fields"),
        ({"question": "2?", "answer": "2", "seed": 3}, "row 5: the field 'seed' is reserved"),
    ],
)
def test_a_row_that_is_no_task_is_named_before_anything_is_played(
    tmp_path: Path, row: dict[str, Any], words: str
) -> None:
    path = write_rows(tmp_path / "rows.jsonl", [*ROWS, row])
    with pytest.raises(UserError, match=words):
        env_tasks("rllm/Math-v0", dataset=path)


@pytest.mark.parametrize(
    ("env_id", "words"),
    [
        ("rllm/Mathh-v0", "rllm/Math-v0"),
        ("no_such_module:Foo-v0", "no_such_module"),
        ("CartPole-v1", "observation_space Box"),
    ],
)
def test_an_env_that_is_not_there_or_not_of_text_is_refused(env_id: str, words: str) -> None:
    with pytest.raises((UserError, RllmEnvsError), match=words):
        env_tasks(env_id, num_tasks=2)


def test_wrong_arguments_of_the_env_are_one_error(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "rows.jsonl", ROWS)
    with pytest.raises(RllmEnvsError, match="famlies"):
        env_tasks("rllm/Math-v0", env_kwargs={"famlies": 1}, dataset=path)
    with pytest.raises(UserError, match="num_tasks must be at least 1, got 0"):
        env_tasks("rllm/Math-v0", num_tasks=0)


# The oracle


@pytest.mark.parametrize("env_id", ["rllm/Arithmetic-v0", "rllm/Calculator-v0", "rllm/Math-v0"])
def test_the_oracle_solves_every_task_whatever_the_policy_says(env_id: str) -> None:
    tasks, env_args = env_tasks(env_id, num_tasks=30)
    with oracle_engine(env_args) as engine:
        result = asyncio.run(evaluate_tasks(engine, tasks))
    assert (result.pass_at_1, result.num_failed) == (1.0, 0)
    assert oracle_misses(result.episodes) == []
    assert "boxed" in result.episodes[0].steps[-1].info["oracle_action"]


def test_rows_whose_reference_cannot_be_graded_are_listed(tmp_path: Path) -> None:
    rows = [*ROWS, {"question": "x?", "answer": "\\frac{1"}]
    tasks, env_args = env_tasks("rllm/Math-v0", dataset=write_rows(tmp_path / "r.jsonl", rows))
    with oracle_engine(env_args) as engine:
        result = asyncio.run(evaluate_tasks(engine, tasks))
    assert (result.pass_at_1, result.num_failed) == (1.0, 1)
    (miss,) = oracle_misses(result.episodes)
    assert (miss["id"], miss["task"], miss["reward"]) == ("4-0", rows[4], None)
    assert "cannot be read" in miss["error"]


@pytest.mark.parametrize(
    ("name", "num_rows"),
    [("gsm8k", 1319), pytest.param("math500", 500, marks=pytest.mark.slow), ("aime2024", 30)],
)
def test_the_oracle_gets_full_reward_on_every_row_of_real_data(
    data_dir: Path, name: str, num_rows: int
) -> None:
    tasks, env_args = env_tasks("rllm/Math-v0", dataset=str(data_dir / name / "test.jsonl"))
    with oracle_engine(env_args) as engine:
        result = asyncio.run(evaluate_tasks(engine, tasks))
    assert len(tasks) == num_rows
    assert result.num_failed == 0
    assert oracle_misses(result.episodes) == []


# Episodes as text


def test_episodes_are_written_one_readable_object_a_line(tmp_path: Path) -> None:
    tasks = [{"question": "1", "answer": "1"}, {"question": "2", "answer": None}]
    with quiz_engine(say_question) as engine:
        result = asyncio.run(evaluate_tasks(engine, tasks))
    path = tmp_path / "episodes.jsonl"
    write_episodes(path, result.episodes[:1])
    write_episodes(path, result.episodes[1:], append=True)
    solved, failed = (json.loads(line) for line in path.read_text("utf-8").splitlines())
    assert solved == {
        "id": "0-0",
        "task": tasks[0],
        "reward": 1.0,
        "is_correct": True,
        "termination_reason": "env_done",
        "error": None,
        "messages": [{"role": "user", "content": "1"}, {"role": "assistant", "content": "1"}],
        "steps": [{"action": "1", "reward": 1.0, "info": {}, "response_tokens": 0}],
    }
    assert failed["reward"] is None
    assert "no answer" in failed["error"]
    assert (failed["messages"], failed["steps"]) == ([], [])


def test_what_json_cannot_say_is_written_as_text(tmp_path: Path) -> None:
    step = Step(action=("é\udc80\n", b"x"), reward=math.inf, info={"n": np.float32(1.5), 3: {1}})
    episode = Episode(id="0", task=np.arange(2), trajectories=[Trajectory(steps=[step])])
    write_episodes(tmp_path / "e.jsonl", [episode])
    (line,) = (tmp_path / "e.jsonl").read_text("utf-8").splitlines()
    assert "é" in line
    record = json.loads(line, parse_constant=pytest.fail)
    (written,) = record["steps"]
    assert written["action"] == ["é\udc80\n", "b'x'"]
    assert written["reward"] == "inf"
    assert written["info"] == {"n": 1.5, "3": "{1}"}
    assert record["task"] == "[0 1]"


def test_several_trajectories_stand_side_by_side(tmp_path: Path) -> None:
    trajectories = [Trajectory(name="white", steps=[Step(action="e4")]), Trajectory(name="black")]
    write_episodes(tmp_path / "e.jsonl", [Episode(id="0", task={}, trajectories=trajectories)])
    record = json.loads((tmp_path / "e.jsonl").read_text("utf-8"))
    assert [t["name"] for t in record["trajectories"]] == ["white", "black"]
    assert record["trajectories"][0]["steps"][0]["action"] == "e4"
