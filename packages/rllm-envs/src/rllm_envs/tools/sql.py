"""``SqlTool``: SELECT queries on a SQLite database."""

import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from rllm_envs.errors import EnvArgumentError, InfrastructureError, ToolError
from rllm_envs.guarded_sql import (
    DATE_FUNCTIONS,
    FUNCTIONS,
    QueryLimits,
    format_result,
    select,
)
from rllm_envs.tools.base import Tool
from rllm_envs.tools.tables import Tables, make_database

DATABASE_VARIABLE = "RLLM_DATABASE"
"""Environment variable that names the database of a tool that is made without one."""
MAX_QUERY_LENGTH = 10_000
MAX_SHOWN_SCHEMA = 4000
_LIMITS = QueryLimits(
    steps=100_000_000,
    # Few, because one step on a long text may take milliseconds.
    steps_per_check=20,
    functions=FUNCTIONS | DATE_FUNCTIONS,
)


class SqlTool(Tool):
    """Run one SELECT query on a SQLite database and read the result.

    Nothing but reading is possible: a file is opened read-only, statements other than SELECT and
    functions that reach outside of the database are refused. The tool's description lists the
    tables with their columns. Functions are the plain ones of texts, numbers, windows and dates.

    Args:
        database: A SQLite file. Without it and without ``tables``, as where only the class is
            given, the file that the environment variable RLLM_DATABASE names.
        tables: Instead of a file: the rows of each table, or a .jsonl or .csv file of them; see
            ``tables.make_database``.
        max_rows: Rows shown of a result, 1 to 10,000.
        timeout: Seconds of a query, in (0, 3600]. It is looked at between the steps of a query,
            of which one may take about a second on texts of ``max_value_bytes``.
        max_value_bytes: Bytes of one text, and of one row of the database, 1,000 to 1,000,000.
        max_output_characters: Most characters of an answer, at least 100.

    Raises:
        EnvArgumentError: There is no database, it cannot be read, or an argument is out of range.
        DatasetError: A row of ``tables`` cannot be used; its number is named.
    """

    name = "sql"
    description = "Run one SELECT query (SQLite, read-only) and read the result."

    def __init__(
        self,
        database: str | Path | None = None,
        *,
        tables: Tables | None = None,
        max_rows: int = 50,
        timeout: float = 5.0,
        max_value_bytes: int = 20_000,
        max_output_characters: int = 4000,
    ) -> None:
        _check_integer("max_rows", max_rows, 1, 10_000)
        _check_integer("max_value_bytes", max_value_bytes, 1000, 1_000_000)
        _check_integer("max_output_characters", max_output_characters, 100, 10_000_000)
        is_number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
        if not is_number or not 0 < timeout <= 3600:
            raise EnvArgumentError(f"timeout must be seconds in (0, 3600], got {timeout!r:.80}")
        if database is not None and tables is not None:
            raise EnvArgumentError("give SqlTool a database or tables, not both")
        self._limits = replace(
            _LIMITS, rows=max_rows, seconds=float(timeout), value_bytes=max_value_bytes
        )
        self._max_output = max_output_characters
        self._content = b""
        self._address = ""
        if tables is not None:
            self._content = make_database(tables)
        else:
            self._address = _address_of(database)
        self.description = f"{type(self).description} Tables: {self._schema()}"

    def forward(self, query: str) -> str:
        """Return the column names, the rows (values separated by " | ") and their number.

        Args:
            query: One SELECT statement, such as SELECT name FROM people WHERE age > 30.
        """
        if len(query) > MAX_QUERY_LENGTH:
            raise ToolError(f"the query is longer than {MAX_QUERY_LENGTH} characters")
        with closing(self._connection()) as connection:
            columns, rows = select(connection, query, self._limits)
        text = format_result(columns, rows, self._limits.rows)
        if len(text) <= self._max_output:
            return text
        return f"{text[: self._max_output]}\n[the result is longer and was cut here]"

    def _connection(self) -> sqlite3.Connection:
        """Return a connection of its own for one query, so that threads do not meet."""
        try:
            if not self._address:
                connection = sqlite3.connect(":memory:")
                connection.deserialize(self._content)
                return connection
            return sqlite3.connect(self._address, uri=True, timeout=1.0)
        except sqlite3.Error as error:
            raise InfrastructureError(f"the database cannot be opened: {error}") from error

    def _schema(self) -> str:
        with closing(self._connection()) as connection:
            try:
                names = connection.execute(
                    "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
                    "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid"
                ).fetchall()
                tables = [_described(connection, name) for (name,) in names]
            except sqlite3.Error as error:
                raise EnvArgumentError(
                    f"the database {self._address or 'in memory'} cannot be read: {error}"
                ) from error
        text = "; ".join(tables) or "none"
        if len(text) <= MAX_SHOWN_SCHEMA:
            return text
        return f"{text[:MAX_SHOWN_SCHEMA]}... (more in the table sqlite_master)"


def _described(connection: sqlite3.Connection, name: str) -> str:
    rows = connection.execute("SELECT name, type FROM pragma_table_info(?)", (name,)).fetchall()
    columns = ", ".join(f"{_shown(column)} {kind}".strip() for column, kind in rows)
    return f"{_shown(name)}({columns})"


def _shown(name: str) -> str:
    """Return a name as a query must write it."""
    return name if name.isidentifier() else '"' + name.replace('"', '""') + '"'


def _address_of(database: str | Path | None) -> str:
    """Return the address that opens a file read-only."""
    database = os.environ.get(DATABASE_VARIABLE) if database is None else database
    if not database:
        raise EnvArgumentError(
            "SqlTool has no database: set the environment variable "
            f"{DATABASE_VARIABLE} to a SQLite file, or give SqlTool(path) or SqlTool(tables=...)"
        )
    if not isinstance(database, str | Path):
        raise EnvArgumentError(f"database must be a path, got {database!r:.80}")
    path = Path(database).expanduser().resolve()
    if not path.is_file():
        raise EnvArgumentError(f"there is no database {str(path)!r}")
    return f"{path.as_uri()}?mode=ro"


def _check_integer(name: str, value: object, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise EnvArgumentError(f"{name} must be an integer in [{low}, {high}], got {value!r:.80}")
