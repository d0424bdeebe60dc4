"""Search for an expression of given numbers with a given value.

Values of small subsets of the numbers are tabulated; larger subsets are searched backwards: if the
last operation joins a value of one part with one of the other, the former and the target tell what
the latter must be.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations

Value = int | Fraction
EXACT_LIMIT = 4
"""Up to so many numbers fractions on the way are searched too; beyond, whole numbers alone."""
TABLE_SIZE = 3
"""Subsets of up to so many numbers are tabulated."""


def find_expression(numbers: Sequence[int], target: int, *, use_all: bool = False) -> str | None:
    """Return an expression of ``numbers``, each used at most once, that equals ``target``.

    Args:
        numbers: 1 to 6 positive integers.
        target: The value to reach.
        use_all: Whether each number must be used.

    Returns:
        An expression of as few numbers as possible, or None. Up to four numbers the search is
        complete; with more it leaves out ways over fractions and negative numbers.
    """
    search = _Search(numbers, with_fractions=len(numbers) <= EXACT_LIMIT)
    places = range(len(numbers))
    for size in [len(numbers)] if use_all else range(1, len(numbers) + 1):
        for subset in combinations(places, size):
            found = search.reach(subset, target)
            if found is not None:
                return _without_outer_parentheses(found)
    return None


class _Search:
    """Tables and dead ends of one search. A subset is the ascending tuple of places used."""

    def __init__(self, numbers: Sequence[int], *, with_fractions: bool) -> None:
        self._numbers = numbers
        self._with_fractions = with_fractions
        self._tables: dict[tuple[int, ...], dict[Value, str]] = {}
        self._dead_ends: set[tuple[tuple[int, ...], Value]] = set()

    def table(self, subset: tuple[int, ...]) -> dict[Value, str]:
        """Return all values of expressions that use the whole of a subset."""
        if subset not in self._tables:
            values: dict[Value, str] = {}
            if len(subset) == 1:
                number = self._numbers[subset[0]]
                values[number] = str(number)
            for part, rest in _splits(subset):
                for a, text_a in self.table(part).items():
                    for b, text_b in self.table(rest).items():
                        for value, text in self._joined(a, text_a, b, text_b):
                            values.setdefault(value, text)
            self._tables[subset] = values
        return self._tables[subset]

    def reach(self, subset: tuple[int, ...], target: Value) -> str | None:
        """Return an expression of the whole of a subset with a value, or None."""
        if len(subset) <= TABLE_SIZE:
            return self.table(subset).get(target)
        if (subset, target) in self._dead_ends:
            return None
        for part, rest in _splits(subset):
            large, small = (part, rest) if len(part) >= len(rest) else (rest, part)
            for b, text_b in self.table(small).items():
                for a, form in self._required(target, b):
                    text_a = self.reach(large, a)
                    if text_a is not None:
                        return form.format(a=text_a, b=text_b)
        self._dead_ends.add((subset, target))
        return None

    def _joined(self, a: Value, text_a: str, b: Value, text_b: str) -> Iterator[tuple[Value, str]]:
        yield a + b, f"({text_a} + {text_b})"
        yield a * b, f"({text_a} * {text_b})"
        if self._with_fractions or a > b:
            yield a - b, f"({text_a} - {text_b})"
        if self._with_fractions or b > a:
            yield b - a, f"({text_b} - {text_a})"
        if b and (quotient := self._quotient(a, b)) is not None:
            yield quotient, f"({text_a} / {text_b})"
        if a and (quotient := self._quotient(b, a)) is not None:
            yield quotient, f"({text_b} / {text_a})"

    def _required(self, target: Value, b: Value) -> Iterator[tuple[Value, str]]:
        """Yield the values ``a`` that one operation joins with ``b`` to the target."""
        candidates: list[tuple[Value | None, str]] = [
            (target - b, "({a} + {b})"),
            (target + b, "({a} - {b})"),
            (b - target, "({b} - {a})"),
        ]
        if b:
            candidates += [
                (self._quotient(target, b), "({a} * {b})"),
                (target * b, "({a} / {b})"),
            ]
            if target:
                candidates.append((self._quotient(b, target), "({b} / {a})"))
        for a, form in candidates:
            if a is not None and (self._with_fractions or a > 0):
                yield a, form

    def _quotient(self, a: Value, b: Value) -> Value | None:
        """Return a / b, as an integer where it is one; None for a fraction that is not searched."""
        if not self._with_fractions:
            return a // b if a % b == 0 else None
        quotient = Fraction(a) / b
        return quotient.numerator if quotient.denominator == 1 else quotient


def _splits(subset: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield each way to cut a subset into two parts once: the first part holds the first place."""
    first, *others = subset
    for size in range(len(others)):
        for chosen in combinations(others, size):
            part = (first, *chosen)
            yield part, tuple(place for place in others if place not in chosen)


def _without_outer_parentheses(text: str) -> str:
    """Drop the parentheses that the last operation puts around everything."""
    return text[1:-1] if text.startswith("(") else text
