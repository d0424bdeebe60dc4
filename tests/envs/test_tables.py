import sqlite3

import pytest

from rllm_envs import DatasetError
from rllm_envs.tools.tables import make_database


def columns_of(rows):
    connection = sqlite3.connect(":memory:")
    connection.deserialize(make_database({"t": rows}))
    return {name: kind for _, name, kind, *_ in connection.execute("PRAGMA table_info(t)")}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, None, True], "INTEGER"),
        ([1, 2.5], "REAL"),
        ([2.5, 1], "REAL"),
        ([1, "a"], "TEXT"),
        (["a", 1.5], "TEXT"),
        ([None], "TEXT"),
        ([float("nan"), 1], "INTEGER"),
        ([{"a": 1}], "TEXT"),
    ],
)
def test_the_type_of_a_column_holds_all_its_values(values, kind):
    assert columns_of([{"v": value} for value in values]) == {"v": kind}


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([{"a": 1}, 3], "'t', row 2: must be an object, got 3"),
        ([{1: 1}], "'t', row 1: must be an object"),
        ([{"a": 1}, {"a": 2**70}], "'t', row 2"),
        ([{"a": "\ud800"}], "'t', row 1"),
        ([{"a": {1, 2}}], "must be JSON, got {1, 2}"),
        ([{"a": 1, "A": 2}], "'t' cannot be made: duplicate column"),
        ([], "1 to 500 columns, got 0"),
        ([{str(n): n for n in range(501)}], "1 to 500 columns, got 501"),
    ],
)
def test_rows_that_cannot_be_used_are_named(rows, reason):
    with pytest.raises(DatasetError, match=reason):
        make_database({"t": rows})


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.jsonl", '{"a": 1}\n\n{"a"', "line 3: not JSON"),
        ("a.jsonl", "[1]", "row 1: must be an object"),
        ("a.csv", "a,b\n1", "row 1: needs 2 values, got 1"),
        ("a.csv", "a,a\n1,2", "two columns have one name"),
        ("a.csv", "", "1 to 500 columns"),
    ],
)
def test_broken_files_are_named(tmp_path, name, content, reason):
    (tmp_path / name).write_text(content)
    with pytest.raises(DatasetError, match=reason):
        make_database({"t": tmp_path / name})


def test_a_file_that_is_not_there_or_no_text_is_named(tmp_path):
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe\x00")
    for name in ("missing.csv", "b.csv"):
        with pytest.raises(DatasetError, match=r"'t'.*cannot be read"):
            make_database({"t": tmp_path / name})


def test_numbers_of_csv_files_are_numbers_only_where_all_are(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b,c,d\n1,1,1e3,007x\n-2,2.5,nan,8\n")
    assert columns_of(path) == {"a": "INTEGER", "b": "REAL", "c": "TEXT", "d": "TEXT"}
