import json
import os

import gymnasium
import numpy as np
import pytest

from rllm_envs.coding.functions import KINDS, Function, Step, broken, random_function, random_inputs
from rllm_envs.errors import DatasetError, EnvArgumentError, TaskError


@pytest.mark.parametrize("kind", KINDS)
def test_the_source_of_each_step_does_what_its_function_does(kind):
    """Every step as Python, run by the interpreter on inputs, against the function beside it."""
    rng = np.random.default_rng(0)
    steps, ends = KINDS[kind]
    inputs = random_inputs(rng, kind, 8)
    for step in (*steps, *ends):
        for k in (2, 3, 5):
            code = compile(step.line.format(k=k), "step", "eval")
            for value in inputs:
                assert eval(code, {"x": value}) == step.apply(value, k), step.words


@pytest.mark.parametrize("kind", KINDS)
def test_a_function_is_its_source(kind):
    rng = np.random.default_rng(1)
    for _ in range(30):
        function = random_function(rng, kind=kind, num_steps=3)
        scope: dict = {}
        exec(function.source, scope)
        for value in random_inputs(rng, kind, 5):
            assert scope["solve"](value) == function(value)


def test_words_name_the_numbers():
    function = Function("list", (Step("add {k}", "[v + {k} for v in x]", lambda x, k: x, 4),))
    assert "add 4" in function.words
    assert function.source == "def solve(x):\n    return [v + 4 for v in x]"


def test_a_broken_function_differs_on_an_input():
    rng = np.random.default_rng(2)
    for _ in range(50):
        function = random_function(rng, kind="list", num_steps=3)
        inputs = random_inputs(rng, "list", 6)
        wrong = broken(rng, function, inputs)
        assert wrong is None or any(wrong(value) != function(value) for value in inputs)


def test_inputs_differ_and_end_with_the_empty_one():
    inputs = random_inputs(np.random.default_rng(0), "text", 10)
    assert len(inputs) == len(set(inputs)) == 10
    assert inputs[-1] == ""


def test_writing_a_function():
    env = gymnasium.make("rllm/PythonCode-v0", num_steps=1)
    observation, _ = env.reset(seed=0)
    task = env.unwrapped.task
    assert task["solution"] not in observation
    first = task["tests"][0]
    assert f"solve({first['input'][0]!r}) == {first['output']!r}" in observation
    _, reward, terminated, _, info = env.step("```python\ndef solve(x):\n    return None\n```")
    assert (reward, terminated, info["outcome"], info["num_passed"]) == (0.0, True, "wrong", 0)
    env.reset(seed=0)
    _, reward, _, _, info = env.step(env.unwrapped.oracle_action())
    assert (reward, info["success"], info["num_passed"]) == (1.0, True, len(task["tests"]))


def test_partial_credit_is_the_share_of_tests():
    env = gymnasium.make("rllm/PythonCode-v0", partial_credit=True)
    tests = [{"input": [n], "output": abs(n)} for n in (1, 2, -3, -4)]
    task = {"question": "abs", "entry_point": "f", "tests": tests}
    env.reset(options={"task": task})
    _, reward, _, _, info = env.step("def f(n): return n")
    assert (reward, info["success"], info["num_passed"]) == (0.5, False, 2)


def test_repairing_a_function_tells_what_fails():
    env = gymnasium.make("rllm/CodeRepair-v0", max_turns=3)
    observation, _ = env.reset(seed=1)
    task = env.unwrapped.task
    assert task["broken"] in observation
    observation, reward, terminated, _, info = env.step("I give up")
    assert observation.startswith("Not right yet: there is no program")
    assert (reward, terminated, info["invalid"]) == (0.0, False, True)
    observation, reward, terminated, _, info = env.step(f"```python\n{task['broken']}\n```")
    assert "expected" in observation and "1 attempt left" in observation
    assert (terminated, info["invalid"], info["outcome"]) == (False, False, "wrong")
    _, reward, terminated, _, info = env.step(env.unwrapped.oracle_action())
    assert (reward, terminated, info["success"]) == (1.0, True, True)


def test_attempts_run_out_by_the_rules_of_the_task():
    env = gymnasium.make("rllm/CodeRepair-v0", max_turns=2)
    env.reset(seed=1)
    env.step("")
    observation, reward, terminated, truncated, _ = env.step("")
    assert (observation, reward, terminated, truncated) == ("", 0.0, True, False)


@pytest.fixture
def rows(tmp_path):
    file = tmp_path / "rows.jsonl"
    row = {
        "task_id": "T/1",
        "prompt": "def add(a, b):\n    '''Add.'''\n",
        "entry_point": "add",
        "test": "def check(candidate):\n    assert candidate(1, 2) == 3\n",
        "canonical_solution": "    return a + b\n",
    }
    file.write_text(json.dumps(row) + "\n")
    return file


def test_problems_come_from_a_file(rows):
    env = gymnasium.make("rllm/Code-v0", dataset=str(rows))
    observation, _ = env.reset(seed=0)
    assert observation.startswith("def add(a, b):")
    assert "return a + b" not in observation
    _, reward, *_ = env.step(env.unwrapped.oracle_action())
    assert reward == 1.0
    env.reset(seed=0)
    assert env.step("```python\n    return b + a\n```")[1] == 1.0


@pytest.mark.skipif("RLLM_DATA_DIR" not in os.environ, reason="RLLM_DATA_DIR is not set")
def test_humaneval_is_played_from_its_file():
    path = os.path.join(os.environ["RLLM_DATA_DIR"], "humaneval", "HumanEval.jsonl.gz")
    if not _is_readable(path):
        pytest.skip("packed files are read by the data sets package")
    env = gymnasium.make("rllm/Code-v0", dataset=path)
    env.reset(seed=3)
    assert env.step(env.unwrapped.oracle_action())[1] == 1.0


def _is_readable(path):
    try:
        gymnasium.make("rllm/Code-v0", dataset=path)
    except DatasetError:
        return False
    return True


@pytest.mark.parametrize(
    "arguments",
    [{"num_steps": 0}, {"num_tests": 1}, {"kinds": []}, {"kinds": ["x"]}, {"timeout_seconds": 0}],
)
def test_arguments_out_of_range_are_refused(arguments):
    with pytest.raises(EnvArgumentError):
        gymnasium.make("rllm/PythonCode-v0", **arguments)


@pytest.mark.parametrize(
    ("env_id", "task", "problem"),
    [
        ("rllm/PythonCode-v0", {"tests": [{"input": [1], "output": 1}]}, "question"),
        ("rllm/PythonCode-v0", {"question": "q"}, "has no tests"),
        ("rllm/CodeRepair-v0", {"question": "q", "test_list": ["assert f()"]}, "broken"),
        ("rllm/Code-v0", {"test_list": ["assert f()"]}, "needs a question"),
        ("rllm/Code-v0", {"prompt": "x" * 70_000, "test_list": ["assert f()"]}, "characters"),
    ],
)
def test_tasks_that_cannot_be_played_are_refused(env_id, task, problem):
    with pytest.raises(TaskError, match=problem):
        gymnasium.make(env_id).reset(options={"task": task})


def test_a_row_that_cannot_be_used_is_named(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text('{"prompt": "q", "test_list": ["assert f()"]}\n{"prompt": "q"}\n')
    with pytest.raises(DatasetError, match="row 2"):
        gymnasium.make("rllm/Code-v0", dataset=str(file))
