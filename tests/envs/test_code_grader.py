import gzip
import json
import os
from pathlib import Path

import pytest

from rllm_envs.code_rewards import CodeReward, code_reward_fn, whole_program
from rllm_envs.errors import SandboxError, TaskError
from rllm_envs.grading.code.grader import CodeGrader, same_output
from rllm_envs.grading.code.tests import read_tests

CALLS = {"fn_name": "add", "inputs": [[1, 2], [-1, 1]], "outputs": [3, 0]}
STDIN = {"inputs": ["1 2", "-1 1"], "outputs": ["3", "0"]}
CHECK = {
    "prompt": "def helper(x):\n    return x + 1\n\ndef add(a, b):\n    '''Add.'''\n",
    "entry_point": "add",
    "test": (
        "def check(candidate):\n"
        "    assert candidate(1, 2) == 3\n"
        "    assert candidate(helper(0), 2) == 3\n"
    ),
}
ASSERTS = {"test_list": ["assert add(1, 2) == 3", "assert add(-1, 1) == 0"]}
FORMS = {"calls": CALLS, "stdin": STDIN, "check": CHECK, "asserts": ASSERTS}
ADD = "def add(a, b):\n    return a + b\n"
PROGRAM = "a, b = map(int, input().split())\nprint(a + b)\n"


def grade(task, solution, **settings):
    return CodeGrader(**settings).grade(solution, read_tests(task))


@pytest.mark.parametrize("form", FORMS)
def test_a_right_solution_passes_every_test(form):
    verdict = grade(FORMS[form], PROGRAM if form == "stdin" else ADD)
    assert verdict.is_correct
    assert verdict.outcome == "passed"
    assert len(verdict.results) == (1 if form == "check" else 2)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        (("a + b", "a - b"), "wrong"),
        (("a + b", "1 / 0"), "error"),
        (("a + b", "a +"), "error"),
        (("a + b", "__import__('os')._exit(0)"), "error"),
        (("a + b", "__import__('sys').exit(0)"), "error"),
        (("a + b", "[0 for x in iter(int, 1)]"), "memory or timeout"),
        (("a + b", "next(x for x in iter(int, 1) if x)"), "timeout"),
        (("a + b", "__import__('ctypes').string_at(0)"), "error"),
    ],
)
def test_a_wrong_solution_fails_and_says_how(form, change, outcome):
    solution = (PROGRAM if form == "stdin" else ADD).replace(*change)
    verdict = grade(FORMS[form], solution, timeout_seconds=1.0, memory_bytes=2**28)
    assert not verdict.is_correct
    first = verdict.results[0].outcome
    if outcome == "memory or timeout":
        assert first in ("memory", "timeout", "error")
    elif form == "stdin" and "exit" in change[1]:
        assert first == "wrong"  # it printed nothing
    else:
        assert first == outcome
    assert form == "check" or verdict.results[1].outcome == "not_run"


# The forgeries of the field: each gets full marks from some grader that people use.

