"""``rllm/LinearEquation-v0``: an equation in one unknown, or a system of several."""

from fractions import Fraction
from typing import Any

from rllm_envs.errors import TaskError, excerpt
from rllm_envs.grading.exact import exact_value
from rllm_envs.reasoning.answers import read_pairs
from rllm_envs.reasoning.draws import draw_integer
from rllm_envs.reasoning.fields import integer_argument, list_field
from rllm_envs.reasoning.solved import SolvedEnv
from rllm_envs.tasks import Task

UNKNOWNS = "xyzw"
MAX_GIVEN_NUMBER = 10**9


class LinearEquationEnv(SolvedEnv):
    r"""Solve a linear equation, or a system of as many equations as unknowns.

    ## Description
    With one unknown both sides hold it, as in ``3x + 5 = -2x + 7``; the solution is a fraction.
    With several unknowns each equation has them on its left side.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the answer:
    ``x = 2/5, y = -3``; with one unknown ``2/5`` is enough.

    ## Observation Space
    The equations and what to find. The last observation is empty.

    ## Starting State
    Each unknown is a fraction between -20 and 20 whose denominator is uniform from 1 to
    ``max_denominator``; coefficients are uniform up to ``max_coefficient``, and an equation whose
    result is a fraction is multiplied by its denominator. The solution is unique.

    ## Rewards
    1 for the exact value of every unknown, written as an integer, decimal or fraction; 0 otherwise.

    ## Episode End
    Terminates after one action.

    ## Information
    ``success``, ``invalid`` (no box in the action), ``turn``, ``turns_left``.

    ## Arguments
    ``unknowns`` (1 to 4, default 1), ``max_coefficient`` (2 to 99, default 12), ``max_denominator``
    (1 to 12, default 6), ``split`` ("train", "test" or "all").
    Task: ``{"left": [[3, 5]], "right": [[-2, 7]]}``, one row per equation: the coefficients of the
    unknowns, then the constant; ``answer`` optional.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        unknowns: int = 1,
        max_coefficient: int = 12,
        max_denominator: int = 6,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(split=split, render_mode=render_mode)
        self.unknowns = integer_argument("unknowns", unknowns, 1, len(UNKNOWNS))
        self.max_coefficient = integer_argument("max_coefficient", max_coefficient, 2, 99)
        self.max_denominator = integer_argument("max_denominator", max_denominator, 1, 12)

    def draw(self) -> Task:
        """Return random equations with a unique solution."""
        rng, size = self.np_random, self.unknowns
        while True:
            solution = []
            for _ in range(size):
                bottom = draw_integer(rng, 1, self.max_denominator)
                solution.append(Fraction(draw_integer(rng, -20 * bottom, 20 * bottom), bottom))
            rows = [self._row(solution) for _ in range(size)]
            task = {"left": [left for left, _ in rows], "right": [right for _, right in rows]}
            if _solution(task) is not None:
                return task

    def _row(self, solution: list[Fraction]) -> tuple[list[int], list[int]]:
        """Return the two sides of an equation that a solution fulfils."""
        rng, most = self.np_random, self.max_coefficient
        left: list[int | Fraction] = [draw_integer(rng, -most, most) for _ in solution]
        right: list[int | Fraction] = [0] * len(solution)
        left.append(0)
        if len(solution) == 1:
            left[1], right[0] = draw_integer(rng, -30, 30), draw_integer(rng, -most, most)
        total = left[-1] + sum((a - b) * x for a, b, x in zip(left, right, solution, strict=False))
        right.append(total)
        factor = Fraction(total).denominator
        return [int(value * factor) for value in left], [int(value * factor) for value in right]

    def check(self, task: Task) -> None:
        """Check that the rows are integers and form as many equations as unknowns."""
        left = list_field(task, "left", 1, len(UNKNOWNS))
        right = list_field(task, "right", len(left), len(left))
        for row in (*left, *right):
            if not (
                isinstance(row, list) and len(row) == len(left) + 1 and all(map(_is_small, row))
            ):
                raise TaskError(
                    f"each row of 'left' and 'right' must hold {len(left) + 1} integers of at most "
                    f"{MAX_GIVEN_NUMBER} (coefficients, then the constant), got {excerpt(row)}"
                )

    def question(self, task: Task) -> str:
        """Return the equations and how to answer."""
        lines = [
            f"{_side(left)} = {_side(right)}"
            for left, right in zip(task["left"], task["right"], strict=True)
        ]
        if len(lines) == 1:
            return f"Solve {lines[0]} for x. Give the exact value of x in \\boxed{{}}."
        names = UNKNOWNS[: len(lines)]
        example = ", ".join(f"{name} = ..." for name in names)
        return (
            "Solve this system of equations.\n"
            + "\n".join(lines)
            + f"\nGive the exact values as \\boxed{{{example}}}."
        )

    def solve(self, task: Task) -> str:
        """Return the solution, found by elimination.

        Raises:
            TaskError: There is none, or more than one.
        """
        solution = _solution(task)
        if solution is None:
            raise TaskError(f"the equations {excerpt(task)} do not have exactly one solution")
        return ", ".join(f"{name} = {x}" for name, x in zip(UNKNOWNS, solution, strict=False))

    def grade(self, task: Task, answer: str) -> bool:
        """Return whether an answer gives each unknown its exact value."""
        solution = _solution(task) or []
        if len(solution) == 1 and exact_value(answer) == solution[0]:
            return True
        pairs = read_pairs(answer)
        if pairs is None or {*pairs} != {*UNKNOWNS[: len(solution)]}:
            return False
        return all(
            exact_value(pairs[name]) == x for name, x in zip(UNKNOWNS, solution, strict=False)
        )


def _is_small(value: Any) -> bool:
    return type(value) is int and abs(value) <= MAX_GIVEN_NUMBER


def _solution(task: Task) -> list[Fraction] | None:
    """Return the one solution by Gaussian elimination with exact fractions, or None."""
    size = len(task["left"])
    rows = []
    for left, right in zip(task["left"], task["right"], strict=True):
        row = [Fraction(a - b) for a, b in zip(left[:size], right[:size], strict=True)]
        rows.append([*row, Fraction(right[size] - left[size])])
    for column in range(size):
        pivot = next((r for r in range(column, size) if rows[r][column]), None)
        if pivot is None:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [value / rows[column][column] for value in rows[column]]
        for other in range(size):
            if other != column and rows[other][column]:
                factor = rows[other][column]
                rows[other] = [
                    a - factor * b for a, b in zip(rows[other], rows[column], strict=True)
                ]
    return [row[size] for row in rows]


def _side(row: list[int]) -> str:
    """Return one side of an equation, such as ``3x - y + 5``."""
    *coefficients, constant = row
    terms = [
        (value, f"{'' if abs(value) == 1 else abs(value)}{name}")
        for value, name in zip(coefficients, UNKNOWNS, strict=False)
        if value
    ]
    if constant or not terms:
        terms.append((constant, str(abs(constant))))
    text = "".join(f" {'-' if value < 0 else '+'} {term}" for value, term in terms)
    return ("-" if terms[0][0] < 0 else "") + text[3:]
