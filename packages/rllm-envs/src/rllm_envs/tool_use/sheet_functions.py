"""What the cells of a sheet hold, how values are compared and shown, and the functions."""

import math
import re
from collections.abc import Callable

Value = float | str | bool | None
"""What a cell holds; None is an empty cell."""
Block = list[list[Value]]
"""The values of a range, row by row."""


class FormulaError(Exception):
    """A formula has no value; the message is what the cell shows, such as #DIV/0!."""


def text_of(value: Value) -> str:
    """Return a value as a cell shows it, numbers with up to 10 digits."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    return value if isinstance(value, str) else f"{value:.10g}"


def literal(content: str) -> Value:
    """Return what content that is no formula means: a number, a text, or nothing."""
    text = content.strip()
    if not text:
        return None
    is_number = re.fullmatch(r"[-+]?\d{1,15}(\.\d{1,10})?", text, re.ASCII)
    return float(text) if is_number else content


def number_of(value: Value) -> float:
    """Return a value as a number; an empty cell is 0.

    Raises:
        FormulaError: It is a text.
    """
    if isinstance(value, str):
        raise FormulaError("#VALUE!")
    return float(value or 0.0)


def finite(value: float) -> float:
    """Return a number that is finite.

    Raises:
        FormulaError: It is not.
    """
    if not math.isfinite(value):
        raise FormulaError("#NUM!")
    return value


def compare(left: Value, sign: str, right: Value) -> bool:
    """Return whether a comparison holds; texts are compared without case, an empty cell is 0."""
    if isinstance(left, str) or isinstance(right, str):
        first, second = text_of(left).casefold(), text_of(right).casefold()
    else:
        first, second = text_of(number_of(left)), text_of(number_of(right))
        if sign not in ("=", "<>"):
            return _ordered(number_of(left), sign, number_of(right))
    if sign in ("=", "<>"):
        return (first == second) == (sign == "=")
    return _ordered(first, sign, second)


def _ordered(left: float | str, sign: str, right: float | str) -> bool:
    is_less, is_equal = left < right, left == right  # type: ignore[operator]
    return {
        "<": is_less,
        "<=": is_less or is_equal,
        ">": not is_less and not is_equal,
        ">=": not is_less,
    }[sign]


def _numbers(arguments: list[Block]) -> list[float]:
    """Return the numbers of some ranges; texts and empty cells are passed over."""
    return [
        float(value)
        for block in arguments
        for row in block
        for value in row
        if isinstance(value, float)
    ]


def _flat(block: Block) -> list[Value]:
    return [value for row in block for value in row]


def _chosen(block: Block, criterion: Block) -> list[bool]:
    """Return which values fulfil a criterion such as "north" or ">=5"."""
    wanted = criterion[0][0]
    sign, text = "=", wanted
    if isinstance(wanted, str):
        match = re.match(r"<>|<=|>=|[<>=]", wanted)
        sign = match[0] if match else "="
        text = literal(wanted[match.end() :] if match else wanted)
    is_number = isinstance(text, float)
    return [
        isinstance(value, float) == is_number and compare(value, sign, text)
        if value is not None
        else sign == "<>"
        for value in _flat(block)
    ]


def _average(values: list[float]) -> float:
    if not values:
        raise FormulaError("#DIV/0!")
    return math.fsum(values) / len(values)


def _sum_if(arguments: list[Block]) -> list[float]:
    values = _flat(arguments[2] if len(arguments) == 3 else arguments[0])
    chosen = _chosen(arguments[0], arguments[1])
    if len(values) != len(chosen):
        raise FormulaError("#VALUE!")
    pairs = zip(values, chosen, strict=True)
    return [value for value, is_chosen in pairs if is_chosen and isinstance(value, float)]


def _sum_product(arguments: list[Block]) -> float:
    columns = [_flat(block) for block in arguments]
    if len({len(column) for column in columns}) > 1:
        raise FormulaError("#VALUE!")
    rows = zip(*columns, strict=True)
    return finite(math.fsum(math.prod(_plain(value) for value in row) for row in rows))


def _plain(value: Value) -> float:
    return value if isinstance(value, float) else 0.0


def _round(arguments: list[Block]) -> float:
    number = number_of(arguments[0][0][0])
    digits = int(number_of(arguments[1][0][0])) if len(arguments) == 2 else 0
    if not 0 <= digits <= 9:
        raise FormulaError("#NUM!")
    return round(number, digits)


def _if(arguments: list[Block]) -> Value:
    condition = arguments[0][0][0]
    otherwise = arguments[2][0][0] if len(arguments) == 3 else False
    return arguments[1][0][0] if number_of(condition) else otherwise


FUNCTIONS: dict[str, tuple[int, int, Callable[[list[Block]], Value]]] = {
    "SUM": (1, 20, lambda a: finite(math.fsum(_numbers(a)))),
    "AVERAGE": (1, 20, lambda a: _average(_numbers(a))),
    "MIN": (1, 20, lambda a: min(_numbers(a), default=0.0)),
    "MAX": (1, 20, lambda a: max(_numbers(a), default=0.0)),
    "COUNT": (1, 20, lambda a: float(len(_numbers(a)))),
    "COUNTIF": (2, 2, lambda a: float(sum(_chosen(a[0], a[1])))),
    "SUMIF": (2, 3, lambda a: finite(math.fsum(_sum_if(a)))),
    "AVERAGEIF": (2, 3, lambda a: _average(_sum_if(a))),
    "SUMPRODUCT": (1, 5, _sum_product),
    "ROUND": (1, 2, _round),
    "ABS": (1, 1, lambda a: abs(number_of(a[0][0][0]))),
    "IF": (2, 3, _if),
}
"""Functions by name: fewest and most arguments, and what they compute."""
