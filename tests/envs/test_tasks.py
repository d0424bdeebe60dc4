import gzip
import json

import pytest

from rllm_envs import Dataset, DatasetError, TaskError, task_split
from rllm_envs.tasks import MAX_ROW_BYTES, canonical_json, copied


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_rows_come_back_as_copies_in_order():
    data = Dataset([{"a": 1}, {"a": 2}], name="numbers")
    data[0]["a"] = 99
    assert list(data) == [{"a": 1}, {"a": 2}]
    assert len(data) == 2
    assert data[-1] == {"a": 2}
    assert list(data[1:]) == [{"a": 2}]


def test_repeat_puts_the_copies_of_a_row_next_to_each_other():
    data = Dataset([{"a": 1}, {"a": 2}]).repeat(n=3)
    assert [row["a"] for row in data] == [1, 1, 1, 2, 2, 2]
    with pytest.raises(DatasetError, match="n >= 1, got 0"):
        data.repeat(0)


def test_shuffle_depends_on_the_seed_alone():
    data = Dataset([{"a": n} for n in range(20)])
    order = [row["a"] for row in data.shuffle(seed=1)]
    assert order == [row["a"] for row in data.shuffle(seed=1)]
    assert order != [row["a"] for row in data.shuffle(seed=2)]
    assert sorted(order) == list(range(20))


def test_select_keeps_order_and_refuses_an_index_out_of_range():
    data = Dataset([{"a": n} for n in range(3)])
    assert [row["a"] for row in data.select([2, 0])] == [2, 0]
    with pytest.raises(DatasetError, match="index 3 is out of range for 3 rows"):
        data.select([3])
    with pytest.raises(DatasetError, match="index -1"):
        data.select([-1])


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".jsonl.gz", ".json.gz"])
def test_files_of_all_kinds_give_the_same_rows(tmp_path, suffix):
    rows = [{"q": "1 + 1\u2028?", "a": 2}, {"q": "é", "a": [1, None]}]
    if ".jsonl" in suffix:
        content = "".join(json.dumps(row, ensure_ascii=False) + "\r\n" for row in rows).encode()
    else:
        content = json.dumps(rows).encode()
    if suffix.endswith("gz"):
        content = gzip.compress(content)
    data = Dataset.from_file(write(tmp_path / f"data{suffix}", b"" + content))
    assert list(data) == rows
    assert data.name == f"data{suffix}"


def test_a_byte_order_mark_and_empty_lines_are_no_rows(tmp_path):
    path = write(tmp_path / "d.jsonl", b'\xef\xbb\xbf{"a": 1}\n\n{"a": 2}')
    assert len(Dataset.from_file(path)) == 2


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (b'{"a": 1', "not valid JSON"),
        (b"[1]", "not a JSON object"),
        (b"3", "not a JSON object"),
        (b'{"a": NaN}', "NaN is not JSON"),
        (b'{"a": 1e999}', "not a finite number"),
        (b'{"a": 1, "a": 2}', "'a' appears twice"),
        (b'{"a": "\\ud800"}', "lone surrogate"),
        (b'{"a": "\\u0000"}', "NUL"),
        (b'{"a": "\xff"}', "not UTF-8"),
        ('{"a": 1}'.encode("utf-16"), "not UTF-8"),
        (b'{"a": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", "recursion|nested"),
        (b'{"a": ' + b"[" * 80 + b"]" * 80 + b"}", "nested more than 64"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not valid JSON"),
        (b'{"a": "' + b"x" * MAX_ROW_BYTES + b'"}', "longer than"),
    ],
)
def test_a_broken_row_is_named_with_its_number_and_start(tmp_path, row, reason):
    path = write(tmp_path / "bad.jsonl", b'{"a": 0}\n' + row + b"\n")
    with pytest.raises(DatasetError, match=reason) as caught:
        Dataset.from_file(path)
    message = str(caught.value)
    assert "bad.jsonl, row 2" in message
    assert len(message) < 400


