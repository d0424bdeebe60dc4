"""``rllm/CodeOutput-v0``: what a small program prints."""

from rllm_envs.errors import TaskError
from rllm_envs.reasoning.answers import plain_text
from rllm_envs.reasoning.fields import integer_argument
from rllm_envs.reasoning.program_drawing import draw_program
from rllm_envs.reasoning.solved import SolvedEnv
from rllm_envs.reasoning.tiny_program import check_program, run_program, write_program
from rllm_envs.tasks import Task


class CodeOutputEnv(SolvedEnv):
    r"""Predict what a small Python program prints.

    ## Description
    The program consists of assignments, loops and conditions on a few integers and one list, and
    prints some of them in one line. It is kept as data; the answer comes from an interpreter of
    that data, and nothing is run as Python.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the answer, the
    printed text, such as ``12 7 [3, 4, 10]``; spaces do not matter between numbers and brackets.

    ## Observation Space
    The program and the question. The last observation is empty.

    ## Starting State
    Three variables and a list of four numbers from 1 to 9, ``num_blocks`` random statements (a loop
    or a condition counts as one), and a last line that prints two variables and the list. No
    printed number exceeds 9,999.

    ## Rewards
    1 for exactly the printed text, 0 otherwise.

    ## Episode End
    Terminates after one action.

    ## Information
    ``success``, ``invalid`` (no box in the action), ``turn``, ``turns_left``.

    ## Arguments
    ``num_blocks`` (1 to 12, default 3), ``split`` ("train", "test" or "all").
    ``rllm/CodeOutputHard-v0`` has eight blocks.
    Task: ``{"program": [["set", "a", 3], ["update", "a", "+", 4], ["print", ["a"]]]}``, in the
    language of ``rllm_envs.reasoning.tiny_program``; ``answer`` optional.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self, *, num_blocks: int = 3, split: str = "train", render_mode: str | None = None
    ) -> None:
        super().__init__(split=split, render_mode=render_mode)
        self.num_blocks = integer_argument("num_blocks", num_blocks, 1, 12)

    def draw(self) -> Task:
        """Return a random program."""
        return {"program": draw_program(self.np_random, self.num_blocks)}

    def check(self, task: Task) -> None:
        """Check that the program is one."""
        check_program(task.get("program"))

    def question(self, task: Task) -> str:
        """Return the program and the question."""
        return (
            f"What does this Python program print?\n\n{write_program(task['program'])}\n\n"
            "Give the printed text in \\boxed{}."
        )

    def solve(self, task: Task) -> str:
        """Return what the program prints.

        Raises:
            TaskError: It fails, runs for too long or prints nothing.
        """
        printed = run_program(task["program"])
        if not printed:
            raise TaskError("the program prints nothing")
        return printed

    def grade(self, task: Task, answer: str) -> bool:
        """Return whether an answer is the printed text, spaces aside."""
        return _tokens(answer) == _tokens(task["answer"])


def _tokens(answer: str) -> list[str]:
    """Return the numbers and marks of a printed text; line breaks count as spaces."""
    text = plain_text(answer).replace(";", " ").strip("\"' ")
    for mark in "[],":
        text = text.replace(mark, f" {mark} ")
    return text.split()
