"""SELECT queries written by an agent: nothing but reading, with every cost bounded."""

import math
import re
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rllm_envs.errors import InfrastructureError, ToolError

Row = tuple[Any, ...]
MAX_PATTERN_LENGTH = 1000
"""Characters of a LIKE pattern."""
FUNCTIONS = frozenset(
    (
        *("abs", "avg", "coalesce", "count", "cume_dist", "dense_rank", "first_value"),
        *("group_concat", "ifnull", "iif", "instr", "lag", "last_value", "lead", "length"),
        *("like", "lower", "ltrim", "max", "min", "nth_value", "ntile", "nullif", "percent_rank"),
        *("rank", "replace", "round", "row_number", "rtrim", "sign", "substr", "substring", "sum"),
        *("total", "trim", "typeof", "unicode", "upper"),
    )
)
"""Functions that neither read a clock nor draw random numbers nor make large values."""
DATE_FUNCTIONS = frozenset(("date", "datetime", "julianday", "strftime", "time", "unixepoch"))
"""Functions of dates; with 'now' they read the clock."""
_ALLOWED_ACTIONS = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE)
# What is wrong with the database or the machine, and not with the query.
_FAILURES = (
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_IOERR),
    *(sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOTADB),
)


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """What one query may cost. Made by whoever runs queries, read by ``select``."""

    rows: int = 200
    """Rows of a result; one more is fetched, so that the caller sees whether there are more."""
    steps: int = 500_000
    """Steps of SQLite's virtual machine."""
    steps_per_check: int = 1000
    """Steps between two looks at ``steps`` and ``seconds``."""
    seconds: float = math.inf
    """Time; looked at between steps, of which one may take long where values are."""
    value_bytes: int = 2000
    """Bytes of a text, also inside of a query. Some functions take quadratic time in it."""
    result_bytes: int = 2**20
    """Characters of all values of a result together."""
    functions: frozenset[str] = FUNCTIONS
    """Names of the functions that a query may call."""


def select(
    connection: sqlite3.Connection, query: str, limits: QueryLimits
) -> tuple[list[str], list[Row]]:
    """Run one SELECT and return column names and rows, at most ``limits.rows + 1`` of them.

    The connection keeps the guards: nothing but reading is possible with it any more.

    Raises:
        ToolError: The query is no query, is not permitted, or costs too much; the message is
            written for whoever wrote the query.
        InfrastructureError: The database cannot be read.
    """
    try:
        _guard(connection, limits)
        cursor = connection.execute(query)
        if cursor.description is None:
            raise ToolError("the statement is not a SELECT query")
        return [column[0] for column in cursor.description], _fetch(cursor, limits)
    except sqlite3.Error as error:
        # The low byte is the code; the others say more about it.
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _FAILURES:
            raise InfrastructureError(f"the database cannot be read: {error}") from error
        raise ToolError(_reason(str(error))) from error
    except (sqlite3.Warning, ValueError, OverflowError) as error:
        raise ToolError(_reason(str(error))) from error


def format_result(columns: Sequence[str], rows: Sequence[Row], max_rows: int) -> str:
    """Return a result as lines of values separated by " | ", under a line of column names."""
    lines = [" | ".join(columns)]
    lines += [" | ".join("NULL" if v is None else str(v) for v in row) for row in rows[:max_rows]]
    more = len(rows) > max_rows
    lines.append(f"(more than {max_rows} rows)" if more else f"({len(rows)} rows)")
    return "\n".join(lines)


def is_like(pattern: Any, text: Any) -> bool | None:
    """Return whether a text matches a LIKE pattern, without regard to case; None for a NULL.

    ``%`` stands for any characters and ``_`` for one. Each piece between two ``%`` is looked for
    once, from left to right, so the time is linear in the length of the text for each piece.

    Raises:
        ValueError: The pattern has more than ``MAX_PATTERN_LENGTH`` characters.
    """
    if pattern is None or text is None:
        return None
    first, *rest = str(pattern).lower().split("%")
    if len(str(pattern)) > MAX_PATTERN_LENGTH:
        raise ValueError("the pattern is too long")
    line = str(text).lower()
    if not rest:
        return len(first) == len(line) and _finds(first, line, 0) == 0
    if _finds(first, line[: len(first)], 0) != 0:
        return False
    place, last = len(first), rest.pop()
    for piece in rest:
        found = _finds(piece, line, place)
        if found < 0:
            return False
        place = found + len(piece)
    start = len(line) - len(last)
    return start >= place and _finds(last, line[start:], 0) == 0


def _finds(piece: str, line: str, place: int) -> int:
    """Return where a piece, in which ``_`` is any character, is first found, or -1."""
    if "_" not in piece:
        return line.find(piece, place)
    pattern = "".join("." if char == "_" else re.escape(char) for char in piece)
    match = re.compile(pattern, re.DOTALL).search(line, place)
    return match.start() if match else -1


def _guard(connection: sqlite3.Connection, limits: QueryLimits) -> None:
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limits.value_bytes)
    connection.setlimit(sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 100)
    # SQLite's own LIKE takes quadratic time within one step, which nothing could interrupt.
    connection.create_function("like", 2, is_like, deterministic=True)
    connection.create_function("like", 3, _refuse_escape, deterministic=True)

    def authorize(action: int, first: str | None, second: str | None, *_: str | None) -> int:
        is_function = action == sqlite3.SQLITE_FUNCTION
        is_known = is_function and (second or "").lower() in limits.functions
        is_allowed = action in _ALLOWED_ACTIONS or is_known
        return sqlite3.SQLITE_OK if is_allowed else sqlite3.SQLITE_DENY

    connection.set_authorizer(authorize)
    left = limits.steps // limits.steps_per_check
    end = time.monotonic() + limits.seconds if limits.seconds < math.inf else math.inf

    def is_spent() -> bool:
        nonlocal left
        left -= 1
        return left < 0 or (end < math.inf and time.monotonic() > end)

    connection.set_progress_handler(is_spent, limits.steps_per_check)


def _fetch(cursor: sqlite3.Cursor, limits: QueryLimits) -> list[Row]:
    rows: list[Row] = []
    size = 0
    while len(rows) <= limits.rows and (row := cursor.fetchone()) is not None:
        size += sum(len(value) if isinstance(value, str | bytes) else 8 for value in row)
        if size > limits.result_bytes:
            raise ToolError("the result is too large; select fewer columns or rows")
        rows.append(row)
    return rows


def _refuse_escape(*_: Any) -> None:
    # SQLite hides the message; see _reason.
    raise ValueError("ESCAPE is not supported")


def _reason(message: str) -> str:
    if "user-defined function" in message:
        return f"LIKE takes no ESCAPE and no pattern of more than {MAX_PATTERN_LENGTH} characters"
    if "interrupted" in message:
        return "the query takes too long"
    if "not authorized" in message or "prohibited" in message:
        return f"{message}; only SELECT queries with plain functions are permitted"
    return message
