"""What crosses between a solution and its tests: hostile values, objects, rows of data sets."""

import time

import pytest

from rllm_envs.code_rewards import code_reward_fn
from rllm_envs.errors import TaskError
from rllm_envs.grading.code.grader import CodeGrader
from rllm_envs.grading.code.tests import read_tests

ADD = "def add(a, b):\n    return a + b\n"
CHECK = {
    "prompt": "def add(a, b):\n    '''Add.'''\n",
    "entry_point": "add",
    "test": "def check(candidate):\n    assert candidate(1, 2) == 3\n",
}
STDIN = {"inputs": ["1 2", "-1 1"], "outputs": ["3", "0"]}
PROGRAM = "a, b = map(int, input().split())\nprint(a + b)\n"


def grade(task, solution, **settings):
    return CodeGrader(**settings).grade(solution, read_tests(task))


# Values that stall or break who reads them


RAW = (
    "import json, os\n"
    "def f(x):\n"
    "    message = json.dumps({'value': json.dumps([%s, []])}).encode()\n"
    "    for number in range(3, 20):\n"
    "        try:\n"
    "            with os.fdopen(number, 'wb', closefd=False) as file: file.write(message)\n"
    "        except OSError: pass\n"
    "    os._exit(0)\n"
)
ONE_HASH = "{{'{tag}': [{part} for k in range(1, 60_000)]}}"
KEY = f"{{'i': hex(k * {2**61 - 1})}}"


@pytest.mark.parametrize(
    "value",
    [
        ONE_HASH.format(tag="d", part=f"[{KEY}, 0]"),
        ONE_HASH.format(tag="s", part=KEY),
        ONE_HASH.format(tag="z", part=KEY),
        "{'F': ['0x' + '1f3' * 300_000, '0x' + '3a7' * 299_999]}",
    ],
    ids=["dict", "set", "frozenset", "fraction"],
)
def test_values_made_to_take_long_are_no_values(value):
    started = time.monotonic()
    verdict = grade({"fn_name": "f", "inputs": [[1]], "outputs": [1]}, RAW % value)
    assert verdict.outcome == "error"
    assert "not a value" in verdict.results[0].detail
    assert time.monotonic() - started < 8


@pytest.mark.parametrize(
    "returned",
    ["{10**5000: 1}", "[{(1, 10**5000): 1}]", "{1: 0, '1': 1}", "{frozenset({9**9**5}): 1}"],
)
def test_keys_that_json_cannot_write_are_wrong(returned):
    task = {"fn_name": "f", "inputs": [[1]], "outputs": [{"1": 1}]}
    assert grade(task, f"def f(x): return {returned}").outcome == "wrong"
    assert grade(task, "def f(x): return {1: 1}").is_correct


@pytest.mark.parametrize("depth", [900, 980, 985, 990, 2000])
def test_a_reply_nested_without_end_is_an_error(depth):
    solution = (
        "import os\n"
        "def f(x):\n"
        f"    message = '{{\"error\": ' + '[' * {depth} + ']' * {depth} + '}}'\n"
        "    for number in range(3, 20):\n"
        "        try: os.write(number, message.encode())\n"
        "        except OSError: pass\n"
        "    os._exit(0)\n"
    )
    assert grade({"fn_name": "f", "inputs": [[1]], "outputs": [1]}, solution).outcome == "error"


def test_half_characters_do_not_reach_who_reads_the_verdict():
    task = {"fn_name": "f", "inputs": [[1]], "outputs": ["x"]}
    for solution in ("def f(x): return '\\ud800'", "def f(x): raise ValueError('\\ud800')"):
        grade(task, solution).results[0].detail.encode("utf-8")


# What the tests and the solution hand to each other

NODES = "class Node:\n    def __init__(s, v): s.v, s.left = v, None\n"
HEIGHT = "def height(n): return 0 if n is None else 1 + height(n.left)\n"


