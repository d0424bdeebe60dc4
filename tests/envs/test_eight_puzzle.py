from collections import deque

import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.puzzles.eight_puzzle import (
    GOAL,
    EightPuzzleEnv,
    is_solvable,
    movable_tiles,
    shortest_slides,
    slide,
)


@pytest.fixture(scope="module")
def distances():
    """Fewest slides of all arrangements up to 14 slides away, by breadth-first search."""
    steps, queue = {GOAL: 0}, deque([GOAL])
    while queue:
        tiles = queue.popleft()
        if steps[tiles] == 14:
            continue
        for tile in movable_tiles(tiles):
            after = slide(tiles, tile)
            if after not in steps:
                steps[after] = steps[tiles] + 1
                queue.append(after)
    return steps


def test_plans_are_as_short_as_a_search_finds(distances):
    for tiles in list(distances)[::40]:
        plan = shortest_slides(tiles)
        assert len(plan) == distances[tiles]
        for tile in plan:
            assert tile in movable_tiles(tiles)
            tiles = slide(tiles, tile)
        assert tiles == GOAL


def test_arrangements_that_slides_reach_are_solvable_and_exchanged_tiles_are_not(distances):
    for tiles in list(distances)[::40]:
        assert is_solvable(tiles)
        swapped = tuple({1: 2, 2: 1}.get(tile, tile) for tile in tiles)
        assert not is_solvable(swapped)


def test_one_of_the_hardest_arrangements_needs_31_slides():
    assert len(shortest_slides((8, 6, 7, 2, 5, 4, 3, 0, 1))) == 31


def start(**arguments):
    env = EightPuzzleEnv(**arguments)
    task = {"tiles": [1, 2, 3, 4, 0, 6, 7, 5, 8]}
    return env, env.reset(options={"task": task})[0]


def test_named_tiles_slide_into_the_empty_place():
    env, observation = start()
    assert observation.endswith("1 2 3\n4 _ 6\n7 5 8")
    assert env.step(r"\boxed{5}")[0] == "1 2 3\n4 5 6\n7 _ 8"
    assert env.step(r"\boxed{8}")[1:3] == (1.0, True)


def test_tiles_away_from_the_empty_place_cannot_slide():
    env, _ = start()
    observation, _, _, _, info = env.step(r"\boxed{1, 5}")
    assert observation.startswith("Tile 1 cannot slide")
    assert observation.endswith("4 _ 6\n7 5 8")
    assert (info["invalid"], info["moves_left"]) == (False, 23)
    assert env.step(r"\boxed{9}")[4]["invalid"] is True
    assert env.step(r"\boxed{0}")[4]["invalid"] is True


@pytest.mark.parametrize(
    "tiles",
    [None, [1, 2, 3], list(GOAL), [1, 2, 3, 4, 5, 6, 8, 7, 0], [1] * 9, [True, *GOAL[1:]]],
)
def test_tiles_that_cannot_be_ordered_are_refused(tiles):
    with pytest.raises(TaskError):
        EightPuzzleEnv().reset(options={"task": {"tiles": tiles}})


def test_arguments_out_of_range_are_refused():
    with pytest.raises(EnvArgumentError, match="scramble"):
        EightPuzzleEnv(scramble=0)
