"""``rllm/Code-v0``: programming problems of a data set, graded by their tests."""

from functools import lru_cache
from pathlib import Path

from rllm_envs.coding.python_code import PythonCodeEnv
from rllm_envs.errors import DatasetError, EnvArgumentError, TaskError
from rllm_envs.grading.code.tests import read_tests
from rllm_envs.registry import load_rows
from rllm_envs.tasks import Dataset, Task

MAX_QUESTION_LENGTH = 65_000
_QUESTION_FIELDS = ("question", "question_content", "prompt", "text", "problem", "description")


class CodeEnv(PythonCodeEnv):
    """Solve a programming problem in one turn.

    ## Description
    With ``dataset=`` the problems are the rows of a file or of a registered data set, such as
    HumanEval, MBPP or LiveCodeBench. Without it they are those of ``rllm/PythonCode-v0``.

    ## Action Space
    Any text. The last fenced block of Python outside of ``<think>...</think>`` is the program.

    ## Observation Space
    The question, ``starter_code`` where the row has some, and ``Write the program in a ```python
    block.`` The last observation is empty.

    ## Starting State
    A row of the data set, or a made-up function; uniform.

    ## Rewards
    1 if every test passes, 0 otherwise; with ``partial_credit`` the share of tests that pass.

    ## Episode End
    Terminates after one action.

    ## Information
    As ``rllm/PythonCode-v0``: ``success``, ``invalid``, ``outcome``, ``num_passed``, ``num_tests``,
    ``detail``, ``turn``, ``turns_left``.

    ## Arguments
    ``dataset`` (a JSONL or JSON file, or a registered name; default None), ``partial_credit``
    (default False), ``timeout_seconds`` (of one test, default 6), ``split`` ("train", "test" or
    "all": of the made-up functions, or the split of a registered data set; a file is used whole).
    Task: a question (``question``, ``prompt``, ``text``, ``question_content``, ``problem`` or
    ``description``) and tests in one of the forms of ``rllm_envs.grading.code.tests``: HumanEval's
    ``test`` and ``entry_point``, MBPP's ``test_list``, LiveCodeBench's ``tests``, APPS's ``inputs``
    and ``outputs``.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        dataset: str | Path | None = None,
        partial_credit: bool = False,
        timeout_seconds: float = 6.0,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(
            partial_credit=partial_credit,
            timeout_seconds=timeout_seconds,
            split=split,
            render_mode=render_mode,
        )
        self._tasks: tuple[Task, ...] = ()
        if dataset is not None:
            self._tasks = _tasks_of(load_rows(dataset, split))
            self.is_generated = False
            if not self._tasks:
                raise EnvArgumentError(f"the data set {str(dataset)!r:.80} has no rows")

    def generate_task(self) -> Task:
        """Return a row of the data set, or a made-up function."""
        if self._tasks:
            return self._tasks[int(self.np_random.integers(len(self._tasks)))]
        return super().generate_task()

    def validate_task(self, task: Task) -> Task:
        """Return a given row as a task.

        Raises:
            TaskError: It has no question, or its tests cannot be used.
        """
        return _task_of_row(task)

    def oracle_action(self) -> str:
        """Return the row's solution, after its prompt where it goes on from there."""
        action = super().oracle_action()
        prompt = self._current.get("prompt")
        if "canonical_solution" in self._current and isinstance(prompt, str):
            return f"```python\n{prompt}{self._current['canonical_solution']}\n```"
        return action


@lru_cache(maxsize=8)
def _tasks_of(dataset: Dataset) -> tuple[Task, ...]:
    tasks = []
    for number, row in enumerate(dataset, start=1):
        source = f"{dataset.name}, row {number}"
        try:
            tasks.append(_task_of_row(dict(row)) | {"source": source})
        except TaskError as error:
            raise DatasetError(f"{source}: {error}") from None
    return tuple(tasks)


def _task_of_row(row: Task) -> Task:
    question = next((row[name] for name in _QUESTION_FIELDS if row.get(name)), None)
    if not isinstance(question, str) or not question.strip():
        raise TaskError(
            f"needs a question in one of the fields {', '.join(_QUESTION_FIELDS)}; the row has "
            f"{sorted(map(str, row))}"
        )
    if len(question) > MAX_QUESTION_LENGTH:
        raise TaskError(
            f"the question has {len(question)} characters, more than {MAX_QUESTION_LENGTH}"
        )
    starter = row.get("starter_code")
    if isinstance(starter, str) and starter.strip() and starter not in question:
        question = f"{question}\n\n```python\n{starter}\n```"
    read_tests(row)
    return {**row, "question": question}
