import re

import gymnasium
import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.reasoning.arithmetic import ArithmeticEnv


def test_the_question_is_one_short_sentence():
    env = ArithmeticEnv()
    observation, _ = env.reset(options={"task": {"expression": "512 + 389"}})
    assert observation == r"What is 512 + 389? Give the answer in \boxed{}."
    assert env.oracle_action() == r"\boxed{901}"


@pytest.mark.parametrize(
    ("action", "reward"),
    [
        (r"\boxed{901}", 1.0),
        (r"\boxed{ 901 }", 1.0),
        (r"\boxed{901.0}", 1.0),
        (r"\boxed{\frac{1802}{2}}", 1.0),
        (r"<think>\boxed{1}</think>\boxed{901}", 1.0),
        (r"\boxed{902}", 0.0),
        (r"\boxed{900 + 1}", 0.0),
        (r"\boxed{901, 902}", 0.0),
        (r"\boxed{900 = 901}", 0.0),
        (r"\boxed{}", 0.0),
        ("901", 0.0),
    ],
)
def test_only_the_exact_value_in_a_box_earns_a_reward(action, reward):
    env = ArithmeticEnv()
    env.reset(options={"task": {"expression": "512 + 389", "answer": "901"}})
    assert env.step(action)[1] == reward


@pytest.mark.parametrize(
    ("arguments", "pattern"),
    [
        ({}, r"What is \d{3} [-+] \d{3}\? "),
        ({"digits": 1, "operators": "*"}, r"What is [1-9] \* [1-9]\? "),
        ({"digits": 2, "num_terms": 4, "operators": "+"}, r"What is \d\d( \+ \d\d){3}\? "),
    ],
)
def test_arguments_shape_the_expression_and_the_answer_is_its_value(arguments, pattern):
    env = gymnasium.make("rllm/Arithmetic-v0", split="all", **arguments)
    for seed in range(30):
        observation, _ = env.reset(seed=seed)
        assert re.match(pattern, observation)
        expression = observation.removeprefix("What is ").partition("?")[0]
        assert re.fullmatch(r"[\d+* -]+", expression)
        assert env.unwrapped.oracle_action() == f"\\boxed{{{_value(expression)}}}"


def _value(expression: str) -> int:
    total = 0
    for term in expression.replace("- ", "+ -").split(" + "):
        product = 1
        for factor in term.split(" * "):
            product *= int(factor)
        total += product
    return total


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"digits": 0}, "from 1 to 9, got 0"),
        ({"digits": True}, "got True"),
        ({"operators": "+/"}, r"'\+-\*', got '\+/'"),
        ({"operators": ""}, "got ''"),
        ({"num_terms": 9}, "from 2 to 8, got 9"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, reason):
    with pytest.raises(EnvArgumentError, match=reason):
        ArithmeticEnv(**arguments)


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        ({}, "needs the text 'expression'"),
        ({"expression": 3}, "needs the text 'expression'"),
        ({"expression": "1 +"}, "incomplete"),
        ({"expression": "1 / 2"}, "no integer value"),
        ({"expression": "9^9^9"}, "exponent"),
        ({"expression": "1 + 1", "answer": "3"}, "is 2, not '3'"),
    ],
)
def test_given_tasks_are_checked(task, reason):
    with pytest.raises(TaskError, match=reason):
        ArithmeticEnv().reset(options={"task": task})
