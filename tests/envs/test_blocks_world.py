from collections import deque

import numpy as np
import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.puzzles.blocks_world import (
    BlocksWorldEnv,
    move_block,
    random_stacks,
    stacking_moves,
)


def fewest_moves(start):
    """Distances to all sets of stacks, by breadth-first search over the rules."""
    first = tuple(sorted(start))
    steps, queue = {first: 0}, deque([first])
    while queue:
        stacks = queue.popleft()
        tops = [stack[-1] for stack in stacks]
        for block in tops:
            for target in [*(top for top in tops if top != block), "table"]:
                after = tuple(sorted(move_block(list(stacks), block, target)))
                if after not in steps:
                    steps[after] = steps[stacks] + 1
                    queue.append(after)
    return steps


def play(stacks, moves):
    for move in moves:
        block, target = move.split()
        tops = [stack[-1] for stack in stacks]
        assert block in tops
        assert target == "table" or target in tops
        stacks = move_block(stacks, block, target)
    return sorted(stacks)


def test_moving_a_block_by_hand():
    assert sorted(move_block(["AB", "C"], "B", "C")) == ["A", "CB"]
    assert sorted(move_block(["AB", "C"], "B", "table")) == ["A", "B", "C"]
    assert sorted(move_block(["AB", "C"], "C", "B")) == ["ABC"]


def test_there_are_73_sets_of_stacks_of_four_blocks():
    assert len(fewest_moves(["ABCD"])) == 73


def test_plans_reach_the_goal_in_at_most_twice_the_fewest_moves():
    total = fewest = 0
    for start in (["ABCD"], ["AB", "CD"], ["A", "B", "DC"], ["DCBA"]):
        for goal, distance in fewest_moves(start).items():
            moves = stacking_moves(start, list(goal))
            assert play(start, moves) == sorted(goal)
            assert distance <= len(moves) <= 2 * distance
            total, fewest = total + len(moves), fewest + distance
    # On average the plans are within a tenth of the fewest moves.
    assert total <= 1.1 * fewest


def test_plans_of_many_blocks_move_none_more_than_twice():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        start, goal = random_stacks(rng, 15), random_stacks(rng, 15)
        moves = stacking_moves(start, goal)
        assert play(start, moves) == sorted(goal)
        blocks = [move.split()[0] for move in moves]
        assert max(map(blocks.count, blocks)) <= 2


def start(**arguments):
    env = BlocksWorldEnv(**arguments)
    task = {"start": ["AB", "C"], "goal": ["CBA"]}
    return env, env.reset(options={"task": task})[0]


def test_stacks_are_shown_from_bottom_to_top():
    _, observation = start()
    assert observation.endswith("Goal: C B A\nStacks: A B | C")


@pytest.mark.parametrize("move", ["B on C", "b onto c", "move block B to C", "put b on block c"])
def test_moves_may_be_written_in_several_ways(move):
    env, _ = start()
    assert env.step(f"\\boxed{{{move}}}")[0] == "Stacks: A | C B"


def test_a_solution_wins_and_impossible_moves_are_told():
    env, _ = start()
    assert env.step(r"\boxed{A on C}")[0].startswith("Something stands on block A.")
    assert env.step(r"\boxed{D on C}")[0].startswith("There is no block D.")
    assert env.step(r"\boxed{C on A}")[0].startswith("Something stands on block A.")
    assert env.step(r"\boxed{C on C}")[0].startswith("Block C cannot stand on itself.")
    assert env.step(r"\boxed{C under A}")[4]["invalid"] is True
    assert env.step(r"\boxed{B on C, A on B}")[1:3] == (1.0, True)


@pytest.mark.parametrize(
    "task",
    [
        {},
        {"start": ["AB"], "goal": ["AB"]},
        {"start": ["AB"], "goal": ["AC"]},
        {"start": ["AA"], "goal": ["AB"]},
        {"start": ["ab"], "goal": ["ba"]},
        {"start": ["AB", ""], "goal": ["BA"]},
        {"start": "AB", "goal": ["BA"]},
    ],
)
def test_stacks_that_cannot_be_played_are_refused(task):
    with pytest.raises(TaskError):
        BlocksWorldEnv().reset(options={"task": task})


def test_arguments_out_of_range_are_refused():
    with pytest.raises(EnvArgumentError, match="blocks"):
        BlocksWorldEnv(blocks=21)