def test_objects_of_the_solution_can_be_arguments_and_be_changed():
    task = {"test_list": [
        "r = Node(1)\nr.left = Node(2)\nassert height(r) == 2 and height(r.left) == 1\n"
        "assert r.left is r.left and r.left != r and height(n=[r][0]) == 2\n"
        "r.left.v = 5\nassert [r.left.v] == [5]"
    ]}  # fmt: skip
    assert grade(task, NODES + HEIGHT).is_correct
    assert not grade(task, NODES + HEIGHT.replace("1 +", "2 +")).is_correct


def test_two_objects_of_the_solution_are_compared_as_it_says():
    task = {"test_list": [
        "assert V(1) + V(2) == V(3) and V(1) != V(2) and V(1) < V(2)\n"
        "assert str(V(4)) == 'V4' and bool(V(0)) is False and isinstance(V(1), V)\n"
        "v = V(7)\nv['a'] = 3\nassert v['a'] == 3"
    ]}  # fmt: skip
    solution = (
        "class V:\n    def __init__(s, x): s.x, s.d = x, {}\n"
        "    def __add__(s, o): return V(s.x + o.x)\n    def __eq__(s, o): return s.x == o.x\n"
        "    def __lt__(s, o): return s.x < o.x\n    def __bool__(s): return s.x != 0\n"
        "    def __str__(s): return f'V{s.x}'\n    def __getitem__(s, k): return s.d[k]\n"
        "    def __setitem__(s, k, v): s.d[k] = v\n"
    )
    assert grade(task, solution).is_correct


PLEASE_ALL = """
class Yes:
    def __eq__(self, other): return True
    def __lt__(self, other): return True
    def __sub__(self, other): return 0.0
    def __abs__(self): return 0.0
    def __contains__(self, other): return True
    def __float__(self): return 2.5
    def __iter__(self): return iter(())
    def __getattr__(self, name): return lambda *a, **k: 0
def f(x): return Yes()
"""
MEMORY = """
class Array:
    __array_interface__ = {"shape": (1,), "typestr": "<i8", "data": (140000000000000, True)}
    def __array__(self, *a, **k): return [2.5]
    def __len__(self): return 1
def f(x): return Array()
"""


@pytest.mark.parametrize(
    "test",
    [
        "assert f(1) == 2.5",
        "assert abs(f(1) - 2.5) < 1e-6",
        "assert f(1) < 3",
        "assert 2.5 in f(1)",
        "assert f(1) in [2.5]",
        "import math\nassert math.isclose(f(1), 2.5)",
        "assert math.isclose(f(1), 2.5)",
        "import numpy\nassert numpy.allclose(f(1), [2.5])",
        "import numpy\nnumpy.testing.assert_allclose(f(1), [2.5])",
        "assert [f(1)] == [2.5]",
        "assert sorted([f(1), 2.5]) == [2.5, 2.5]",
    ],
)
@pytest.mark.parametrize("solution", [PLEASE_ALL, MEMORY, PLEASE_ALL + "class math: isclose = Yes"])
def test_an_object_that_pleases_every_operator_is_wrong(test, solution):
    assert not grade({"test_list": [test]}, solution).is_correct


def test_a_name_of_a_standard_module_is_that_module():
    task = {"test_list": ["assert math.isclose(f(1), 2.0)"]}
    forged = "class math:\n    isclose = staticmethod(lambda *a: True)\ndef f(x): return 0\n"
    assert not grade(task, forged).is_correct
    assert grade(task, "def f(x): return 2").is_correct
    queue = {"test_list": ["assert queue(3) == 3"]}
    assert grade(queue, "def queue(x): return x").is_correct


def test_tests_that_do_not_use_the_solution_are_refused():
    with pytest.raises(TaskError, match="entry_point"):
        read_tests({"test_list": ["assert pow(2, 3) == 8"]})
    named = {"test_list": ["assert pow(2, 3) == 8"], "entry_point": "pow"}
    assert not grade(named, "def pow(a, b): return 0").is_correct
    assert grade(named, "def pow(a, b): return a ** b").is_correct


def test_exceptions_arrive_as_the_nearest_that_python_has():
    task = {"test_list": ["try:\n    f(1)\nexcept ValueError:\n    pass\nelse:\n    assert False"]}
    assert grade(task, "class Bad(ValueError): pass\ndef f(x): raise Bad('x')").is_correct
    assert grade(task, "import json\ndef f(x): json.loads('{')").is_correct


