"""Programming benchmarks: rows with a problem and the tests of a program.

Tasks have ``question``, the tests in one of the forms of ``rllm_envs.grading.code.tests``, the
prompt that a solution goes on from where there is one, and ``id`` where the row has one.
"""

import ast
import re
from typing import Any

from rllm_envs.datasets.benchmark import Benchmark, Row
from rllm_envs.datasets.fields import id_of, listed, optional_text, text_of, texts_of
from rllm_envs.datasets.packed_tests import unpacked_tests
from rllm_envs.errors import DatasetError, excerpt
from rllm_envs.tasks import Task

MAX_TEXT = 4 << 20
"""Characters of the tests or of a solution."""
MAX_ROW_BYTES = 64 << 20
"""Rows of these sets hold many tests."""


def humaneval_task(row: Row) -> Task:
    """Return the task of a row with a prompt to go on from and ``check(candidate)``."""
    prompt = text_of(row, "prompt")
    task = {
        "question": f"Complete this function.\n\n```python\n{prompt.rstrip()}\n```",
        "prompt": prompt,
        "entry_point": text_of(row, "entry_point", limit=200),
        "test": text_of(row, "test", limit=MAX_TEXT),
    }
    solution = optional_text(row, "canonical_solution", limit=MAX_TEXT)
    return task | ({"canonical_solution": solution} if solution else {}) | id_of(row, "task_id")


def mbpp_task(row: Row) -> Task:
    """Return the task of a row of MBPP; the first of its assertions shows the name to use."""
    tests = texts_of(row, "test_list")
    task: Task = {"question": _mbpp_question(row, tests), "test_list": tests}
    setup = optional_text(row, "test_setup_code", limit=MAX_TEXT)
    imports = listed(row.get("test_imports"))
    return (
        task
        | ({"test_setup_code": setup} if setup else {})
        | ({"test_imports": imports} if imports else {})
        | _solution(row, "code")
        | id_of(row, "task_id")
    )


def mbpp_plus_task(row: Row) -> Task:
    """Return the task of a row of MBPP+: the problem of MBPP with one long test."""
    tests = texts_of(row, "test_list")
    return (
        {
            "question": _mbpp_question(row, tests),
            "entry_point": _called_name(text_of(row, "code", limit=MAX_TEXT), tests[0]),
            "test": text_of(row, "test", limit=MAX_TEXT),
        }
        | _solution(row, "code")
        | id_of(row, "task_id")
    )


def livecodebench_task(row: Row) -> Task:
    """Return the task of a row of LiveCodeBench with its public and private tests."""
    public = unpacked_tests(row, "public_test_cases")
    private = unpacked_tests(row, "private_test_cases")
    task: Task = {"question": text_of(row, "question_content"), "tests": public + private}
    if row.get("metadata") not in (None, "", {}):
        task["metadata"] = listed(row["metadata"])
    return task | _starter(row) | id_of(row, "question_id")


def apps_task(row: Row) -> Task | None:
    """Return the task of a row of APPS or TACO; None where it has no tests."""
    packed = row.get("input_output")
    cases = listed(packed)
    if cases in (None, "", [], {}):
        return None
    if not isinstance(cases, dict):
        raise DatasetError(f"field 'input_output' must be an object, got {excerpt(packed)}")
    if not cases.get("inputs"):
        return None
    tests = {name: cases[name] for name in ("inputs", "outputs", "fn_name") if cases.get(name)}
    return {"question": text_of(row, "question")} | tests | _starter(row) | id_of(row, "problem_id")


def leetcode_task(row: Row) -> Task:
    """Return the task of a row of LeetCodeDataset; ``prompt`` is the imports that it relies on."""
    return (
        {
            "question": text_of(row, "problem_description"),
            "prompt": text_of(row, "prompt"),
            "entry_point": text_of(row, "entry_point", limit=200),
            "test": text_of(row, "test", limit=MAX_TEXT),
        }
        | _starter(row)
        | _solution(row, "completion")
        | id_of(row, "task_id")
    )


