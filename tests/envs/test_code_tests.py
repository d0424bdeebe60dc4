import json

import pytest

from rllm_envs.errors import TaskError
from rllm_envs.grading.code import values
from rllm_envs.grading.code.tests import AssertTest, CallTest, StdinTest, read_tests

HUMANEVAL = {
    "prompt": "def helper(x):\n    return x\n\ndef f(x):\n    '''Double.'''\n",
    "entry_point": "f",
    "test": "def check(candidate):\n    assert candidate(2) == 4\n",
}


def test_a_check_is_called_with_the_function():
    suite = read_tests(HUMANEVAL)
    assert suite.kind == "assert"
    assert suite.entry_point == "f"
    assert suite.prelude == HUMANEVAL["prompt"]
    (test,) = suite.tests
    assert test == AssertTest(HUMANEVAL["test"] + "\ncheck(f)\n", {"f": "f"})


def test_a_method_can_be_what_is_checked():
    suite = read_tests({**HUMANEVAL, "entry_point": "Solution().f", "prompt": "class Node: pass"})
    (test,) = suite.tests
    assert test.code.endswith("check(__candidate)\n")
    assert test.proxies == {"__candidate": "Solution().f"}
    assert suite.classes == ("Node",)


def test_each_assertion_is_a_test_and_names_what_it_uses():
    task = {
        "test_list": ["assert f(1) == 2", "assert set(g(x) for x in [1]) == {math.pi}"],
        "test_setup_code": "import math",
    }
    suite = read_tests(task)
    assert [test.proxies for test in suite.tests] == [{"f": "f"}, {"g": "g"}]
    assert suite.entry_point == "f"


def test_inputs_and_outputs_are_calls_or_programs():
    calls = read_tests({"fn_name": "f", "inputs": [[1, [2]], [3, []]], "outputs": [5, None]})
    assert calls.kind == "call"
    assert [values.loads(test.arguments) for test in calls.tests] == [[[1, [2]], {}], [[3, []], {}]]
    assert [test.expected for test in calls.tests] == [5, None]
    programs = read_tests({"inputs": ["1\n", ["a", "b"]], "outputs": ["2", "c"]})
    assert programs.tests == (StdinTest("1\n", "2"), StdinTest("a\nb", "c"))


def test_cases_of_livecodebench_are_read_from_their_json():
    cases = [{"input": "[1, 2]\n3", "output": "6", "testtype": "functional"}]
    task = {"tests": json.dumps(cases), "metadata": json.dumps({"func_name": "add"})}
    suite = read_tests(task)
    assert suite.entry_point == "add"
    assert suite.tests == (CallTest(values.dumps([[[1, 2], 3], {}]), 6),)
    lines = [{"input": '"a\u2028b"', "output": "1", "testtype": "functional"}]
    assert read_tests({"tests": lines, "fn_name": "f"}).tests == (
        CallTest(values.dumps([["a\u2028b"], {}]), 1),
    )
    stdin = [{"input": "1", "output": "2", "testtype": "stdin"}]
    assert read_tests({"test_cases": stdin}).tests == (StdinTest("1", "2"),)
    nested = {"input_output": json.dumps({"inputs": ["1"], "outputs": ["2"]})}
    assert read_tests(nested).tests == (StdinTest("1", "2"),)


@pytest.mark.parametrize(
    ("task", "problem"),
    [
        ({}, "has no tests"),
        ({"tests": []}, "nothing tests is not right"),
        ({"test_list": []}, "nothing tests is not right"),
        ({"inputs": [], "outputs": []}, "nothing tests is not right"),
        ({"inputs": ["1"], "outputs": []}, "1 inputs have 0 outputs"),
        ({"inputs": "1", "outputs": ["1"]}, "must be lists"),
        ({"inputs": [1], "outputs": [1], "fn_name": "f"}, "must be a list, got 1"),
        ({"inputs": [[1]], "outputs": [1], "fn_name": "f()"}, "must name a function"),
        ({"inputs": [1], "outputs": ["1"]}, "inputs must be text"),
        ({"tests": "{"}, "is no JSON"),
        ({"tests": [3]}, "needs 'input' and 'output'"),
        ({"tests": [{"input": "1", "output": "1", "testtype": "x"}]}, "stdin or functional"),
        ({"tests": [{"input": "1", "output": "1", "testtype": "functional"}]}, "must name"),
        ({"test": "def check(c", "entry_point": "f"}, "is no Python"),
        ({"test": "def tests(f): assert f()", "entry_point": "f"}, "runs nothing"),
        ({"test": "class T:\n    def test_f(self): f()", "entry_point": "f"}, "runs nothing"),
        ({"test_list": ["def t(): assert f()"]}, "runs nothing"),
        ({"test": "x", "entry_point": ""}, "must name the function"),
        ({"test": "x", "entry_point": "f; g"}, "must name a function"),
        ({"test_list": "assert f()"}, "must be a list of assertions"),
        ({"test_list": ["assert f() =="]}, "is no Python"),
        ({"test_list": ["assert f(1)"], "entry_point": 10**5000}, "a value of type int"),
        ({"test_list": ["assert len([1]) == 1"]}, "uses the solution"),
        ({"tests": [{"input": "1", "output": "1"}] * 1001}, "more than 1000"),
    ],
)
def test_tests_that_cannot_be_used_are_the_tasks_error(task, problem):
    with pytest.raises(TaskError, match=problem.replace("(", r"\(")):
        read_tests(task)
