import itertools

import gymnasium
import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.multi_agent.tictactoe import (
    EMPTY,
    TicTacToe,
    TicTacToeEnv,
    best_cell,
    mark_to_move,
    put,
    value,
    winner,
)

FIRST = {"seat": "player_0", "opening": [], "seed": 1}


def test_a_game_by_hand():
    env = TicTacToeEnv(opponent=lambda observation, info: info["action_mask"][0])
    observation, info = env.reset(options={"task": FIRST})
    assert observation.endswith("1 2 3\n4 5 6\n7 8 9\nIt is your turn.")
    assert "the mark X; X begins" in observation
    assert info["action_mask"] == tuple(f"\\boxed{{{cell}}}" for cell in range(1, 10))
    # The opponent takes 1, then 2; the agent the middle row.
    observation, reward, terminated, _, _ = env.step(r"\boxed{5}")
    assert observation == "O 2 3\n4 X 6\n7 8 9\nIt is your turn."
    env.step("I take the left: \\boxed{ 4 }")
    observation, reward, terminated, truncated, info = env.step(r"\boxed{6}")
    assert observation == "O O 3\nX X X\n7 8 9\nYou win."
    assert (reward, terminated, truncated, info["success"]) == (1.0, True, False, True)
    assert info["action_mask"] == ()


def all_lines_against(seat: int) -> set[int]:
    """Results of ``best_cell`` in a seat against every sequence of replies."""
    results = set()

    def walk(board: str, player: int) -> None:
        if winner(board) or "." not in board:
            results.add(0 if not winner(board) else 1 if winner(board) == "XO"[seat] else -1)
            return
        cells = [best_cell(board)] if player == seat else [c for c in range(9) if board[c] == "."]
        for cell in cells:
            walk(put(board, cell), 1 - player)

    walk(EMPTY, 0)
    return results


@pytest.mark.parametrize("seat", [0, 1])
def test_the_expert_never_loses_whatever_the_other_does(seat):
    assert all_lines_against(seat) == {0, 1}


def test_the_values_are_those_of_the_solved_game():
    assert value(EMPTY)[0] == 0
    # X in a corner and O on an edge: X wins (for instance through the centre).
    assert value(put(put(EMPTY, 0), 1))[0] == 1
    # X in a corner and O in the centre: a draw.
    assert value(put(put(EMPTY, 0), 4))[0] == 0
    assert mark_to_move(put(EMPTY, 0)) == "O"


def test_an_illegal_text_is_answered_and_then_loses():
    env = TicTacToeEnv(max_retries=2)
    env.reset(options={"task": FIRST})
    for text, start in [("5", "Write your move in"), (r"\boxed{10}", "'10' is not a legal move")]:
        observation, reward, terminated, _, info = env.step(text)
        assert observation.startswith(start)
        assert (reward, terminated, info["invalid"]) == (0.0, False, True)
    observation, reward, terminated, _, info = env.step("")
    assert (reward, terminated, info["success"]) == (-1.0, True, False)
    assert observation.endswith("You made no legal move.\nYou lose.")


def test_a_legal_move_gives_all_retries_back():
    env = TicTacToeEnv(max_retries=1, opponent="expert")
    _, info = env.reset(options={"task": FIRST})
    for _ in range(3):
        assert not env.step("hm")[2]
        info = env.step(info["action_mask"][0])[4]


def test_the_turns_are_never_spent_before_the_game_is_over():
    for seed in range(30):
        env = TicTacToeEnv(max_retries=1, split="all")
        _, info = env.reset(seed=seed)
        for number in itertools.count():
            text = "hm" if number % 2 == 0 else info["action_mask"][0]
            _, _, terminated, truncated, info = env.step(text)
            assert not truncated
            if terminated:
                break


def test_an_opponent_that_writes_nothing_legal_loses():
    env = TicTacToeEnv(opponent=lambda observation, info: "hm", seat="second")
    assert env.blocking
    observation, _ = env.reset(seed=0)
    assert observation.endswith("player_0 made no legal move.\nYou win.")
    _, reward, terminated, _, _ = env.step("whatever")
    assert (reward, terminated) == (1.0, True)


def test_an_opponent_reads_its_own_view():
    seen = []

    def opponent(observation, info):
        seen.append((observation, info["action_mask"], info["invalid"]))
        return "hm" if len(seen) == 1 else info["action_mask"][-1]

    env = TicTacToeEnv(opponent=opponent)
    env.reset(options={"task": FIRST})
    observation, *_ = env.step(r"\boxed{1}")
    assert observation == "X 2 3\n4 5 6\n7 8 O\nIt is your turn."
    assert "as player_1 with the mark O" in seen[0][0]
    assert [invalid for _, _, invalid in seen] == [False, True]
    assert "Write your move in" in seen[1][0]
    assert len(seen[0][1]) == 8


def test_seats_and_openings():
    env = TicTacToeEnv(seat="second", opening_plies=3)
    for seed in range(10):
        observation, _ = env.reset(seed=seed)
        board = observation.split("\n\n")[1]
        # X, O, X are laid out, so player_1 is to move at once.
        assert board.count("X") == 2
        assert board.count("O") == 1
        assert "as player_1" in observation
    seats = set()
    env = TicTacToeEnv()
    for seed in range(20):
        env.reset(seed=seed)
        seats.add(env.task["seat"])
    assert seats == {"player_0", "player_1"}


def test_equal_tasks_give_equal_opponents_whatever_was_played_before():
    games = []
    for before in (0, 3):
        env = TicTacToeEnv()
        for _ in range(before):
            env.reset()
            env.step(env.oracle_action())
        observations = [env.reset(options={"task": FIRST | {"seed": 77}})[0]]
        over = False
        while not over:
            observation, _, over, _, _ = env.step(env.oracle_action())
            observations.append(observation)
        games.append(observations)
    assert games[0] == games[1]


@pytest.mark.parametrize(
    ("task", "field"),
    [
        ({"seat": "player_2"}, "seat"),
        ({"seat": ["player_0"]}, "seat"),
        ({"opening": [1, 1]}, "opening"),
        ({"opening": [0]}, "opening"),
        ({"opening": [1, 2, 3, 4, 5]}, "opening"),
        ({"opening": "12"}, "opening"),
        ({"seed": -1}, "seed"),
        ({"seed": 1.5}, "seed"),
    ],
)
def test_given_tasks_are_checked(task, field):
    with pytest.raises(TaskError, match=field):
        TicTacToeEnv().reset(options={"task": task})


@pytest.mark.parametrize(
    "arguments",
    [{"opening_plies": 5}, {"opponent": "minimax"}, {"seat": "third"}, {"max_retries": -1}],
)
def test_arguments_out_of_range_are_refused(arguments):
    with pytest.raises(EnvArgumentError, match=next(iter(arguments))):
        gymnasium.make("rllm/TicTacToe-v0", **arguments)


def test_the_default_task_needs_no_fields():
    env = TicTacToeEnv()
    env.reset(options={"task": {}})
    assert env.task == {"seat": "player_0", "opening": [], "seed": 0}
    assert TicTacToe().legal_moves("player_0") == ()
