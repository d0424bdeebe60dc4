import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.reasoning.number_theory import KINDS, NumberTheoryEnv, prime_factors


def reward(task, answer):
    env = NumberTheoryEnv()
    env.reset(options={"task": task})
    return env.step(f"\\boxed{{{answer}}}")[1]


def _divisors(number):
    return {d for d in range(1, number + 1) if number % d == 0}


def _by_counting(kind, numbers):
    first = numbers[0]
    if kind == "gcd":
        return max(_divisors(first) & _divisors(numbers[1]))
    if kind == "lcm":
        return next(m for m in range(first, first * numbers[1] + 1, first) if m % numbers[1] == 0)
    if kind == "modular_power":
        result = 1
        for _ in range(numbers[1]):
            result = result * first % numbers[2]
        return result
    if kind == "divisor_count":
        return len(_divisors(first))
    return sum(len(_divisors(k) & _divisors(first)) == 1 for k in range(1, first + 1))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "prime_factors"])
def test_answers_agree_with_counting(kind):
    env = NumberTheoryEnv(kinds=[kind], max_number=200)
    for seed in range(15):
        env.reset(seed=seed)
        task = env.task
        assert task["kind"] == kind
        assert task["answer"] == str(_by_counting(kind, task["numbers"]))


def test_prime_factors_multiply_to_the_number_and_are_prime():
    for number in range(2, 500):
        factors = prime_factors(number)
        product = 1
        for factor in factors:
            product *= factor
            assert _divisors(factor) == {1, factor}
        assert product == number
        assert factors == sorted(factors)


@pytest.mark.parametrize(
    ("kind", "numbers", "question", "answer"),
    [
        ("gcd", [24, 36], "What is the greatest common divisor of 24 and 36?", "12"),
        ("lcm", [4, 6], "What is the least common multiple of 4 and 6?", "12"),
        ("modular_power", [3, 4, 7], "What is the remainder when 3^4 is divided by 7?", "4"),
        ("divisor_count", [28], "How many positive divisors does 28 have?", "6"),
    ],
)
def test_questions_and_answers_worked_by_hand(kind, numbers, question, answer):
    env = NumberTheoryEnv()
    observation, _ = env.reset(options={"task": {"kind": kind, "numbers": numbers}})
    assert observation == f"{question} Give the answer in \\boxed{{}}."
    assert env.oracle_action() == f"\\boxed{{{answer}}}"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("2^3 * 7", 1.0),
        ("7*2^3", 1.0),
        ("2**3 * 7", 1.0),
        (r"2^{3} \cdot 7", 1.0),
        (r"$2 \times 2 \times 2 \times 7$", 1.0),
        ("2, 2, 2, 7", 1.0),
        ("56 = 2^3 * 7", 1.0),
        ("8 * 7", 0.0),
        ("56", 0.0),
        ("2 * 7", 0.0),
        ("2^3 * 7 * 1", 0.0),
        ("2^999 * 7", 0.0),
        ("2^9999999 * 7", 0.0),
        ("*", 0.0),
    ],
)
def test_a_factorisation_may_be_written_in_many_ways_but_must_be_complete(answer, expected):
    assert reward({"kind": "prime_factors", "numbers": [56]}, answer) == expected


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        ({}, "'kind' must be one of gcd"),
        ({"kind": "gcd", "numbers": [4]}, "list of 2 to 2 items"),
        ({"kind": "totient", "numbers": [1]}, "integers from 2"),
        ({"kind": "gcd", "numbers": [4, 6], "answer": "3"}, "'3' is not right; '2' is"),
    ],
)
def test_given_tasks_are_checked(task, reason):
    with pytest.raises(TaskError, match=reason):
        reward(task, "1")


@pytest.mark.parametrize(
    "arguments", [{"kinds": []}, {"kinds": ["sum"]}, {"kinds": "gcd"}, {"max_number": 99}]
)
def test_arguments_out_of_range_are_refused(arguments):
    with pytest.raises(EnvArgumentError, match=next(iter(arguments))):
        NumberTheoryEnv(**arguments)
