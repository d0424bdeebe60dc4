import contextlib
import sqlite3
import time

import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.errors import ToolError
from rllm_envs.tool_use.sql import SqlEnv
from rllm_envs.tool_use.sql_database import MAX_ROWS, is_like, read_rows, run_query, same_rows

TABLES = {
    "pets": {
        "columns": [["id", "INTEGER"], ["name", "TEXT"], ["weight", "REAL"]],
        "rows": [[1, "Rex", 20.5], [2, "Tom", 4.0], [3, "Ida", 5.5]],
    }
}
TASK = {
    "tables": TABLES,
    "question": "Which pets weigh less than 6?",
    "query": "SELECT name FROM pets WHERE weight < 6",
}


def start(task=TASK, **arguments):
    env = SqlEnv(**arguments)
    return env, env.reset(options={"task": task})[0]


def answer(text, task=TASK):
    env, _ = start(task)
    _, reward, terminated, _, info = env.step(f"\\boxed{{{text}}}")
    assert terminated
    assert info["success"] is (reward == 1.0)
    return reward


def test_the_first_observation_states_schema_question_and_rules():
    _, observation = start()
    assert "pets(id INTEGER, name TEXT, weight REAL), 3 rows" in observation
    assert "Which pets weigh less than 6?" in observation
    assert "<sql>" in observation
    assert "WHERE" not in observation


def test_a_query_is_answered_with_its_rows():
    env, _ = start()
    observation, reward, terminated, _, info = env.step("<sql>SELECT id, name FROM pets</sql>")
    assert observation == "id | name\n1 | Rex\n2 | Tom\n3 | Ida\n(3 rows)"
    assert (reward, terminated, info["invalid"]) == (0.0, False, False)


@pytest.mark.parametrize(
    ("text", "reward"),
    [
        ("Tom, Ida", 1.0),
        ("ida; 'Tom'", 1.0),
        ("SELECT name FROM pets WHERE id > 1", 1.0),
        ("with t as (select name from pets) select * from t where name <> 'Rex'", 1.0),
        ("Tom", 0.0),
        ("Tom, Ida, Ida", 0.0),
        ("SELECT name, id FROM pets WHERE id > 1", 0.0),
        ("SELECT nothing", 0.0),
        ("", 0.0),
    ],
)
def test_an_answer_is_values_or_a_query(text, reward):
    assert answer(text) == reward


def test_numbers_may_be_rounded_only_where_they_are_not_whole():
    rows = {**TASK, "query": "SELECT ROUND(AVG(weight), 2) FROM pets"}
    assert answer("10", rows) == 1.0  # (20.5 + 4 + 5.5) / 3 = 10
    assert answer("10.004", rows) == 0.0
    third = {**TASK, "query": "SELECT ROUND(10 / 3.0, 2)"}
    assert answer("3.333333", third) == 1.0
    assert answer("3.34", third) == 0.0


@pytest.mark.parametrize(
    "query",
    [
        "ATTACH DATABASE 'x.db' AS x",
        "INSERT INTO pets VALUES (4, 'Z', 1)",
        "DROP TABLE pets",
        "PRAGMA table_info(pets)",
        "SELECT load_extension('x')",
        "SELECT random()",
        "SELECT date('now')",
        "SELECT zeroblob(100000000)",
        "SELECT printf('%1000000d', 1)",
        "VACUUM INTO 'x.db'",
        "SELECT 1; SELECT 2",
        "SELECT '\ud800'",
        "SELECT '\x00'",
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT MAX(n) FROM t",
        "BEGIN",
        "",
    ],
)
def test_what_writes_reads_a_clock_or_never_ends_is_refused(query, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ToolError):
        run_query(TABLES, query)
    assert not list(tmp_path.iterdir())


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


def test_like_works_in_queries_and_escape_is_refused():
    assert run_query(TABLES, "SELECT name FROM pets WHERE name LIKE 't%'")[1] == [("Tom",)]
    assert run_query(TABLES, "SELECT name FROM pets WHERE name NOT LIKE '%o%'")[1] == [
        ("Rex",), ("Ida",)
    ]  # fmt: skip
    with pytest.raises(ToolError, match="ESCAPE"):
        run_query(TABLES, "SELECT name FROM pets WHERE name LIKE 't!%' ESCAPE '!'")


COSTLY = (
    *("LIKE '" + "%a" * 40 + "b'", "LIKE '%" + "a" * 90 + "b'", "LIKE '%" + "_" * 90 + "b'"),
    "= replace(t.s, 'a', 'bc')",
)


@pytest.mark.parametrize("test", COSTLY)
def test_costly_queries_end_soon(test):
    text = "a" * 900
    tables = {"t": {"columns": [["s", "TEXT"]], "rows": [[f"{text}{i}"] for i in range(100)]}}
    start_time = time.perf_counter()
    with contextlib.suppress(ToolError):
        run_query(tables, f"SELECT COUNT(*) FROM t, t AS u, t AS v WHERE t.s || u.s {test}")
    assert time.perf_counter() - start_time < 4.0


def test_rows_are_cut_at_a_limit():
    query = "SELECT 1 FROM pets a, pets b, pets c, pets d, pets e"  # 243 rows
    assert len(run_query(TABLES, query)[1]) == MAX_ROWS + 1
    env, _ = start()
    assert env.step(f"<sql>{query}</sql>")[0].endswith(f"(more than {MAX_ROWS} rows)")
    with pytest.raises(TaskError, match="query"):
        SqlEnv().reset(options={"task": {**TASK, "query": query}})


