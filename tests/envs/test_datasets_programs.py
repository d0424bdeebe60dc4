import json

import pytest

from rllm_envs import DatasetError
from rllm_envs.coding.code_problem import CodeEnv
from rllm_envs.datasets.programs import (
    apps_task,
    humaneval_task,
    leetcode_task,
    livecodebench_task,
    mbpp_plus_task,
    mbpp_task,
)
from rllm_envs.grading.code.tests import read_tests

HUMANEVAL = {
    "task_id": "HumanEval/0",
    "prompt": 'def double(x: int) -> int:\n    """ Twice x. """\n',
    "canonical_solution": "    return 2 * x\n",
    "test": "def check(candidate):\n    assert candidate(2) == 4\n",
    "entry_point": "double",
}
MBPP = {
    "task_id": 11,
    "text": "Write a function to double a number.",
    "code": "def half(x):\n    return x / 2\ndef double(x):\n    return 2 * x",
    "test_list": ["assert double(2) == 4", "assert double(0) == 0"],
    "test_setup_code": "",
    "challenge_test_list": [],
}
MBPP_PLUS = {
    "task_id": 11,
    "prompt": "Write a function to double a number.",
    "code": MBPP["code"],
    "source_file": "Benchmark.ipynb",
    "test_imports": [],
    "test_list": MBPP["test_list"],
    "test": "for x in range(5):\n    assert double(x) == x + x\n",
}
CALL = {"input": "2", "output": "4", "testtype": "functional"}
LIVECODEBENCH = {
    "question_title": "Double",
    "question_content": "Return twice x.",
    "platform": "leetcode",
    "question_id": "3001",
    "contest_id": "w1",
    "contest_date": "2024-01-01",
    "starter_code": "class Solution:\n    def double(self, x: int) -> int:\n        ",
    "difficulty": "easy",
    "public_test_cases": json.dumps([CALL]),
    "private_test_cases": json.dumps([CALL | {"input": "3", "output": "6"}]),
    "metadata": '{"func_name": "double"}',
}
APPS = {
    "problem_id": 7,
    "question": "Print twice the number.",
    "solutions": '["print(2 * int(input()))"]',
    "input_output": '{"inputs": ["2\\n", "5\\n"], "outputs": ["4\\n", "10\\n"]}',
    "difficulty": "introductory",
    "url": "https://example.org",
    "starter_code": "",
}
LEETCODE = {
    "task_id": "double",
    "question_id": 1,
    "problem_description": "Return twice x.",
    "starter_code": "class Solution:\n    def double(self, x: int) -> int:\n        ",
    "prompt": "from typing import *\n",
    "completion": "class Solution:\n    def double(self, x: int) -> int:\n        return 2 * x\n",
    "entry_point": "Solution().double",
    "test": "def check(candidate):\n    assert candidate(x = 2) == 4\n",
}


def test_the_tests_of_each_kind_of_row_can_be_read():
    assert read_tests(humaneval_task(HUMANEVAL)).entry_point == "double"
    assert len(read_tests(mbpp_task(MBPP)).tests) == 2
    assert read_tests(mbpp_plus_task(MBPP_PLUS)).entry_point == "double"
    suite = read_tests(livecodebench_task(LIVECODEBENCH))
    assert (suite.kind, suite.entry_point, len(suite.tests)) == ("call", "double", 2)
    task = apps_task(APPS)
    assert task is not None
    suite = read_tests(task)
    assert (suite.kind, len(suite.tests)) == ("stdin", 2)
    assert read_tests(leetcode_task(LEETCODE)).entry_point == "Solution().double"


def test_questions_show_what_the_program_must_be_named():
    assert "def double(x: int)" in humaneval_task(HUMANEVAL)["question"]
    question = mbpp_task(MBPP)["question"]
    assert "assert double(2) == 4" in question
    assert "assert double(0) == 0" not in question


@pytest.mark.parametrize(
    ("to_task", "row"),
    [(humaneval_task, HUMANEVAL), (mbpp_task, MBPP), (mbpp_plus_task, MBPP_PLUS),
     (leetcode_task, LEETCODE)],
)  # fmt: skip
def test_the_env_plays_the_task_with_the_solution_of_the_row(to_task, row):
    env = CodeEnv()
    env.reset(options={"task": to_task(row)})
    assert env.step(env.oracle_action())[1] == 1.0
    env.reset(options={"task": to_task(row)})
    wrong = (
        "class Solution:\n    def double(self, x):\n        return 3\ndef double(x):\n    return 3"
    )
    assert env.step(f"```python\n{wrong}\n```")[1] == 0.0


@pytest.mark.parametrize("tests", ["", None, "{}", '{"inputs": [], "outputs": []}'])
def test_rows_of_apps_without_tests_are_left_out(tests):
    assert apps_task(APPS | {"input_output": tests}) is None


@pytest.mark.parametrize(
    ("to_task", "row", "change", "field"),
    [
        (humaneval_task, HUMANEVAL, {"prompt": None}, "prompt"),
        (humaneval_task, HUMANEVAL, {"test": ""}, "test"),
        (humaneval_task, HUMANEVAL, {"entry_point": 3}, "entry_point"),
        (mbpp_task, MBPP, {"test_list": []}, "test_list"),
        (mbpp_task, MBPP, {"text": 1}, "text"),
        (mbpp_plus_task, MBPP_PLUS, {"code": "def other(x): pass"}, "code"),
        (mbpp_plus_task, MBPP_PLUS, {"code": "def ("}, "code"),
        (livecodebench_task, LIVECODEBENCH, {"question_content": ""}, "question_content"),
        (apps_task, APPS, {"input_output": "[1]"}, "input_output"),
        (apps_task, APPS, {"input_output": "{"}, "input_output"),
    ],
)
def test_a_wrong_field_is_named(to_task, row, change, field):
    with pytest.raises(DatasetError, match=f"'{field}'"):
        to_task(row | change)
