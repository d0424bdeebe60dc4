from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rllm_agents import UserError, evaluate_match
from rllm_envs.multi_agent.nim import Nim
from rllm_envs.multi_agent.rock_paper_scissors import RockPaperScissors

TICTACTOE = "rllm/TicTacToe-v0"


def judge(env: Any, players: Any, n_games: int = 20, **arguments: Any):
    return asyncio.run(evaluate_match(env, players, n_games, **arguments))


def always(move: str) -> Any:
    return lambda observation, info: f"\\boxed{{{move}}}"


def first_move(observation: Any, info: dict[str, Any]) -> str:
    return info["action_mask"][0]


def test_seats_are_exchanged_and_no_task_favours_anybody() -> None:
    result = judge(TICTACTOE, {"strong": "expert", "weak": "random"}, 20, seed=100)
    seated = [episode.info["players"] for episode in result.episodes]
    assert [s["player_0"] for s in seated] == ["strong", "weak"] * 10
    assert [e.task["seed"] for e in result.episodes] == [100 + i // 2 for i in range(20)]
    strong, weak = result.standings["strong"], result.standings["weak"]
    assert (strong.losses, weak.wins) == (0, 0)  # nobody beats perfect play
    assert strong.wins + strong.draws == 20
    assert strong.wins == weak.losses > 10
    assert strong.mean_reward == -weak.mean_reward == strong.wins / 20
    assert "strong" in "".join(str(c) for column in result.table().columns for c in column.cells)


def test_figures_are_those_of_a_game_whose_outcome_is_known() -> None:
    # Rock beats scissors in every one of ten rounds, whoever sits where.
    players = {"rock": always("rock"), "scissors": always("scissors")}
    result = judge("rllm/RockPaperScissors-v0", players, 8)
    rock, scissors = result.standings["rock"], result.standings["scissors"]
    assert (rock.wins, rock.draws, rock.losses) == (8, 0, 0)
    assert (rock.mean_reward, rock.reward_half_width) == (10.0, 0.0)
    assert rock.score_by_seat == {"player_0": 1.0, "player_1": 1.0}
    # Wilson: n / (n + z^2) = 8 / (8 + 3.8415) at 8 of 8.
    assert rock.win_rate.low == pytest.approx(8 / (8 + 1.959964**2), abs=1e-6)
    assert (rock.win_rate.high, scissors.score.value) == (1.0, 0.0)
    assert scissors.score.high == pytest.approx(1 - rock.score.low)


def test_a_tie_is_half_a_win() -> None:
    result = judge(lambda: _rounds(), {"a": always("rock"), "b": always("rock")}, 4)
    one = result.standings["a"]
    assert (one.wins, one.draws, one.losses, one.score.value, one.win_rate.value) == (
        *(0, 4, 0),
        0.5,
        0.0,
    )


def _rounds() -> Any:
    from rllm_envs.multi_agent import TextParallelEnv

    return TextParallelEnv(RockPaperScissors())


def test_a_better_seat_favours_nobody() -> None:
    # Both play alike, so the winner is the seat's and each has it once for every task.
    result = judge("rllm/Nim-v0", {"a": first_move, "b": first_move}, 12)
    one, two = result.standings["a"], result.standings["b"]
    assert one.score.value == two.score.value == 0.5
    for seat in Nim().agents:
        assert one.score_by_seat[seat] == two.score_by_seat[seat]


def test_failed_games_count_for_nobody() -> None:
    calls = iter(range(10_000))

    def flaky(observation: Any, info: dict[str, Any]) -> str:
        if next(calls) == 0:
            raise RuntimeError("lost")
        return info["action_mask"][0]

    result = judge(TICTACTOE, {"flaky": flaky, "expert": "expert"}, 6, n_parallel=1)
    assert (result.num_games, result.num_failed) == (5, 1)
    assert result.standings["expert"].wins + result.standings["expert"].draws == 5


def test_given_tasks_are_played_in_turn() -> None:
    from rllm_envs.multi_agent import make_aec

    env = make_aec("rllm/Nim-v0")
    tasks = []
    for seed in (1, 2):
        env.reset(seed=seed)
        tasks.append(env.task)
    result = judge("rllm/Nim-v0", {"a": "expert", "b": "random"}, 8, tasks=tasks)
    order = [tasks.index(episode.task) for episode in result.episodes]
    assert order == [0, 0, 1, 1, 0, 0, 1, 1]


@pytest.mark.parametrize(
    ("players", "n_games", "arguments", "problem"),
    [
        ({"a": "expert"}, 2, {}, "1 players for 2 seats"),
        ({"a": "expert", "b": "random"}, 3, {}, "multiple of 2"),
        ({"a": "expert", "b": "random"}, 0, {}, "n_games must be at least 1"),
        ({"a": "expert", "b": "random"}, 2, {"tasks": []}, "no tasks"),
        ({"a": lambda o, i: 1 / 0, "b": "random"}, 2, {}, "all 2 games failed"),
    ],
)
def test_mistakes_are_told(
    players: Any, n_games: int, arguments: dict[str, Any], problem: str
) -> None:
    with pytest.raises(UserError, match=problem):
        judge(TICTACTOE, players, n_games, **arguments)
