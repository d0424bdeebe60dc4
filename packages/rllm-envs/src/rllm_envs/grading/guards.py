r"""Refuse answers that are too large to compare, before anything computes them.

The rules are static: they read the text and never evaluate it. What they refuse is scored 0 and
labelled "unverifiable", so that a run can count it.
"""

import re

from rllm_envs.grading.exact import MAX_NUMBER_DIGITS

MAX_ANSWER_LENGTH = 512
MAX_NESTING = 64
MAX_COMMAS = 64
MAX_EXPONENT = 10_000
MAX_FACTORIAL = 1_000
MAX_SERIES_BOUND = 10_000

_DIGITS = re.compile(r"\d+")
_POWER = re.compile(r"\^|\*\*")
_CLOSING = re.compile(r"[ )}\]]*")
_FACTORIAL = re.compile(r"(\d+)\s*!|(?<=[)}!])\s*!")
_SERIES = re.compile(r"\\(?:sum|prod|bigcup|bigcap|[dt]?binom|int)(?![a-zA-Z])|\\choose")


def hazard(text: str, *, reference_length: int = 0) -> str | None:
    """Return why a canonical answer must not be compared symbolically, or None where it may be.

    Args:
        text: The canonical answer.
        reference_length: Characters of the reference; a long reference allows a long answer.
    """
    if len(text) > max(MAX_ANSWER_LENGTH, 2 * reference_length):
        return f"longer than {MAX_ANSWER_LENGTH} characters"
    if text.count(",") > MAX_COMMAS:
        return f"more than {MAX_COMMAS} commas"
    if _nesting(text) > MAX_NESTING:
        return f"nested more than {MAX_NESTING} deep"
    numbers = [match.group() for match in _DIGITS.finditer(text)]
    if any(len(number) > MAX_NUMBER_DIGITS for number in numbers):
        return f"a number of more than {MAX_NUMBER_DIGITS} digits"
    return _power_hazard(text) or _factorial_hazard(text) or _series_hazard(text, numbers)


def _nesting(text: str) -> int:
    deepest = depth = 0
    for character in text:
        if character in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in ")]}":
            # A closing bracket without an opening one hides no depth that follows.
            depth = max(depth - 1, 0)
    return deepest


def _power_hazard(text: str) -> str | None:
    for match in _POWER.finditer(text):
        exponent = _group_at(text, match.end())
        if any(int(digits) > MAX_EXPONENT for digits in _DIGITS.findall(exponent)):
            return f"an exponent greater than {MAX_EXPONENT}"
        if not exponent or not _has_only_digits(exponent):
            continue
        if _POWER.search(exponent) or "!" in exponent:
            return "a power of a power of numbers"
        if _product_of_exponents(text, match.end() + len(exponent), exponent) > MAX_EXPONENT:
            return "a power of a power of numbers"
    return None


def _has_only_digits(exponent: str) -> bool:
    return _DIGITS.search(exponent) is not None and not re.search(r"[A-Za-z]", exponent)


def _product_of_exponents(text: str, end: int, exponent: str) -> int:
    """Return the exponent of ``(x^a)^b``: the numbers multiplied; a tower counts as huge."""
    product = max(map(int, _DIGITS.findall(exponent)))
    while True:
        closing = _CLOSING.match(text, end)
        after = closing.end() if closing else end
        following = _POWER.match(text, after)
        if following is None:
            return product
        exponent = _group_at(text, following.end())
        is_tower = not text[end:after].strip()
        if is_tower or not _has_only_digits(exponent):
            return MAX_EXPONENT + 1
        product *= max(map(int, _DIGITS.findall(exponent)))
        end = following.end() + len(exponent)


def _group_at(text: str, start: int) -> str:
    """Return the operand that starts at ``start``: a bracketed group, digits or one character."""
    start += text[start : start + 1] == " "
    if text[start : start + 1] in ("{", "("):
        depth = 0
        for position in range(start, len(text)):
            depth += (text[position] in "([{") - (text[position] in ")]}")
            if depth == 0:
                return text[start : position + 1]
        return text[start:]
    digits = re.compile(r"-?\d+|.?").match(text, start)
    return digits.group() if digits else ""


def _factorial_hazard(text: str) -> str | None:
    for match in _FACTORIAL.finditer(text):
        if match.group(1) is None:
            return "a factorial of an expression"
        if int(match.group(1)) > MAX_FACTORIAL:
            return f"a factorial of a number greater than {MAX_FACTORIAL}"
    return None


def _series_hazard(text: str, numbers: list[str]) -> str | None:
    if _SERIES.search(text) and any(int(number) > MAX_SERIES_BOUND for number in numbers):
        return f"a sum, product or binomial with a bound greater than {MAX_SERIES_BOUND}"
    return None
