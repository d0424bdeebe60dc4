from itertools import permutations

import numpy as np
import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.puzzles.n_queens import NQueensEnv, attacking_rows, solve

TASK = {"columns": [0, 4, 0, 0]}


@pytest.mark.parametrize(("size", "count"), [(4, 2), (5, 10), (6, 4), (7, 40)])
def test_the_known_numbers_of_solutions(size, count):
    boards = permutations(range(1, size + 1))
    assert sum(attacking_rows(list(board)) is None for board in boards) == count


def test_completions_exist_where_one_of_all_solutions_fits():
    boards = [b for b in permutations(range(1, 7)) if attacking_rows(list(b)) is None]
    rng = np.random.default_rng(0)
    for _ in range(100):
        columns = [int(c) if rng.random() < 0.4 else 0 for c in rng.integers(1, 7, size=6)]
        fits = [b for b in boards if all(c in (0, own) for c, own in zip(columns, b, strict=True))]
        found = solve(columns)
        assert (found is not None) == bool(fits)
        assert found is None or tuple(found) in fits


def start(**arguments):
    env = NQueensEnv(**arguments)
    return env, env.reset(options={"task": TASK})[0]


def test_the_board_shows_the_given_queens():
    _, observation = start()
    assert observation.endswith("....\n...Q\n....\n....")


def test_any_solution_with_the_given_queens_wins():
    env, _ = start()
    observation, _, _, _, info = env.step(r"\boxed{1 4 2 3}")
    assert observation == "The queens of rows 3 and 4 attack each other. Attempts left: 2."
    assert info["invalid"] is False
    assert env.step(r"\boxed{3 1 4 2}")[0].startswith("The queen of row 2 is given in column 4.")
    assert env.step(r"\boxed{2, 4, 1, 3}")[1:3] == (1.0, True)


def test_queens_in_one_column_attack_each_other():
    assert attacking_rows([1, 3, 1]) == (1, 3)
    assert attacking_rows([1, 2]) == (1, 2)
    assert attacking_rows([2, 4, 1, 3]) is None


@pytest.mark.parametrize("action", ["", r"\boxed{2 4 1}", r"\boxed{2 4 1 0}", r"\boxed{2 4 1 5}"])
def test_other_text_counts_as_an_attempt(action):
    env, _ = start(max_turns=2)
    assert env.step(action)[4]["invalid"] is True
    assert env.step(action)[1:4] == (0.0, True, False)


def test_drawn_tasks_show_as_many_queens_as_asked():
    env = NQueensEnv(size=10, given=4)
    for seed in range(10):
        env.reset(seed=seed)
        columns = env.task["columns"]
        assert sum(column > 0 for column in columns) == 4
        assert solve(columns) is not None


@pytest.mark.parametrize(
    "columns",
    [None, [0, 0, 0], [1, 2, 0, 0], [1, 0, 0, 0], [2, 4, 1, 3], [5, 0, 0, 0], [True, 0, 0, 0]],
)
def test_boards_that_cannot_be_completed_are_refused(columns):
    with pytest.raises(TaskError):
        NQueensEnv().reset(options={"task": {"columns": columns}})


def test_arguments_out_of_range_are_refused():
    with pytest.raises(EnvArgumentError, match="size"):
        NQueensEnv(size=13)
    with pytest.raises(EnvArgumentError, match="given"):
        NQueensEnv(size=8, given=7)
