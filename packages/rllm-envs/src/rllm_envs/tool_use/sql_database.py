"""Read-only queries on tables held in memory, with every cost bounded."""

import math
import re
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from rllm_envs.errors import ToolError

MAX_ROWS = 200
"""Rows of one result; a query that gives more is refused as an answer and cut when it is shown."""
_STEPS_PER_CALL = 1000
_MAX_CALLS = 500
_ALLOWED_ACTIONS = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE)
# Functions that neither read a clock nor draw random numbers nor make large values.
_FUNCTIONS = frozenset(
    (
        *("abs", "avg", "coalesce", "count", "cume_dist", "dense_rank", "first_value"),
        *("group_concat", "ifnull", "iif", "instr", "lag", "last_value", "lead", "length"),
        *("like", "lower", "ltrim", "max", "min", "nth_value", "ntile", "nullif", "percent_rank"),
        *("rank", "replace", "round", "row_number", "rtrim", "sign", "substr", "substring", "sum"),
        *("total", "trim", "typeof", "unicode", "upper"),
    )
)

Row = tuple[Any, ...]


def run_query(tables: Mapping[str, Any], query: str) -> tuple[list[str], list[Row]]:
    """Run one SELECT on a fresh in-memory database and return column names and rows.

    Nothing but reading is permitted, and only functions that are deterministic. At most
    ``MAX_ROWS + 1`` rows are fetched, so that the caller sees whether there are more.

    Args:
        tables: ``{name: {"columns": [[name, type], ...], "rows": [[value, ...], ...]}}``.
        query: One SELECT statement.

    Raises:
        ToolError: The query is no query, is not permitted, or costs too much.
    """
    connection = sqlite3.connect(":memory:")
    try:
        _fill(connection, tables)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 2000)
        connection.setlimit(sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 100)
        # SQLite's own LIKE takes quadratic time within one step, which nothing could interrupt.
        connection.create_function("like", 2, is_like, deterministic=True)
        connection.create_function("like", 3, _refuse_escape, deterministic=True)
        connection.set_authorizer(_authorize)
        calls = 0

        def count_calls() -> bool:
            nonlocal calls
            calls += 1
            return calls > _MAX_CALLS

        connection.set_progress_handler(count_calls, _STEPS_PER_CALL)
        cursor = connection.execute(query)
        if cursor.description is None:
            raise ToolError("the statement is not a SELECT query")
        rows = cursor.fetchmany(MAX_ROWS + 1)
        return [column[0] for column in cursor.description], rows
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
        raise ToolError(_reason(str(error))) from error
    finally:
        connection.close()


def format_result(columns: Sequence[str], rows: Sequence[Row]) -> str:
    """Return a result as lines of values separated by " | ", under a line of column names."""
    lines = [" | ".join(columns)]
    lines += [" | ".join("NULL" if v is None else str(v) for v in row) for row in rows[:MAX_ROWS]]
    more = len(rows) > MAX_ROWS
    lines.append(f"(more than {MAX_ROWS} rows)" if more else f"({len(rows)} rows)")
    return "\n".join(lines)


def same_rows(rows: Sequence[Row], expected: Sequence[Row]) -> bool:
    """Return whether two results hold the same rows, in any order.

    Texts are compared without case and outer spaces; numbers within 0.006 where the expected one is
    no whole number (results are rounded to two decimals), else exactly.
    """
    if len(rows) != len(expected) or any(
        len(row) != len(expected[0]) for row in (*rows, *expected)
    ):
        return False
    given, wanted = (sorted(tuple(map(_key, row)) for row in side) for side in (rows, expected))
    return all(
        all(_same_value(a, b) for a, b in zip(one, two, strict=True))
        for one, two in zip(given, wanted, strict=True)
    )


def read_rows(text: str, num_columns: int) -> list[Row]:
    """Return the rows written in an answer.

    Rows stand on lines or are separated by ";", the values of a row by ",". With one column commas
    separate rows too. A value that reads as a number is one.
    """
    lines = [line for part in text.splitlines() for line in part.split(";")]
    if num_columns == 1:
        lines = [value for line in lines for value in line.split(",")]
        return [(_value(line),) for line in lines if line.strip()]
    return [tuple(_value(v) for v in line.split(",")) for line in lines if line.strip()]


def is_like(pattern: Any, text: Any) -> bool | None:
    """Return whether a text matches a LIKE pattern, without regard to case; None for a NULL.

    ``%`` stands for any characters and ``_`` for one. Each piece between two ``%`` is looked for
    once, from left to right, so the time is linear in the length of the text for each piece.
    """
    if pattern is None or text is None:
        return None
    first, *rest = str(pattern).lower().split("%")
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


def _refuse_escape(*_: Any) -> None:
    # SQLite hides the message; see _reason.
    raise ValueError("ESCAPE is not supported")


def _fill(connection: sqlite3.Connection, tables: Mapping[str, Any]) -> None:
    for name, table in tables.items():
        columns = ", ".join(f'"{column}" {kind}' for column, kind in table["columns"])
        connection.execute(f'CREATE TABLE "{name}" ({columns})')
        marks = ", ".join("?" * len(table["columns"]))
        connection.executemany(f'INSERT INTO "{name}" VALUES ({marks})', table["rows"])


def _authorize(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    is_function = action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _FUNCTIONS
    is_allowed = action in _ALLOWED_ACTIONS or is_function
    return sqlite3.SQLITE_OK if is_allowed else sqlite3.SQLITE_DENY


def _reason(message: str) -> str:
    if "user-defined function" in message:
        return "ESCAPE is not supported"
    if "interrupted" in message:
        return "the query takes too long"
    if "not authorized" in message or "prohibited" in message:
        return f"{message}; only SELECT queries with plain functions are permitted"
    return message


def _value(text: str) -> Any:
    text = text.strip().strip("'\"").strip()
    try:
        number = float(text.replace("_", "x"))
    except ValueError:
        return text
    return number if math.isfinite(number) else text


def _key(value: Any) -> tuple[int, Any]:
    if isinstance(value, int | float):
        return (0, float(value))
    return (1, str(value).strip().casefold())


def _same_value(given: tuple[int, Any], wanted: tuple[int, Any]) -> bool:
    if given[0] != wanted[0]:
        return False
    if wanted[0] == 1 or wanted[1].is_integer():
        return given[1] == wanted[1]
    return abs(given[1] - wanted[1]) <= 0.006