def test_rows_are_read_by_separators_and_compared_in_any_order():
    assert read_rows("Kiel, 3; Graz, 4", 2) == [("Kiel", 3.0), ("Graz", 4.0)]
    assert same_rows([("graz", 4.0), ("Kiel", 3)], [("Kiel", 3), ("Graz", 4)])
    assert not same_rows([("Graz", 3), ("Kiel", 4)], [("Kiel", 3), ("Graz", 4)])
    assert not same_rows([], [("Kiel",)])


def rows_of(task):
    (parents, p), (children, c) = task["tables"].items()
    names = [[column for column, _ in table["columns"]] for table in (p, c)]
    as_dicts = [
        [dict(zip(columns, row, strict=True)) for row in table["rows"]]
        for columns, table in zip(names, (p, c), strict=True)
    ]
    return parents, children, names, as_dicts


def expected_in_python(task):
    """The answer worked out over the rows, from the words of the question alone."""
    question = task["question"]
    quoted = question.split("'")[1] if "'" in question else ""
    _, children, (p_columns, c_columns), (parents, rows) = rows_of(task)
    key, kind, amount, group, measure = (*c_columns[1:4], *p_columns[2:4])
    own = {p["id"]: [row for row in rows if row[key] == p["id"]] for p in parents}
    if question.startswith("For each"):
        counts = {}
        for p in parents:
            counts[p[group]] = counts.get(p[group], 0) + len(own[p["id"]])
        return {(g, n) for g, n in counts.items() if n}
    if "above the average" in question:
        mean = sum(row[amount] for row in rows) / len(rows)
        return {(sum(row[kind] == quoted and row[amount] > mean for row in rows),)}
    if " each?" in question:
        more = int(question.split("more than ")[1].split()[0])
        return {(sum(len(o) > more for o in own.values()),)}
    if question.startswith("Which"):
        year = int(question.split("of the year ")[1].split()[0])
        totals = {
            p["name"]: sum(row[amount] for row in own[p["id"]] if row["year"] >= year)
            for p in parents
        }
        return {(name,) for name, total in totals.items() if total == max(totals.values())}
    if "without any" in question:
        return {(p["name"],) for p in parents if all(row[kind] != quoted for row in own[p["id"]])}
    if question.startswith("What are the names"):
        return {(p["name"],) for p in parents if p[group] == quoted}
    if "average" in question:
        values = [p[measure] for p in parents if p[group] == quoted]
        return {(round(sum(values) / len(values), 2),)}
    if "of all" in question:
        return {(sum(row[amount] for p in parents if p[group] == quoted for row in own[p["id"]]),)}
    if question.startswith("What is the sum"):
        year = int(question.split("of the year ")[1].split()[0])
        return {(sum(row[amount] for row in rows if row["year"] >= year and row[kind] == quoted),)}
    limit = int(question.split("above ")[1].rstrip("?"))
    assert question.startswith(f"How many {children} have the")
    return {(sum(row[kind] == quoted and row[amount] > limit for row in rows),)}


@pytest.mark.parametrize("level", ["easy", "hard"])
def test_the_reference_query_agrees_with_plain_python_over_the_rows(level):
    env = SqlEnv(level=level, split="all")
    kinds = set()
    for seed in range(120):
        env.reset(seed=seed)
        task = env.task
        found = run_query(task["tables"], task["query"])[1]
        wanted = sorted(expected_in_python(task), key=str)
        assert len(found) == len(wanted)
        for one, two in zip(sorted(found, key=str), wanted, strict=True):
            # Python rounds 2.675 down and SQLite up: a hundredth is no difference of meaning.
            assert one == two or abs(one[0] - two[0]) < 0.011
        kinds.add(" ".join(task["question"].split()[:3]))
    assert len(kinds) >= 4


def test_the_oracle_queries_first_and_then_answers_with_what_it_read():
    env, _ = start()
    assert env.oracle_action() == f"<sql>{TASK['query']}</sql>"
    env.step(env.oracle_action())
    assert env.oracle_action() == "\\boxed{Tom; Ida}"
    assert start(max_turns=1)[0].oracle_action() == f"\\boxed{{{TASK['query']}}}"


def test_levels_and_rows_follow_the_arguments():
    env = SqlEnv(level="hard", num_rows=100)
    env.reset(seed=1)
    sizes = [len(table["rows"]) for table in env.task["tables"].values()]
    assert sizes == [30, 100]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"tables": {}}, "tables"),
        ({"tables": {"a b": TABLES["pets"]}}, "letters"),
        ({"tables": {"pets": {"columns": [["id", "BLOB"]], "rows": []}}}, "column"),
        ({"tables": {"pets": {"columns": [["id", "TEXT"]], "rows": [[1, 2]]}}}, "row"),
        ({"question": 3}, "question"),
        ({"query": "SELECT x FROM pets"}, "query"),
        ({"query": "SELECT name FROM pets WHERE id > 9"}, "query"),
    ],
)
def test_tasks_that_cannot_be_played_are_refused(change, field):
    with pytest.raises(TaskError, match=field):
        SqlEnv().reset(options={"task": {**TASK, **change}})


def test_arguments_out_of_range_are_refused():
    with pytest.raises(EnvArgumentError, match="level"):
        SqlEnv(level="extreme")
    with pytest.raises(EnvArgumentError, match="num_rows"):
        SqlEnv(num_rows=5)
