"""``rllm/Math-v0``: one mathematical problem, from a bundled generator or from a data set."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

from rllm_envs.core import Response
from rllm_envs.errors import (
    DatasetError,
    EnvArgumentError,
    ReferenceAnswerError,
    TaskError,
    excerpt,
)
from rllm_envs.grading.exact import exact_value
from rllm_envs.grading.math_grader import grade_answer, read_reference
from rllm_envs.grading.symbolic import require_math_verify
from rllm_envs.reasoning.math_families import FAMILIES
from rllm_envs.registry import load_rows
from rllm_envs.rewards import reference_text
from rllm_envs.single_turn import SingleTurnEnv
from rllm_envs.tasks import ID_FIELDS, Dataset, Task

INSTRUCTION = "Give the answer in \\boxed{}."
QUESTION_FIELDS = ("question", "problem", "prompt")
ANSWER_FIELDS = ("ground_truth", "answer", "solution")
MAX_QUESTION_LENGTH = 65_000


class MathEnv(SingleTurnEnv):
    r"""Solve a mathematical problem in one turn.

    ## Description
    Without arguments the problems come from a bundled generator of ten families (equations,
    fractions, percentages, divisors, sequences, small word problems) with integer or rational
    answers. With ``dataset=`` they are the rows of a file or of a registered data set, such as
    GSM8K or MATH-500.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the answer.

    ## Observation Space
    The question, and ``Give the answer in \boxed{}.`` unless it mentions a box itself. The last
    observation is empty.

    ## Starting State
    A family and a problem of it, or a row of the data set; both uniform.

    ## Rewards
    1 for a right answer, 0 otherwise. Generated problems are compared by exact value. Answers to
    rows are compared as text, by exact value, and then symbolically (this needs
    ``pip install "rllm-envs[math]"``).

    ## Episode End
    Terminates after one action.

    ## Information
    ``success``, ``invalid`` (no box in the action), ``outcome`` ("", then "correct", "wrong",
    "no_answer" or "unverifiable"), ``unverifiable`` (the answer is too large or too slow to
    compare; it earns 0, and a run should count it), ``turn``, ``turns_left``.

    ## Arguments
    ``dataset`` (a JSONL or JSON file, or a registered name; default None), ``families`` (names of
    generated families; default all), ``split`` ("train", "test" or "all": of the generator, or the
    split of a registered data set; a file is used whole).
    Task: ``{"question": ..., "answer": ...}``. The question may also be named ``problem`` or
    ``prompt``, the answer ``ground_truth`` or ``solution``; it is text, a number or a list of
    equally right ones, and a worked solution counts by what follows its last ``####`` or by its
    last box.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        dataset: str | Path | None = None,
        families: Sequence[str] | None = None,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(split=split, render_mode=render_mode)
        if dataset is not None and families is not None:
            raise EnvArgumentError("give dataset or families, not both")
        self._families = _checked_families(families)
        self._tasks: tuple[Task, ...] = ()
        if dataset is not None:
            require_math_verify()
            self._tasks = _tasks_of(load_rows(dataset, split))
            self.is_generated = False
            # Grading may wait for another process.
            self.blocking = True

    def generate_task(self) -> Task:
        """Return a generated problem, or a row of the data set."""
        if self._tasks:
            return self._tasks[int(self.np_random.integers(len(self._tasks)))]
        family = self._families[int(self.np_random.integers(len(self._families)))]
        question, answer = FAMILIES[family](self.np_random)
        return {"question": question, "answer": str(answer), "family": family}

    def validate_task(self, task: Task) -> Task:
        """Return a given row as a task.

        Raises:
            TaskError: It has no question or no answer.
            MissingDependencyError: Grading it needs math-verify, which is not installed.
        """
        try:
            read = _task_of_row(task)
        except DatasetError as error:
            raise TaskError(str(error)) from None
        family = task.get("family")
        if isinstance(family, str) and family in FAMILIES and _value_of(read) is not None:
            return read | {"family": family}
        require_math_verify()
        return read

    def may_block(self, task: Task | None) -> bool:
        """Return whether grading may wait for another process: always but for generated tasks."""
        return self.blocking or (task is not None and not _is_exact(task))

    def question(self, task: Task) -> str:
        """Return the question with the instruction."""
        question = task["question"]
        return question if "\\boxed" in question else f"{question} {INSTRUCTION}"

    def begin(self, task: Task) -> str:
        """Return the question.

        Raises:
            ReferenceAnswerError: No answer can be graded against the reference.
        """
        for reference in () if _is_exact(task) else _references(task):
            try:
                read_reference(reference)
            except ReferenceAnswerError as error:
                raise ReferenceAnswerError(f"{task.get('source', 'the task')}: {error}") from None
        return super().begin(task)

    def respond(self, action: str) -> Response:
        """Grade the boxed answer and end the episode."""
        outcome = self.judge(action)
        info = outcome_info(outcome)
        return Response("", float(outcome == "correct"), terminated=True, info=info)

    def judge(self, action: str) -> str:
        """Return "correct", "wrong", "no_answer" or "unverifiable" for an action."""
        answer = self.extract(action)
        if answer is None:
            return "no_answer"
        if _is_exact(self._current):
            is_right = exact_value(answer) == _value_of(self._current)
            return "correct" if is_right else "wrong"
        return grade_answer(answer, _references(self._current)).outcome

    def _info(self, *, success: bool, invalid: bool) -> dict[str, Any]:
        info = super()._info(success=success, invalid=invalid)
        return info | {"outcome": "", "unverifiable": False}

    def oracle_action(self) -> str:
        r"""Return the first reference answer in ``\boxed{}``."""
        return f"\\boxed{{{_references(self._current)[0]}}}"