def _mbpp_question(row: Row, tests: list[str]) -> str:
    problem = text_of(row, "text", "prompt").strip()
    return f"{problem}\n\nYour program must pass tests such as this one:\n\n{tests[0]}"


def _solution(row: Row, name: str) -> dict[str, str]:
    code = optional_text(row, name, limit=MAX_TEXT)
    return {"solution": code} if code else {}


def _starter(row: Row) -> dict[str, str]:
    code = optional_text(row, "starter_code")
    return {"starter_code": code} if code else {}


def _called_name(code: str, test: str) -> str:
    """Return the function of a solution that a test calls; of several the last defined."""
    try:
        names = [node.name for node in ast.parse(code).body if isinstance(node, ast.FunctionDef)]
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise DatasetError(f"field 'code' is no Python ({error}): {excerpt(code)}") from None
    called = [name for name in names if re.search(rf"\b{re.escape(name)}\b", test)]
    if not called:
        raise DatasetError(f"field 'code' defines no function that its first test calls: {names}")
    return called[-1]


def _code(name: str, hub_id: str, to_task: Any, **fields: Any) -> Benchmark:
    return Benchmark(
        name=name,
        hub_id=hub_id,
        env_id="rllm/Code-v0",
        to_task=to_task,
        reward="rllm_envs.code_rewards:code_reward_fn",
        metric="share of problems whose tests all pass",
        **{"max_row_bytes": MAX_ROW_BYTES, "splits": {"test": "test"}} | fields,
    )


_TRAIN_TEST = {"train": "train", "test": "test"}

CODE_BENCHMARKS = (
    _code(
        "humaneval",
        "openai/openai_humaneval",
        humaneval_task,
        licence="mit",
        num_rows={"test": 164},
        aliases=("human_eval",),
    ),
    _code(
        "humaneval_plus",
        "evalplus/humanevalplus",
        humaneval_task,
        licence="apache-2.0",
        num_rows={"test": 164},
        aliases=("humaneval+", "humanevalplus"),
    ),
    _code(
        "mbpp",
        "google-research-datasets/mbpp",
        mbpp_task,
        config="full",
        splits={"train": "train", "validation": "validation", "test": "test"},
        licence="cc-by-4.0",
        num_rows={"train": 374, "validation": 90, "test": 500},
    ),
    _code(
        "mbpp_sanitized",
        "google-research-datasets/mbpp",
        mbpp_task,
        config="sanitized",
        splits={"train": "train", "validation": "validation", "test": "test"},
        licence="cc-by-4.0",
        num_rows={"train": 120, "validation": 43, "test": 257},
    ),
    _code(
        "mbpp_plus",
        "evalplus/mbppplus",
        mbpp_plus_task,
        licence="apache-2.0",
        num_rows={"test": 378},
        aliases=("mbpp+", "mbppplus"),
    ),
    _code(
        "livecodebench",
        "livecodebench/code_generation_lite",
        livecodebench_task,
        data_files={"test": "test*.jsonl"},
        licence="cc",
        aliases=("lcb", "live_code_bench"),
    ),
    _code(
        "apps",
        "codeparrot/apps",
        apps_task,
        splits=_TRAIN_TEST,
        data_files={"train": "train.jsonl", "test": "test.jsonl"},
        licence="mit",
        num_rows={"train": 5000, "test": 5000},
    ),
    _code(
        "taco",
        "BAAI/TACO",
        apps_task,
        splits=_TRAIN_TEST,
        data_files={"train": "train/*.arrow", "test": "test/*.arrow"},
        licence="apache-2.0",
        num_rows={"train": 25443, "test": 1000},
    ),
    _code(
        "leetcode",
        "newfacade/LeetCodeDataset",
        leetcode_task,
        splits=_TRAIN_TEST,
        licence="apache-2.0",
        aliases=("leetcode_dataset",),
    ),
)
"""The programming benchmarks."""