def test_arguments_that_cannot_cross_are_the_tasks_error():
    task = {"test_list": ["assert f(lambda x: x + 1, 2) == 3"]}
    with pytest.raises(TaskError, match="type function cannot cross"):
        grade(task, "def f(g, x): return g(x)")


def test_queues_and_bytes_that_are_changed_in_place_are_seen_by_the_tests():
    task = {"test_list": [
        "from collections import deque\nd, b = deque([1]), bytearray(b'x')\nf(d, b)\n"
        "assert d == deque([1, 2]) and b == bytearray(b'xy')"
    ]}  # fmt: skip
    assert grade(task, "def f(d, b):\n    d.append(2)\n    b += b'y'").is_correct


def test_a_class_that_the_prompt_begins_is_that_of_the_solution():
    task = {
        "prompt": "class Sum:\n    '''Adds up.'''\n    def add(self, x):\n        '''Add.'''\n",
        "entry_point": "Sum",
        "test": (
            "def check(candidate):\n    s = candidate()\n    s.add(2)\n    assert s.add(3) == 5\n"
        ),
    }
    solution = "class Sum:\n    n = 0\n    def add(self, x):\n        self.n += x\n"
    assert grade(task, solution + "        return self.n\n").is_correct
    assert not grade(task, solution + "        return 0\n").is_correct


# Rows as data sets write them


def test_a_question_in_words_is_no_part_of_the_program():
    task = {"prompt": "Write a function to add.", "test_list": ["assert add(1, 2) == 3"]}
    assert code_reward_fn(task, f"```python\n{ADD}```").reward == 1.0


def test_a_program_may_speak_of_the_future_after_its_prompt():
    task = {**CHECK, "prompt": "from typing import List\n\n" + CHECK["prompt"]}
    program = "'''Adds.'''\nfrom __future__ import annotations\n\n"
    program += "def add(a: Unknown, b): return a + b\n"
    assert code_reward_fn(task, f"```python\n{program}```").reward == 1.0


def test_a_method_of_solution_knows_the_names_of_leetcode():
    task = {"fn_name": "most", "inputs": [[[1, 2, 2]]], "outputs": [2]}
    method = (
        "class Solution:\n    def most(self, x: List[int]) -> Optional[int]:\n"
        "        return max(Counter(x).items(), key=operator.itemgetter(1))[0] + pow(0, 1, 5)\n"
    )
    assert grade(task, method).is_correct
    assert grade(task, "def most(x: List[int]): return 2").outcome == "error"


def test_outputs_of_apps_may_be_wrapped():
    wrapped = {"fn_name": "f", "inputs": [[1], [2]], "outputs": [[1], [2]]}
    assert grade(wrapped, "def f(x): return x").is_correct
    assert grade(wrapped, "def f(x): return [x]").is_correct
    lists = {"fn_name": "f", "inputs": [[1], [2]], "outputs": [[1], [2, 2]]}
    assert not grade(lists, "def f(x): return x if x == 1 else [2, 2]").is_correct


def test_noise_on_stderr_is_no_output():
    noisy = "import sys\nsys.stderr.write('debug ' * 50_000)\n" + PROGRAM
    assert grade(STDIN, noisy).is_correct


def test_functions_that_pytest_would_run_are_run():
    task = {
        "entry_point": "add",
        "test": (
            "def test_one():\n    assert add(1, 2) == 3\ndef test_two(): assert add(0, 0) == 0\n"
        ),
    }
    assert grade(task, ADD).is_correct
    assert grade(task, "def add(a, b): return 3").outcome == "wrong"
    assert grade(task, "").outcome == "error"


def test_what_one_call_holds_does_not_add_up_over_the_calls():
    task = {
        "entry_point": "Solution().size",
        "test": "def check(candidate):\n    for _ in range(40): assert candidate(1) == 30_000_000",
    }
    solution = (
        "class Solution:\n    def size(self, x):\n        self.held = bytearray(30_000_000)\n"
        "        return len(self.held)\n"
    )
    assert grade(task, solution, memory_bytes=2**28).is_correct
