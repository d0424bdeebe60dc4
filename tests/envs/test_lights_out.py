from itertools import product

import numpy as np
import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.puzzles.lights_out import LightsOutEnv, fewest_presses, press_effects


def pressed(lights, size, place):
    """Press a button by the words of the rules."""
    lights = lights.copy().reshape(size, size)
    row, column = divmod(place, size)
    for r, c in ((row, column), (row - 1, column), (row + 1, column)):
        if 0 <= r < size:
            lights[r, c] ^= 1
    for c in (column - 1, column + 1):
        if 0 <= c < size:
            lights[row, c] ^= 1
    return lights.ravel()


@pytest.mark.parametrize("size", [2, 3])
def test_the_fewest_presses_are_those_of_trying_all(size):
    number = size**2
    fewest = {}
    for presses in product((0, 1), repeat=number):
        lights = np.zeros(number, dtype=int)
        for place in np.flatnonzero(presses):
            lights = pressed(lights, size, place)
        key = tuple(lights)
        fewest[key] = min(fewest.get(key, number), sum(presses))
    for lights, count in fewest.items():
        assert len(fewest_presses(np.array(lights))) == count


@pytest.mark.parametrize("size", range(2, 10))
def test_solutions_switch_off_all_lights_when_they_are_played(size):
    rng = np.random.default_rng(size)
    for _ in range(5):
        lights = np.zeros(size**2, dtype=int)
        for place in np.flatnonzero(rng.integers(2, size=size**2)):
            lights = pressed(lights, size, place)
        for place in fewest_presses(lights):
            lights = pressed(lights, size, place)
        assert not lights.any()


def test_the_known_numbers_of_boards_that_can_be_darkened():
    # Four and five rows leave 4 and 2 sets of quiet buttons: 2^12 of 2^16, 2^23 of 2^25.
    for size, rank in ((3, 9), (4, 12), (5, 23), (6, 36)):
        matrix, found = press_effects(size) % 2, 0
        matrix = matrix.copy()
        for column in range(size**2):
            rows = [row for row in range(found, size**2) if matrix[row, column]]
            if rows:
                matrix[[found, rows[0]]] = matrix[[rows[0], found]]
                for row in range(size**2):
                    if row != found and matrix[row, column]:
                        matrix[row] ^= matrix[found]
                found += 1
        assert found == rank


def test_a_cross_goes_out_by_its_middle():
    env = LightsOutEnv()
    env.reset(options={"task": {"rows": ["010", "111", "010"]}})
    assert env.oracle_action() == r"\boxed{2 2}"
    # The button at the top left switches three lights, and so does that at the bottom right.
    observation, _, _, _, info = env.step(r"\boxed{1 1, (3,3)}")
    assert (observation, info["moves_left"]) == ("100\n010\n001", 14)


def test_buttons_outside_and_other_text_are_invalid():
    env = LightsOutEnv()
    env.reset(options={"task": {"rows": ["010", "111", "010"]}})
    for action in ("", r"\boxed{}", r"\boxed{0 1}", r"\boxed{4 1}", r"\boxed{1}", r"\boxed{a b}"):
        observation, _, _, _, info = env.step(action)
        assert (observation, info["invalid"], info["moves_left"]) == (env.hint, True, 16)
    assert env.step(r"\boxed{2 2}")[1:3] == (1.0, True)


@pytest.mark.parametrize(
    "rows", [None, ["00", "00"], ["010", "111"], ["1000", "0000", "0000", "0000"], ["12", "00"]]
)
def test_boards_that_cannot_be_darkened_are_refused(rows):
    with pytest.raises(TaskError):
        LightsOutEnv().reset(options={"task": {"rows": rows}})


def test_arguments_out_of_range_are_refused():
    with pytest.raises(EnvArgumentError, match="size"):
        LightsOutEnv(size=10)
