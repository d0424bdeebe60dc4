import re
from itertools import permutations

import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.reasoning.cryptarithm import CryptarithmEnv, solutions

SEND = {"addends": ["SEND", "MORE"], "total": "MONEY"}
# AB + A = CDD: AB + A is at least 100, so A = 9, B >= 1, C = 1, D = 0, and so B = 1 is C; with
# B + 9 = 10 the last digit is 0. There B would be C, so there is no solution.
NONE = {"addends": ["AB", "A"], "total": "CDD"}


def reward(task, answer):
    env = CryptarithmEnv()
    env.reset(options={"task": task})
    return env.step(f"\\boxed{{{answer}}}")[1]


def test_send_more_money_has_its_well_known_solution():
    # 9567 + 1085 = 10652
    env = CryptarithmEnv()
    observation, _ = env.reset(options={"task": SEND})
    assert observation == (
        "SEND + MORE = MONEY\nEach letter stands for one digit, different letters for different "
        "digits, and no number begins with 0. Which digits make this right? Answer as "
        r"\boxed{S=..., E=..., N=..., D=..., M=..., O=..., R=..., Y=...}."
    )
    assert env.oracle_action() == r"\boxed{S=9, E=5, N=6, D=7, M=1, O=0, R=8, Y=2}"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("S=9, E=5, N=6, D=7, M=1, O=0, R=8, Y=2", 1.0),
        ("y: 2; r: 8; o: 0; m: 1; d: 7; n: 6; e: 5; s: 9", 1.0),
        ("S=9, E=5, N=6, D=7, M=1, O=0, R=8", 0.0),
        ("S=9, E=5, N=6, D=7, M=1, O=0, R=8, Y=3", 0.0),
        ("9567 + 1085 = 10652", 0.0),
        ("", 0.0),
    ],
)
def test_every_letter_needs_its_digit(answer, expected):
    assert reward(SEND, answer) == expected


def _by_trying(addends, total):
    letters = sorted({*"".join([*addends, total])})
    found = []
    for digits in permutations("0123456789", len(letters)):
        table = str.maketrans(dict(zip(letters, digits, strict=True)))
        words = [word.translate(table) for word in (*addends, total)]
        if all(word[0] != "0" for word in words) and sum(map(int, words[:-1])) == int(words[-1]):
            found.append({a: int(b) for a, b in zip(letters, digits, strict=True)})
    return found


@pytest.mark.parametrize(
    ("addends", "total"),
    [(["AA", "A"], "BC"), (["AB", "BA"], "CAC"), (["AB", "A"], "CDD"), (["AB", "CB"], "DCA"),
     (["A", "B", "A"], "CA")],
)  # fmt: skip
def test_solutions_agree_with_trying_all_digits(addends, total):
    def key(solution):
        return sorted(solution.items())

    found = sorted(solutions(addends, total), key=key)
    assert found == sorted(_by_trying(addends, total), key=key)


@pytest.mark.parametrize("num_digits", [2, 3, 4, 5])
def test_drawn_puzzles_are_solved_by_the_oracle(num_digits):
    env = CryptarithmEnv(num_digits=num_digits)
    for seed in range(8):
        env.reset(seed=seed)
        task = env.task
        digits = dict(re.findall(r"([A-Z])=(\d)", task["answer"]))
        assert len({*digits.values()}) == len(digits)
        numbers = [
            "".join(digits[letter] for letter in word) for word in (*task["addends"], task["total"])
        ]
        assert int(numbers[0]) + int(numbers[1]) == int(numbers[2])
        assert all(number[0] != "0" for number in numbers)
        assert len(numbers[0]) == num_digits


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        ({"addends": ["AB"], "total": "C"}, "'addends' must be a list of 2 to 3"),
        ({"addends": ["ab", "c"], "total": "d"}, "capital letters"),
        ({"addends": ["ABCDEFG", "A"], "total": "B"}, "at most 6"),
        ({"addends": ["ABCDEF", "GHIJ"], "total": "KLM"}, "more than ten"),
        ({"addends": ["AB", "A"], "total": 5}, "'total' must hold words"),
        (NONE, "no solution"),
        ({"addends": ["A", "B"], "total": "C"}, "more than one solution"),
        ({"addends": ["AB", "A"], "total": "C"}, "no solution"),
        ({**SEND, "answer": "S=1"}, "is not right"),
    ],
)
def test_given_tasks_are_checked(task, reason):
    with pytest.raises(TaskError, match=reason):
        reward(task, "1")


def test_arguments_out_of_range_are_refused():
    with pytest.raises(EnvArgumentError, match="num_digits must be an integer from 2 to 5, got 6"):
        CryptarithmEnv(num_digits=6)
