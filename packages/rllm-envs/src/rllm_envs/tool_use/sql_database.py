"""Read-only queries on tables held in memory, with every cost bounded."""

import math
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from rllm_envs.errors import ToolError
from rllm_envs.guarded_sql import QueryLimits, Row, select

MAX_ROWS = 200
"""Rows of one result; a query that gives more is refused as an answer and cut when it is shown."""
_LIMITS = QueryLimits(rows=MAX_ROWS)


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
        return select(connection, query, _LIMITS)
    except (sqlite3.Error, ValueError, OverflowError) as error:
        raise ToolError(f"the tables cannot be made: {error}") from error
    finally:
        connection.close()


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


def _fill(connection: sqlite3.Connection, tables: Mapping[str, Any]) -> None:
    for name, table in tables.items():
        columns = ", ".join(f'"{column}" {kind}' for column, kind in table["columns"])
        connection.execute(f'CREATE TABLE "{name}" ({columns})')
        marks = ", ".join("?" * len(table["columns"]))
        connection.executemany(f'INSERT INTO "{name}" VALUES ({marks})', table["rows"])


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
