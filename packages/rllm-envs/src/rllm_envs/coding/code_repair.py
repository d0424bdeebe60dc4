"""``rllm/CodeRepair-v0``: mend a function with one wrong step, told what its tests say."""

from typing import Any

from rllm_envs.coding.functions import ENTRY_POINT, broken, random_function, random_inputs
from rllm_envs.coding.python_code import INSTRUCTION, PythonCodeEnv, task_of
from rllm_envs.core import Response
from rllm_envs.errors import EnvArgumentError, TaskError, excerpt
from rllm_envs.tasks import Task

MAX_TURNS = 20


class CodeRepairEnv(PythonCodeEnv):
    """Mend a broken Python function, with the outcome of its tests as feedback.

    ## Description
    The agent reads what a function should do, its source, in which one step is wrong, and a call
    that shows it. It writes the whole function anew; hidden tests call it in the sandbox, and a
    first failure is told.

    ## Action Space
    Any text. The last fenced block of Python outside of ``<think>...</think>`` is the program.

    ## Observation Space
    First the description, the broken function and a failing call. After a program that fails:
    ``Not right yet: `` with the first failing call or the error, and how many attempts are left.
    The last observation is empty.

    ## Starting State
    A function of ``rllm/PythonCode-v0``, and a change of one of its steps or numbers that at least
    one test shows.

    ## Rewards
    1 if every test passes, 0 otherwise.

    ## Episode End
    Terminates when every test passes, or after ``max_turns`` attempts: that is the task's rule.

    ## Information
    As ``rllm/PythonCode-v0``: ``success``, ``invalid``, ``outcome``, ``num_passed``, ``num_tests``,
    ``detail``, ``turn``, ``turns_left``.

    ## Arguments
    ``num_steps`` (1 to 6, default 3), ``num_tests`` (2 to 50, default 6), ``kinds`` (of "list" and
    "text", default both), ``max_turns`` (1 to 20, default 3), ``timeout_seconds`` (of one test,
    default 5), ``split`` ("train", "test" or "all").
    Task: that of ``rllm/PythonCode-v0`` and ``broken``, the source that is shown.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        num_steps: int = 3,
        num_tests: int = 6,
        kinds: tuple[str, ...] | list[str] = ("list", "text"),
        max_turns: int = 3,
        timeout_seconds: float = 5.0,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(
            num_steps=num_steps,
            num_tests=num_tests,
            kinds=kinds,
            timeout_seconds=timeout_seconds,
            split=split,
            render_mode=render_mode,
        )
        is_number = isinstance(max_turns, int) and not isinstance(max_turns, bool)
        if not is_number or not 1 <= max_turns <= MAX_TURNS:
            raise EnvArgumentError(f"max_turns must be in 1 to {MAX_TURNS}, got {max_turns!r:.80}")
        self.max_turns = max_turns

    def generate_task(self) -> Task:
        """Return a random function, broken, with its tests."""
        while True:
            kind = self.kinds[int(self.np_random.integers(len(self.kinds)))]
            function = random_function(self.np_random, kind=kind, num_steps=self.num_steps)
            inputs = random_inputs(self.np_random, kind, self.num_tests)
            wrong = broken(self.np_random, function, inputs)
            if wrong is None:
                continue  # the changes that were tried make no difference
            shown = next(value for value in inputs if wrong(value) != function(value))
            task = task_of(function, inputs)
            words = f"A function {ENTRY_POINT}(x) {function.words}"
            failing = (
                f"{ENTRY_POINT}({shown!r}) should be {function(shown)!r}, not {wrong(shown)!r}."
            )
            question = f"{words} This one has a mistake:\n```python\n{wrong.source}\n```\n{failing}"
            return {**task, "question": question, "broken": wrong.source}

    def validate_task(self, task: Task) -> Task:
        """Check the question, the tests and the broken source.

        Raises:
            TaskError: A field is missing or cannot be used.
        """
        checked = super().validate_task(task)
        if not isinstance(checked.get("broken"), str):
            raise TaskError(f"a task needs the text 'broken', got {excerpt(task)}")
        if checked["broken"] not in checked["question"]:
            question = f"{checked['question']}\n```python\n{checked['broken']}\n```"
            checked = {**checked, "question": question}
        return checked

    def begin(self, task: Task) -> str:
        """Return the broken function and what is wrong with it."""
        self._current = task
        return f"{task['question']}\nMend it. {INSTRUCTION}"

    def respond(self, action: str) -> Response:
        """Run the tests; tell the first failure while attempts are left.

        Raises:
            SandboxError: The sandbox failed.
        """
        reward, info = self.judge(action)
        left = self.max_turns - self._turn
        if info["success"] or left == 0:
            return Response("", reward, terminated=True, info=info)
        attempts = "1 attempt" if left == 1 else f"{left} attempts"
        return Response(f"Not right yet: {_told(info)}\nYou have {attempts} left.", info=info)


def _told(info: dict[str, Any]) -> str:
    if info["outcome"] == "no_answer":
        return f"{info['detail']}. {INSTRUCTION}"
    if info["outcome"] in ("timeout", "memory", "output_limit"):
        return f"a test ended by its {info['outcome'].replace('_', ' ')}."
    return info["detail"] or info["outcome"]
