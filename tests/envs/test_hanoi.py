from collections import deque
from itertools import product

import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.puzzles.hanoi import TowerOfHanoiEnv, shortest_moves


def searched_distances(start):
    """Breadth-first search that knows the rules only."""
    steps, queue = {start: 0}, deque([start])
    while queue:
        pegs = queue.popleft()
        for disk, target in product(range(len(pegs)), range(3)):
            if any(pegs[smaller] in (pegs[disk], target) for smaller in range(disk)):
                continue
            after = (*pegs[:disk], target, *pegs[disk + 1 :])
            if after not in steps:
                steps[after] = steps[pegs] + 1
                queue.append(after)
    return steps


@pytest.mark.parametrize("disks", range(1, 9))
def test_a_whole_tower_needs_two_to_the_number_of_disks_less_one(disks):
    assert len(shortest_moves([0] * disks, [2] * disks)) == 2**disks - 1


def test_plans_between_all_arrangements_are_as_short_as_a_search_finds():
    for start in product(range(3), repeat=4):
        steps = searched_distances(start)
        assert len(steps) == 81
        for goal, distance in steps.items():
            assert len(shortest_moves(list(start), list(goal))) == distance


def start(**arguments):
    env = TowerOfHanoiEnv(**arguments)
    task = {"start": [0, 0, 1], "goal": [2, 2, 2]}
    return env, env.reset(options={"task": task})[0]


def test_arrangements_are_shown_from_bottom_to_top():
    _, observation = start()
    assert observation.endswith("A: -\nB: -\nC: 3 2 1\nDisks now:\nA: 2 1\nB: 3\nC: -")


@pytest.mark.parametrize("move", ["AC", "a->c", "A to C", "move A to C", "from a to c", "a > c"])
def test_moves_may_be_written_in_several_ways(move):
    env, _ = start()
    assert env.step(f"\\boxed{{{move}}}")[0].endswith("A: 2\nB: 3\nC: 1")


def test_moves_against_the_rules_are_refused():
    env, _ = start()
    assert env.step(r"\boxed{CA}")[0].startswith("The move CA is not allowed: there is no disk")
    assert env.step(r"\boxed{BA}")[0].startswith("The move BA is not allowed: a smaller disk")
    assert env.step(r"\boxed{AA}")[0].startswith("The move AA is not allowed: it names one peg")
    _, _, _, _, info = env.step(r"\boxed{AD}")
    assert (info["invalid"], info["moves_left"]) == (True, 29)


def test_a_solution_worked_by_hand_wins():
    env, _ = start()
    # Disks 1 and 2 stand on A, disk 3 on B: 1 and 2 stay, 3 moves, then the small tower follows.
    assert env.step(r"\boxed{BC, AB, AC, BC}")[1:3] == (1.0, True)
    env, _ = start()
    assert len(env.plan()) == 4


@pytest.mark.parametrize(
    "task",
    [
        {},
        {"start": [0, 0], "goal": [0, 0]},
        {"start": [0], "goal": [0, 1]},
        {"start": [3], "goal": [0]},
        {"start": [0] * 6, "goal": [2] * 6},
    ],
)
def test_tasks_that_cannot_be_played_are_refused(task):
    with pytest.raises(TaskError):
        TowerOfHanoiEnv().reset(options={"task": task})


def test_arguments_out_of_range_are_refused():
    with pytest.raises(EnvArgumentError, match="disks"):
        TowerOfHanoiEnv(disks=11)
