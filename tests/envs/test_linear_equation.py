from fractions import Fraction

import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.reasoning.linear_equation import UNKNOWNS, LinearEquationEnv

ONE = {"left": [[3, 5]], "right": [[-2, 7]]}
TWO = {"left": [[2, 1, 0], [1, -1, 0]], "right": [[0, 0, 7], [0, 0, 1]]}


def reward(task, answer):
    env = LinearEquationEnv()
    env.reset(options={"task": task})
    return env.step(f"\\boxed{{{answer}}}")[1]


def test_the_equation_is_written_as_in_a_book():
    env = LinearEquationEnv()
    observation, _ = env.reset(options={"task": ONE})
    assert observation == (r"Solve 3x + 5 = -2x + 7 for x. Give the exact value of x in \boxed{}.")
    # 5x = 2
    assert env.oracle_action() == r"\boxed{x = 2/5}"


def test_a_system_is_written_line_by_line_without_zero_terms():
    env = LinearEquationEnv()
    observation, _ = env.reset(options={"task": TWO})
    assert observation == (
        "Solve this system of equations.\n2x + y = 7\nx - y = 1\n"
        r"Give the exact values as \boxed{x = ..., y = ...}."
    )
    # The sum of both is 3x = 8, and y = x - 1.
    assert env.oracle_action() == r"\boxed{x = 8/3, y = 5/3}"


@pytest.mark.parametrize(
    ("task", "answer", "expected"),
    [
        (ONE, "2/5", 1.0),
        (ONE, "0.4", 1.0),
        (ONE, r"x = \frac{2}{5}", 1.0),
        (ONE, r"$x=\dfrac25$", 1.0),
        (ONE, "-2/5", 0.0),
        (ONE, "2/0", 0.0),
        (TWO, r"y = 5/3, x = \frac{8}{3}", 1.0),
        (TWO, "x=8/3; y=5/3", 1.0),
        (TWO, "(x = 8/3, y = 5/3)", 1.0),
        (TWO, "x = 8/3", 0.0),
        (TWO, "x = 5/3, y = 8/3", 0.0),
        (TWO, "x = 8/3, y = 5/3, y = 1", 0.0),
        (TWO, "8/3, 5/3", 0.0),
    ],
)
def test_every_unknown_needs_its_exact_value(task, answer, expected):
    assert reward(task, answer) == expected


@pytest.mark.parametrize("unknowns", [1, 2, 3, 4])
def test_the_oracles_values_fulfil_the_equations_that_are_shown(unknowns):
    env = LinearEquationEnv(unknowns=unknowns, max_coefficient=9)
    for seed in range(25):
        observation, _ = env.reset(seed=seed)
        pairs = env.task["answer"].split(", ")
        values = {pair[0]: Fraction(pair.partition(" = ")[2]) for pair in pairs}
        assert "".join(values) == UNKNOWNS[:unknowns]
        shown = observation.removeprefix("Solve ").partition(" for x")[0].splitlines()
        equations = shown if unknowns == 1 else shown[1:-1]
        assert len(equations) == unknowns
        for equation in equations:
            left, right = equation.split(" = ")
            assert _value(left, values) == _value(right, values)


def _value(side, values):
    total = Fraction(0)
    for term in side.replace("- ", "-").replace("+ ", "").split():
        number = term.rstrip(UNKNOWNS)
        name = term[len(number) :]
        factor = {"": 1, "-": -1}[number] if number in ("", "-") else int(number)
        total += factor * (values[name] if name else 1)
    return total


@pytest.mark.parametrize(
    "task",
    [
        {"left": [[1, 1, 0], [2, 2, 0]], "right": [[0, 0, 1], [0, 0, 2]]},
        {"left": [[1, 1, 0], [2, 2, 0]], "right": [[0, 0, 1], [0, 0, 3]]},
        {"left": [[4, 0]], "right": [[4, 0]]},
    ],
)
def test_equations_without_a_unique_solution_are_refused(task):
    with pytest.raises(TaskError, match="exactly one solution"):
        reward(task, "1")


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        ({}, "'left' must be a list"),
        ({"left": [[1, 2]], "right": []}, "'right' must be a list of 1 to 1"),
        ({"left": [[1]], "right": [[1, 2]]}, "must hold 2 integers"),
        ({"left": [[1, 2.5]], "right": [[0, 2]]}, "must hold 2 integers"),
        ({**ONE, "answer": "x = 1"}, "the answer 'x = 1' is not right"),
    ],
)
def test_given_tasks_are_checked(task, reason):
    with pytest.raises(TaskError, match=reason):
        reward(task, "1")


@pytest.mark.parametrize(
    "arguments", [{"unknowns": 0}, {"unknowns": 5}, {"max_coefficient": 1}, {"max_denominator": 13}]
)
def test_arguments_out_of_range_are_refused(arguments):
    with pytest.raises(EnvArgumentError, match=next(iter(arguments))):
        LinearEquationEnv(**arguments)
