"""``rllm/SetOperations-v0``: evaluate an expression of sets."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rllm_envs.errors import TaskError, excerpt
from rllm_envs.reasoning.answers import plain_text, read_integers
from rllm_envs.reasoning.draws import draw_flag, draw_integer, draw_item, draw_items, shuffled
from rllm_envs.reasoning.fields import integer_argument, integers_field
from rllm_envs.reasoning.solved import SolvedEnv
from rllm_envs.tasks import Task

NAMES = "ABCDEF"
OPERATORS = ("union", "intersect", "minus", "symdiff")
MAX_DEPTH = 5
MAX_SIZE = 30
MAX_ELEMENT = 999
Expression = str | list[Any]
"""The name of a set, or an operator and two expressions."""

_EMPTY_SETS = (
    "",
    "{}",
    "empty",
    "empty set",
    "the empty set",
    "\\emptyset",
    "\\varnothing",
    "\u2205",
)


class SetOperationsEnv(SolvedEnv):
    r"""Evaluate an expression of unions, intersections and differences of sets of integers.

    ## Description
    The agent reads some sets and an expression such as ``(A union B) minus C``, and lists the
    elements of the result.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the answer: the
    elements in any order, ``3, 5, 8`` or ``\{3, 5, 8\}``; ``empty`` for the empty set.

    ## Observation Space
    The sets, the meaning of the operators, the expression. The last observation is empty.

    ## Starting State
    Sets of ``size - 2`` to ``size + 2`` (at least 1) elements from 1 to three times ``size``, and a
    random expression of depth ``depth``; the result has at least two elements.

    ## Rewards
    1 for exactly the elements of the result, 0 otherwise.

    ## Episode End
    Terminates after one action.

    ## Information
    ``success``, ``invalid`` (no box in the action), ``turn``, ``turns_left``.

    ## Arguments
    ``num_sets`` (2 to 6, default 3), ``size`` (3 to 20, default 7), ``depth`` (1 to 5, default 2),
    ``split`` ("train", "test" or "all").
    Task: ``{"sets": {"A": [1, 2], "B": [2, 3]}, "expression": ["union", "A", "B"]}``, operators
    "union", "intersect", "minus" and "symdiff"; ``answer`` optional.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        num_sets: int = 3,
        size: int = 7,
        depth: int = 2,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(split=split, render_mode=render_mode)
        self.num_sets = integer_argument("num_sets", num_sets, 2, len(NAMES))
        self.size = integer_argument("size", size, 3, 20)
        self.depth = integer_argument("depth", depth, 1, MAX_DEPTH)

    def draw(self) -> Task:
        """Return random sets and an expression with at least two elements."""
        rng = self.np_random
        while True:
            sets = {}
            for name in NAMES[: self.num_sets]:
                count = draw_integer(rng, max(1, self.size - 2), self.size + 2)
                sets[name] = sorted(draw_items(rng, range(1, 3 * self.size + 1), count))
            expression = _draw_expression(rng, tuple(sets), self.depth)
            if len(evaluate_sets(expression, sets)) >= 2:
                return {"sets": sets, "expression": expression}

    def check(self, task: Task) -> None:
        """Check the sets and the expression."""
        sets = task.get("sets")
        if not isinstance(sets, dict) or not sets or {*sets} - {*NAMES}:
            raise TaskError(f"'sets' must hold lists under names of {NAMES}, got {excerpt(sets)}")
        for name in sets:
            integers_field(sets, name, (-MAX_ELEMENT, MAX_ELEMENT), (0, MAX_SIZE))
        if not _is_expression(task.get("expression"), sets, 2 * MAX_DEPTH):
            raise TaskError(
                f"'expression' must be a set or a list of {', '.join(OPERATORS)} and two "
                f"expressions, got {excerpt(task.get('expression'))}"
            )

    def question(self, task: Task) -> str:
        """Return the sets and the expression."""
        lines = [
            f"{name} = {{{', '.join(map(str, elements))}}}"
            for name, elements in task["sets"].items()
        ]
        return (
            "\n".join(lines)
            + f"\nWhat are the elements of {_written(task['expression'])}? X minus Y holds what is "
            "in X but not in Y; X symdiff Y what is in exactly one of them. Give the elements in "
            "\\boxed{}, separated by commas."
        )

    def solve(self, task: Task) -> str:
        """Return the elements in ascending order, or ``empty``."""
        elements = evaluate_sets(task["expression"], task["sets"])
        return ", ".join(map(str, sorted(elements))) or "empty"

    def grade(self, task: Task, answer: str) -> bool:
        """Return whether an answer lists exactly the elements."""
        right = evaluate_sets(task["expression"], task["sets"])
        if plain_text(answer).lower() in _EMPTY_SETS:
            return not right
        given = read_integers(answer)
        return given is not None and {*given} == right


def evaluate_sets(expression: Expression, sets: Mapping[str, Sequence[int]]) -> set[int]:
    """Return the set that an expression describes."""
    if isinstance(expression, str):
        return {*sets[expression]}
    operator, *parts = expression
    left, right = (evaluate_sets(part, sets) for part in parts)
    if operator == "union":
        return left | right
    if operator == "intersect":
        return left & right
    return left - right if operator == "minus" else left ^ right


def _draw_expression(rng: np.random.Generator, names: Sequence[str], depth: int) -> Expression:
    """Return a random expression of exactly a depth; no set is joined directly with itself."""
    if depth == 0:
        return draw_item(rng, names)
    if depth == 1:
        return [draw_item(rng, OPERATORS), *draw_items(rng, names, 2)]
    parts = [
        _draw_expression(rng, names, depth - 1),
        _draw_expression(rng, names, draw_integer(rng, 0, depth - 1)),
    ]
    return [draw_item(rng, OPERATORS), *(shuffled(rng, parts) if draw_flag(rng) else parts)]


def _is_expression(value: Any, sets: Mapping[str, Any], depth: int) -> bool:
    if isinstance(value, str):
        return value in sets
    if not isinstance(value, list) or len(value) != 3 or depth == 0:
        return False
    return value[0] in [*OPERATORS] and all(
        _is_expression(part, sets, depth - 1) for part in value[1:]
    )


def _written(expression: Expression, *, is_outermost: bool = True) -> str:
    """Return an expression such as ``(A union B) minus C``."""
    if isinstance(expression, str):
        return expression
    left, right = (_written(part, is_outermost=False) for part in expression[1:])
    text = f"{left} {expression[0]} {right}"
    return text if is_outermost else f"({text})"
