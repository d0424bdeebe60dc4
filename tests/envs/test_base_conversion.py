import numpy as np
import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.reasoning.base_conversion import BaseConversionEnv, in_base

TASK = {"digits": "1f", "from_base": 16, "to_base": 2}


def reward(task, answer):
    env = BaseConversionEnv()
    env.reset(options={"task": task})
    return env.step(f"\\boxed{{{answer}}}")[1]


def test_the_question_names_both_bases():
    env = BaseConversionEnv()
    assert env.reset(options={"task": TASK})[0] == (
        "The number 1f is written in base 16. Write it in base 2. Digits above 9 are the letters a "
        r"to f. Give the digits in \boxed{}."
    )
    assert env.oracle_action() == r"\boxed{11111}"


@pytest.mark.parametrize(
    ("task", "answer", "expected"),
    [
        (TASK, "11111", 1.0),
        (TASK, "0b11111", 1.0),
        (TASK, "11111_2", 1.0),
        (TASK, "11111_{2}", 1.0),
        (TASK, "(11111)_2", 1.0),
        (TASK, "0001 1111", 1.0),
        (TASK, "11111_{10}", 0.0),
        (TASK, "31", 0.0),
        (TASK, "", 0.0),
        ({"digits": "254", "from_base": 10, "to_base": 16}, "FE", 1.0),
        ({"digits": "254", "from_base": 10, "to_base": 16}, "0xfe", 1.0),
        ({"digits": "254", "from_base": 10, "to_base": 16}, r"\text{FE}_{16}", 1.0),
        # In base 16, 0b1 is a number of its own: 177.
        ({"digits": "177", "from_base": 10, "to_base": 16}, "b1", 1.0),
        ({"digits": "1", "from_base": 10, "to_base": 16}, "0b1", 0.0),
        ({"digits": "0", "from_base": 10, "to_base": 3}, "0", 1.0),
    ],
)
def test_digits_may_be_written_in_the_usual_ways(task, answer, expected):
    assert reward(task, answer) == expected


def test_digits_agree_with_numpy_and_with_place_values():
    for base in range(2, 37):
        for number in (0, 1, base - 1, base, 999, 123_456):
            digits = in_base(number, base)
            assert digits.upper() == np.base_repr(number, base)
            total = 0
            for digit in digits:
                total = total * base + "0123456789abcdefghijklmnopqrstuvwxyz".index(digit)
            assert total == number


def test_drawn_tasks_keep_to_the_arguments():
    env = BaseConversionEnv(max_base=10, max_number=100)
    for seed in range(40):
        env.reset(seed=seed)
        task = env.task
        assert min(task["from_base"], task["to_base"]) >= 2
        assert max(task["from_base"], task["to_base"]) <= 10
        assert task["from_base"] != task["to_base"]
        assert (
            np.base_repr(int(task["digits"], task["from_base"]), task["to_base"]) == task["answer"]
        )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"from_base": 37}, "'from_base' must be an integer from 2 to 36"),
        ({"to_base": "2"}, "'to_base'"),
        ({"digits": "1g"}, "'digits' must be"),
        ({"digits": ""}, "'digits' must be"),
        ({"digits": 15}, "'digits' must be"),
        ({"answer": "11110"}, "is not right; '11111' is"),
    ],
)
def test_given_tasks_are_checked(changes, reason):
    with pytest.raises(TaskError, match=reason):
        reward({**TASK, **changes}, "1")


@pytest.mark.parametrize("arguments", [{"max_base": 9}, {"max_number": 99}])
def test_arguments_out_of_range_are_refused(arguments):
    with pytest.raises(EnvArgumentError, match=next(iter(arguments))):
        BaseConversionEnv(**arguments)
