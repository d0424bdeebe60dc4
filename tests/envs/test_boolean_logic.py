import re
from itertools import product

import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.reasoning.boolean_formulas import satisfying_values, write_formula
from rllm_envs.reasoning.boolean_logic import BooleanLogicEnv

EVALUATE = {
    "kind": "evaluate",
    "variables": ["A", "B"],
    "values": [True, False],
    "formulas": [["and", "A", ["not", "B"]], ["implies", "A", "B"], ["xor", "A", ["or", "A", "B"]]],
}
SATISFY = {"kind": "satisfy", "variables": ["A", "B"], "clauses": [[1, 2], [-1, 2], [-2, -1]]}


def reward(task, answer):
    env = BooleanLogicEnv()
    env.reset(options={"task": task})
    return env.step(f"\\boxed{{{answer}}}")[1]


def test_formulas_are_shown_in_words_and_evaluated():
    env = BooleanLogicEnv()
    observation, _ = env.reset(options={"task": EVALUATE})
    assert observation.startswith("A is true, B is false. Evaluate these formulas")
    assert "\n1. A and not B\n2. A implies B\n3. A xor (A or B)\n" in observation
    assert env.oracle_action() == r"\boxed{true, false, false}"


def test_clauses_are_shown_as_lines():
    env = BooleanLogicEnv()
    observation, _ = env.reset(options={"task": SATISFY})
    assert observation == (
        "Find values, true or false, that make all of these lines true.\n"
        "A or B\nnot A or B\nnot B or not A\n"
        r"Give them as \boxed{A = ..., B = ...}."
    )
    # B must be true by the first two, so A false.
    assert env.oracle_action() == r"\boxed{A = false, B = true}"


@pytest.mark.parametrize(
    ("task", "answer", "expected"),
    [
        (EVALUATE, "true, false, false", 1.0),
        (EVALUATE, "T F F", 1.0),
        (EVALUATE, r"\text{True}, \text{False}, \text{False}", 1.0),
        (EVALUATE, "1, 0, 0", 1.0),
        (EVALUATE, "true, true, false", 0.0),
        (EVALUATE, "true, false", 0.0),
        (EVALUATE, "yes, no, no", 0.0),
        (SATISFY, "A = false, B = true", 1.0),
        (SATISFY, "b: T; a: F", 1.0),
        (SATISFY, "A = true, B = true", 0.0),
        (SATISFY, "B = true", 0.0),
        (SATISFY, "A = false, B = true, C = true", 0.0),
        (SATISFY, "A = maybe, B = true", 0.0),
        (SATISFY, "", 0.0),
    ],
)
def test_answers_are_judged_by_their_truth(task, answer, expected):
    assert reward(task, answer) == expected


def test_every_satisfying_assignment_is_right_and_no_other():
    task = {"kind": "satisfy", "variables": ["A", "B", "C"], "clauses": [[1, 2], [-3, 2], [3, -1]]}
    for a, b, c in product([False, True], repeat=3):
        is_right = (a or b) and (not c or b) and (c or not a)
        assert reward(task, f"A = {a}, B = {b}, C = {c}") == float(is_right)


def _truth(text, values):
    """The truth of a formula as shown: innermost parentheses are replaced by their values."""
    words = {True: "yes", False: "no"}
    for name, value in values.items():
        text = re.sub(rf"\b{name}\b", words[value], text)
    while True:
        text = text.replace("not yes", "no").replace("not no", "yes") if (
            "not yes" in text or "not no" in text
        ) else text  # fmt: skip
        match = re.search(r"\((yes|no) (and|or|xor|implies) (yes|no)\)", text)
        if (
            match is None
            and (match := re.fullmatch(r"(yes|no) (and|or|xor|implies) (yes|no)", text)) is None
        ):
            if text in ("yes", "no"):
                return text == "yes"
            continue
        left, right = match[1] == "yes", match[3] == "yes"
        table = {"and": left and right, "or": left or right, "xor": left is not right,
                 "implies": right or not left}  # fmt: skip
        text = text[: match.start()] + words[table[match[2]]] + text[match.end() :]


@pytest.mark.parametrize("depth", [1, 3, 6])
def test_values_agree_with_reading_the_shown_formulas(depth):
    env = BooleanLogicEnv(kinds=["evaluate"], depth=depth)
    for seed in range(12):
        observation, _ = env.reset(seed=seed)
        values = {
            name: value == "true" for name, value in re.findall(r"\b([A-J]) is (true|false)",
                                                                observation.partition(".")[0])
        }  # fmt: skip
        shown = re.findall(r"^\d\. (.*)$", observation, re.MULTILINE)
        expected = [str(_truth(text, values)).lower() for text in shown]
        assert env.task["answer"] == ", ".join(expected)


@pytest.mark.parametrize("num_variables", [3, 5, 10])
def test_drawn_clauses_have_three_variables_and_can_be_fulfilled(num_variables):
    env = BooleanLogicEnv(kinds=["satisfy"], num_variables=num_variables, split="all")
    for seed in range(8):
        env.reset(seed=seed)
        clauses = env.task["clauses"]
        assert all(len({abs(n) for n in clause}) == 3 for clause in clauses)
        assert len(clauses) == (7 if num_variables == 3 else 4 * num_variables)
        assert env.step(env.oracle_action())[1] == 1.0


def test_contradictory_clauses_have_no_values():
    assert satisfying_values([[1], [-1]], 1) is None
    assert satisfying_values([[1, 2], [-1, 2], [1, -2], [-1, -2]], 2) is None
    assert write_formula(["not", ["or", "A", "B"]]) == "not (A or B)"


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        ({}, "'kind' must be one of satisfy, evaluate"),
        ({**SATISFY, "clauses": [[1], [-1]]}, "no assignment"),
        ({**SATISFY, "clauses": [[3]]}, "integers from -2 to 2"),
        ({**SATISFY, "clauses": [[0]]}, "variables from 1"),
        ({**SATISFY, "clauses": [1]}, "'clauses' must be a list"),
        ({**EVALUATE, "values": [1, 0]}, "true and false"),
        ({**EVALUATE, "formulas": ["C"]}, "'formulas' must hold"),
        ({**EVALUATE, "formulas": [["nand", "A", "B"]]}, "'formulas' must hold"),
        ({**EVALUATE, "formulas": [[["not"], "A"]]}, "'formulas' must hold"),
        ({**EVALUATE, "answer": "true, true, true"}, "is not right"),
    ],
)
def test_given_tasks_are_checked(task, reason):
    with pytest.raises(TaskError, match=reason):
        reward(task, "1")


@pytest.mark.parametrize("arguments", [{"kinds": ["x"]}, {"num_variables": 2}, {"depth": 7}])
def test_arguments_out_of_range_are_refused(arguments):
    with pytest.raises(EnvArgumentError, match=next(iter(arguments))):
        BooleanLogicEnv(**arguments)
