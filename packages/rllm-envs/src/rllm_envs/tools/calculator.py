"""A calculator for agents: exact arithmetic on text, bounded in size, nothing ever executed.

The grammar, from loosest to tightest binding::

    sum    := term (("+" | "-") term)*
    term   := factor (("*" | "/" | "//" | "%") factor)*
    factor := ("+" | "-") factor | atom (("^" | "**") factor)?
    atom   := number | "(" sum ")"

Every value is a ``Fraction``, so ``0.1 + 0.2`` is exactly ``3/10``.
"""

import re
from collections.abc import Sequence
from fractions import Fraction

from rllm_envs.errors import ToolError, excerpt
from rllm_envs.tools.base import Tool

MAX_EXPRESSION_LENGTH = 200
MAX_NUMBER_DIGITS = 50
MAX_NESTING = 32
MAX_EXPONENT = 256
MAX_RESULT_BITS = 4096
RESULT_DIGITS = 10

_TOKEN = re.compile(r"\s*(?:(\d+\.?\d*|\.\d+)|(\*\*|//|[-+*/%^()]))")
_SPELLINGS = str.maketrans("\u00d7\u00b7\u00f7\u2212\u2013", "**/--", ",")
_END = ""


def evaluate(expression: str) -> Fraction:
    """Return the exact value of an arithmetic expression.

    Raises:
        ToolError: The text is not an expression of the grammar, divides by zero, or exceeds a bound
            (length 200, 50 digits a number, nesting 32, exponent 256, result of 4,096 bits).
    """
    if len(expression) > MAX_EXPRESSION_LENGTH:
        raise ToolError(f"the expression is longer than {MAX_EXPRESSION_LENGTH} characters")
    return _Parser(_tokens(expression.translate(_SPELLINGS))).parse()


def format_value(value: Fraction) -> str:
    """Return an integer in full, and any other value as a decimal rounded to 10 places."""
    if value.denominator == 1:
        return str(value.numerator)
    scaled = round(abs(value) * 10**RESULT_DIGITS)
    whole, part = divmod(scaled, 10**RESULT_DIGITS)
    sign = "-" if value < 0 and scaled else ""
    return f"{sign}{whole}.{part:0{RESULT_DIGITS}d}".rstrip("0").rstrip(".")


class CalculatorTool(Tool):
    """Compute an arithmetic expression with + - * / // % ^ and parentheses."""

    name = "calculator"

    def forward(self, expression: str) -> str:
        """Return the value as text.

        Args:
            expression: What to compute, such as 47 * 83.
        """
        return format_value(evaluate(expression))


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    position = 0
    text = text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ToolError(f"cannot read {excerpt(text[position:].strip(), 20)}")
        number = match.group(1)
        if number and len(number) > MAX_NUMBER_DIGITS:
            raise ToolError(f"a number has more than {MAX_NUMBER_DIGITS} digits")
        tokens.append(number or match.group(2))
        position = match.end()
    return tokens


class _Parser:
    """Recursive descent over tokens; every method returns the value of what it consumed."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = [*tokens, _END]
        self._position = 0
        self._depth = 0

    def parse(self) -> Fraction:
        value = self._sum()
        if self._peek() != _END:
            raise ToolError(f"unexpected {self._peek()!r}")
        return value

    def _peek(self) -> str:
        return self._tokens[self._position]

    def _take(self) -> str:
        token = self._tokens[self._position]
        self._position += 1
        return token

    def _sum(self) -> Fraction:
        value = self._term()
        while self._peek() in ("+", "-"):
            sign = 1 if self._take() == "+" else -1
            value = _bounded(value + sign * self._term())
        return value

    def _term(self) -> Fraction:
        value = self._factor()
        while self._peek() in ("*", "/", "//", "%"):
            operator = self._take()
            right = self._factor()
            if operator != "*" and right == 0:
                raise ToolError("division by zero")
            if operator == "*":
                value *= right
            elif operator == "/":
                value /= right
            else:
                whole = Fraction(value // right)
                value = whole if operator == "//" else value - whole * right
            value = _bounded(value)
        return value

    def _factor(self) -> Fraction:
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise ToolError(f"nested more than {MAX_NESTING} deep")
        if self._peek() in ("+", "-"):
            sign = 1 if self._take() == "+" else -1
            value = sign * self._factor()
        else:
            value = self._atom()
            if self._peek() in ("^", "**"):
                self._take()
                value = _power(value, self._factor())
        self._depth -= 1
        return value

    def _atom(self) -> Fraction:
        token = self._take()
        if token == "(":
            value = self._sum()
            if self._take() != ")":
                raise ToolError("a parenthesis is not closed")
            return value
        if token == _END or not (token[0].isdigit() or token[0] == "."):
            raise ToolError(
                "the expression is incomplete" if not token else f"unexpected {token!r}"
            )
        return Fraction(token)


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1 or abs(exponent) > MAX_EXPONENT:
        raise ToolError(f"an exponent must be a whole number of at most {MAX_EXPONENT}")
    if base == 0 and exponent < 0:
        raise ToolError("division by zero")
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if bits * abs(exponent) > 2 * MAX_RESULT_BITS:
        raise ToolError("the result is too large")
    return _bounded(base ** int(exponent))


def _bounded(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_RESULT_BITS:
        raise ToolError("the result is too large")
    return value
