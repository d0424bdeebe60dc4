"""SQLite databases made of rows: lists of objects, JSONL and CSV files."""

import csv
import json
import math
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rllm_envs.errors import DatasetError, EnvArgumentError, excerpt

MAX_DATABASE_BYTES = 2**26
"""A database in memory; it is copied for each query, so larger ones belong into a file."""
MAX_COLUMNS = 500
_INTEGER = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)

Tables = Mapping[str, str | Path | Iterable[Mapping[str, Any]]]
"""Name of each table to its rows, or to a .jsonl or .csv file of them."""


def make_database(tables: Tables) -> bytes:
    """Return a SQLite database that holds the tables.

    The columns of a table are the fields of its rows in the order of their first appearance; a
    field that a row lacks is NULL. A column of integers is INTEGER, one of numbers REAL, any other
    TEXT. Lists and objects are kept as JSON text, booleans as 0 and 1.

    In a CSV file the first line names the columns, an empty value is NULL, and a column whose
    values all read as numbers holds numbers.

    Raises:
        EnvArgumentError: There is no table, or a table is neither rows nor such a file.
        DatasetError: A row cannot be used; table and number of the row are named.
    """
    if not isinstance(tables, Mapping) or not tables:
        raise EnvArgumentError(
            f"tables must map names to rows or to .jsonl or .csv files, got {excerpt(tables)}"
        )
    connection = sqlite3.connect(":memory:")
    try:
        for name, rows in tables.items():
            if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= 100:
                raise EnvArgumentError(
                    f"a table is named by 1 to 100 printable characters, got {excerpt(name)}"
                )
            _add(connection, name, _rows_of(name, rows))
        made = connection.serialize()
    finally:
        connection.close()
    if len(made) > MAX_DATABASE_BYTES:
        raise EnvArgumentError(
            f"the tables take {len(made)} bytes and may take {MAX_DATABASE_BYTES} in memory; "
            "write them to a SQLite file and give its path"
        )
    return made


def _rows_of(name: str, rows: Any) -> list[Any]:
    if isinstance(rows, str | Path):
        path = Path(rows).expanduser()
        readers = {".jsonl": _read_jsonl, ".csv": _read_csv}
        if path.suffix.lower() not in readers:
            raise EnvArgumentError(
                f"table {name!r} must be a .jsonl or .csv file, got {str(path)!r}"
            )
        try:
            return readers[path.suffix.lower()](path)
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise DatasetError(f"table {name!r}: {str(path)!r} cannot be read: {error}") from error
    if isinstance(rows, Mapping) or not isinstance(rows, Iterable):
        raise EnvArgumentError(f"table {name!r} must be rows or a file, got {excerpt(rows)}")
    return list(rows)


def _read_jsonl(path: Path) -> list[Any]:
    rows = []
    with path.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    rows.append(json.loads(line))
                except (ValueError, RecursionError) as error:
                    raise DatasetError(
                        f"{path}, line {number}: not JSON ({error}): {excerpt(line)}"
                    ) from None
    return rows


def _read_csv(path: Path) -> list[Any]:
    with path.open(encoding="utf-8-sig", newline="") as lines:
        head, *values = [row for row in csv.reader(lines) if row] or [[]]
    if len(set(head)) < len(head):
        raise DatasetError(f"{path}: two columns have one name: {excerpt(head)}")
    for number, row in enumerate(values, 1):
        if len(row) != len(head):
            raise DatasetError(
                f"{path}, row {number}: needs {len(head)} values, got {len(row)}: {excerpt(row)}"
            )
    columns = [_csv_column(column) for column in zip(*values, strict=True)]
    return [dict(zip(head, row, strict=True)) for row in zip(*columns, strict=True)]


def _csv_column(texts: Sequence[str]) -> list[Any]:
    present = [text.strip() for text in texts if text != ""]
    kind: Any = str
    if present and all(map(_INTEGER.fullmatch, present)):
        kind = int
    elif present and all(map(_NUMBER.fullmatch, present)):
        kind = float
    return [None if text == "" else kind(text) for text in texts]


def _add(connection: sqlite3.Connection, name: str, rows: list[Any]) -> None:
    """Make one table; names and kinds of its columns come from the rows."""
    kinds: dict[str, str] = {}
    values: list[dict[str, Any]] = []
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Mapping) or not all(isinstance(column, str) for column in row):
            raise DatasetError(
                f"table {name!r}, row {number}: must be an object, got {excerpt(row)}"
            )
        values.append({column: _stored(value) for column, value in row.items()})
        for column, value in values[-1].items():
            kinds[column] = _wider(kinds.get(column, ""), value)
    if not 0 < len(kinds) <= MAX_COLUMNS:
        raise DatasetError(f"table {name!r} must have 1 to {MAX_COLUMNS} columns, got {len(kinds)}")
    columns = ", ".join(f"{_quoted(column)} {kind or 'TEXT'}" for column, kind in kinds.items())
    try:
        connection.execute(f"CREATE TABLE {_quoted(name)} ({columns})")
    except (sqlite3.Error, ValueError) as error:
        raise DatasetError(f"table {name!r} cannot be made: {error}") from error
    insert = f"INSERT INTO {_quoted(name)} VALUES ({', '.join('?' * len(kinds))})"
    for number, row in enumerate(values, 1):
        try:
            connection.execute(insert, [row.get(column) for column in kinds])
        except (sqlite3.Error, ValueError, OverflowError) as error:
            raise DatasetError(f"table {name!r}, row {number}: {error}") from error
    connection.commit()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _stored(value: Any) -> Any:
    """Return a value as SQLite holds it; what it has no type for becomes JSON text."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        raise DatasetError(f"a value must be JSON, got {excerpt(value)}") from None


def _wider(kind: str, value: Any) -> str:
    """Return the column type that holds what was there and one more value."""
    if value is None or kind == "TEXT":
        return kind
    if isinstance(value, str):
        return "TEXT"
    return "REAL" if isinstance(value, float) or kind == "REAL" else "INTEGER"
