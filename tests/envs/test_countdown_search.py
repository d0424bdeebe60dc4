from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

from rllm_envs.reasoning.countdown_search import find_expression
from rllm_envs.tools.calculator import evaluate


def _reachable(numbers):
    """All values of expressions of all numbers, by combining any two, again and again."""
    if len(numbers) == 1:
        return {Fraction(numbers[0])}
    found = set()
    for i, j in permutations(range(len(numbers)), 2):
        a, b = numbers[i], numbers[j]
        rest = [x for k, x in enumerate(numbers) if k not in (i, j)]
        for value in [a + b, a - b, a * b, *([Fraction(a) / b] if b else [])]:
            found |= _reachable([value, *rest])
    return found


@pytest.mark.parametrize("numbers", [[1, 2, 5], [3, 3, 8], [4, 7, 9], [6, 6, 2]])
def test_exactly_the_reachable_targets_of_three_numbers_are_found(numbers):
    reachable = _reachable(numbers)
    for target in range(-5, 120):
        expression = find_expression(numbers, target, use_all=True)
        assert (expression is not None) == (target in reachable)
        if expression is not None:
            assert evaluate(expression) == target


@pytest.mark.parametrize(
    ("numbers", "target", "is_reachable"),
    [([3, 3, 8, 8], 24, True), ([1, 5, 5, 5], 24, True), ([1, 1, 1, 1], 24, False),
     ([1, 3, 4, 6], 24, True), ([13, 13, 13, 13], 24, False)],
)  # fmt: skip
def test_known_hands_of_four(numbers, target, is_reachable):
    expression = find_expression(numbers, target, use_all=True)
    assert (expression is not None) is is_reachable
    assert (target in _reachable(numbers)) is is_reachable


def test_as_few_numbers_as_possible_are_used():
    assert find_expression([9, 5, 4, 100], 100) == "100"
    assert find_expression([9, 5, 4], 45) == "9 * 5"
    assert find_expression([2, 3], 7) is None


def test_six_numbers_are_searched_in_whole_numbers():
    rng = np.random.default_rng(0)
    for _ in range(10):
        a, b, c, d, e, f = (int(x) for x in rng.integers(2, 60, 6))
        target = ((a + b) * c - d) + e * f
        if target > 0 and (a + b) * c > d:
            expression = find_expression([f, e, d, c, b, a], target, use_all=True)
            assert evaluate(expression) == target


def test_the_number_of_values_of_two_numbers_is_right():
    for a, b in product(range(1, 6), repeat=2):
        for target in range(-6, 30):
            expected = Fraction(target) in {a + b, a - b, b - a, a * b, Fraction(a, b),
                                            Fraction(b, a)}  # fmt: skip
            assert (find_expression([a, b], target, use_all=True) is not None) == expected
