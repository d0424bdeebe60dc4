import pytest

from rllm_envs.puzzles.maze import MazeEnv
from rllm_envs.puzzles.moves import find_symbol, parse_directions, parse_numbers, split_moves

CORRIDOR = {"rows": ["#######", "#A...G#", "#######"]}


def start(**arguments):
    env = MazeEnv(**arguments)
    env.reset(options={"task": CORRIDOR})
    return env


@pytest.mark.parametrize(
    ("text", "moves"),
    [
        ("up", ["up"]),
        ("UP, Down;left\nright", ["up", "down", "left", "right"]),
        ("u d l r", ["up", "down", "left", "right"]),
        ("up, jump", None),
        ("ud", None),
        ("", []),
    ],
)
def test_directions_are_words_or_letters(text, moves):
    assert parse_directions(text) == moves


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("2 3, 1 1", [2, 3, 1, 1]),
        ("(2,3);[1:1]", [2, 3, 1, 1]),
        ("2-3", []),
        ("10", []),
        ("9" * 50, []),
        ("٣", []),
        ("", []),
    ],
)
def test_numbers_are_read_up_to_the_greatest_allowed(text, numbers):
    assert parse_numbers(text, 9) == numbers


def test_lists_of_moves_are_split_and_made_plain():
    assert split_moves(" A  to B.; C to Table,\n") == ["a to b", "c to table"]


def test_a_symbol_is_found_by_row_and_column():
    assert find_symbol(["..", ".X"], "X") == (1, 1)


def test_moves_of_one_action_are_made_up_to_the_first_that_is_not_possible():
    env = start()
    observation, _, _, _, info = env.step(r"\boxed{right, up, right}")
    assert observation == (
        "There is a wall: you cannot go up from here.\n#######\n#.A..G#\n#######"
    )
    assert (info["moves_left"], info["turns_left"], info["invalid"]) == (62, 63, False)


def test_moves_and_actions_have_a_budget_each():
    env = start(max_turns=4)
    assert env.step(r"\boxed{left}")[4]["moves_left"] == 3
    assert env.step("no move")[4]["moves_left"] == 3
    observation, reward, terminated, truncated, info = env.step(r"\boxed{right right right right}")
    assert observation == "#######\n#...AG#\n#######"
    assert (reward, terminated, truncated, info["moves_left"]) == (0.0, False, True, 0)


def test_a_single_move_is_the_rule_of_the_task():
    env = MazeEnv(max_turns=1)
    env.reset(options={"task": {"rows": ["####", "#AG#", "####"]}})
    assert env.step(r"\boxed{up, right}")[1:4] == (0.0, True, False)
    env.reset(options={"task": {"rows": ["####", "#AG#", "####"]}})
    assert env.step(r"\boxed{right}")[1:4] == (1.0, True, False)


def test_very_long_boxes_are_not_read():
    env = start()
    _, _, _, _, info = env.step(f"\\boxed{{{'up ' * 10_000}}}")
    assert (info["invalid"], info["moves_left"]) == (True, 64)


def test_the_oracle_writes_its_plan_into_one_box():
    assert start().oracle_action() == r"\boxed{right, right, right, right}"
