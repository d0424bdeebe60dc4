r"""Exact values of written numbers, and exact comparison: microseconds, no symbolic mathematics.

Understood: integers, thousands separators (``12,500`` and ``12{,}500``), decimals, ``a/b``,
``\frac{a}{b}`` in all its spellings, mixed numbers (``1\frac{4}{5}``, ``137 1/2``), percentages,
powers of ten (``6.02 \times 10^{23}``) and bases (``52_8``).
"""

import re
from dataclasses import dataclass
from fractions import Fraction

from rllm_envs.grading.latex import canonical

MAX_NUMBER_DIGITS = 1000
MAX_TEN_EXPONENT = 1000
"""Largest exponent of ten that is read as an exact number."""

_WHOLE = r"(?:\d{1,3}(?:,\d{3})+|\d+)"
_DECIMAL = rf"(?:{_WHOLE}(?:\.\d*)?|\.\d+)"
_ARGUMENT = r"(?:\{\s*([+-]?\s*[\d.,]+)\s*\}|\s*(\d))"
_NUMBER = re.compile(rf"([+-]?)\s*({_DECIMAL})\s*(%?)")
_SLASH = re.compile(rf"([+-]?)\s*(?:({_WHOLE})\s+)?({_DECIMAL})\s*/\s*([+-]?\s*{_DECIMAL})\s*(%?)")
_FRAC = re.compile(rf"([+-]?)\s*({_WHOLE})?\s*\\frac{_ARGUMENT}{_ARGUMENT}\s*(%?)")
_BASED = re.compile(r"(\d+)_(?:\{\s*(\d{1,2})\s*\}|(\d))")
_POWER_OF_TEN = re.compile(
    rf"([+-]?)\s*(?:({_DECIMAL})\s*(?:\\times|\\cdot|\*)\s*)?"
    r"10\s*\^\s*(?:\{\s*([+-]?)\s*(\d{1,4})\s*\}|([+-]?)(\d)(?!\d))"
)
_DECIMAL_ONLY = re.compile(rf"([+-]?)\s*({_DECIMAL})")


@dataclass(frozen=True, slots=True)
class Number:
    """A written number. Made by ``read_number``, read by ``same_number``."""

    value: Fraction
    """The number as written, a percentage not yet divided by 100."""
    is_percent: bool = False
    """Whether a percent sign follows."""
    base: str = ""
    """The base written as a subscript, as in ``52_8``; the digits are not converted."""


def read_number(text: str) -> Number | None:
    """Return the number that a canonical text writes, or None where it is something else."""
    if "{" in text:
        text = text.replace("{,}", ",")
    while len(text) > 2 and (text[0] + text[-1]) in ("{}", "()"):
        text = text[1:-1].strip()
    if len(text) > MAX_NUMBER_DIGITS and _is_too_long(text):
        return None
    if plain := _NUMBER.fullmatch(text):
        sign, digits, percent = plain.groups()
        return _number(sign, _fraction(digits), percent)
    return _read_compound(text)


def _is_too_long(text: str) -> bool:
    longest = max(map(len, re.findall(r"\d+", text)), default=0)
    return len(text) > 3 * MAX_NUMBER_DIGITS or longest > MAX_NUMBER_DIGITS


def _read_compound(text: str) -> Number | None:
    if based := _BASED.fullmatch(text):
        base = based.group(2) or based.group(3)
        return Number(Fraction(based.group(1)), base="" if base == "10" else base)
    if slash := _SLASH.fullmatch(text):
        sign, whole, numerator, denominator, percent = slash.groups()
        return _quotient(sign, whole, numerator, denominator, percent)
    if frac := _FRAC.fullmatch(text):
        sign, whole, *arguments, percent = frac.groups()
        return _quotient(sign, whole, arguments[0] or arguments[1], arguments[2] or arguments[3],
                         percent)  # fmt: skip
    if power := _POWER_OF_TEN.fullmatch(text):
        sign, factor, *exponents = power.groups()
        exponent = int((exponents[0] or exponents[2] or "") + (exponents[1] or exponents[3]))
        if abs(exponent) <= MAX_TEN_EXPONENT:
            return _number(
                sign, (_fraction(factor) if factor else 1) * Fraction(10) ** exponent, ""
            )
    return None


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


def exact_value(answer: str) -> Fraction | None:
    """Return the exact value of an answer as written by a model, or None where it is no number."""
    number = read_number(canonical(answer)) if len(answer) <= 3 * MAX_NUMBER_DIGITS else None
    if number is None:
        return None
    return number.value / 100 if number.is_percent else number.value


def _fraction(digits: str) -> Fraction:
    digits = digits.replace(",", "")
    # The constructor that reads text is many times slower.
    return Fraction(int(digits)) if digits.isdigit() else Fraction(digits.removesuffix("."))


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
    if text.isdecimal():
        return Fraction(int(text))
    match = _DECIMAL_ONLY.fullmatch(text.strip())
    if match is None:
        return None
    value = _fraction(match.group(2))
    return -value if match.group(1) == "-" else value
