"""``rllm/PythonCode-v0``: write a small Python function that hidden tests check."""

from typing import Any

from rllm_envs.code_rewards import CodeReward
from rllm_envs.coding.functions import (
    ENTRY_POINT,
    KINDS,
    Function,
    random_function,
    random_inputs,
)
from rllm_envs.core import Response, TextEnv
from rllm_envs.errors import EnvArgumentError, TaskError, excerpt
from rllm_envs.grading.code.tests import read_tests
from rllm_envs.tasks import Task

INSTRUCTION = "Write the program in a ```python block."
MAX_STEPS = 6
MAX_TESTS = 50
NO_RESULTS: dict[str, Any] = {"outcome": "", "num_passed": 0, "num_tests": 0, "detail": ""}


class PythonCodeEnv(TextEnv):
    """Write a Python function in one turn.

    ## Description
    The agent reads what a function ``solve`` does, step by step, and two examples. It writes the
    function; hidden tests call it in the sandbox.

    ## Action Space
    Any text. The last fenced block of Python outside of ``<think>...</think>`` is the program;
    blocks of other languages do not count.

    ## Observation Space
    The description, the examples, and ``Write the program in a ```python block.`` The last
    observation is empty.

    ## Starting State
    Lists or texts, uniform over ``kinds``; ``num_steps`` steps and a last one, each uniform over a
    table of about twenty.

    ## Rewards
    1 if every test passes, 0 otherwise; with ``partial_credit`` the share of tests that pass.

    ## Episode End
    Terminates after one action.

    ## Information
    ``success``, ``invalid`` (no program in the action), ``outcome`` ("", then "passed", "wrong",
    "error", "timeout", "memory", "output_limit" or "no_answer"), ``num_passed``, ``num_tests``,
    ``detail`` (of the first failure: hidden from the agent unless it is shown info), ``turn``,
    ``turns_left``.

    ## Arguments
    ``num_steps`` (1 to 6, default 2), ``num_tests`` (2 to 50, default 6), ``kinds`` (of "list" and
    "text", default both), ``partial_credit`` (default False), ``timeout_seconds`` (of one test,
    default 5), ``split`` ("train", "test" or "all").
    Task: ``{"question": ..., "entry_point": ..., "tests": [{"input": [...], "output": ...}],
    "solution": ...}``, the tests in any form of ``rllm_envs.grading.code.tests``.

    ## Version History
    * v0: Initial version
    """

    blocking = True

    def __init__(
        self,
        *,
        num_steps: int = 2,
        num_tests: int = 6,
        kinds: tuple[str, ...] | list[str] = tuple(KINDS),
        partial_credit: bool = False,
        timeout_seconds: float = 5.0,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_turns=1, split=split, render_mode=render_mode)
        _check_integer("num_steps", num_steps, 1, MAX_STEPS)
        _check_integer("num_tests", num_tests, 2, MAX_TESTS)
        is_list = isinstance(kinds, list | tuple) and bool(kinds)
        if not is_list or not all(isinstance(kind, str) and kind in KINDS for kind in kinds):
            raise EnvArgumentError(
                f"kinds must be a list of one or more of {', '.join(KINDS)}, got {excerpt(kinds)}"
            )
        self.num_steps = num_steps
        self.num_tests = num_tests
        self.kinds = tuple(kinds)
        self._reward = CodeReward(partial=partial_credit, timeout_seconds=timeout_seconds)
        self._current: Task = {}

    def generate_task(self) -> Task:
        """Return a random function with its tests."""
        kind = self.kinds[int(self.np_random.integers(len(self.kinds)))]
        function = random_function(self.np_random, kind=kind, num_steps=self.num_steps)
        inputs = random_inputs(self.np_random, kind, self.num_tests)
        return task_of(function, inputs)

    def validate_task(self, task: Task) -> Task:
        """Check the question and the tests.

        Raises:
            TaskError: The question is no text, or the tests cannot be used.
        """
        question = task.get("question") or task.get("prompt") or task.get("text")
        if not isinstance(question, str) or not question.strip():
            raise TaskError(f"a task needs the text 'question', got {excerpt(task)}")
        read_tests(task)
        return {"question": question, **task}

    def begin(self, task: Task) -> str:
        """Return the question with the instruction."""
        self._current = task
        return f"{task['question']}\n{INSTRUCTION}"

    def respond(self, action: str) -> Response:
        """Run the tests and end the episode.

        Raises:
            SandboxError: The sandbox failed.
        """
        reward, info = self.judge(action)
        return Response("", reward, terminated=True, info=info)

    def judge(self, action: str) -> tuple[float, dict[str, Any]]:
        """Return the reward of an action and what info says of it."""
        output = self._reward(self._current, action)
        info = {name: output.metadata[name] for name in NO_RESULTS}
        info |= {"success": output.is_correct, "invalid": info["outcome"] == "no_answer"}
        return output.reward, info

    def oracle_action(self) -> str:
        """Return the task's own solution.

        Raises:
            TaskError: The task has none.
        """
        solution = self._current.get("solution") or self._current.get("canonical_solution")
        if not isinstance(solution, str):
            raise TaskError("the task has no solution to play; it needs the text 'solution'")
        return f"```python\n{solution}\n```"


def task_of(function: Function, inputs: list[Any]) -> Task:
    """Return the task to write a function, with the first two inputs as examples."""
    examples = "\n".join(f"{ENTRY_POINT}({v!r}) == {function(v)!r}" for v in inputs[:2])
    return {
        "question": f"Write a function {ENTRY_POINT}(x) that {function.words}\n{examples}",
        "entry_point": ENTRY_POINT,
        "tests": [{"input": [value], "output": function(value)} for value in inputs],
        "solution": function.source,
    }


def _check_integer(name: str, value: object, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise EnvArgumentError(f"{name} must be in {least} to {most}, got {value!r:.80}")