ALWAYS_EQUAL = """
class Yes:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
def add(a, b): return Yes()
"""
ALWAYS_EQUAL_INT = """
class Yes(int):
    def __eq__(self, other): return True
    def __hash__(self): return 0
def add(a, b): return Yes(7)
"""
WALK_FRAMES = """
import sys, os
def add(a, b):
    frame = sys._getframe()
    while frame is not None:
        for value in list(frame.f_locals.values()):
            if isinstance(value, list): value.append(True)
            if isinstance(value, dict): value.update(passed=True, failed=None)
        frame = frame.f_back
    os._exit(0)
"""
PATCH_JSON = """
import json, builtins
json.loads = lambda *a, **k: {"value": True, "passed": True}
json.dumps = lambda *a, **k: '{"passed": true}'
builtins.isinstance = lambda *a: True
def add(a, b): return True
"""
PRINT_EXPECTED = """
import sys
frame = sys._getframe()
while frame is not None:
    for name, value in {**frame.f_globals, **frame.f_locals}.items():
        if name in ("expected", "output", "outputs", "tests"): print(value)
    frame = frame.f_back
def add(a, b): return None
"""
EXIT_ON_IMPORT = "import os\nos._exit(0)\n"
SYS_EXIT = "import sys\nsys.exit(0)\n"
PYTEST_WORD = "# pytest\ndef add(a, b): return None\n"
WRITE_ANSWERS = """
import os, json
for number in range(1, 64):
    for text in ('{"passed": true}', '{"value": "[3, []]"}'):
        try: os.write(number, text.encode())
        except OSError: pass
def add(a, b): os._exit(0)
"""
STOP_ITERATION = "def add(a, b): raise StopIteration\n"
REPLACE_ASSERTION = """
import builtins
builtins.AssertionError = type("Fine", (BaseException,), {})
def add(a, b): raise builtins.AssertionError
def helper(x): raise SystemExit(0)
def check(candidate): pass
"""
FORGERIES = {
    "equal to everything": ALWAYS_EQUAL,
    "a number equal to everything": ALWAYS_EQUAL_INT,
    "walk frames": WALK_FRAMES,
    "patch json": PATCH_JSON,
    "print what is expected": PRINT_EXPECTED,
    "os._exit(0)": EXIT_ON_IMPORT,
    "sys.exit(0)": SYS_EXIT,
    "the word pytest": PYTEST_WORD,
    "write to every descriptor": WRITE_ANSWERS,
    "end loops": STOP_ITERATION,
    "replace the assertion": REPLACE_ASSERTION,
}
LOOP = {
    **CHECK,
    "test": (
        "def check(candidate):\n    for got in map(candidate, [1], [2]):\n        assert got == 3\n"
    ),
}


@pytest.mark.parametrize("form", [*FORMS, "loop"])
@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_solution_scores_nothing(form, forgery):
    task = {**FORMS, "loop": LOOP}[form]
    verdict = grade(task, FORGERIES[forgery], timeout_seconds=3.0)
    assert not verdict.is_correct
    assert verdict.num_passed == 0


def test_values_cross_with_their_types():
    task = {"test_list": [
        "assert f() == (1, {2, 3}, [float('inf')], {(1, 2): b'x'}, None, 2 + 1j)",
        "assert type(f()[0]) is int and type(f()) is tuple",
    ]}  # fmt: skip
    solution = "def f():\n    return (1, {2, 3}, [float('inf')], {(1, 2): b'x'}, None, 2 + 1j)"
    assert grade(task, solution).is_correct
    assert not grade(task, solution.replace("(1, {2", "(True, {2")).is_correct


def test_arguments_that_are_changed_in_place_are_seen_by_the_tests():
    task = {"test_list": ["x = [3, 1, 2]\nassert f(x, k=1) is None\nassert x == [1, 2, 3]"]}
    assert grade(task, "def f(x, k):\n    x.sort()").is_correct
    assert not grade(task, "def f(x, k):\n    x = sorted(x)").is_correct


def test_expected_exceptions_reach_the_tests():
    task = {"test_list": [
        "try:\n    f(-1)\nexcept ValueError as error:\n    assert 'low' in str(error)\nelse:\n"
        "    assert False"
    ]}  # fmt: skip
    assert grade(task, "def f(x):\n    if x < 0: raise ValueError('too low')").is_correct
    assert not grade(task, "def f(x):\n    raise KeyError('low')").is_correct


def test_classes_of_the_prelude_and_of_the_solution():
    nodes = {
        "prompt": (
            "class Node:\n    def __init__(self, v, n=None):\n        self.v, self.n = v, n\n"
        ),
        "entry_point": "Solution().double",
        "test": (
            "def check(candidate):\n"
            "    got = candidate(Node(1, Node(2)))\n"
            "    assert (got.v, got.n.v, got.n.n) == (2, 4, None)\n"
        ),
    }
    double = "class Solution:\n    def double(self, n):\n        first = n\n        while n:\n"
    double += "            n.v *= 2\n            n = n.n\n        return first\n"
    assert grade(nodes, nodes["prompt"] + double).is_correct
    queue = {"test_list": [
        "q = Queue(2)\nassert q.push(1) is None\nassert q.push(5) is None\nassert q.pop() == 1\n"
        "assert len(q) == 1 and list(q) == [5] and q.size == 2"
    ]}  # fmt: skip
    solution = (
        "class Queue:\n    def __init__(self, size): self.size, self.items = size, []\n"
        "    def push(self, x): self.items.append(x)\n    def pop(self): return self.items.pop(0)\n"
        "    def __len__(self): return len(self.items)\n"
        "    def __iter__(self): return iter(self.items)\n"
    )
    assert grade(queue, solution).is_correct