def test_rows_given_in_memory_are_checked_alike():
    with pytest.raises(DatasetError, match="row 2: field 'x': nan is not a finite number"):
        Dataset([{"x": 1.0}, {"x": float("nan")}])
    with pytest.raises(DatasetError, match="row 1: field 'x': a set is not JSON"):
        Dataset([{"x": {1}}])
    with pytest.raises(DatasetError, match="no rows"):
        Dataset([])


@pytest.mark.parametrize("field", ["id", "unique_id", "task_id"])
def test_ids_that_repeat_are_refused(field):
    with pytest.raises(DatasetError, match=f"row 3: {field} 'x' is also that of row 1"):
        Dataset([{field: "x"}, {field: "y"}, {field: "x"}])


def test_bad_rows_are_skipped_on_request_and_counted(tmp_path):
    lines = ['{"a": 1}'] * 199 + ["oops"]
    path = write(tmp_path / "d.jsonl", "\n".join(lines))
    data = Dataset.from_file(path, on_bad_row="skip")
    assert (len(data), data.num_skipped) == (199, 1)


def test_skipping_stops_when_more_than_one_row_in_a_hundred_is_bad(tmp_path):
    path = write(tmp_path / "d.jsonl", "\n".join(['{"a": 1}'] * 97 + ["oops"] * 3))
    with pytest.raises(DatasetError, match=r"3 of 100 rows are bad.*row 98"):
        Dataset.from_file(path, on_bad_row="skip")


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("d.jsonl", b"", "no rows"),
        ("d.json", b"{}", "must hold a list"),
        ("d.json", b"[1]", "row 1: not a JSON object"),
        ("d.csv", b"a,b", "must end in one of"),
        ("d.jsonl.gz", b"not gzip", "cannot be read"),
        ("d.jsonl.gz", gzip.compress(b'{"a": 1}\n' * 1000, mtime=0)[:-20], "cannot be read"),
    ],
)
def test_files_of_a_wrong_kind_are_refused(tmp_path, name, content, reason):
    with pytest.raises(DatasetError, match=reason):
        Dataset.from_file(write(tmp_path / name, content))


def test_a_missing_file_and_an_unknown_policy_are_refused(tmp_path):
    with pytest.raises(DatasetError, match="no such file"):
        Dataset.from_file(tmp_path / "none.jsonl")
    with pytest.raises(DatasetError, match='"error" or "skip", got \'ignore\''):
        Dataset.from_file(tmp_path / "none.jsonl", on_bad_row="ignore")


def test_a_task_falls_on_one_side_whatever_the_order_of_its_keys():
    assert canonical_json({"b": 1, "a": "é"}) == '{"a":"\\u00e9","b":1}'
    assert task_split({"b": 1, "a": 2}) == task_split({"a": 2, "b": 1})
    # First bytes of sha256sum of {"n":3}, {"n":5}, {"n":7}, {"n":8}: 0x21, 0x11, 0x1d, 0xb3.
    assert [task_split({"n": n}) for n in (3, 5, 7, 8)] == ["train", "test", "test", "train"]
    sides = [task_split({"n": n}) for n in range(4096)]
    assert 0.10 < sides.count("test") / 4096 < 0.15


def test_a_copy_is_equal_and_shares_nothing_that_can_be_changed():
    inner, odd = [1, {"b": 2.5}], {3}
    value = {"a": [inner, None, True], "odd": odd, "pair": (inner, "text")}
    copy = copied(value)
    assert copy == value
    assert [type(part) for part in copy.values()] == [list, set, tuple]
    inner[1]["b"] = 0
    inner.append(4)
    odd.add(4)
    assert copy == {
        "a": [[1, {"b": 2.5}], None, True],
        "odd": {3},
        "pair": ([1, {"b": 2.5}], "text"),
    }


def test_a_task_that_is_not_json_has_no_split():
    with pytest.raises(TaskError, match="must be JSON"):
        task_split({"a": object()})
