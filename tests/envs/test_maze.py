import numpy as np
import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.puzzles.maze import MazeEnv, random_maze, shortest_ways


def test_between_any_two_rooms_there_is_exactly_one_way():
    # A connected graph without cycles has one edge less than places.
    for seed in range(20):
        grid = random_maze(np.random.default_rng(seed), 6)
        floor = {(r, c) for r, row in enumerate(grid) for c, cell in enumerate(row) if cell == "."}
        edges = sum(((r, c + 1) in floor) + ((r + 1, c) in floor) for r, c in floor)
        assert {(2 * r + 1, 2 * c + 1) for r in range(6) for c in range(6)} <= floor
        assert len(shortest_ways(["".join(row) for row in grid], (1, 1))) == len(floor)
        assert edges == len(floor) - 1


def test_shortest_ways_are_those_of_a_grid_worked_by_hand():
    rows = ["#####", "#...#", "#.#.#", "#...#", "#####"]
    ways = shortest_ways(rows, (1, 1))
    assert ways[(3, 3)] in (["down", "down", "right", "right"], ["right", "right", "down", "down"])
    assert len(ways[(1, 3)]) == 2
    assert (2, 2) not in ways


def test_the_goal_is_at_least_half_as_far_as_the_farthest_room():
    env = MazeEnv(size=5)
    for seed in range(30):
        env.reset(seed=seed)
        rows = env.task["rows"]
        start = next((r, row.index("A")) for r, row in enumerate(rows) if "A" in row)
        lengths = [len(way) for way in shortest_ways(rows, start).values()]
        assert 2 * len(env.plan()) >= max(lengths)
        assert len(env.plan()) <= env.max_turns // 2


@pytest.mark.parametrize(
    "rows",
    [
        None,
        ["###", "#A#", "###"],
        ["####", "#AG.", "####"],
        ["#####", "#A#G#", "#####"],
        ["####", "#AA#", "####"],
        ["#A##", "#.G#", "####"],
    ],
)
def test_mazes_that_cannot_be_played_are_refused(rows):
    with pytest.raises(TaskError):
        MazeEnv().reset(options={"task": {"rows": rows}})


def test_arguments_out_of_range_are_refused():
    with pytest.raises(EnvArgumentError, match="size"):
        MazeEnv(size=21)
