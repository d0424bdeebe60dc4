"""``rllm/NumberTheory-v0``: divisors, multiples, remainders of powers and prime factors."""

import math
import re
from collections.abc import Sequence

from rllm_envs.reasoning.answers import plain_text, read_integer
from rllm_envs.reasoning.draws import draw_integer, draw_item
from rllm_envs.reasoning.fields import (
    choice_field,
    integer_argument,
    integers_field,
    names_argument,
)
from rllm_envs.reasoning.solved import SolvedEnv
from rllm_envs.tasks import Task

KINDS = ("gcd", "lcm", "modular_power", "prime_factors", "divisor_count", "totient")
MAX_NUMBER = 10**9

_QUESTIONS = {
    "gcd": "What is the greatest common divisor of {0} and {1}?",
    "lcm": "What is the least common multiple of {0} and {1}?",
    "modular_power": "What is the remainder when {0}^{1} is divided by {2}?",
    "prime_factors": "What is the prime factorisation of {0}? Write it like 2^3 * 7.",
    "divisor_count": "How many positive divisors does {0} have?",
    "totient": "How many of the integers from 1 to {0} have no common divisor with {0} except 1?",
}
_NUM_NUMBERS = {"gcd": 2, "lcm": 2, "modular_power": 3}
_FACTOR = re.compile(r"(\d{1,12})(?:(?:\^|\*\*)\{?(\d{1,3})\}?)?")


class NumberTheoryEnv(SolvedEnv):
    r"""Answer a question of elementary number theory.

    ## Description
    Six kinds of question: ``gcd``, ``lcm``, ``modular_power`` (the remainder of a power),
    ``prime_factors``, ``divisor_count`` and ``totient``.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the answer: an
    integer, or for ``prime_factors`` a product of primes such as ``2^3 * 7`` or ``2*2*2*7``.

    ## Observation Space
    The question in one or two sentences. The last observation is empty.

    ## Starting State
    A uniform kind. Numbers are uniform up to ``max_number``; two numbers for ``gcd`` and ``lcm``
    share a random factor, and numbers to be factorised are composite.

    ## Rewards
    1 for the exact value, 0 otherwise.

    ## Episode End
    Terminates after one action.

    ## Information
    ``success``, ``invalid`` (no box in the action), ``turn``, ``turns_left``.

    ## Arguments
    ``kinds`` (list of kinds, default all), ``max_number`` (100 to 1,000,000, default 1,000),
    ``split`` ("train", "test" or "all").
    Task: ``{"kind": "gcd", "numbers": [24, 36]}``; ``modular_power`` has base, exponent and
    divisor; ``answer`` optional.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        kinds: Sequence[str] | None = None,
        max_number: int = 1000,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(split=split, render_mode=render_mode)
        self.kinds = names_argument("kinds", kinds, KINDS)
        self.max_number = integer_argument("max_number", max_number, 100, 10**6)

    def draw(self) -> Task:
        """Return a random kind with its numbers."""
        rng, most = self.np_random, self.max_number
        kind = draw_item(rng, self.kinds)
        if kind in ("gcd", "lcm"):
            shared = draw_integer(rng, 2, max(2, math.isqrt(most)))
            numbers = [shared * draw_integer(rng, 2, most // shared) for _ in range(2)]
        elif kind == "modular_power":
            numbers = [draw_integer(rng, 2, most) for _ in range(2)] + [draw_integer(rng, 3, 99)]
        else:
            number = draw_integer(rng, 20, most)
            while kind != "totient" and len(prime_factors(number)) == 1:
                number = draw_integer(rng, 20, most)
            numbers = [number]
        return {"kind": kind, "numbers": numbers}

    def check(self, task: Task) -> None:
        """Check the kind and that it has its number of numbers, from 2 to 10^9."""
        count = _NUM_NUMBERS.get(choice_field(task, "kind", KINDS), 1)
        integers_field(task, "numbers", (2, MAX_NUMBER), (count, count))

    def question(self, task: Task) -> str:
        """Return the question."""
        question = _QUESTIONS[task["kind"]].format(*task["numbers"])
        return f"{question} Give the answer in \\boxed{{}}."

    def solve(self, task: Task) -> str:
        """Return the value, or the product of primes in ascending order."""
        kind, numbers = task["kind"], task["numbers"]
        if kind == "gcd":
            return str(math.gcd(*numbers))
        if kind == "lcm":
            return str(math.lcm(*numbers))
        if kind == "modular_power":
            return str(pow(*numbers))
        factors = prime_factors(numbers[0])
        powers = {prime: factors.count(prime) for prime in factors}
        if kind == "prime_factors":
            return " * ".join(f"{p}^{k}" if k > 1 else str(p) for p, k in powers.items())
        if kind == "divisor_count":
            return str(math.prod(k + 1 for k in powers.values()))
        return str(math.prod((p - 1) * p ** (k - 1) for p, k in powers.items()))

    def grade(self, task: Task, answer: str) -> bool:
        """Return whether an answer has the value; a product must consist of all prime factors."""
        if task["kind"] != "prime_factors":
            return read_integer(answer) == int(task["answer"])
        return _read_product(answer) == prime_factors(task["numbers"][0])


def prime_factors(number: int) -> list[int]:
    """Return the prime factors of an integer of at least 2, ascending and repeated, by division."""
    factors, divisor = [], 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            factors.append(divisor)
            number //= divisor
        divisor += 1 if divisor == 2 else 2
    return [*factors, number] if number > 1 else factors


def _read_product(answer: str) -> list[int] | None:
    """Return the factors of ``2^3 * 7`` in ascending order, or None."""
    text = plain_text(answer.replace("**", "^")).rpartition("=")[2]
    for sign in ("\\times", "\\cdot", "\u00b7", "\u2022", ",", "x"):
        text = text.replace(sign, "*")
    factors: list[int] = []
    for part in text.replace(" ", "").split("*"):
        match = _FACTOR.fullmatch(part)
        if match is None or len(factors) > 100:
            return None
        factors += [int(match.group(1))] * int(match.group(2) or 1)
    return sorted(factors)
