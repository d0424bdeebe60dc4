"""The library ``datasets`` loads a folder as it loads a repository, so a folder stands for one."""

import json
from dataclasses import replace

import pytest

from rllm_envs import DatasetError, DatasetNotFoundError
from rllm_envs.datasets import BENCHMARKS, load_benchmark
from rllm_envs.datasets.hub import hub_rows

pytest.importorskip("datasets")


@pytest.fixture
def benchmark_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("RLLM_DATA_DIR", raising=False)
    folder = tmp_path / "repository"
    folder.mkdir()
    for split, answers in {"train": "CAB", "validation": "BA"}.items():
        rows = [{"question": f"{split}?", "options": list("pqr"), "answer": a} for a in answers]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return replace(
        BENCHMARKS["mmlu_pro"],
        hub_id=str(folder),
        splits={"train": "train", "test": "validation"},
    )


def test_rows_of_a_split_become_tasks(benchmark_folder):
    tasks = load_benchmark(benchmark_folder)
    assert [(task["question"], task["answer"]) for task in tasks] == [
        ("validation?", 1), ("validation?", 0),
    ]  # fmt: skip
    assert [task["answer"] for task in load_benchmark(benchmark_folder, "train")] == [2, 0, 1]


def test_a_row_over_the_limit_is_named(benchmark_folder):
    with pytest.raises(DatasetError, match="validation, row 1: longer than 10 bytes"):
        list(hub_rows(replace(benchmark_folder, max_row_bytes=10), "test", None))


def test_what_the_library_cannot_load_is_not_found(benchmark_folder):
    nowhere = replace(benchmark_folder, hub_id="rllm-tests/there-is-no-such-set")
    with pytest.raises(DatasetNotFoundError, match="there-is-no-such-set"):
        list(hub_rows(nowhere, "test", None))
