from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agents_fakes import ByteTokenizer, byte_completion

from rllm_agents import AgentExecutionEngine, Completion, Episode, GenerationRequest, RolloutRequest
from rllm_agents.errors import UserError
from rllm_agents.match_seats import FrozenPolicy, MatchSeats, SeatPolicy
from rllm_agents.types import SamplingParams

GAME = "rllm/RockPaperScissors-v0"
MOVES = {"": "rock", "old": "scissors", "red": "paper"}


class Sets:
    """Plays by the name of the set of weights that is asked; keeps what it was asked."""

    weights_version = 0

    def __init__(self) -> None:
        self.asked: list[GenerationRequest] = []

    async def generate(self, request: GenerationRequest) -> Completion:
        self.asked.append(request)
        return byte_completion(f"\\boxed{{{MOVES[request.adapter]}}}")

    async def load_weights(self, tensors: Any, *, version: int) -> None:
        raise NotImplementedError

    def close(self) -> None:
        pass


def play(seats: MatchSeats, *tasks: dict[str, Any], temperature: float = 1.0) -> Any:
    engine = Sets()
    with AgentExecutionEngine(
        agent_class=seats, rollout_engine=engine, tokenizer=ByteTokenizer()
    ) as runner:
        sampling = SamplingParams(temperature=temperature, seed=1)
        requests = [RolloutRequest(t, str(i), sampling) for i, t in enumerate(tasks)]
        return asyncio.run(runner.execute_requests(requests)), engine


def records(episode: Episode) -> list[bool]:
    return [bool(t.token_records) for t in episode.trajectories]


def test_a_policy_that_plays_itself_learns_from_both_seats() -> None:
    (episode,), _ = play(MatchSeats(GAME, {}), {"seed": 0})
    assert not episode.failed, episode.error
    assert records(episode) == [True, True]
    assert [t.name for t in episode.trajectories] == ["player_0", "player_1"]
    assert [t.reward for t in episode.trajectories] == [0.0, 0.0]


def test_nothing_that_a_frozen_opponent_sampled_is_kept_for_training() -> None:
    seats = MatchSeats(GAME, {"player_0": SeatPolicy(opponents=(FrozenPolicy("old"),))})
    (episode,), engine = play(seats, {"seed": 0}, temperature=0.0)
    assert records(episode) == [False, True]
    assert [t.reward for t in episode.trajectories] == [-10.0, 10.0]
    assert [t.info["learns"] for t in episode.trajectories] == [False, True]
    assert episode.is_correct
    # The opponent goes on sampling where the policy is played greedily.
    assert {(r.adapter, r.sampling.temperature) for r in engine.asked} == {("", 0.0), ("old", 1.0)}


def test_each_seat_plays_with_its_own_weights() -> None:
    seats = MatchSeats(GAME, {"player_1": SeatPolicy(adapter="red")})
    (episode,), _ = play(seats, {"seed": 0})
    assert records(episode) == [True, True]
    assert [t.reward for t in episode.trajectories] == [-10.0, 10.0]


def test_a_task_draws_its_opponent_for_the_whole_group_and_tasks_differ() -> None:
    opponents = (FrozenPolicy("old"), FrozenPolicy("red"))
    seats = MatchSeats(GAME, {"player_1": SeatPolicy(opponents=opponents)})
    tasks = [{"seed": seed} for seed in range(12) for _ in range(2)]
    episodes, _ = play(seats, *tasks)
    rewards = [episode.trajectories[0].reward for episode in episodes]
    assert rewards[::2] == rewards[1::2]
    assert set(rewards) == {10.0, -10.0}


def test_held_out_matches_are_played_from_a_seat_against_a_named_opponent() -> None:
    seats = MatchSeats(
        GAME, {}, named_opponents={"old": FrozenPolicy("old"), "red": FrozenPolicy("red")}
    )
    tasks = [
        {"game": {"seed": 3}, "seat": seat, "opponent": opponent}
        for seat in ("player_0", "player_1")
        for opponent in ("old", "red")
    ]
    episodes, _ = play(seats, *tasks)
    assert [e.is_correct for e in episodes] == [True, False, True, False]
    assert [e.info["opponent"] for e in episodes] == ["old", "red"] * 2
    assert [records(e) for e in episodes] == [[True, False]] * 2 + [[False, True]] * 2
    assert [e.task for e in episodes] == tasks


def test_a_game_may_be_given_itself() -> None:
    seats = MatchSeats("rllm/Nim-v0", {"player_1": SeatPolicy(opponents=("expert",))})
    (episode,), _ = play(seats, {"piles": [1], "seed": 4})
    assert not episode.failed, episode.error
    assert "Pile 1: 1" in str(episode.trajectories[0].steps[0].observation)


def test_mistakes_are_found_before_anything_is_played() -> None:
    with pytest.raises(UserError, match="player_0, player_1, not player_7"):
        MatchSeats(GAME, {"player_7": SeatPolicy()})
    taken = SeatPolicy(opponents=("random",))
    with pytest.raises(UserError, match="nobody learns"):
        MatchSeats(GAME, {"player_0": taken, "player_1": taken})
    with pytest.raises(UserError, match="'deep blue'"):
        play(MatchSeats(GAME, {}), {"game": {}, "seat": "player_0", "opponent": "deep blue"})
