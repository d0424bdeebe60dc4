"""Random sums and products of integers, shared by Arithmetic-v0 and Calculator-v0."""

from typing import Any

import numpy as np

from rllm_envs.errors import EnvArgumentError, TaskError, ToolError, excerpt
from rllm_envs.tasks import Task
from rllm_envs.tools.calculator import evaluate, format_value

OPERATORS = "+-*"


def check_expression_arguments(digits: Any, operators: Any, num_terms: Any) -> None:
    """Raise EnvArgumentError unless the arguments describe expressions."""
    if isinstance(digits, bool) or not isinstance(digits, int) or not 1 <= digits <= 9:
        raise EnvArgumentError(f"digits must be an integer from 1 to 9, got {digits!r:.80}")
    if isinstance(num_terms, bool) or not isinstance(num_terms, int) or not 2 <= num_terms <= 8:
        raise EnvArgumentError(f"num_terms must be an integer from 2 to 8, got {num_terms!r:.80}")
    if not isinstance(operators, str) or not operators or set(operators) - set(OPERATORS):
        raise EnvArgumentError(
            f"operators must be one or more of {OPERATORS!r}, got {operators!r:.80}"
        )


def random_expression_task(
    np_random: np.random.Generator, *, digits: int, operators: str, num_terms: int
) -> Task:
    """Return ``{"expression": "512 + 389", "answer": "901"}``.

    Each of the ``num_terms`` numbers is uniform over those of exactly ``digits`` digits, each
    operator uniform over ``operators``.
    """
    low, high = 10 ** (digits - 1), 10**digits
    expression = str(np_random.integers(low, high))
    for _ in range(num_terms - 1):
        operator = operators[int(np_random.integers(len(operators)))]
        expression += f" {operator} {np_random.integers(low, high)}"
    return {"expression": expression, "answer": format_value(evaluate(expression))}


def validate_expression_task(task: Task) -> Task:
    """Return a given task with the answer filled in.

    Raises:
        TaskError: ``expression`` is missing or has no integer value, or ``answer`` is not that
            value.
    """
    expression = task.get("expression")
    if not isinstance(expression, str):
        raise TaskError(f"the task needs the text 'expression', got {excerpt(task)}")
    try:
        value = evaluate(expression)
    except ToolError as error:
        raise TaskError(f"expression {excerpt(expression)}: {error}") from None
    if value.denominator != 1:
        raise TaskError(f"expression {excerpt(expression)} has no integer value")
    if str(task.get("answer", value)) != str(value):
        raise TaskError(
            f"expression {excerpt(expression)} is {value}, not {excerpt(task['answer'])}"
        )
    return {**task, "answer": str(value)}
