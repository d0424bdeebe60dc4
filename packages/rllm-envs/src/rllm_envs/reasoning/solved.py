"""``SolvedEnv``: a single-turn environment whose answers follow from the fields of its tasks."""

from abc import abstractmethod

from rllm_envs.errors import TaskError, excerpt
from rllm_envs.single_turn import SingleTurnEnv
from rllm_envs.tasks import Task


class SolvedEnv(SingleTurnEnv):
    """A question with an answer that can be worked out from the task alone.

    A subclass writes ``draw`` (a random problem), ``check`` (the fields of a given one),
    ``question``, ``solve`` and, where there are several ways to write the answer or several
    answers, ``grade``. A given task may leave ``answer`` out; if it is there, it must be right.

    Args:
        split: See ``TextEnv``.
        render_mode: See ``TextEnv``.
    """

    @abstractmethod
    def draw(self) -> Task:
        """Return a fresh random problem without its answer, using ``self.np_random`` only."""

    @abstractmethod
    def check(self, task: Task) -> None:
        """Raise TaskError unless the fields of a given task describe a problem."""

    @abstractmethod
    def question(self, task: Task) -> str:
        """Return the observation."""

    @abstractmethod
    def solve(self, task: Task) -> str:
        """Return the right answer to a problem, or one of several.

        Raises:
            TaskError: There is none, or there is more than one and the question needs one.
        """

    def generate_task(self) -> Task:
        """Return a random problem and its answer."""
        problem = self.draw()
        return {**problem, "answer": self.solve(problem)}

    def validate_task(self, task: Task) -> Task:
        """Return a given task with the oracle's answer.

        Raises:
            TaskError: A field is wrong, there is no answer, or ``answer`` is not right.
        """
        self.check(task)
        solved = {**task, "answer": self.solve(task)}
        given = task.get("answer", solved["answer"])
        if not isinstance(given, str) or not self.grade(solved, given):
            raise TaskError(
                f"the answer {excerpt(given)} is not right; {excerpt(solved['answer'])} is"
            )
        return solved
