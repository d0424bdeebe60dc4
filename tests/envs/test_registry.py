import json
import threading

import pytest

from rllm_envs import Dataset, DatasetError, DatasetNotFoundError, DatasetRegistry, load_rows

ROWS = [{"question": "1 + 1", "answer": "2"}, {"question": "2 + 2", "answer": "4"}]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("RLLM_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_a_registered_data_set_is_loaded_listed_and_removed():
    assert DatasetRegistry.get_dataset_names() == []
    registered = DatasetRegistry.register_dataset("sums", ROWS, split="train")
    assert isinstance(registered, Dataset)
    loaded = DatasetRegistry.load_dataset("sums", "train")
    assert list(loaded) == ROWS
    assert (loaded.name, loaded.split) == ("sums", "train")
    assert DatasetRegistry.get_dataset_names() == ["sums"]
    DatasetRegistry.register_dataset("sums", ROWS[:1], split="test")
    assert DatasetRegistry.get_dataset_splits("sums") == ["test", "train"]
    assert DatasetRegistry.dataset_exists("sums")
    assert DatasetRegistry.dataset_exists("sums", "test")
    assert not DatasetRegistry.dataset_exists("sums", "dev")
    DatasetRegistry.remove_dataset("sums", "test")
    assert DatasetRegistry.get_dataset_splits("sums") == ["train"]
    DatasetRegistry.remove_dataset("sums")
    assert not DatasetRegistry.dataset_exists("sums")


def test_a_missing_name_raises_and_lists_what_exists():
    DatasetRegistry.register_dataset("sums", ROWS)
    with pytest.raises(DatasetNotFoundError, match="'sum'; registered: sums"):
        DatasetRegistry.load_dataset("sum")
    with pytest.raises(DatasetNotFoundError, match="no split 'test'; it has default"):
        DatasetRegistry.load_dataset("sums", "test")
    with pytest.raises(DatasetNotFoundError, match="registered: sums"):
        DatasetRegistry.remove_dataset("other")


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "a b", "x" * 101, "a\0", None, 3])
def test_names_cannot_leave_the_registry(name):
    with pytest.raises(DatasetError, match="is not allowed"):
        DatasetRegistry.register_dataset(name, ROWS)
    with pytest.raises(DatasetError, match="is not allowed"):
        DatasetRegistry.register_dataset("fine", ROWS, split=name)


def test_a_file_is_registered_by_its_path(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)))
    assert list(DatasetRegistry.register_dataset("from-file", path)) == ROWS
    path.unlink()
    assert list(DatasetRegistry.load_dataset("from-file")) == ROWS


def test_registering_again_replaces_and_a_bad_row_leaves_the_old_rows(home):
    DatasetRegistry.register_dataset("sums", ROWS)
    DatasetRegistry.register_dataset("sums", ROWS[:1])
    assert len(DatasetRegistry.load_dataset("sums")) == 1
    with pytest.raises(DatasetError, match="row 1"):
        DatasetRegistry.register_dataset("sums", [{"x": float("inf")}])
    assert len(DatasetRegistry.load_dataset("sums")) == 1
    assert [path.name for path in (home / "datasets" / "sums").iterdir()] == ["default.jsonl"]


def test_concurrent_readers_never_see_half_a_file():
    rows = [{"n": n} for n in range(2000)]
    DatasetRegistry.register_dataset("big", rows)
    lengths = []

    def read():
        lengths.extend(len(DatasetRegistry.load_dataset("big")) for _ in range(5))

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for _ in range(3):
        DatasetRegistry.register_dataset("big", rows)
    for reader in readers:
        reader.join()
    assert set(lengths) == {2000}


def test_load_rows_takes_a_file_whole_whatever_the_split(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)))
    for split in ("train", "test", "all"):
        assert list(load_rows(str(path), split)) == ROWS
    assert load_rows(path) is load_rows(path)


def test_load_rows_reads_a_changed_file_again(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1}\n')
    assert len(load_rows(path)) == 1
    path.write_text('{"a": 1}\n{"a": 2}\n')
    assert len(load_rows(path)) == 2


def test_load_rows_takes_the_split_of_a_registered_name():
    DatasetRegistry.register_dataset("sums", ROWS, split="train")
    DatasetRegistry.register_dataset("sums", ROWS[:1], split="test")
    DatasetRegistry.register_dataset("plain", ROWS)
    assert len(load_rows("sums", "train")) == 2
    assert len(load_rows("sums", "test")) == 1
    assert len(load_rows("sums", "all")) == 3
    assert load_rows("sums", "all") is load_rows("sums", "all")
    assert len(load_rows("plain", "test")) == 2
    with pytest.raises(DatasetNotFoundError, match="no split 'dev'; it has test, train"):
        load_rows("sums", "dev")


def test_load_rows_of_something_unknown_says_what_it_looked_for(tmp_path):
    DatasetRegistry.register_dataset("sums", ROWS)
    with pytest.raises(DatasetNotFoundError, match="registered: sums"):
        load_rows("summs")
    with pytest.raises(DatasetNotFoundError, match=r"nowhere\.jsonl.*no such file"):
        load_rows(str(tmp_path / "nowhere.jsonl"))
