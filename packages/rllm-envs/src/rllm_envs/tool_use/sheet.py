"""``Sheet``: cells with numbers, texts and formulas, evaluated within bounds."""

import re
from typing import NoReturn

from rllm_envs.tool_use.sheet_functions import (
    FUNCTIONS,
    Block,
    FormulaError,
    Value,
    compare,
    finite,
    literal,
    number_of,
    text_of,
)

NUM_ROWS = 40
COLUMNS = "ABCDEFGHIJ"
MAX_FORMULA_LENGTH = 300
_MAX_DEPTH = 60
_MAX_READS = 60_000
_TOKENS = re.compile(
    r'\s*(?:(?P<number>\d{1,15}(?:\.\d{1,10})?)|(?P<text>"[^"]*")'
    r"|(?P<range>\$?[A-Za-z]\$?\d{1,3}(?::\$?[A-Za-z]\$?\d{1,3})?(?![A-Za-z0-9(]))"
    r"|(?P<name>[A-Za-z]{1,12})|(?P<sign><>|<=|>=|[-+*/&=<>(),;]))",
    re.ASCII,
)
_REFERENCE = re.compile(r"(\$?)([A-Za-z])(\$?)(\d{1,3})(?![A-Za-z0-9(])", re.ASCII)
_CELL = re.compile(r"([A-Ja-j])(\d{1,2})", re.ASCII)