def outcome_info(outcome: str) -> dict[str, Any]:
    """Return the keys of ``info`` that tell an outcome of ``MathEnv.judge``."""
    return {
        "invalid": outcome == "no_answer",
        "outcome": outcome,
        "unverifiable": outcome == "unverifiable",
    }


def _checked_families(families: Sequence[str] | None) -> tuple[str, ...]:
    chosen = tuple(FAMILIES) if families is None else families
    is_list = isinstance(chosen, list | tuple) and all(isinstance(name, str) for name in chosen)
    unknown = [name for name in chosen if name not in FAMILIES] if is_list else [chosen]
    if unknown or not chosen:
        raise EnvArgumentError(
            f"families must be a list of one or more of {', '.join(FAMILIES)}; got {families!r:.80}"
        )
    return tuple(chosen)


def _is_exact(task: Mapping[str, Any]) -> bool:
    """Return whether a task comes from the generator, whose answers are compared by value alone."""
    return isinstance(task.get("family"), str)


def _value_of(task: Mapping[str, Any]) -> Fraction | None:
    return exact_value(task["answer"]) if isinstance(task["answer"], str) else None


def _references(task: Mapping[str, Any]) -> list[str]:
    answer = task["answer"]
    return answer if isinstance(answer, list) else [answer]


@lru_cache(maxsize=8)
def _tasks_of(dataset: Dataset) -> tuple[Task, ...]:
    tasks = []
    for number, row in enumerate(dataset, start=1):
        source = f"{dataset.name}, row {number}"
        try:
            tasks.append(_task_of_row(row) | {"source": source})
        except TaskError as error:
            raise DatasetError(f"{source}: {error}") from None
    return tuple(tasks)


def _task_of_row(row: Mapping[str, Any]) -> Task:
    question = _first_field(row, QUESTION_FIELDS)
    if not isinstance(question, str) or not question.strip():
        raise TaskError(f"the question must be text, got {excerpt(question)}")
    if len(question) > MAX_QUESTION_LENGTH:
        raise TaskError(
            f"the question has {len(question)} characters, more than {MAX_QUESTION_LENGTH}"
        )
    answer = _first_field(row, ANSWER_FIELDS)
    if isinstance(answer, list | tuple) and answer:
        task: Task = {"question": question, "answer": [reference_text(a, "answer") for a in answer]}
    else:
        task = {"question": question, "answer": reference_text(answer, "answer")}
    return task | {name: row[name] for name in ID_FIELDS if row.get(name) is not None}


def _first_field(row: Mapping[str, Any], names: Sequence[str]) -> Any:
    for name in names:
        if row.get(name) is not None:
            return row[name]
    raise TaskError(f"needs one of the fields {', '.join(names)}; the row is {excerpt(dict(row))}")
