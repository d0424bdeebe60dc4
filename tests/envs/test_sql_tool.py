import json
import sqlite3
import threading
import time

import pytest

from rllm_envs import EnvArgumentError, InfrastructureError, SqlTool, ToolEnvironment
from rllm_envs.tools import make_tools

PETS = [
    {"id": 1, "name": "Rex", "weight": 20.5},
    {"id": 2, "name": "Tom", "weight": 4},
    {"id": 3, "name": "Ida", "weight": None},
]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "pets #1.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE pets(id INTEGER, name TEXT, weight REAL)")
        connection.executemany("INSERT INTO pets VALUES (:id, :name, :weight)", PETS)
        connection.execute("CREATE VIEW heavy AS SELECT name FROM pets WHERE weight > 10")
    connection.close()
    return path


def ask(tool, query):
    return tool.call({"query": query}).text


def test_a_file_and_rows_give_the_same_answers(file):
    for tool in (SqlTool(file), SqlTool(str(file)), SqlTool(tables={"pets": PETS})):
        assert ask(tool, "SELECT name, weight FROM pets WHERE id > 1 ORDER BY id") == (
            "name | weight\nTom | 4.0\nIda | NULL\n(2 rows)"
        )


def test_the_description_lists_the_tables_of_this_database(file):
    assert SqlTool(file).description.endswith(
        "Tables: pets(id INTEGER, name TEXT, weight REAL); heavy(name TEXT)"
    )
    odd = SqlTool(tables={"odd name": [{"a b": 1, "": "x"}]})
    assert odd.description.endswith('Tables: "odd name"("a b" INTEGER, "" TEXT)')
    assert ask(odd, 'SELECT "a b" FROM "odd name"') == "a b\n1\n(1 rows)"
    assert odd.schema["function"]["description"] == odd.description
    assert "Tables" not in SqlTool.description


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM pets",
        "INSERT INTO pets VALUES (4, 'a', 1)",
        "ATTACH DATABASE 'other.db' AS o",
        "PRAGMA journal_mode = delete",
        "VACUUM INTO 'copy.db'",
        "SELECT load_extension('x')",
        "SELECT readfile('/etc/passwd')",
        "SELECT 1; SELECT 2",
        "CREATE TEMP TABLE t(a)",
        "",
        "x" * 20_000,
        "SELECT " + "(" * 500 + "1" + ")" * 500,
        "SELECT '\x00'",
    ],
)
def test_what_is_no_select_is_answered_and_changes_nothing(query, file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = file.read_bytes()
    for tool in (SqlTool(file), SqlTool(tables={"pets": PETS})):
        output = tool.call({"query": query})
        assert output.is_error and len(output.text) < 1000
        assert ask(tool, "SELECT COUNT(*) FROM pets") == "COUNT(*)\n3\n(1 rows)"
    assert file.read_bytes() == before and list(tmp_path.iterdir()) == [file]


def test_costs_are_bounded():
    rows = [{"s": "a" * 9000 + str(n)} for n in range(300)]
    tool = SqlTool(tables={"t": rows}, timeout=0.3, max_rows=2, max_output_characters=100)
    for query in (
        "SELECT COUNT(*) FROM t a, t b, t c",
        "SELECT COUNT(*) FROM t a, t b WHERE instr(a.s, substr(b.s, 4500) || 'b')",
        "SELECT COUNT(*) FROM t a, t b WHERE replace(a.s, substr(b.s, 4500) || 'b', 'c') = 'd'",
        "SELECT COUNT(*) FROM t a, t b WHERE a.s LIKE '%' || substr(b.s, 8500) || '_b%'",
    ):
        start = time.perf_counter()
        assert ask(tool, query) == "Error: the query takes too long"
        assert time.perf_counter() - start < 3
    assert ask(tool, "SELECT 1 FROM t") == "1\n1\n1\n(more than 2 rows)"
    assert ask(tool, "SELECT s FROM t").endswith("\n[the result is longer and was cut here]")


def test_a_name_alone_finds_its_database_in_the_environment(file, monkeypatch):
    monkeypatch.setenv("RLLM_DATABASE", str(file))
    assert "3" in ask(make_tools(["sql"])["sql"], "SELECT COUNT(*) FROM pets")
    monkeypatch.delenv("RLLM_DATABASE")
    with pytest.raises(EnvArgumentError, match=r"RLLM_DATABASE.*SqlTool\(tables"):
        make_tools(["sql"])


def test_threads_do_not_meet():
    tool = SqlTool(tables={"t": [{"n": n} for n in range(100)]})
    answers = {}

    def run(number):
        answers[number] = ask(tool, f"SELECT SUM(n) + {number} FROM t")

    threads = [threading.Thread(target=run, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {n: int(text.split("\n")[1]) for n, text in answers.items()} == {
        n: 4950 + n for n in range(8)
    }


def test_a_database_that_is_gone_ends_the_episode(file):
    env = ToolEnvironment(tools=[SqlTool(file)], reward_fn=lambda **_: 0.0)
    env.reset()
    file.unlink()
    with pytest.raises(InfrastructureError, match="cannot be"):
        env.step({"name": "sql", "arguments": {"query": "SELECT * FROM pets"}})


def test_rows_come_from_files(tmp_path):
    (tmp_path / "a.jsonl").write_text(
        "\n".join(map(json.dumps, [{"x": True, "y": [1]}, {"x": 2, "z": 1.5}]))
    )
    (tmp_path / "b.csv").write_text('city,size,height\n"Kiel, ""K""",3,\nGraz,, 4.5\n')
    tool = SqlTool(tables={"a": tmp_path / "a.jsonl", "b": str(tmp_path / "b.csv")})
    assert ask(tool, "SELECT * FROM a") == "x | y | z\n1 | [1] | NULL\n2 | NULL | 1.5\n(2 rows)"
    assert ask(tool, "SELECT * FROM b ORDER BY size") == (
        'city | size | height\nGraz | NULL | 4.5\nKiel, "K" | 3 | NULL\n(2 rows)'
    )
    assert tool.description.endswith("b(city TEXT, size INTEGER, height REAL)")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"database": "/nowhere.db"}, "there is no database"),
        ({"database": 3}, "must be a path"),
        ({"database": "a.db", "tables": {}}, "not both"),
        ({"tables": {}}, "tables must map"),
        ({"tables": {"t": 3}}, "must be rows or a file"),
        ({"tables": {"t": "a.txt"}}, "a .jsonl or .csv file"),
        ({"tables": {"t": PETS}, "max_rows": 0}, "max_rows"),
        ({"tables": {"t": PETS}, "timeout": float("nan")}, "timeout"),
        ({"tables": {"t": PETS}, "max_value_bytes": True}, "max_value_bytes"),
        ({"tables": {"t": PETS}, "max_output_characters": 1}, "max_output_characters"),
    ],
)
def test_wrong_arguments_are_refused(arguments, reason):
    with pytest.raises(EnvArgumentError, match=reason):
        SqlTool(**arguments)


def test_a_file_that_is_no_database_is_refused(tmp_path):
    path = tmp_path / "a.db"
    path.write_text("text" * 1000)
    with pytest.raises(EnvArgumentError, match="cannot be read"):
        SqlTool(path)
