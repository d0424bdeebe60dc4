import json

import gymnasium
import pytest

from rllm_envs import DatasetError, DatasetNotFoundError, DatasetRegistry, load_rows
from rllm_envs.datasets import BENCHMARKS, load_benchmark
from rllm_envs.grading.code.tests import read_tests

LETTERS = ("mmlu_pro", {"question": "?", "options": ["p", "q"], "answer": "A"})


def lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def numbered(count, bad=()):
    return [
        {"problem": f"What is {n}?", "answer": "" if n in bad else str(n), "unique_id": f"u{n}"}
        for n in range(count)
    ]


@pytest.mark.parametrize(
    ("name", "split", "num_rows"),
    [("gsm8k", "train", 7473), ("gsm8k", "test", 1319), ("math500", None, 500),
     ("aime2024", None, 30), ("humaneval", None, 164), ("hotpotqa", None, 7405)],
)  # fmt: skip
def test_the_real_files_are_read_whole(name, split, num_rows, data_dir):
    benchmark = BENCHMARKS[name]
    dataset = load_benchmark(name, split, data_dir / name)
    assert len(dataset) == num_rows == benchmark.num_rows[benchmark.split_named(split)]
    assert (dataset.name, dataset.num_skipped) == (name, 0)
    assert all(row["question"] and row.get("answer", True) for row in dataset)


def test_gsm8k_answers_are_numbers_and_humaneval_tests_can_be_run(data_dir):
    numbers = [row["answer"] for row in load_benchmark("gsm8k", "test", data_dir / "gsm8k")]
    assert numbers[:2] == ["18", "3"]
    assert all(n.replace(",", "").replace(".", "").lstrip("-").isdigit() for n in numbers)
    for task in load_benchmark("humaneval", path=data_dir / "humaneval"):
        assert read_tests(task).entry_point == task["entry_point"]


def test_real_tasks_are_played_by_their_env(data_dir, monkeypatch):
    monkeypatch.setenv("RLLM_DATA_DIR", str(data_dir))
    env = gymnasium.make("rllm/Code-v0", dataset="humaneval", split="test")
    env.reset(seed=0)
    assert env.step(env.unwrapped.oracle_action())[1] == 1.0
    pytest.importorskip("math_verify", reason="data sets are graded with math-verify")
    env = gymnasium.make("rllm/Math-v0", dataset="GSM8K")
    for seed in range(10):
        env.reset(seed=seed)
        assert env.step(env.unwrapped.oracle_action())[1] == 1.0


def test_a_file_of_ones_own_is_read_by_the_same_rules(tmp_path):
    path = lines(tmp_path / "mine.jsonl", numbered(3))
    tasks = load_benchmark("math-500", path=path)
    assert list(tasks)[2] == {"question": "What is 2?", "answer": "2", "id": "u2"}
    assert tasks.split == "test"


def test_files_of_the_data_folder_are_found_by_name_or_alias(tmp_path, monkeypatch):
    monkeypatch.setenv("RLLM_DATA_DIR", str(tmp_path))
    lines(tmp_path / "aime24" / "test.jsonl", numbered(2))
    lines(tmp_path / "math500.jsonl", numbered(4))
    assert len(load_benchmark("aime2024")) == 2
    assert len(load_benchmark("math500")) == 4


def test_names_of_the_catalog_are_known_to_the_registry_and_to_environments(tmp_path, monkeypatch):
    monkeypatch.setenv("RLLM_DATA_DIR", str(tmp_path))
    lines(tmp_path / "mmlu_pro/test.jsonl", [LETTERS[1]])
    lines(tmp_path / "mmlu_pro/validation.jsonl", [LETTERS[1]] * 2)
    assert len(DatasetRegistry.load_dataset("mmlu_pro", "test")) == 1
    assert len(DatasetRegistry.load_dataset("mmlu_pro")) == 1
    assert len(load_rows("mmlu_pro", "test")) == 1
    assert len(load_rows("mmlu_pro", "all")) == 3
    with pytest.raises(DatasetNotFoundError, match="no split 'train'; it has validation, test"):
        load_rows("mmlu_pro", "train")
    assert load_rows("mmlu_pro", "test") is load_rows("mmlu_pro", "test")
    lines(tmp_path / "mmlu_pro/test.jsonl", [LETTERS[1]] * 5)
    assert len(load_rows("mmlu_pro", "test")) == 5


