from fractions import Fraction
from math import gcd, lcm

import numpy as np
import pytest

from rllm_envs.reasoning.math_families import FAMILIES


def numbers_of(question):
    kept = "".join(c if c.isdigit() or c == "-" else " " for c in question)
    return [int(word) for word in kept.split() if word.strip("-")]


def solve(family, question):
    """Work the question out again from its text."""
    n = numbers_of(question)
    return {
        "linear_equation": lambda: Fraction(n[2] - n[1], n[0]),
        "fraction_sum": lambda: (
            Fraction(n[0], n[1]) + (1 if "+" in question else -1) * Fraction(n[2], n[3])
        ),
        "percentage": lambda: Fraction(n[0] * n[1], 100),
        "remainder": lambda: n[0] - n[1] * (n[0] // n[1]),
        "common_divisor": lambda: gcd(n[0], n[1]),
        "common_multiple": lambda: lcm(n[0], n[1]),
        "sequence": lambda: 2 * n[3] - n[2],
        "mean": lambda: Fraction(n[0] + n[1] + n[2] + n[3], 4),
        "rectangle": lambda: 2 * (n[1] + n[0] // n[1]),
        "purchase": lambda: n[0] + n[1] * n[2],
    }[family]()


@pytest.mark.parametrize("family", FAMILIES)
def test_every_answer_follows_from_the_text_of_the_question(family):
    rng = np.random.default_rng(0)
    for _ in range(100):
        question, answer = FAMILIES[family](rng)
        assert solve(family, question) == answer, question
        assert len(question) <= 120
        assert question[-1] in "?."


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_has_many_different_questions(family):
    rng = np.random.default_rng(1)
    assert len({FAMILIES[family](rng)[0] for _ in range(200)}) > 100
