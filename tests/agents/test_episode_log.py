"""Episodes that are saved as they end, and a run that goes on where it was stopped."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rllm_agents import AgentExecutionEngine, ChatAgent, RolloutRequest
from rllm_agents.errors import UserError
from rllm_agents.evaluation import EpisodeLog, evaluate_tasks, play_requests
from rllm_agents.types import Message
from rllm_envs import BaseEnv

TASKS = [{"n": n} for n in range(4)]


class EchoEnv(BaseEnv):
    """Rewards the number that it asks for; the world outside may break it."""

    blocking = False
    is_broken = False

    def __init__(self, n: int) -> None:
        self.n = n

    @staticmethod
    def from_dict(info: dict[str, Any]) -> EchoEnv:
        return EchoEnv(info["n"])

    def reset(self) -> tuple[str, dict[str, Any]]:
        return str(self.n), {}

    def step(self, action: str) -> tuple[str, float, bool, dict[str, Any]]:
        if EchoEnv.is_broken:
            raise ConnectionError("the world is gone")
        return "", float(action == str(self.n)), True, {}


class Stopped(Exception):
    """What a test raises in place of a kill."""


class Player:
    """Plays and counts what it is asked; stops dead at the `stop_at`th question."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.asked: list[str] = []
        self._stop_at = stop_at

    def engine(self) -> AgentExecutionEngine:
        def respond(messages: Sequence[Message]) -> str:
            self.asked.append(messages[-1]["content"])
            return messages[-1]["content"]

        def note(episode: Any) -> None:
            if len(self.asked) == self._stop_at:
                raise Stopped

        return AgentExecutionEngine(
            agent_class=ChatAgent,
            env_class=EchoEnv,
            engine_name="scripted",
            rollout_engine_args={"responses": respond},
            n_parallel_agents=1,
            on_episode=note,
        )


def evaluate(player: Player, path: Path, samples: int = 2) -> Any:
    with player.engine() as engine, EpisodeLog(path) as log:
        return asyncio.run(evaluate_tasks(engine, TASKS, samples_per_task=samples, log=log))


def ids(path: Path) -> list[str]:
    return [json.loads(line)["id"] for line in path.read_text("utf-8").splitlines()]


ALL_IDS = [f"{task}-{sample}" for task in range(4) for sample in range(2)]


def test_a_run_that_was_stopped_goes_on_and_repeats_nothing(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "episodes.jsonl"
    with pytest.raises(Stopped):
        evaluate(Player(stop_at=4), path)
    # The fourth had ended and was not handed over yet.
    assert ids(path) == ["0-0", "0-1", "1-0"]
    before = path.read_bytes()
    second = Player()
    result = evaluate(second, path)
    assert second.asked == ["1", "2", "2", "3", "3"]
    assert path.read_bytes().startswith(before)
    assert ids(path) == ALL_IDS == [episode.id for episode in result.episodes]
    assert (result.pass_at_1, result.num_failed, result.mean_turns) == (1.0, 0, 1.0)
    third = Player()
    assert evaluate(third, path).figures() == result.figures()
    assert third.asked == []


def test_episodes_that_ended_in_another_order_are_sorted_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    requests = [RolloutRequest(task=task, id=str(task["n"])) for task in TASKS]
    with Player().engine() as engine, EpisodeLog(path) as log:
        asyncio.run(play_requests(engine, requests[2:], log))
    with Player().engine() as engine, EpisodeLog(path) as log:
        episodes = asyncio.run(play_requests(engine, requests, log))
    assert ids(path) == [e.id for e in episodes] == ["0", "1", "2", "3"]
    assert [e.task for e in episodes] == TASKS


def test_what_failed_is_played_again_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    EchoEnv.is_broken = True
    try:
        failed = evaluate(Player(), path)
    finally:
        EchoEnv.is_broken = False
    assert (failed.num_failed, len(ids(path))) == (8, 8)
    again = evaluate(Player(), path)
    assert (again.num_failed, again.pass_at_1) == (0, 1.0)
    assert ids(path) == ALL_IDS


def test_the_number_of_samples_may_grow_and_not_shrink(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    evaluate(Player(), path, samples=1)
    grown = Player()
    evaluate(grown, path, samples=3)
    assert len(grown.asked) == 8
    before = path.read_bytes()
    with pytest.raises(UserError, match=r"'0-1'.* not among the 4 asked for.*may grow, not"):
        evaluate(Player(), path, samples=1)
    assert path.read_bytes() == before


@pytest.mark.parametrize("torn", ['{"id": "1-0", "ta', '{"id": "1-0"}'])
def test_a_line_that_a_crash_cut_off_is_dropped(tmp_path: Path, torn: str) -> None:
    path = tmp_path / "e.jsonl"
    with pytest.raises(Stopped):
        evaluate(Player(stop_at=3), path)
    with path.open("a") as file:
        file.write(torn)
    player = Player()
    assert evaluate(player, path).pass_at_1 == 1.0
    assert player.asked == ["1", "1", "2", "2", "3", "3"]
    assert ids(path) == ALL_IDS


def test_a_file_of_one_torn_line_longer_than_a_block_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    path.write_text("x" * 200_000)
    with EpisodeLog(path) as log:
        assert log.episodes == []
    assert path.read_bytes() == b""


@pytest.mark.parametrize(
    "line",
    ["[]", "nonsense", '{"id": "0-0"}', '{"id": "0-0", "task": {}, "reward": 1.0, "is_correct": 1,'
     ' "termination_reason": "bored", "error": null, "messages": [], "steps": []}'],
)  # fmt: skip
def test_a_line_that_is_no_episode_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "e.jsonl"
    evaluate(Player(), path, samples=1)
    with path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(UserError, match=r"e\.jsonl, line 5 is no episode"):
        evaluate(Player(), path, samples=1)


def test_other_tasks_under_the_same_ids_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    evaluate(Player(), path, samples=1)
    others = [{"n": 0}, {"n": 7}, {"n": 2}, {"n": 3}]
    with (
        Player().engine() as engine,
        EpisodeLog(path) as log,
        pytest.raises(UserError, match="'1-0' of another task"),
    ):
        asyncio.run(evaluate_tasks(engine, others, log=log))


def test_a_file_has_one_writer(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    with (
        EpisodeLog(path),
        pytest.raises(UserError, match="in use by another process"),
        EpisodeLog(path),
    ):
        pass
    with EpisodeLog(path) as log:
        assert log.episodes == []


def test_a_place_that_cannot_be_written_to_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(UserError, match="cannot be written to"),
        EpisodeLog(tmp_path / "file" / "e.jsonl"),
    ):
        pass
