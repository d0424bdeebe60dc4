import itertools

import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.reasoning.sorting import ORDERS, SortingEnv, sorted_items


def reward(task, answer):
    env = SortingEnv()
    env.reset(options={"task": task})
    return env.step(f"\\boxed{{{answer}}}")[1]


@pytest.mark.parametrize(
    ("order", "items", "expected"),
    [
        ("ascending", [30, 4, 100, 4], [4, 4, 30, 100]),
        ("descending", [30, 4, 100, -4], [100, 30, 4, -4]),
        # Digit sums 1, 3, 3 and 10.
        ("digit_sum", [28, 30, 100, 12], [100, 12, 30, 28]),
        ("alphabetical", ["pear", "Apple", "fig"], ["Apple", "fig", "pear"]),
        ("reverse_alphabetical", ["pear", "apple", "fig"], ["pear", "fig", "apple"]),
        ("length", ["pear", "apple", "fig", "kiwi"], ["fig", "kiwi", "pear", "apple"]),
        ("last_letter", ["pear", "apple", "fig", "lime"], ["apple", "lime", "fig", "pear"]),
    ],
)
def test_each_order_on_a_small_list(order, items, expected):
    assert sorted_items(order, items) == expected
    assert reward({"order": order, "items": items}, ", ".join(map(str, expected))) == 1.0


def test_the_question_names_the_order():
    env = SortingEnv()
    task = {"order": "ascending", "items": [5, 3, 8]}
    assert env.reset(options={"task": task})[0] == (
        "Sort these numbers from the smallest to the largest. "
        "Give the sorted list in \\boxed{}.\n5, 3, 8"
    )


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        *[("3, 5, 8", 1.0), ("[3, 5, 8]", 1.0), ("3 5 8", 1.0), (r"\{3,5,8\}", 1.0)],
        *[("8, 5, 3", 0.0), ("3, 5", 0.0), ("3, 5, 8, 8", 0.0), ("", 0.0), ("3, five, 8", 0.0)],
    ],
)
def test_only_the_whole_sorted_list_is_right(answer, expected):
    assert reward({"order": "ascending", "items": [5, 3, 8]}, answer) == expected


def test_words_may_be_written_with_quotes_and_spaces():
    task = {"order": "alphabetical", "items": ["pear", "fig"]}
    assert reward(task, '["fig", "pear"]') == 1.0
    assert reward(task, "Fig Pear") == 1.0
    assert reward(task, "pear, fig") == 0.0


def _key(order, item):
    if order == "digit_sum":
        total, rest = 0, item
        while rest:
            rest, digit = divmod(rest, 10)
            total += digit
        return (total, item)
    return {"length": lambda: (len(item), item), "last_letter": lambda: (item[::-1][0], item)}.get(
        order, lambda: item
    )()


@pytest.mark.parametrize("order", list(ORDERS))
def test_neighbours_are_in_order_and_nothing_is_lost(order):
    env = SortingEnv(orders=[order], num_items=12)
    for seed in range(15):
        env.reset(seed=seed)
        task = env.task
        assert len(task["items"]) == 12
        result = task["answer"].split(", ")
        assert sorted(result) == sorted(map(str, task["items"]))
        keys = [_key(order, type(task["items"][0])(item)) for item in result]
        if order in ("descending", "reverse_alphabetical"):
            keys.reverse()
        assert all(a <= b for a, b in itertools.pairwise(keys))


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        ({"order": "random", "items": [1, 2]}, "'order' must be one of"),
        ({"order": "ascending", "items": ["a", "b"]}, "'items' must hold integers"),
        ({"order": "digit_sum", "items": [-1, 2]}, "integers from 0"),
        ({"order": "length", "items": [1, 2]}, "'items' must hold words"),
        ({"order": "ascending", "items": [2, 1], "answer": "2, 1"}, "is not right"),
    ],
)
def test_given_tasks_are_checked(task, reason):
    with pytest.raises(TaskError, match=reason):
        reward(task, "1")


@pytest.mark.parametrize("arguments", [{"orders": ["x"]}, {"num_items": 2}, {"max_number": 9}])
def test_arguments_out_of_range_are_refused(arguments):
    with pytest.raises(EnvArgumentError, match=next(iter(arguments))):
        SortingEnv(**arguments)
