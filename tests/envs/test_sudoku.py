from itertools import permutations, product

import numpy as np
import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.puzzles.sudoku import SudokuEnv, parse_grid
from rllm_envs.puzzles.sudoku_rules import random_puzzle, random_solution, solutions

ROWS = ["1.3.", "..12", ".1.3", "43.1"]


def is_right(grid, size):
    box = int(size**0.5)
    rows = [grid[r * size : (r + 1) * size] for r in range(size)]
    columns = [list(column) for column in zip(*rows, strict=True)]
    boxes = [
        [rows[r + i][c + j] for i in range(box) for j in range(box)]
        for r in range(0, size, box)
        for c in range(0, size, box)
    ]
    return all(sorted(unit) == list(range(1, size + 1)) for unit in rows + columns + boxes)


@pytest.fixture(scope="module")
def all_grids():
    """All right grids of four rows, by trying all rows."""
    rows = list(permutations((1, 2, 3, 4)))
    grids = []
    for first, second in product(rows, rows):
        if len(set(first[:2] + second[:2])) < 4 or len(set(first[2:] + second[2:])) < 4:
            continue
        for third, fourth in product(rows, rows):
            grid = [*first, *second, *third, *fourth]
            if is_right(grid, 4):
                grids.append(grid)
    return grids


def test_there_are_288_grids_of_four_rows(all_grids):
    # The known number; the search finds each of them.
    assert len(all_grids) == 288
    assert sorted(solutions([0] * 16, 4, 1000)) == sorted(all_grids)


def test_puzzles_of_four_rows_have_one_solution_by_brute_force(all_grids):
    for seed in range(30):
        puzzle = random_puzzle(np.random.default_rng(seed), 4, 9)
        fits = [
            grid
            for grid in all_grids
            if all(given in (0, own) for given, own in zip(puzzle, grid, strict=True))
        ]
        assert puzzle.count(0) == 9
        assert fits == solutions(puzzle, 4, 5)
        assert len(fits) == 1


def test_grids_of_nine_rows_are_right_and_differ():
    grids = [random_solution(np.random.default_rng(seed), 9) for seed in range(20)]
    assert all(is_right(grid, 9) for grid in grids)
    assert len({tuple(grid) for grid in grids}) == 20


def test_a_puzzle_of_nine_rows_has_one_solution_that_keeps_its_digits():
    rng = np.random.default_rng(3)
    puzzle = random_puzzle(rng, 9, 50)
    found = solutions(puzzle, 9, 2)
    assert len(found) == 1
    assert is_right(found[0], 9)
    assert all(given in (0, own) for given, own in zip(puzzle, found[0], strict=True))


def test_digits_that_clash_have_no_solution():
    assert solutions([1, 1] + [0] * 14, 4, 1) == []


def start(**arguments):
    env = SudokuEnv(**arguments)
    return env, env.reset(options={"task": {"rows": ROWS}})[0]


def test_the_whole_grid_answers():
    env, observation = start()
    assert observation.endswith("1.3.\n..12\n.1.3\n43.1")
    assert env.step(r"\boxed{1234 3412 2143 4321}")[1:3] == (1.0, True)
    env, _ = start()
    assert env.step(r"\boxed{1234 3412 2143 4312}")[1:3] == (0.0, True)


def test_cells_are_filled_in_step_by_step():
    env, _ = start()
    observation, _, _, _, info = env.step(r"\boxed{1 2 2, 1 4 4}")
    assert observation == "1234\n..12\n.1.3\n43.1"
    assert info["blanks"] == 5
    _, reward, terminated, _, info = env.step(r"\boxed{2 1 3, 2 2 4, 3 1 2, 3 3 4, 4 3 2}")
    assert (reward, terminated, info["blanks"]) == (1.0, True, 0)


def test_entries_that_clash_or_are_given_are_refused():
    env, _ = start()
    assert env.step(r"\boxed{1 1 2}")[0].startswith("The cell in row 1, column 1 is given.")
    observation, _, _, _, info = env.step(r"\boxed{1 2 3, 1 4 4}")
    assert observation.startswith("The 3 does not fit in row 1, column 2")
    assert (info["blanks"], info["invalid"]) == (7, False)


def test_an_entry_may_be_replaced():
    env, _ = start()
    # A 2 or a 4 fits in row 1, column 2 at first; the solution has the 2.
    assert env.step(r"\boxed{1 2 4}")[0].startswith("143.")
    assert env.step(r"\boxed{1 2 2}")[0].startswith("123.")


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1 2 3", [1, 2, 3]),
        ("(1,2,3); (4,1,2)", [1, 2, 3, 4, 1, 2]),
        ("1 2", []),
        ("1 2 5", []),
        ("0 1 2", []),
        ("1234341221434325", []),
        ("x", []),
        ("", []),
    ],
)
def test_boxes_hold_a_grid_or_triples(text, numbers):
    assert parse_grid(text, 4) == numbers


@pytest.mark.parametrize(
    "rows",
    [
        None,
        ["1234", "3412", "2143", "4321"],
        ["....", "....", "....", "...."],
        ["11..", "....", "....", "...."],
        ["1.3.", "..12", ".1.3"],
        ["1.3.", "..15", ".1.3", "43.1"],
        ["." * 9] * 9,
    ],
)
def test_grids_without_exactly_one_solution_are_refused(rows):
    with pytest.raises(TaskError):
        SudokuEnv().reset(options={"task": {"rows": rows}})


def test_arguments_out_of_range_are_refused():
    with pytest.raises(EnvArgumentError, match="size"):
        SudokuEnv(size=6)
    with pytest.raises(EnvArgumentError, match="blanks"):
        SudokuEnv(size=4, blanks=11)
