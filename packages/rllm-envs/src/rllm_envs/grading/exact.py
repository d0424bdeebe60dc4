r"""Exact values of written numbers, and exact comparison: microseconds, no symbolic mathematics.

Understood: integers, thousands separators (``12,500`` and ``12{,}500``), decimals, ``a/b``,
``\frac{a}{b}`` in all its spellings, mixed numbers (``1\frac{4}{5}``, ``137 1/2``) and percentages;
and lists, tuples and sets of these.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from rllm_envs.grading.latex import canonical

MAX_NUMBER_DIGITS = 1000

_WHOLE = r"(?:\d{1,3}(?:,\d{3})+|\d+)"
_DECIMAL = rf"(?:{_WHOLE}(?:\.\d*)?|\.\d+)"
_ARGUMENT = r"(?:\{\s*([+-]?\s*[\d.,]+)\s*\}|\s*(\d))"
_NUMBER = re.compile(rf"([+-]?)\s*({_DECIMAL})\s*(%?)")
_SLASH = re.compile(rf"([+-]?)\s*(?:({_WHOLE})\s+)?({_DECIMAL})\s*/\s*([+-]?\s*{_DECIMAL})\s*(%?)")
_FRAC = re.compile(rf"([+-]?)\s*({_WHOLE})?\s*\\frac{_ARGUMENT}{_ARGUMENT}\s*(%?)")
_BASED = re.compile(r"(\d+)_(?:\{\s*(\d{1,2})\s*\}|(\d))")
_DECIMAL_ONLY = re.compile(rf"([+-]?)\s*({_DECIMAL})")

Kind = Literal["values", "tuple", "interval"]


@dataclass(frozen=True, slots=True)
class Number:
    """A written number. Made by ``read_number``, read by ``same_number``."""

    value: Fraction
    """The number as written, a percentage not yet divided by 100."""
    is_percent: bool = False
    """Whether a percent sign follows."""
    base: str = ""
    """The base written as a subscript, as in ``52_8``; the digits are not converted."""


@dataclass(frozen=True, slots=True)
class NumberList:
    """Several written numbers. Made by ``read_numbers``, read by ``same_numbers``."""

    kind: Kind
    """"values": no order (``1, 2`` or ``\\{1, 2\\}``); "tuple": ``(1, 2)``; "interval": any pair
    with a square bracket."""
    brackets: str
    """Opening and closing bracket; empty for "values"."""
    numbers: tuple[Number, ...]
    """The numbers in the order written."""


def read_number(text: str) -> Number | None:
    """Return the number that a canonical text writes, or None where it is something else."""
    text = text.replace("{,}", ",")
    while len(text) > 2 and (text[0] + text[-1]) in ("{}", "()"):
        text = text[1:-1].strip()
    if len(text) > 3 * MAX_NUMBER_DIGITS or max(map(len, re.findall(r"\d+", text)), default=0) > (
        MAX_NUMBER_DIGITS
    ):
        return None
    if plain := _NUMBER.fullmatch(text):
        sign, digits, percent = plain.groups()
        return _number(sign, _fraction(digits), percent)
    if based := _BASED.fullmatch(text):
        return Number(Fraction(based.group(1)), base=based.group(2) or based.group(3))
    if slash := _SLASH.fullmatch(text):
        sign, whole, numerator, denominator, percent = slash.groups()
        return _quotient(sign, whole, numerator, denominator, percent)
    if frac := _FRAC.fullmatch(text):
        sign, whole, *arguments, percent = frac.groups()
        return _quotient(sign, whole, arguments[0] or arguments[1], arguments[2] or arguments[3],
                         percent)  # fmt: skip
    return None


def read_numbers(text: str) -> NumberList | None:
    """Return the list, tuple, set or interval of numbers that a canonical text writes, or None."""
    inner, kind, brackets = text, "values", ""
    if text.startswith(r"\{") and text.endswith(r"\}"):
        inner = text[2:-2]
    elif len(text) > 2 and text[0] in "([" and text[-1] in ")]":
        inner, brackets = text[1:-1], text[0] + text[-1]
        kind = "tuple" if brackets == "()" else "interval"
    parts = split_values(inner)
    if len(parts) < 2:
        return None
    numbers = tuple(number for part in parts if (number := read_number(part)) is not None)
    return NumberList(kind, brackets, numbers) if len(numbers) == len(parts) else None


def split_values(text: str) -> list[str]:
    """Split a text at the commas that stand in no bracket; thousands separators are no such commas.

    A comma counts as a thousands separator where exactly three digits follow it and one to three
    digits, not more, stand before.
    """
    parts, depth, start = [], 0, 0
    thousands = {
        match.start() + offset
        for match in re.finditer(r"(?<![\d.])\d{1,3}(?:,\d{3})+(?![\d])", text)
        for offset, character in enumerate(match.group())
        if character == ","
    }
    for position, character in enumerate(text):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == "," and depth == 0 and position not in thousands:
            parts.append(text[start:position].strip())
            start = position + 1
    return [*parts, text[start:].strip()]


def same_number(reference: Number, answer: Number) -> bool:
    """Return whether two written numbers are equal, exactly.

    ``42%`` equals ``0.42``. Where only one of the two has a percent sign it may also be a unit that
    the other leaves out, so ``42%`` equals ``42`` as well. An answer may leave out the base of the
    reference, but not name another.
    """
    if answer.base not in ("", reference.base):
        return False
    if reference.value == answer.value:
        return True
    if reference.is_percent == answer.is_percent:
        return False
    percent, plain = (reference, answer) if reference.is_percent else (answer, reference)
    return percent.value == 100 * plain.value


def same_numbers(reference: NumberList, answer: NumberList) -> bool:
    """Return whether two lists are equal: tuples and intervals in order, values in any order."""
    if (reference.kind, reference.brackets) != (answer.kind, answer.brackets):
        return False
    if len(reference.numbers) != len(answer.numbers):
        return False
    pairs = [reference.numbers, answer.numbers]
    if reference.kind == "values":
        pairs = [tuple(sorted(numbers, key=lambda n: n.value)) for numbers in pairs]
    return all(map(same_number, *pairs))


def exact_value(answer: str) -> Fraction | None:
    """Return the exact value of an answer as written by a model, or None where it is no number."""
    number = read_number(canonical(answer)) if len(answer) <= 3 * MAX_NUMBER_DIGITS else None
    if number is None:
        return None
    return number.value / 100 if number.is_percent else number.value


def _fraction(digits: str) -> Fraction:
    return Fraction(digits.replace(",", "").removesuffix("."))


def _number(sign: str, value: Fraction, percent: str) -> Number:
    return Number(-value if sign == "-" else value, bool(percent))


def _quotient(
    sign: str, whole: str | None, numerator: str, denominator: str, percent: str
) -> Number | None:
    top, bottom = _signed(numerator), _signed(denominator)
    if top is None or not bottom:
        return None
    return _number(sign, top / bottom + (_fraction(whole) if whole else 0), percent)


def _signed(text: str) -> Fraction | None:
    match = _DECIMAL_ONLY.fullmatch(text.strip())
    if match is None:
        return None
    value = _fraction(match.group(2))
    return -value if match.group(1) == "-" else value
