from itertools import product

import numpy as np
import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.puzzles.nonogram import NonogramEnv, clues
from rllm_envs.puzzles.nonogram_rules import (
    arrangements,
    deduce,
    deduce_line,
    line_clue,
    solutions,
)

TASK = {"rows": [[2], [1], [1, 1]], "columns": [[1, 1], [2], [1]]}


def test_clues_are_the_runs_of_a_line():
    assert line_clue([1, 1, 0, 1]) == (2, 1)
    assert line_clue([0, 0, 0]) == ()
    assert line_clue([0, 1, 1, 1]) == (3,)


@pytest.mark.parametrize("length", range(1, 8))
def test_arrangements_are_all_lines_with_a_clue(length):
    by_clue = {}
    for line in product((0, 1), repeat=length):
        by_clue.setdefault(line_clue(line), []).append(line)
    for clue, lines in by_clue.items():
        assert sorted(arrangements(clue, length)) == sorted(lines)


def test_a_line_is_worked_out_by_hand():
    # A run of 3 in 5 cells covers the middle; of 4, cells 2 to 4.
    assert deduce_line([-1] * 5, (3,)) == [-1, -1, 1, -1, -1]
    assert deduce_line([-1] * 5, (4,)) == [-1, 1, 1, 1, -1]
    assert deduce_line([0, -1, -1, -1, -1], (3,)) == [0, -1, 1, 1, -1]
    assert deduce_line([-1, 0, -1, 0, -1], (3,)) is None


@pytest.fixture(scope="module")
def pictures_by_clues():
    """All pictures of 3 rows and 4 columns by their clues: brute force."""
    table = {}
    for cells in product((0, 1), repeat=12):
        picture = [list(cells[start : start + 4]) for start in (0, 4, 8)]
        rows, columns = clues(picture)
        table.setdefault((tuple(rows), tuple(columns)), []).append(picture)
    return table


def test_pictures_are_found_and_counted_as_by_brute_force(pictures_by_clues):
    for (rows, columns), pictures in list(pictures_by_clues.items())[::7]:
        assert sorted(solutions(rows, columns, 100)) == sorted(pictures)


def test_pictures_that_follow_line_by_line_are_the_only_ones(pictures_by_clues):
    num_followed = 0
    for (rows, columns), pictures in list(pictures_by_clues.items())[::7]:
        board = deduce([[-1] * 4 for _ in range(3)], rows, columns)
        assert board is not None
        if all(cell >= 0 for row in board for cell in row):
            num_followed += 1
            assert pictures == [board]
    assert num_followed > 100


def start(**arguments):
    env = NonogramEnv(**arguments)
    return env, env.reset(options={"task": TASK})[0]


def test_the_first_observation_lists_all_runs():
    _, observation = start()
    assert "Rows from the top: 2; 1; 1 1\n" in observation
    assert "Columns from the left: 1 1; 2; 1\n" in observation


def test_the_picture_wins_and_wrong_lines_are_told():
    env, _ = start()
    observation, _, terminated, _, info = env.step(r"\boxed{##. #.. #.#}")
    assert observation == "Wrong columns: 1, 2. Attempts left: 2."
    assert (terminated, info["wrong_lines"]) == (False, 2)
    assert env.step("\\boxed{##.\n.#.\n#.#}")[1:3] == (1.0, True)


def test_the_last_attempt_terminates_and_other_text_counts_as_one():
    env, _ = start(max_turns=2)
    assert env.step(r"\boxed{##}")[4]["invalid"] is True
    assert env.step(r"\boxed{... ... ...}")[1:4] == (0.0, True, False)


def test_drawn_tasks_have_one_picture():
    env = NonogramEnv(size=4)
    for seed in range(20):
        env.reset(seed=seed)
        rows = [tuple(clue) for clue in env.task["rows"]]
        columns = [tuple(clue) for clue in env.task["columns"]]
        fits = 0
        for lines in product(*(arrangements(clue, 4) for clue in rows)):
            fits += clues([list(line) for line in lines])[1] == columns
        assert fits == 1


@pytest.mark.parametrize(
    "task",
    [
        {},
        {"rows": [[1], [1]], "columns": [[1], [1]]},
        {"rows": [[1], []], "columns": [[1], [1]]},
        {"rows": [[3], []], "columns": [[1], [1]]},
        {"rows": [[0], []], "columns": [[], []]},
        {"rows": [[1], 1], "columns": [[], []]},
    ],
)
def test_runs_without_exactly_one_picture_are_refused(task):
    with pytest.raises(TaskError):
        NonogramEnv().reset(options={"task": task})


def test_arguments_out_of_range_are_refused():
    with pytest.raises(EnvArgumentError, match="size"):
        NonogramEnv(size=11)
    assert np.array(arrangements((2, 2), 10)).shape == (21, 10)
