"""``rllm/Calculator-v0``: a product that is easier with the calculator than without."""

from fractions import Fraction

from rllm_envs.core import Response, TextEnv
from rllm_envs.grading.exact import exact_value
from rllm_envs.parsing import boxed_answer, tag_content
from rllm_envs.reasoning.expressions import (
    check_expression_arguments,
    random_expression_task,
    validate_expression_task,
)
from rllm_envs.tasks import Task
from rllm_envs.tools.calculator import CalculatorTool

HINT = "Write <calc>2 * 3</calc> to use a calculator, or give the answer in \\boxed{}."


class CalculatorEnv(TextEnv):
    r"""Compute a product in a few turns, with a calculator at hand.

    ## Description
    The agent reads an arithmetic expression, by default the product of two two-digit numbers. It
    may call a calculator and read its result before it answers.

    ## Action Space
    Any text outside of ``<think>...</think>``. ``\boxed{3901}`` answers and ends the episode; the
    last complete box counts. Without a box, ``<calc>47 * 83</calc>`` calls the calculator; the last
    complete call counts. Anything else is answered with a hint.

    ## Observation Space
    First ``What is 47 * 83? You may write <calc>2 * 3</calc> to use a calculator. Give the answer
    in \boxed{}.`` (one line), where ``2 * 3`` is always the example. A call is answered with
    ``Result: 3901`` or ``Error: ...``. The last observation is empty, unless the turns run out.

    ## Starting State
    Each number is uniform over the integers of exactly ``digits`` digits, each operator uniform
    over ``operators``.

    ## Rewards
    1 for the exact value, 0 otherwise. Calls are free.

    ## Episode End
    Terminates with an answer. Truncates after ``max_turns`` actions without one (terminates instead
    if ``max_turns`` is 1).

    ## Information
    ``success``, ``invalid`` (neither a call nor a box), ``tool_call`` (bool), ``turn``,
    ``turns_left``.

    ## Arguments
    ``digits`` (1 to 9, default 2), ``operators`` (characters of "+-*", default "*"), ``num_terms``
    (2 to 8, default 2), ``max_turns`` (default 3), ``split`` ("train", "test" or "all").
    Task: ``{"expression": "47 * 83"}``, ``answer`` optional.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        digits: int = 2,
        operators: str = "*",
        num_terms: int = 2,
        max_turns: int = 3,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        check_expression_arguments(digits, operators, num_terms)
        super().__init__(max_turns=max_turns, split=split, render_mode=render_mode)
        self.digits = digits
        self.operators = operators
        self.num_terms = num_terms
        self._calculator = CalculatorTool()
        self._expression = ""
        self._answer = ""
        self._has_called = False

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

    def begin(self, task: Task) -> str:
        """Return the question."""
        self._expression, self._answer = task["expression"], task["answer"]
        self._has_called = False
        return (
            f"What is {self._expression}? You may write <calc>2 * 3</calc> to use a calculator. "
            "Give the answer in \\boxed{}."
        )

    def respond(self, action: str) -> Response:
        """Grade a boxed answer, or run a calculator call, or give a hint."""
        answer = boxed_answer(action)
        if answer is not None:
            is_correct = exact_value(answer) == Fraction(self._answer)
            return Response("", float(is_correct), terminated=True, info={"tool_call": False})
        call = tag_content(action, "calc")
        if call is None:
            return Response(HINT, info={"invalid": True, "tool_call": False})
        self._has_called = True
        output = self._calculator.call({"expression": call})
        observation = output.text if output.is_error else f"Result: {output.text}"
        return Response(observation, info={"tool_call": True})

    def oracle_action(self) -> str:
        """Return the call if none was made and turns are left, else the answer."""
        if not self._has_called and self.max_turns - self._turn > 1:
            return f"<calc>{self._expression}</calc>"
        return f"\\boxed{{{self._answer}}}"
