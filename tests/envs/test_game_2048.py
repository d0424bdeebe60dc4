from collections import Counter

import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.puzzles.game_2048 import Game2048Env, merge_row, possible_moves, shift

BOARD = [[2, 2, 0, 0], [4, 0, 4, 0], [8, 8, 8, 8], [0, 0, 0, 2]]


@pytest.mark.parametrize(
    ("row", "merged"),
    [
        ((0, 0, 0, 0), (0, 0, 0, 0)),
        ((2, 0, 0, 2), (4, 0, 0, 0)),
        ((2, 2, 2, 0), (4, 2, 0, 0)),
        ((2, 2, 2, 2), (4, 4, 0, 0)),
        ((4, 2, 2, 0), (4, 4, 0, 0)),
        ((2, 4, 2, 4), (2, 4, 2, 4)),
        ((2, 2, 4, 8), (4, 4, 8, 0)),
    ],
)
def test_rows_merge_as_worked_by_hand(row, merged):
    assert merge_row(row) == merged


def test_boards_shift_in_four_directions():
    rows = tuple(map(tuple, BOARD))
    assert shift(rows, "left") == ((4, 0, 0, 0), (8, 0, 0, 0), (16, 16, 0, 0), (2, 0, 0, 0))
    assert shift(rows, "right") == ((0, 0, 0, 4), (0, 0, 0, 8), (0, 0, 16, 16), (0, 0, 0, 2))
    assert shift(rows, "up") == ((2, 2, 4, 8), (4, 8, 8, 2), (8, 0, 0, 0), (0, 0, 0, 0))
    assert shift(rows, "down") == ((0, 0, 0, 0), (2, 0, 0, 0), (4, 2, 4, 8), (8, 8, 8, 2))


def test_only_moves_that_change_the_board_are_possible():
    assert possible_moves(((2, 0), (0, 0))) == ["down", "right"]
    assert possible_moves(((2, 4), (4, 2))) == []


def start(**arguments):
    env = Game2048Env(**arguments)
    return env, env.reset(seed=1, options={"task": {"rows": BOARD}})[0]


def test_a_move_shifts_merges_and_adds_one_tile():
    env, observation = start()
    assert observation.endswith("2 2 . .\n4 . 4 .\n8 8 8 8\n. . . 2")
    shown, _, _, _, info = env.step(r"\boxed{left}")
    tiles = sorted(int(word) for word in shown.split() if word != ".")
    assert tiles in ([2, 2, 4, 8, 16, 16], [2, 4, 4, 8, 16, 16])
    assert (info["largest_tile"], info["moves_left"]) == (16, 43)


def test_a_move_that_changes_nothing_adds_no_tile():
    env = Game2048Env()
    env.reset(options={"task": {"rows": [[2, 0, 0], [4, 0, 0], [2, 0, 0]]}})
    assert env.step(r"\boxed{left}")[0] == "Moving left changes nothing.\n2 . .\n4 . .\n2 . ."


def test_the_target_wins_and_a_full_board_loses():
    env, _ = start(target=32)
    assert env.step(r"\boxed{left, left}")[1:3] == (1.0, True)
    env, _ = start()
    # Moving left merges two fours and leaves one place, beside an 8 and below a 2: a new 2 may
    # merge, a new 4 may not.
    outcomes = set()
    for seed in range(40):
        env.reset(seed=seed, options={"task": {"rows": [[2, 4, 8], [4, 16, 2], [32, 4, 4]]}})
        shown, reward, terminated, _, _ = env.step(r"\boxed{left}")
        outcomes.add((shown.startswith("No move is possible."), shown[-1], reward, terminated))
    assert outcomes == {(False, "2", 0.0, False), (True, "4", 0.0, True)}


def test_new_tiles_are_two_in_nine_of_ten_cases():
    env = Game2048Env()
    tiles = Counter()
    for seed in range(250):
        env.reset(seed=seed)
        tiles.update(tile for row in env.task["rows"] for tile in row if tile)
    assert sum(tiles.values()) == 1000
    # Four standard deviations of a binomial of 1000 and 0.1 are 38.
    assert abs(tiles[4] - 100) < 38


@pytest.mark.parametrize(
    "rows",
    [
        None,
        [[2, 2], [2, 2]],
        [[2, 0, 0], [0, 0], [0, 0, 0]],
        [[3, 0, 0], [0, 0, 0], [0, 0, 0]],
        [[64, 0, 0], [0, 0, 0], [0, 0, 0]],
        [[2, 4, 2], [4, 2, 4], [2, 4, 2]],
        [[True, 0, 0], [0, 0, 0], [0, 0, 0]],
    ],
)
def test_boards_that_cannot_be_played_are_refused(rows):
    with pytest.raises(TaskError):
        Game2048Env().reset(options={"task": {"rows": rows}})


def test_arguments_out_of_range_are_refused():
    with pytest.raises(EnvArgumentError, match="target"):
        Game2048Env(target=100)
    with pytest.raises(EnvArgumentError, match="size"):
        Game2048Env(size=2)
