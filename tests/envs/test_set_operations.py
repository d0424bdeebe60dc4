import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.reasoning.set_operations import SetOperationsEnv, evaluate_sets

SETS = {"A": [1, 2, 3], "B": [2, 3, 4], "C": [3, 9]}
TASK = {"sets": SETS, "expression": ["minus", ["union", "A", "B"], "C"]}


def reward(task, answer):
    env = SetOperationsEnv()
    env.reset(options={"task": task})
    return env.step(f"\\boxed{{{answer}}}")[1]


def test_the_question_shows_sets_and_expression():
    env = SetOperationsEnv()
    assert env.reset(options={"task": TASK})[0] == (
        "A = {1, 2, 3}\nB = {2, 3, 4}\nC = {3, 9}\n"
        "What are the elements of (A union B) minus C? X minus Y holds what is in X but not in Y; "
        "X symdiff Y what is in exactly one of them. Give the elements in \\boxed{}, separated by "
        "commas."
    )
    assert env.oracle_action() == r"\boxed{1, 2, 4}"


@pytest.mark.parametrize(
    ("expression", "elements"),
    [
        ("A", {1, 2, 3}),
        (["union", "A", "B"], {1, 2, 3, 4}),
        (["intersect", "A", "B"], {2, 3}),
        (["minus", "A", "B"], {1}),
        (["symdiff", "A", "B"], {1, 4}),
        (["symdiff", ["minus", "A", "B"], "C"], {1, 3, 9}),
    ],
)
def test_each_operator(expression, elements):
    assert evaluate_sets(expression, SETS) == elements


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        *[("1, 2, 4", 1.0), ("4, 2, 1", 1.0), (r"\{1, 2, 4\}", 1.0), ("{1,2,4}", 1.0)],
        *[("1, 2, 3, 4", 0.0), ("1, 2", 0.0), ("", 0.0), ("empty", 0.0), ("1, 2, x", 0.0)],
    ],
)
def test_exactly_the_elements_are_right_in_any_order(answer, expected):
    assert reward(TASK, answer) == expected


@pytest.mark.parametrize("answer", ["empty", r"\emptyset", "∅", "{}", r"\{\}", "the empty set"])
def test_the_empty_set_may_be_written_in_many_ways(answer):
    task = {"sets": SETS, "expression": ["minus", "A", "A"]}
    assert reward(task, answer) == 1.0
    assert reward(task, "0") == 0.0


def _holds(expression, element, sets):
    """Whether an element belongs to the result, decided for that element alone."""
    if isinstance(expression, str):
        return element in sets[expression]
    left, right = (_holds(part, element, sets) for part in expression[1:])
    return {"union": left or right, "intersect": left and right, "minus": left and not right,
            "symdiff": left is not right}[expression[0]]  # fmt: skip


@pytest.mark.parametrize(("num_sets", "depth"), [(2, 1), (3, 2), (6, 5)])
def test_answers_agree_with_asking_for_each_element(num_sets, depth):
    env = SetOperationsEnv(num_sets=num_sets, depth=depth)
    for seed in range(20):
        env.reset(seed=seed)
        task = env.task
        assert len(task["sets"]) == num_sets
        expected = [n for n in range(100) if _holds(task["expression"], n, task["sets"])]
        assert len(expected) >= 2
        assert task["answer"] == ", ".join(map(str, expected))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"sets": {"X": [1]}}, "'sets' must hold lists under names of ABCDEF"),
        ({"sets": {"A": [1.5]}}, "'A' must hold integers"),
        ({"expression": "D"}, "'expression' must be"),
        ({"expression": ["plus", "A", "B"]}, "'expression' must be"),
        ({"expression": [[], "A", "B"]}, "'expression' must be"),
        ({"answer": "1"}, "is not right"),
    ],
)
def test_given_tasks_are_checked(changes, reason):
    with pytest.raises(TaskError, match=reason):
        reward({**TASK, **changes}, "1")


@pytest.mark.parametrize("arguments", [{"num_sets": 1}, {"size": 2}, {"depth": 6}])
def test_arguments_out_of_range_are_refused(arguments):
    with pytest.raises(EnvArgumentError, match=next(iter(arguments))):
        SetOperationsEnv(**arguments)
