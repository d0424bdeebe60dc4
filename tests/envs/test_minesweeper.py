from itertools import combinations

import numpy as np
import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.puzzles.minesweeper import MinesweeperEnv
from rllm_envs.puzzles.minesweeper_rules import (
    deduce,
    deduced_opening,
    mine_counts,
    opened_from,
)

ROWS = ["*..", "...", "..."]


def places_of(height, width):
    return [(row, column) for row in range(height) for column in range(width)]


def certain(known, places, num_mines):
    """All closed places that are safe, or mined, in every arrangement that fits: brute force."""
    closed = sorted(set(places) - set(known))
    fits = []
    for chosen in combinations(closed, num_mines):
        mines = set(chosen)
        counts = {
            (r, c): sum((r + i, c + j) in mines for i in (-1, 0, 1) for j in (-1, 0, 1))
            for r, c in known
        }
        if counts == known:
            fits.append(mines)
    safe = {place for place in closed if all(place not in mines for mines in fits)}
    return safe, {place for place in closed if all(place in mines for mines in fits)}


def test_what_is_deduced_is_certain_in_every_arrangement_that_fits():
    rng = np.random.default_rng(0)
    places, num_equal = places_of(4, 4), 0
    for _ in range(120):
        order = [places[i] for i in rng.permutation(16)]
        mines = frozenset(order[:4])
        counts = mine_counts(4, 4, mines)
        known = {place: counts[place] for place in order[4 : 4 + int(rng.integers(1, 9))]}
        safe, mined = deduce(known, frozenset(places), 4)
        all_safe, all_mined = certain(known, places, 4)
        assert safe <= all_safe
        assert mined <= all_mined
        num_equal += (safe, mined) == (all_safe, all_mined)
    # The rules leave out little: most positions are worked out to the end.
    assert num_equal > 90


def test_a_position_with_one_two_one_is_worked_out():
    # Above a closed row, "1 2 1" puts mines under the ones and none under the two.
    known = {(0, 0): 1, (0, 1): 2, (0, 2): 1}
    safe, mined = deduce(known, frozenset(places_of(2, 3)), 2)
    assert (safe, mined) == ({(1, 1)}, {(1, 0), (1, 2)})


def test_numbers_count_the_eight_neighbours_and_a_zero_opens_them():
    mines = frozenset({(0, 0)})
    counts = mine_counts(3, 3, mines)
    assert [counts[place] for place in places_of(3, 3)] == [0, 1, 0, 1, 1, 0, 0, 0, 0]
    assert opened_from(counts, (2, 2), mines) == set(places_of(3, 3)) - mines
    assert opened_from(counts, (0, 1), mines) == {(0, 1)}


def test_generated_boards_open_without_a_guess():
    env = MinesweeperEnv()
    for seed in range(30):
        env.reset(seed=seed)
        task = env.task
        mines = frozenset(
            (r, c) for r, row in enumerate(task["rows"]) for c in range(5) if row[c] == "*"
        )
        counts = mine_counts(5, 5, mines)
        opened = opened_from(counts, (task["first_row"] - 1, task["first_column"] - 1), mines)
        assert len(mines) == 4
        while len(opened) < 21:
            known = {place: counts[place] for place in opened}
            safe, _ = certain(known, places_of(5, 5), 4)
            assert safe, "a guess would be needed"
            opened = opened.union(*(opened_from(counts, place, mines) for place in safe))


def start(**arguments):
    env = MinesweeperEnv(**arguments)
    task = {"rows": ["*...", "...*", "....", "...."], "first_row": 4, "first_column": 1}
    return env, env.reset(options={"task": task})[0]


def test_the_board_shows_numbers_and_closed_places():
    _, observation = start()
    assert observation.endswith("? ? ? ?\n1 1 1 ?\n0 0 1 1\n0 0 0 0")
    assert "4 rows and 4 columns with 2 mines" in observation


def test_safe_places_open_and_the_last_one_wins():
    env, _ = start()
    observation, _, terminated, _, info = env.step(r"\boxed{1 2}")
    assert (terminated, info["closed"]) == (False, 2)
    assert observation.splitlines()[0] == "? 1 ? ?"
    assert env.step(r"\boxed{1 2}")[0].startswith("The place 1 2 is open already.")
    assert env.step(r"\boxed{1 3, 1 4}")[1:3] == (1.0, True)


def test_a_mine_loses():
    env, _ = start()
    observation, reward, terminated, _, _ = env.step(r"\boxed{1 1, 1 2}")
    assert observation.startswith("You have opened a mine.\n* ? ? ?")
    assert (reward, terminated) == (0.0, True)


@pytest.mark.parametrize("action", ["", r"\boxed{}", r"\boxed{0 1}", r"\boxed{5 1}", r"\boxed{1}"])
def test_other_text_gets_a_hint(action):
    env, _ = start()
    assert env.step(action)[4]["invalid"] is True


@pytest.mark.parametrize(
    "task",
    [
        {"rows": ROWS, "first_row": 1, "first_column": 1},
        {"rows": ROWS, "first_row": 3, "first_column": 3},
        {"rows": ROWS, "first_row": 0, "first_column": 3},
        {"rows": ["*.", ".."], "first_row": 2, "first_column": 2},
        {"rows": None, "first_row": 2, "first_column": 2},
    ],
)
def test_boards_that_cannot_be_played_are_refused(task):
    with pytest.raises(TaskError):
        MinesweeperEnv().reset(options={"task": task})


def test_a_board_that_needs_a_guess_is_not_opened_to_the_end():
    mines = frozenset({(0, 0)})
    counts = mine_counts(2, 2, mines)
    assert deduced_opening(counts, mines, (1, 1)) == {(1, 1)}


def test_arguments_out_of_range_are_refused():
    with pytest.raises(EnvArgumentError, match="mines"):
        MinesweeperEnv(size=5, mines=6)
    with pytest.raises(EnvArgumentError, match="size"):
        MinesweeperEnv(size=3)
