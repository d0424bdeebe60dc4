import random
import sqlite3
import time

import pytest

from rllm_envs import InfrastructureError, ToolError
from rllm_envs.guarded_sql import DATE_FUNCTIONS, FUNCTIONS, QueryLimits, is_like, select

ENDLESS = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT COUNT(*) FROM t"


def numbers(count):
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t(n)")
    connection.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(count)])
    return connection


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("re%", "Rex", True),
        ("%e%", "Rex", True),
        ("%e", "Rex", False),
        ("r_x", "Rex", True),
        ("_r_x", "Rex", False),
        ("rex%rex", "rex", False),
        ("%", "", True),
        ("", "", True),
        ("", "a", False),
        ("%a_c%d", "xxabcabcd", True),
        ("%.%", "abc", False),
        ("%aa%aa%", "aaa", False),
        (5, 5.0, False),
        (None, "a", None),
    ],
)
def test_like_is_that_of_sql(pattern, text, matches):
    assert is_like(pattern, text) is matches
    own = sqlite3.connect(":memory:").execute("SELECT ? LIKE ?", (text, pattern)).fetchone()[0]
    assert own == matches


def test_like_agrees_with_sqlite_on_random_texts():
    generator = random.Random(0)
    own = sqlite3.connect(":memory:")
    for _ in range(3000):
        text = "".join(generator.choices("aAb", k=generator.randint(0, 6)))
        pattern = "".join(generator.choices("ab%_", k=generator.randint(0, 5)))
        wanted = own.execute("SELECT ? LIKE ?", (text, pattern)).fetchone()[0]
        assert is_like(pattern, text) == wanted


def test_rows_are_fetched_up_to_one_more_than_the_limit():
    assert select(numbers(9), "SELECT n FROM t", QueryLimits(rows=3)) == (
        ["n"], [(0,), (1,), (2,), (3,)]
    )  # fmt: skip
    assert len(select(numbers(3), "SELECT n FROM t", QueryLimits(rows=3))[1]) == 3


@pytest.mark.parametrize("limits", [QueryLimits(), QueryLimits(steps=10**12, seconds=0.2)])
def test_a_query_without_end_is_stopped_by_steps_or_by_time(limits):
    start = time.perf_counter()
    with pytest.raises(ToolError, match="takes too long"):
        select(numbers(1), ENDLESS, limits)
    assert time.perf_counter() - start < 3


def test_results_and_texts_are_bounded():
    limits = QueryLimits(result_bytes=1000, value_bytes=500)
    with pytest.raises(ToolError, match="the result is too large"):
        select(numbers(101), "SELECT '0123456789' FROM t", limits)
    assert len(select(numbers(100), "SELECT '0123456789' FROM t", limits)[1]) == 100
    with pytest.raises(ToolError, match="too big"):
        select(numbers(100), "SELECT group_concat('0123456789') FROM t", limits)
    with pytest.raises(ToolError, match="no pattern of more than 1000"):
        select(numbers(1), f"SELECT 'a' LIKE '{'%' * 1001}'", QueryLimits())


def test_only_the_named_functions_may_be_called():
    with pytest.raises(ToolError, match="only SELECT queries with plain functions"):
        select(numbers(1), "SELECT date('2024-02-28', '+2 days')", QueryLimits())
    limits = QueryLimits(functions=FUNCTIONS | DATE_FUNCTIONS)
    assert select(numbers(1), "SELECT date('2024-02-28', '+2 days')", limits)[1] == [
        ("2024-03-01",)
    ]
    with pytest.raises(ToolError):
        select(numbers(1), "SELECT random()", limits)


def test_a_connection_stays_guarded():
    connection = numbers(1)
    select(connection, "SELECT 1", QueryLimits())
    with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
        connection.execute("DELETE FROM t")


def test_a_broken_database_is_no_answer(tmp_path):
    path = tmp_path / "a.db"
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(InfrastructureError, match="cannot be read"):
        select(sqlite3.connect(path), "SELECT * FROM t", QueryLimits())
