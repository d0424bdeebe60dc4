"""``SingleTurnEnv``: one question, one answer, one reward."""

from abc import abstractmethod

from rllm_envs.core import Response, TextEnv
from rllm_envs.errors import TaskError, excerpt
from rllm_envs.parsing import boxed_answer
from rllm_envs.tasks import Task


class SingleTurnEnv(TextEnv):
    r"""A question that is answered once, inside ``\boxed{}``.

    A subclass writes ``generate_task``, which returns at least ``question`` (the observation) and
    ``answer`` (what the oracle answers), both text. Answers that may be written in several ways
    need ``grade`` too.

    Args:
        split: See ``TextEnv``.
        render_mode: See ``TextEnv``.
    """

    def __init__(self, *, split: str = "train", render_mode: str | None = None) -> None:
        super().__init__(max_turns=1, split=split, render_mode=render_mode)
        self._current: Task = {}

    @abstractmethod
    def generate_task(self) -> Task:
        """Return a fresh task with the texts ``question`` and ``answer``."""

    def question(self, task: Task) -> str:
        """Return the observation; ``task["question"]`` by default."""
        return task["question"]

    def extract(self, action: str) -> str | None:
        r"""Return the answer in an action: the last ``\boxed{}`` by default; None where none is."""
        return boxed_answer(action)

    def grade(self, task: Task, answer: str) -> bool | float:
        """Return whether an answer is right, or its reward; the default compares text exactly."""
        return answer.strip() == task["answer"]

    def validate_task(self, task: Task) -> Task:
        """Check that ``question`` and ``answer`` are texts.

        Raises:
            TaskError: One is missing or is no text.
        """
        for field in ("question", "answer"):
            if not isinstance(task.get(field), str):
                raise TaskError(
                    f"a task of {type(self).__name__} needs the text {field!r}, got {excerpt(task)}"
                )
        return task

    def begin(self, task: Task) -> str:
        """Return the question."""
        self._current = task
        return self.question(task)

    def respond(self, action: str) -> Response:
        """Grade the answer and end the episode; an action without an answer earns nothing."""
        answer = self.extract(action)
        if answer is None:
            return Response("", terminated=True, info={"invalid": True})
        return Response("", reward=float(self.grade(self._current, answer)), terminated=True)

    def oracle_action(self) -> str:
        r"""Return the reference answer in ``\boxed{}``."""
        return f"\\boxed{{{self._current['answer']}}}"
