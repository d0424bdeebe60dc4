"""``rllm/Arithmetic-v0``: one sum, one answer."""

from fractions import Fraction

from rllm_envs.grading.exact import exact_value
from rllm_envs.reasoning.expressions import (
    check_expression_arguments,
    random_expression_task,
    validate_expression_task,
)
from rllm_envs.single_turn import SingleTurnEnv
from rllm_envs.tasks import Task


class ArithmeticEnv(SingleTurnEnv):
    r"""Compute a sum of integers in one turn.

    ## Description
    The agent reads one arithmetic expression and answers it. With the default arguments it adds or
    subtracts two three-digit numbers.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the answer.

    ## Observation Space
    One sentence: ``What is 512 + 389? Give the answer in \boxed{}.`` The last observation is empty.

    ## Starting State
    Each number is uniform over the integers of exactly ``digits`` digits, each operator uniform
    over ``operators``.

    ## Rewards
    1 for the exact value, written as an integer, decimal or fraction; 0 otherwise.

    ## Episode End
    Terminates after one action.

    ## Information
    ``success``, ``invalid`` (no box in the action), ``turn``, ``turns_left``.

    ## Arguments
    ``digits`` (1 to 9, default 3), ``operators`` (characters of "+-*", default "+-"), ``num_terms``
    (2 to 8, default 2), ``split`` ("train", "test" or "all").
    Task: ``{"expression": "512 + 389"}``, ``answer`` optional.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        digits: int = 3,
        operators: str = "+-",
        num_terms: int = 2,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        check_expression_arguments(digits, operators, num_terms)
        super().__init__(split=split, render_mode=render_mode)
        self.digits = digits
        self.operators = operators
        self.num_terms = num_terms

    def generate_task(self) -> Task:
        """Return a random expression and its value."""
        return random_expression_task(
            self.np_random,
            digits=self.digits,
            operators=self.operators,
            num_terms=self.num_terms,
        )

    def validate_task(self, task: Task) -> Task:
        """Check that ``expression`` has an integer value."""
        return validate_expression_task(task)

    def question(self, task: Task) -> str:
        """Return the question in one sentence."""
        return f"What is {task['expression']}? Give the answer in \\boxed{{}}."

    def grade(self, task: Task, answer: str) -> bool:
        """Return whether the answer has exactly the right value."""
        return exact_value(answer) == Fraction(task["answer"])
