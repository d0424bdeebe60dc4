import csv
import gzip
import json

import pytest

from rllm_envs import DatasetError, DatasetNotFoundError
from rllm_envs.datasets import BENCHMARKS
from rllm_envs.datasets.local_files import data_files, rows_of_file

ROWS = [{"question": "1 + 1?", "answer": "... #### 2"}, {"question": "\u2028é", "answer": "#### 3"}]
GSM8K, MATH500 = BENCHMARKS["gsm8k"], BENCHMARKS["math500"]


def write(path, rows=ROWS):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix in (".parquet", ".arrow"):
        pyarrow = pytest.importorskip("pyarrow")
        table = pyarrow.Table.from_pylist(rows)
        if path.suffix == ".parquet":
            import pyarrow.parquet

            pyarrow.parquet.write_table(table, path)
        else:
            with pyarrow.ipc.new_stream(str(path), table.schema) as file:
                file.write_table(table)
    elif path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    elif path.name.endswith(".json"):
        path.write_text(json.dumps(rows))
    else:
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
        path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def read(path):
    rows = [row for _, row in rows_of_file(path, 1 << 20)]
    return [json.loads(row) if isinstance(row, bytes) else row for row in rows]


@pytest.mark.parametrize(
    "name", ["a.jsonl", "a.jsonl.gz", "a.json", "a.csv", "a.parquet", "a.arrow"]
)
def test_each_kind_of_file_gives_the_same_rows(name, tmp_path):
    assert read(write(tmp_path / name)) == ROWS


def test_arrow_files_are_read_in_both_formats(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.Table.from_pylist(ROWS)
    with pyarrow.ipc.new_file(str(tmp_path / "a.arrow"), table.schema) as file:
        file.write_table(table)
    assert read(tmp_path / "a.arrow") == ROWS


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.jsonl.gz"])
def test_a_file_that_is_cut_off_is_an_error_and_not_a_short_data_set(name, tmp_path):
    path = write(tmp_path / name, ROWS * 200)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DatasetError, match=r"cannot be read after row \d+"):
        read(path)


def test_csv_rows_with_too_many_fields_or_another_encoding_are_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("question,answer\n1,2\n1,2,3\n")
    with pytest.raises(DatasetError, match="row 2: more fields"):
        read(path)
    path.write_text("question,answer\n1,2\n", encoding="utf-16")
    with pytest.raises(DatasetError, match="cannot be read"):
        read(path)
    path.write_text("\ufeffquestion,answer\n1,2\n", encoding="utf-8")
    assert read(path) == [{"question": "1", "answer": "2"}]


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.parquet"])
def test_a_row_over_the_limit_is_named(name, tmp_path):
    path = write(tmp_path / name, [ROWS[0], {"question": "x" * 1000, "answer": "2"}])
    with pytest.raises(DatasetError, match="row 2: longer than 500 bytes"):
        list(rows_of_file(path, 500))


@pytest.mark.parametrize(
    "name",
    ["test.jsonl", "test.jsonl.gz", "test.csv", "data/test.json", "main/test.jsonl",
     "test-00000-of-00001.parquet", "main/test-00000-of-00001.parquet",
     "test/data-00000-of-00001.arrow"],
)  # fmt: skip
def test_the_file_of_a_split_is_found_by_its_name(name, tmp_path):
    path = write(tmp_path / name)
    assert data_files(GSM8K, "test", tmp_path) == [path]
    with pytest.raises(DatasetNotFoundError, match="no file of split 'train'"):
        data_files(GSM8K, "train", tmp_path)


def test_all_parts_of_a_split_are_taken_in_order_and_splits_are_not_mixed(tmp_path):
    parts = [write(tmp_path / f"train-0000{n}-of-00002.parquet") for n in (0, 1)]
    write(tmp_path / "test-00000-of-00001.parquet")
    assert data_files(GSM8K, "train", tmp_path) == parts


def test_a_split_is_found_by_the_hubs_name_and_by_its_usual_names(tmp_path):
    hotpotqa, aime = BENCHMARKS["hotpotqa"], BENCHMARKS["aime2024"]
    path = write(tmp_path / "dev.jsonl")
    # The file "test" of HotpotQA has no answers; what is tested on is its validation part.
    write(tmp_path / "test.jsonl")
    assert data_files(hotpotqa, "test", tmp_path) == [path]
    assert data_files(aime, "test", tmp_path) == [tmp_path / "test.jsonl"]


def test_a_single_file_of_any_name_serves_a_single_split_only(tmp_path):
    path = write(tmp_path / "MATH500.jsonl")
    assert data_files(MATH500, "test", tmp_path) == [path]
    with pytest.raises(DatasetNotFoundError, match=r"it needs test\.jsonl.*MATH500"):
        data_files(GSM8K, "test", tmp_path)


def test_a_file_is_the_split_and_other_kinds_are_refused(tmp_path):
    path = write(tmp_path / "anything.csv")
    assert data_files(GSM8K, "train", path) == [path]
    (tmp_path / "a.pkl").write_bytes(b"x")
    with pytest.raises(DatasetError, match=r"must end in one of \.jsonl"):
        data_files(GSM8K, "train", tmp_path / "a.pkl")
    with pytest.raises(DatasetNotFoundError, match="no such file or folder"):
        data_files(GSM8K, "train", tmp_path / "none")
