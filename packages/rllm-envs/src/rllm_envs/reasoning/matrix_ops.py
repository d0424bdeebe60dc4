"""``rllm/MatrixOps-v0``: sums, products, transposes and determinants of integer matrices."""

import re
from collections.abc import Sequence

from rllm_envs.errors import TaskError, excerpt
from rllm_envs.reasoning.answers import plain_text, read_integer
from rllm_envs.reasoning.draws import draw_integer, draw_item
from rllm_envs.reasoning.fields import (
    choice_field,
    integer_argument,
    integers_field,
    list_field,
    names_argument,
)
from rllm_envs.reasoning.solved import SolvedEnv
from rllm_envs.tasks import Task

KINDS = ("sum", "product", "transpose", "determinant", "power")
MAX_SIZE = 6
MAX_ENTRY = 1000
Matrix = list[list[int]]

_QUESTIONS = {
    "sum": "Compute A + B.",
    "product": "Compute the matrix product A B.",
    "transpose": "Compute the transpose of A.",
    "determinant": "Compute the determinant of A.",
    "power": "Compute A^3, the matrix product A A A.",
}
_ROW = re.compile(r"\[([^\[\]]*)\]")
_ENVIRONMENT = re.compile(
    r"\\(?:begin|end)\s*\{[bpvB]?(?:small)?(?:matrix|array)\}(?:\{[clr|]*\})?"
)
_ENTRY = re.compile(r"[+-]?\d{1,40}")