def test_a_registered_data_set_comes_before_a_public_one_of_its_name(tmp_path, monkeypatch):
    monkeypatch.setenv("RLLM_HOME", str(tmp_path))
    DatasetRegistry.register_dataset("gsm8k", [{"question": "mine", "answer": "1"}], "test")
    assert DatasetRegistry.load_dataset("gsm8k", "test")[0]["question"] == "mine"
    assert load_rows("gsm8k", "test")[0]["question"] == "mine"


def test_without_files_and_without_the_hub_the_error_says_what_to_do(tmp_path, monkeypatch):
    pytest.importorskip("datasets")
    monkeypatch.setenv("RLLM_DATA_DIR", str(tmp_path))
    with pytest.raises(DatasetNotFoundError) as caught:
        load_benchmark("gpqa_diamond")
    for part in ("'gpqa_diamond'", "'test'", "huggingface.co/datasets/Idavidrein/gpqa",
                 f"{tmp_path}/gpqa_diamond/test.jsonl", "path=", "conditions"):  # fmt: skip
        assert part in str(caught.value)
    lines(tmp_path / "gsm8k/train.jsonl", numbered(1))
    with pytest.raises(DatasetNotFoundError, match=r"gsm8k has no file of split 'test'"):
        load_benchmark("gsm8k")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"problem": "?"}', "'answer' or 'Answer' is missing"),
        ('{"problem": 5, "answer": "1"}', "'problem' must be text"),
        ('{"problem": "?", "answer": NaN}', "NaN is not JSON"),
        ('{"problem": "?", "answer": 1e999}', "not a finite number"),
        ('{"problem": "a\\u0000b", "answer": "1"}', "NUL"),
        ('{"problem": "a\\ud800b", "answer": "1"}', "lone surrogate"),
        ('{"problem": "?", "problem": "?", "answer": "1"}', "appears twice"),
        ('["problem"]', "not a JSON object"),
        ('{"problem": "?", "answer": "1", "unique_id": "u0"}', r"'u0' is also that of .*row 1"),
    ],
)
def test_a_bad_row_is_named_with_its_number(line, problem, tmp_path):
    path = lines(tmp_path / "test.jsonl", numbered(2))
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(DatasetError, match=f"(?s)test.jsonl, row 3: .*{problem}"):
        load_benchmark("math500", path=path)


def test_bad_rows_are_skipped_and_counted_when_asked_up_to_a_share(tmp_path):
    path = lines(tmp_path / "a.jsonl", numbered(200, bad={7, 50}))
    with pytest.raises(DatasetError, match="row 8: field 'answer'"):
        load_benchmark("math500", path=path)
    tasks = load_benchmark("math500", path=path, on_bad_row="skip")
    assert (len(tasks), tasks.num_skipped) == (198, 2)
    path = lines(tmp_path / "b.jsonl", numbered(200, bad={7, 50, 60}))
    with pytest.raises(DatasetError, match="3 of 200 rows are bad, more than 1%"):
        load_benchmark("math500", path=path, on_bad_row="skip")


def test_an_empty_file_and_wrong_arguments_are_refused(tmp_path):
    with pytest.raises(DatasetError, match="has no rows"):
        load_benchmark("math500", path=lines(tmp_path / "a.jsonl", []))
    with pytest.raises(DatasetError, match="on_bad_row"):
        load_benchmark("math500", on_bad_row="hide")
    with pytest.raises(DatasetError, match="path or revision"):
        load_benchmark("math500", path=tmp_path, revision="main")
    with pytest.raises(DatasetNotFoundError, match="gsm8k"):
        load_benchmark("gsm8")
