import re

import pytest

from rllm_envs import CATALOG, DatasetNotFoundError
from rllm_envs.datasets import BENCHMARKS, benchmark_named, find_benchmark

USUAL_NAMES = (
    *("gsm8k", "math500", "math", "aime2024", "aime2025", "amc", "minerva_math", "olympiadbench"),
    *("deepscaler", "numina", "mmlu", "mmlu_pro", "gpqa_diamond", "arc_challenge", "arc_easy"),
    *("hellaswag", "winogrande", "boolq", "commonsense_qa", "openbookqa", "truthfulqa_mc"),
    *("humaneval", "humaneval_plus", "mbpp", "mbpp_plus", "livecodebench", "apps", "taco"),
    *("leetcode", "hotpotqa", "nq_open", "triviaqa", "2wikimultihopqa", "musique", "bamboogle"),
    *("popqa", "ifeval"),
)


def test_the_usual_names_are_there():
    assert set(USUAL_NAMES) <= set(BENCHMARKS)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_each_entry_is_complete(name):
    benchmark = BENCHMARKS[name]
    assert re.fullmatch(r"[a-z0-9_]+", name)
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", benchmark.hub_id)
    assert benchmark.env_id in {entry.id for entry in CATALOG}
    assert callable(benchmark.reward_fn)
    assert benchmark.splits
    assert set(benchmark.splits) <= {"train", "validation", "test"}
    assert set(benchmark.num_rows) <= set(benchmark.splits)
    assert set(benchmark.data_files) in (set(), set(benchmark.splits))
    assert benchmark.split_named(None) == benchmark.default_split


def test_no_name_stands_for_two_benchmarks():
    names = [n for b in BENCHMARKS.values() for n in (b.name, *b.aliases)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("name", "found"),
    [("GSM8K", "gsm8k"), ("MMLU-Pro", "mmlu_pro"), ("aime24", "aime2024"), ("gpqa", "gpqa_diamond"),
     ("openai/gsm8k", "gsm8k"), ("HumanEval+", "humaneval_plus"), ("hendrycks_math", "math")],
)  # fmt: skip
def test_other_spellings_are_found(name, found):
    assert benchmark_named(name).name == found


def test_an_unknown_name_is_answered_with_the_nearest():
    assert find_benchmark("no such thing") is None
    with pytest.raises(DatasetNotFoundError, match="hellaswag"):
        benchmark_named("helaswag")


def test_splits_go_by_our_name_and_by_the_hubs():
    hotpotqa = BENCHMARKS["hotpotqa"]
    assert hotpotqa.split_named("validation") == hotpotqa.split_named("test") == "test"
    with pytest.raises(DatasetNotFoundError, match="no split 'dev'; it has train, test"):
        hotpotqa.split_named("dev")
    assert BENCHMARKS["deepscaler"].default_split == "train"