class MatrixOpsEnv(SolvedEnv):
    r"""Compute with small matrices of integers.

    ## Description
    Five kinds of question: ``sum`` and ``product`` of two matrices, ``transpose``, ``determinant``
    and third ``power`` of one.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the answer: a
    matrix as a list of rows, ``[[1, 2], [3, 4]]``, or in a LaTeX ``pmatrix``; an integer for a
    determinant.

    ## Observation Space
    The matrices as lists of rows, and the question. The last observation is empty.

    ## Starting State
    A uniform kind and entries uniform from ``-max_entry`` to ``max_entry``. Matrices are square for
    ``determinant`` and ``power``; otherwise each side is ``size`` or one less (at least 2).

    ## Rewards
    1 if every entry is right, 0 otherwise.

    ## Episode End
    Terminates after one action.

    ## Information
    ``success``, ``invalid`` (no box in the action), ``turn``, ``turns_left``.

    ## Arguments
    ``kinds`` (list of kinds, default all), ``size`` (2 to 6, default 3), ``max_entry`` (1 to 99,
    default 9), ``split`` ("train", "test" or "all").
    Task: ``{"kind": "product", "a": [[1, 2], [3, 4]], "b": [[0, 1], [1, 0]]}``, ``b`` for ``sum``
    and ``product`` only; ``answer`` optional.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        kinds: Sequence[str] | None = None,
        size: int = 3,
        max_entry: int = 9,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(split=split, render_mode=render_mode)
        self.kinds = names_argument("kinds", kinds, KINDS)
        self.size = integer_argument("size", size, 2, MAX_SIZE)
        self.max_entry = integer_argument("max_entry", max_entry, 1, 99)

    def draw(self) -> Task:
        """Return a random kind and matrices that fit it."""
        kind = draw_item(self.np_random, self.kinds)
        if kind in ("determinant", "power"):
            return {"kind": kind, "a": self._matrix(self.size, self.size)}
        smallest = max(2, self.size - 1)
        rows, inner, columns = (draw_integer(self.np_random, smallest, self.size) for _ in range(3))
        task: Task = {"kind": kind, "a": self._matrix(rows, inner)}
        if kind == "sum":
            task["b"] = self._matrix(rows, inner)
        if kind == "product":
            task["b"] = self._matrix(inner, columns)
        return task

    def _matrix(self, rows: int, columns: int) -> Matrix:
        most = self.max_entry
        return [
            [draw_integer(self.np_random, -most, most) for _ in range(columns)] for _ in range(rows)
        ]

    def check(self, task: Task) -> None:
        """Check the matrices and that their shapes fit the kind."""
        kind = choice_field(task, "kind", KINDS)
        rows, columns = _shape_of_field(task, "a")
        if kind in ("determinant", "power") and rows != columns:
            raise TaskError(f"'a' must be square for {kind}, got {rows} rows of {columns}")
        if kind == "sum" and _shape_of_field(task, "b") != (rows, columns):
            raise TaskError(f"'b' must have the shape of 'a', got {excerpt(task['b'])}")
        if kind == "product" and _shape_of_field(task, "b")[0] != columns:
            raise TaskError(f"'b' must have {columns} rows, got {excerpt(task['b'])}")

    def question(self, task: Task) -> str:
        """Return the matrices and the question."""
        lines = [f"{name.upper()} = {task[name]}" for name in ("a", "b") if name in task]
        form = "the number" if task["kind"] == "determinant" else "the list of its rows"
        return (
            "\n".join(lines)
            + f"\nThese are matrices, given as lists of rows. {_QUESTIONS[task['kind']]} Give "
            + f"{form} in \\boxed{{}}."
        )

    def solve(self, task: Task) -> str:
        """Return the resulting matrix as a list of rows, or the determinant."""
        kind, a = task["kind"], task["a"]
        if kind == "determinant":
            return str(determinant(a))
        if kind == "transpose":
            return str([list(column) for column in zip(*a, strict=True)])
        if kind == "power":
            return str(product(product(a, a), a))
        if kind == "product":
            return str(product(a, task["b"]))
        return str(
            [[x + y for x, y in zip(r, s, strict=True)] for r, s in zip(a, task["b"], strict=True)]
        )

    def grade(self, task: Task, answer: str) -> bool:
        """Return whether an answer has every entry right."""
        if task["kind"] == "determinant":
            return read_integer(answer) == int(task["answer"])
        given = read_matrix(answer)
        return given is not None and given == read_matrix(task["answer"])


def product(a: Matrix, b: Matrix) -> Matrix:
    """Return the product of an (n, m) and an (m, k) matrix."""
    columns = list(zip(*b, strict=True))
    return [[sum(x * y for x, y in zip(row, c, strict=True)) for c in columns] for row in a]


def determinant(matrix: Matrix) -> int:
    """Return the determinant of a square matrix by Bareiss' elimination without fractions."""
    rows = [list(row) for row in matrix]
    sign, before = 1, 1
    for step in range(len(rows) - 1):
        pivot = next((r for r in range(step, len(rows)) if rows[r][step]), None)
        if pivot is None:
            return 0
        if pivot != step:
            rows[step], rows[pivot] = rows[pivot], rows[step]
            sign = -sign
        for r in range(step + 1, len(rows)):
            for c in range(step + 1, len(rows)):
                cross = rows[r][c] * rows[step][step] - rows[r][step] * rows[step][c]
                rows[r][c] = cross // before
        before = rows[step][step]
    return sign * rows[-1][-1]


def read_matrix(answer: str) -> Matrix | None:
    """Return the matrix that a list of rows or a LaTeX matrix writes, or None."""
    text = plain_text(_ENVIRONMENT.sub(" ", answer)).strip("; ")
    if "&" in text or "[" not in text:
        rows = [part.replace("&", ",") for part in text.split(";") if part.strip()]
    else:
        rows = _ROW.findall(text)
        if _ROW.sub("", text).strip("[](){};, "):
            return None
    matrix = []
    for row in rows:
        entries = [entry.strip() for entry in row.split(",")]
        if not all(_ENTRY.fullmatch(entry) for entry in entries):
            return None
        matrix.append([int(entry) for entry in entries])
    return matrix


def _shape_of_field(task: Task, name: str) -> tuple[int, int]:
    rows = list_field(task, name, 1, MAX_SIZE)
    width = len(rows[0]) if isinstance(rows[0], list) else 1
    for row in rows:
        integers_field({name: row}, name, (-MAX_ENTRY, MAX_ENTRY), (max(width, 1), width))
    if width > MAX_SIZE:
        raise TaskError(f"{name!r} has {width} columns, more than {MAX_SIZE}")
    return len(rows), width
