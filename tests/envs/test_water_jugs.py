from itertools import product
from math import gcd

import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.puzzles.water_jugs import WaterJugsEnv, after_move, all_moves, fewest_moves

TASK = {"sizes": [3, 5], "amount": 4}


def start(**arguments):
    env = WaterJugsEnv(**arguments)
    return env, env.reset(options={"task": TASK})[0]


def test_moves_change_the_jugs_as_worked_by_hand():
    assert after_move((3, 5), (0, 0), ("fill", 1, -1)) == (0, 5)
    assert after_move((3, 5), (0, 5), ("pour", 1, 0)) == (3, 2)
    assert after_move((3, 5), (3, 4), ("pour", 0, 1)) == (2, 5)
    assert after_move((3, 5), (3, 2), ("empty", 0, -1)) == (0, 2)
    assert (len(all_moves(2)), len(all_moves(3))) == (6, 12)


def test_the_known_task_of_three_and_five_needs_six_moves():
    plan = fewest_moves((3, 5), (0, 0), 4)
    assert plan is not None
    assert len(plan) == 6


def test_an_amount_can_be_measured_iff_the_common_divisor_divides_it():
    for one, other in product(range(2, 10), repeat=2):
        for amount in range(1, max(one, other) + 1):
            is_possible = fewest_moves((one, other), (0, 0), amount) is not None
            assert is_possible == (amount % gcd(one, other) == 0)


def test_plans_are_as_short_as_trying_all_lists_of_moves():
    moves, sizes = all_moves(2), (3, 7)
    states, length, fewest = {(0, 0)}, 0, {}
    while len(fewest) < 7:
        for state in states:
            for amount in state:
                fewest.setdefault(amount, length)
        states = {after_move(sizes, state, move) for state in states for move in moves}
        length += 1
    for amount in range(1, 8):
        plan = fewest_moves(sizes, (0, 0), amount)
        if amount in fewest:
            assert plan is not None
            assert len(plan) == fewest[amount]


def test_moves_may_be_written_in_several_ways():
    env, observation = start()
    assert observation.endswith("A: 0 of 3 | B: 0 of 5")
    assert env.step(r"\boxed{Fill B; pour B into A}")[0] == "A: 3 of 3 | B: 2 of 5"
    assert env.step(r"\boxed{empty jug A and pour B->A then fill B}")[0] == "A: 2 of 3 | B: 5 of 5"
    assert env.step(r"\boxed{pour B A}")[1:3] == (1.0, True)


@pytest.mark.parametrize(
    "action", ["", r"\boxed{fill}", r"\boxed{fill C}", r"\boxed{pour A}", r"\boxed{pour A A}",
               r"\boxed{fill A B}", r"\boxed{drink A}"]
)  # fmt: skip
def test_other_text_gets_a_hint_and_moves_nothing(action):
    env, _ = start()
    observation, _, _, _, info = env.step(action)
    assert (observation, info["invalid"], info["moves_left"]) == (env.hint, True, 30)


def test_drawn_tasks_need_at_least_the_asked_moves():
    env = WaterJugsEnv(jugs=2, min_moves=5)
    for seed in range(20):
        env.reset(seed=seed)
        assert 5 <= len(env.plan()) <= 30


@pytest.mark.parametrize(
    "task",
    [
        {},
        {"sizes": [2, 4], "amount": 3},
        {"sizes": [3], "amount": 3},
        {"sizes": [3, 5], "amount": 6},
        {"sizes": [0, 5], "amount": 5},
        {"sizes": [3, 5, 31], "amount": 1},
    ],
)
def test_amounts_that_cannot_be_measured_are_refused(task):
    with pytest.raises(TaskError):
        WaterJugsEnv().reset(options={"task": task})


def test_arguments_out_of_range_are_refused():
    with pytest.raises(EnvArgumentError, match="jugs"):
        WaterJugsEnv(jugs=4)
    with pytest.raises(EnvArgumentError, match="widen them"):
        WaterJugsEnv(jugs=2, max_size=5, min_moves=12).reset(seed=0)