def test_a_solution_may_print_as_much_as_it_likes():
    noisy = "def add(a, b):\n    print('x' * 10**6)\n    return a + b\n"
    assert grade(CHECK, noisy).is_correct
    assert grade(CALLS, noisy).is_correct


def test_tests_that_cannot_be_run_are_the_tasks_error():
    with pytest.raises(TaskError, match="cannot be run"):
        grade({**CHECK, "prompt": "import no_such_module\n"}, ADD)


class _NoSandbox:
    description = "none"

    def run(self, code, **arguments):
        raise SandboxError("down")

    async def run_async(self, code, **arguments):
        raise SandboxError("down")


@pytest.mark.parametrize("form", FORMS)
def test_a_sandbox_that_fails_is_no_wrong_answer(form):
    with pytest.raises(SandboxError):
        grade(FORMS[form], ADD, sandbox=_NoSandbox())
    with pytest.raises(SandboxError):
        CodeReward(sandbox=_NoSandbox())(FORMS[form], f"```python\n{ADD}```")


def test_partial_credit_counts_every_test():
    task = {"fn_name": "add", "inputs": [[1, 2], [2, 2], [0, 0]], "outputs": [3, 4, 0]}
    reply = "```python\ndef add(a, b):\n    return a * b if a == b else 0\n```"
    whole, part = code_reward_fn(task, reply), CodeReward(partial=True)(task, reply)
    assert (whole.reward, whole.metadata["results"]) == (0.0, ["wrong", "not_run", "not_run"])
    assert whole.metadata["detail"] == "add(1, 2): expected 3, got 0"
    assert part.reward == pytest.approx(2 / 3)
    assert part.metadata["results"] == ["wrong", "passed", "passed"]
    assert not part.is_correct


def test_a_reply_without_a_program_earns_nothing():
    for reply in ("no idea", "", "<think>```python\n" + ADD + "```", "```js\nadd\n```", None):
        output = code_reward_fn(CALLS, reply)
        assert (output.reward, output.metadata["outcome"]) == (0.0, "no_answer")


def test_a_program_is_completed_by_its_prompt():
    suite = read_tests(CHECK)
    assert whole_program(CHECK, suite, ADD) == CHECK["prompt"] + "\n\n" + ADD
    body = "    return helper(a) + b - 1\n"
    program = whole_program(CHECK, suite, body)
    assert program.endswith("'''Add.'''\n    return helper(a) + b - 1\n")
    assert grade(CHECK, program).is_correct


@pytest.mark.parametrize(
    ("expected", "printed", "is_same"),
    [
        ("3\n", "3", True), ("a b\nc", "a b  \nc\n\n", True), ("1.50", "1.5", True),
        ("1 2", "1\n2", False), ("1e2", "100", True), ("abc", "ABC", False), ("", "x", False),
        ("0010", "10", False), ("10", "0010", False), ("0.50", "0.5", True), ("0", "-0.0", True),
        ("nan", "NaN", False), ("1" * 500, "1" * 500 + ".0", False),
    ],
)  # fmt: skip
def test_output_is_compared_by_lines_and_numbers(expected, printed, is_same):
    assert same_output(expected, printed) is is_same


@pytest.mark.skipif("RLLM_DATA_DIR" not in os.environ, reason="RLLM_DATA_DIR is not set")
def test_humaneval_is_graded_right():
    file = Path(os.environ["RLLM_DATA_DIR"]) / "humaneval" / "HumanEval.jsonl.gz"
    with gzip.open(file, "rt") as lines:
        rows = [json.loads(line) for line in lines]
    assert len(rows) == 164
    grader = CodeGrader()
    for row in rows[::4]:
        suite = read_tests(row)
        assert grader.grade(row["prompt"] + row["canonical_solution"], suite).is_correct
        assert not grader.grade(row["prompt"] + "    pass\n", suite).is_correct
