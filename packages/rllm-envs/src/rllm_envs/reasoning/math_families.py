"""The bundled problems of ``rllm/Math-v0``: each family draws one question and its exact answer."""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction

import numpy as np

Problem = tuple[str, Fraction]
"""A question of one or two sentences, and the answer."""

_NAMES = ("Ana", "Ben", "Chloe", "Dan", "Eva", "Finn", "Gita", "Hugo")
_THINGS = ("apples", "books", "coins", "eggs", "pencils", "shells", "stamps", "tickets")


def linear_equation(rng: np.random.Generator) -> Problem:
    """``Solve 3x + 5 = 20 for x.``; the answer is rational."""
    factor, offset, result = _pick(rng, 2, 12), _pick(rng, 1, 30), _pick(rng, -30, 60)
    return f"Solve {factor}x + {offset} = {result} for x.", Fraction(result - offset, factor)


def fraction_sum(rng: np.random.Generator) -> Problem:
    """``What is 3/4 + 5/6?``; the answer is rational."""
    bottoms = _pick(rng, 2, 12), _pick(rng, 2, 12)
    tops = _pick(rng, 1, bottoms[0] - 1), _pick(rng, 1, bottoms[1] - 1)
    sign = "+" if _pick(rng, 0, 1) else "-"
    first, second = Fraction(tops[0], bottoms[0]), Fraction(tops[1], bottoms[1])
    question = f"What is {tops[0]}/{bottoms[0]} {sign} {tops[1]}/{bottoms[1]}?"
    return question, first + second if sign == "+" else first - second


def percentage(rng: np.random.Generator) -> Problem:
    """``What is 15% of 240?``."""
    percent, whole = 5 * _pick(rng, 1, 19), 20 * _pick(rng, 1, 50)
    return f"What is {percent}% of {whole}?", Fraction(percent * whole, 100)


def remainder(rng: np.random.Generator) -> Problem:
    """``What is the remainder when 123 is divided by 7?``."""
    number, divisor = _pick(rng, 50, 999), _pick(rng, 3, 19)
    return f"What is the remainder when {number} is divided by {divisor}?", Fraction(
        number % divisor
    )


def common_divisor(rng: np.random.Generator) -> Problem:
    """``What is the greatest common divisor of 24 and 36?``."""
    shared = _pick(rng, 2, 15)
    first, second = shared * _pick(rng, 2, 15), shared * _pick(rng, 2, 15)
    question = f"What is the greatest common divisor of {first} and {second}?"
    return question, Fraction(math.gcd(first, second))


def common_multiple(rng: np.random.Generator) -> Problem:
    """``What is the least common multiple of 12 and 18?``."""
    first, second = _pick(rng, 2, 30), _pick(rng, 2, 30)
    question = f"What is the least common multiple of {first} and {second}?"
    return question, Fraction(math.lcm(first, second))


def sequence(rng: np.random.Generator) -> Problem:
    """``What number comes next: 3, 7, 11, 15?``; a constant step."""
    start, step = _pick(rng, -20, 40), _pick(rng, 2, 15)
    terms = ", ".join(str(start + step * index) for index in range(4))
    return f"What number comes next: {terms}?", Fraction(start + 4 * step)


def mean(rng: np.random.Generator) -> Problem:
    """``What is the mean of 4, 9, 11 and 6?``; the answer may be a fraction."""
    values = [_pick(rng, 1, 40) for _ in range(4)]
    listed = ", ".join(map(str, values[:-1])) + f" and {values[-1]}"
    return f"What is the mean of {listed}?", Fraction(sum(values), len(values))


def rectangle(rng: np.random.Generator) -> Problem:
    """``A rectangle has area 48 and width 6. What is its perimeter?``."""
    width, height = _pick(rng, 2, 20), _pick(rng, 2, 20)
    question = f"A rectangle has area {width * height} and width {width}. What is its perimeter?"
    return question, Fraction(2 * (width + height))


def purchase(rng: np.random.Generator) -> Problem:
    """``Ana has 12 apples and buys 5 bags of 6. How many apples does she have now?``."""
    name = _NAMES[_pick(rng, 0, len(_NAMES) - 1)]
    thing = _THINGS[_pick(rng, 0, len(_THINGS) - 1)]
    owned, bags, size = _pick(rng, 2, 60), _pick(rng, 2, 12), _pick(rng, 2, 12)
    question = (
        f"{name} has {owned} {thing} and buys {bags} bags of {size}. How many {thing} does {name} "
        "have now?"
    )
    return question, Fraction(owned + bags * size)


FAMILIES: Mapping[str, Callable[[np.random.Generator], Problem]] = {
    "linear_equation": linear_equation,
    "fraction_sum": fraction_sum,
    "percentage": percentage,
    "remainder": remainder,
    "common_divisor": common_divisor,
    "common_multiple": common_multiple,
    "sequence": sequence,
    "mean": mean,
    "rectangle": rectangle,
    "purchase": purchase,
}
"""All families by name."""


def _pick(rng: np.random.Generator, low: int, high: int) -> int:
    """Return a uniform integer, both ends included."""
    return int(rng.integers(low, high + 1))
