from itertools import product

import numpy as np
import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.reasoning.knapsack import KnapsackEnv, best_choice

# Within 10: cup and hat (weight 9) are worth 17, map and pen (weight 10) too, any other pair less.
TASK = {
    "names": ["cup", "hat", "map", "pen"],
    "weights": [4, 5, 6, 4],
    "values": [8, 9, 10, 7],
    "capacity": 10,
}


def reward(task, answer):
    env = KnapsackEnv()
    env.reset(options={"task": task})
    return env.step(f"\\boxed{{{answer}}}")[1]


def test_the_question_lists_the_things():
    env = KnapsackEnv()
    assert env.reset(options={"task": {**TASK, "capacity": 9}})[0] == (
        "cup: weight 4, value 8\nhat: weight 5, value 9\nmap: weight 6, value 10\n"
        "pen: weight 4, value 7\nTake things with a total weight of at most 9 and the greatest "
        r"possible total value, each at most once. Give their names in \boxed{}, separated by "
        "commas."
    )
    assert env.oracle_action() == r"\boxed{cup, hat}"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("cup, map", 1.0),
        ("Map, the cup", 1.0),
        (r"\{\text{cup}, \text{map}\}", 1.0),
        ("cup, hat", 0.0),
        ("cup, hat, map", 0.0),
        ("cup", 0.0),
        ("cup, cup, map", 0.0),
        ("cup, hat, gold", 0.0),
        ("18", 0.0),
        ("", 0.0),
    ],
)
def test_only_a_best_choice_within_the_limit_is_right(answer, expected):
    # Cup and map weigh 10 and are worth 18; cup and hat 17.
    assert reward(TASK, answer) == expected


def test_every_best_choice_is_right():
    task = {"names": ["cup", "hat", "map"], "weights": [2, 2, 4], "values": [3, 3, 6],
            "capacity": 4}  # fmt: skip
    assert reward(task, "cup, hat") == 1.0
    assert reward(task, "map") == 1.0
    assert reward(task, "cup, map") == 0.0


def test_the_best_value_agrees_with_trying_all_choices():
    rng = np.random.default_rng(0)
    for _ in range(40):
        count = int(rng.integers(1, 9))
        weights = [int(w) for w in rng.integers(1, 12, count)]
        values = [int(v) for v in rng.integers(1, 30, count)]
        capacity = int(rng.integers(1, 40))
        best = 0
        for flags in product([0, 1], repeat=count):
            if sum(f * w for f, w in zip(flags, weights, strict=True)) <= capacity:
                best = max(best, sum(f * v for f, v in zip(flags, values, strict=True)))
        chosen = best_choice(weights, values, capacity)
        assert len({*chosen}) == len(chosen)
        assert sum(weights[place] for place in chosen) <= capacity
        assert sum(values[place] for place in chosen) == best


@pytest.mark.parametrize("num_items", [3, 6, 20])
def test_drawn_tasks_have_something_to_choose(num_items):
    env = KnapsackEnv(num_items=num_items)
    for seed in range(20):
        env.reset(seed=seed)
        task = env.task
        assert len(task["names"]) == num_items
        assert min(task["weights"]) <= task["capacity"] < sum(task["weights"])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"names": ["cup", "Cup", "map", "pen"]}, "distinct"),
        ({"weights": [1]}, "'weights' must be a list of 4 to 4"),
        ({"values": [0, 1, 1, 1]}, "integers from 1"),
        ({"capacity": 3}, "nothing fits"),
        ({"capacity": "10"}, "'capacity' must be an integer"),
        ({"answer": "cup"}, "is not right"),
    ],
)
def test_given_tasks_are_checked(changes, reason):
    with pytest.raises(TaskError, match=reason):
        reward({**TASK, **changes}, "1")


@pytest.mark.parametrize("arguments", [{"num_items": 2}, {"max_weight": 4}, {"max_value": 4}])
def test_arguments_out_of_range_are_refused(arguments):
    with pytest.raises(EnvArgumentError, match=next(iter(arguments))):
        KnapsackEnv(**arguments)