class Sheet:
    """A sheet of columns A to J and rows 1 to 40.

    Args:
        cells: Content by name ("B2"): a number, a text, or a formula that begins with "=".
    """

    def __init__(self, cells: dict[str, str] | None = None) -> None:
        self.cells: dict[str, str] = dict(cells or {})
        self._values: dict[str, Value | FormulaError] = {}
        self._active: list[str] = []
        self._depth = 0
        self._reads = 0

    def set(self, cell: str, content: str) -> None:
        """Put content into a cell; the empty text empties it."""
        self.cells[cell] = content
        if not content:
            del self.cells[cell]
        self.forget()

    def forget(self) -> None:
        """Drop all values, so that they are computed again, with a fresh budget."""
        self._values.clear()
        self._reads = 0

    def value(self, cell: str) -> Value:
        """Return the value of a cell.

        Raises:
            FormulaError: Its formula is wrong, divides by zero, depends on itself, or costs too
                much.
        """
        if cell not in self._values:
            try:
                self._values[cell] = self._compute(cell)
            except FormulaError as error:
                self._values[cell] = error
        found = self._values[cell]
        if isinstance(found, FormulaError):
            raise found
        return found

    def shown(self, cell: str) -> str:
        """Return the value of a cell as text."""
        try:
            return text_of(self.value(cell))
        except FormulaError as error:
            return str(error)

    def _compute(self, cell: str) -> Value:
        content = self.cells.get(cell, "")
        if not content.startswith("="):
            return literal(content)
        if cell in self._active:
            raise FormulaError("#CYCLE!")
        self._active.append(cell)
        self.enter()
        try:
            return _Reader(self, content[1:]).result()
        finally:
            self._active.pop()
            self.leave()

    def enter(self) -> None:
        """Go one level deeper, into brackets or another cell."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            self._depth -= 1
            raise FormulaError("#DEPTH!")

    def leave(self) -> None:
        """Return from a level."""
        self._depth -= 1

    def block(self, text: str) -> Block:
        """Return the values of a range such as A1:B3, or of one cell."""
        names = cells_of(text.replace("$", ""))
        if names is None:
            raise FormulaError("#REF!")
        self._reads += sum(map(len, names))
        if self._reads > _MAX_READS:
            raise FormulaError("#LIMIT!")
        return [[self.value(name) for name in row] for row in names]


def cells_of(text: str) -> list[list[str]] | None:
    """Return the names of the cells of a range, row by row; None where it is no range."""
    corners = [_CELL.fullmatch(part) for part in text.strip().split(":")]
    if len(corners) > 2 or None in corners:
        return None
    columns = sorted(COLUMNS.index(match[1].upper()) for match in corners if match)
    rows = sorted(int(match[2]) for match in corners if match)
    if rows[0] < 1 or rows[-1] > NUM_ROWS:
        return None
    return [
        [f"{COLUMNS[column]}{row}" for column in range(columns[0], columns[-1] + 1)]
        for row in range(rows[0], rows[-1] + 1)
    ]


def shifted(formula: str, rows: int, columns: int) -> str:
    """Return a formula as it is copied some rows down and columns right; ``$`` keeps a part.

    References that leave the sheet become #REF!, which has no value.
    """

    def move(match: re.Match[str]) -> str:
        fixed_column, letter, fixed_row, number = match.groups()
        column = COLUMNS.find(letter.upper())
        row = int(number)
        column += 0 if fixed_column else columns
        row += 0 if fixed_row else rows
        if not 0 <= column < len(COLUMNS) or not 1 <= row <= NUM_ROWS:
            return "#REF!"
        return f"{fixed_column}{COLUMNS[column]}{fixed_row}{row}"

    parts = formula.split('"')
    # Every second part stands inside of quotes.
    parts[::2] = [_REFERENCE.sub(move, part) for part in parts[::2]]
    return '"'.join(parts)


class _Reader:
    """Evaluates one formula while reading it."""

    def __init__(self, sheet: Sheet, text: str) -> None:
        self._sheet = sheet
        self._tokens: list[tuple[str, str]] = []
        place = 0
        text = text.rstrip()
        while place < len(text):
            match = _TOKENS.match(text, place)
            if match is None or match.lastgroup is None:
                raise FormulaError("#ERROR!")
            self._tokens.append((match.lastgroup, match[match.lastgroup]))
            place = match.end()
        self._tokens.append(("end", ""))
        self._place = 0

    def result(self) -> Value:
        value = self._single(self._comparison())
        if self._tokens[self._place][0] != "end":
            self._fail()
        return value

    def _fail(self) -> NoReturn:
        raise FormulaError("#ERROR!")

    def _take(self, *signs: str) -> str:
        """Return the next token and go on if it is one of some signs, else ""."""
        kind, text = self._tokens[self._place]
        if kind != "sign" or text not in signs:
            return ""
        self._place += 1
        return text

    def _single(self, value: Value | Block) -> Value:
        if isinstance(value, list):
            if len(value) != 1 or len(value[0]) != 1:
                raise FormulaError("#VALUE!")
            return value[0][0]
        return value

    def _comparison(self) -> Value | Block:
        left = self._sum()
        sign = self._take("=", "<>", "<", ">", "<=", ">=")
        if not sign:
            return left
        return compare(self._single(left), sign, self._single(self._sum()))

    def _sum(self) -> Value | Block:
        left = self._product()
        while sign := self._take("+", "-", "&"):
            first, second = self._single(left), self._single(self._product())
            if sign == "&":
                left = text_of(first) + text_of(second)
                if len(left) > 1000:
                    raise FormulaError("#LIMIT!")
            else:
                amount = number_of(second)
                left = finite(number_of(first) + (amount if sign == "+" else -amount))
        return left

    def _product(self) -> Value | Block:
        left = self._factor()
        while sign := self._take("*", "/"):
            first, second = number_of(self._single(left)), number_of(self._single(self._factor()))
            if sign == "/" and second == 0:
                raise FormulaError("#DIV/0!")
            left = finite(first * second if sign == "*" else first / second)
        return left

    def _factor(self) -> Value | Block:
        is_negative = False
        while sign := self._take("-", "+"):
            is_negative ^= sign == "-"
            if self._tokens[self._place][0] == "end":
                self._fail()
        value = self._primary()
        return -number_of(self._single(value)) if is_negative else value

    def _primary(self) -> Value | Block:
        kind, text = self._tokens[self._place]
        self._place += 1
        if kind == "number":
            return float(text)
        if kind == "text":
            return text[1:-1]
        if kind == "range":
            return self._sheet.block(text)
        if kind == "name":
            return self._call(text.upper())
        if text != "(":
            self._fail()
        value = self._inside()
        if not self._take(")"):
            self._fail()
        return value

    def _inside(self) -> Value | Block:
        self._sheet.enter()
        try:
            return self._comparison()
        finally:
            self._sheet.leave()

    def _call(self, name: str) -> Value:
        if name in ("TRUE", "FALSE"):
            return name == "TRUE"
        if name not in FUNCTIONS:
            raise FormulaError("#NAME?")
        if not self._take("("):
            self._fail()
        arguments: list[Block] = []
        while not self._take(")"):
            if arguments and not self._take(",", ";"):
                self._fail()
            value = self._inside()
            arguments.append(value if isinstance(value, list) else [[value]])
        low, high, function = FUNCTIONS[name]
        if not low <= len(arguments) <= high:
            raise FormulaError("#ERROR!")
        return function(arguments)
