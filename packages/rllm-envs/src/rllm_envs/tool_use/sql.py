r"""``rllm/SQL-v0``: answer a question about a small database by queries."""

import re
from typing import Any

from rllm_envs.core import Response
from rllm_envs.errors import TaskError, ToolError, excerpt
from rllm_envs.tasks import Task
from rllm_envs.tool_use.command_env import CommandEnv, clipped
from rllm_envs.tool_use.draws import Draws
from rllm_envs.tool_use.fields import (
    check_choice,
    check_integer,
    is_name,
    need,
    object_field,
    text_field,
)
from rllm_envs.tool_use.sql_database import (
    MAX_ROWS,
    Row,
    format_result,
    read_rows,
    run_query,
    same_rows,
)
from rllm_envs.tool_use.sql_questions import (
    DOMAINS,
    LEVELS,
    has_answer,
    random_question,
    random_tables,
)

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")
_QUERY_START = re.compile(r"\s*(select|with)\b", re.IGNORECASE)


class SqlEnv(CommandEnv):
    r"""Answer a question about a database of two tables with read-only SQL.

    ## Description
    The agent reads the schema and a question. It may run SELECT queries (SQLite) and then answers
    with the values, or with a query whose result is the answer. Rows and questions are generated:
    counts, sums and averages with conditions (level "easy"), joins, groups and queries inside
    queries (level "hard").

    ## Action Space
    Any text outside of ``<think>...</think>``. ``<sql>SELECT ...</sql>`` runs a query. ``\boxed{}``
    answers and ends the episode: values separated by commas, rows of several values separated by
    semicolons, or one SELECT query. A box counts before a query.

    ## Observation Space
    First the tables with their columns and numbers of rows, the question, and how to act. A query
    is answered with the column names, the rows (values separated by " | ") and their number, or
    with ``Error: ...``. Only SELECT with deterministic functions is permitted; running time, rows
    and the size of values are bounded.

    ## Starting State
    One of six themes; ``num_rows`` rows in the second table, about a third as many in the first;
    a question of the level whose result is not empty.

    ## Rewards
    1 if the rows of the answer are those of the reference query in any order (text without case;
    numbers that are not whole within 0.006), 0 otherwise. Queries are free.

    ## Episode End
    Terminates with an answer. Truncates after ``max_turns`` actions without one.

    ## Information
    ``success``, ``invalid`` (neither a query nor an answer), ``turn``, ``turns_left``.

    ## Arguments
    ``level`` ("easy", "hard" or "mixed", default "mixed"), ``num_rows`` (10 to 200, default 40),
    ``max_turns`` (default 8), ``split`` ("train", "test" or "all").
    Task: ``{"tables": {name: {"columns": [[name, type], ...], "rows": [...]}}, "question": "...",
    "query": "SELECT ..."}``; types are INTEGER, REAL and TEXT.
    ``rllm/SQLHard-v0`` has level "hard" and 120 rows.

    ## Version History
    * v0: Initial version
    """

    tag = "sql"
    takes_answer = True
    hint = "Write <sql>SELECT ...</sql> to run a query, or give the answer in \\boxed{}."

    def __init__(
        self,
        *,
        level: str = "mixed",
        num_rows: int = 40,
        max_turns: int = 8,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        check_choice("level", level, LEVELS)
        check_integer("num_rows", num_rows, 10, 200)
        super().__init__(max_turns=max_turns, split=split, render_mode=render_mode)
        self.level = level
        self.num_rows = num_rows
        self._tables: dict[str, Any] = {}
        self._query = ""
        self._expected: list[Row] = []
        self._found: list[Row] = []

    def generate_task(self) -> Task:
        """Return random tables, a question and the query that answers it."""
        draws = Draws(self.np_random)
        domain = draws.pick(DOMAINS)
        tables = random_tables(draws, domain, self.num_rows)
        question, query = random_question(draws, domain, tables, self.level)
        return {"tables": tables, "question": question, "query": query}

    def validate_task(self, task: Task) -> Task:
        """Check the tables, and that the query runs and gives 1 to 200 rows without NULL."""
        for name, table in object_field(task, "tables", 1, 8).items():
            _check_table(name, table)
        text_field(task, "question")
        query = text_field(task, "query")
        try:
            rows = run_query(task["tables"], query)[1]
        except ToolError as error:
            raise TaskError(f"task['query'] does not run: {error}; {excerpt(query)}") from error
        need(
            has_answer(rows) and len(rows) <= MAX_ROWS,
            f"task['query'] must give 1 to {MAX_ROWS} rows without NULL",
            rows,
        )
        return task

    def begin(self, task: Task) -> str:
        """Return schema, question and rules."""
        self._tables, self._query = task["tables"], task["query"]
        self._expected = run_query(self._tables, self._query)[1]
        self._found = []
        lines = ["A SQLite database has these tables:"]
        for name, table in self._tables.items():
            columns = ", ".join(f"{column} {kind}" for column, kind in table["columns"])
            lines.append(f"{name}({columns}), {len(table['rows'])} rows")
        return "\n".join(
            (
                *lines,
                f"Question: {task['question']}",
                "Write <sql>SELECT ...</sql> to run a query and read its result. Give the final "
                "answer in \\boxed{}: the values separated by commas (rows of several values "
                "separated by semicolons), or one SELECT query whose result is the answer. You "
                f"have {self.max_turns} turns.",
            )
        )

    def run_command(self, command: str) -> Response:
        """Run a query and show its result."""
        try:
            columns, rows = run_query(self._tables, command)
        except ToolError as error:
            return Response(f"Error: {error}")
        self._found = rows
        return Response(clipped(format_result(columns, rows)))

    def is_correct(self, answer: str) -> bool:
        """Return whether the values, or the result of the query, are those of the reference."""
        if not _QUERY_START.match(answer):
            return same_rows(read_rows(answer, len(self._expected[0])), self._expected)
        try:
            return same_rows(run_query(self._tables, answer)[1], self._expected)
        except ToolError:
            return False

    def oracle_action(self) -> str:
        """Return the reference query if it was not run and turns are left, else the answer."""
        if not same_rows(self._found, self._expected):
            if self.max_turns - self._turn > 1:
                return self.tagged(self._query)
            return f"\\boxed{{{self._query}}}"
        rows = "; ".join(", ".join(map(str, row)) for row in self._found)
        return f"\\boxed{{{rows}}}"


def _check_table(name: str, table: Any) -> None:
    where = f"task['tables'][{name!r:.60}]"
    need(_IDENTIFIER.fullmatch(name), f"{where} must be named by letters, digits and _", name)
    need(isinstance(table, dict), f"{where} must be an object", table)
    columns, rows = table.get("columns"), table.get("rows")
    need(isinstance(columns, list) and 1 <= len(columns) <= 20, f"{where} needs columns", columns)
    for column in columns:
        is_pair = isinstance(column, list) and len(column) == 2 and is_name(column[0], 40)
        need(
            is_pair
            and _IDENTIFIER.fullmatch(column[0])
            and column[1] in ("INTEGER", "REAL", "TEXT"),
            f"{where}: a column must be [name, 'INTEGER', 'REAL' or 'TEXT']",
            column,
        )
    need(isinstance(rows, list) and len(rows) <= 1000, f"{where} needs up to 1000 rows", rows)
    for row in rows:
        is_row = isinstance(row, list) and len(row) == len(columns)
        need(
            is_row and all(v is None or isinstance(v, str | int | float) for v in row),
            f"{where}: a row must hold {len(columns)} numbers or texts",
            row,
        )
