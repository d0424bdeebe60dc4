"""``rllm/NQueens-v0``: complete a board of queens that do not attack each other."""

from itertools import combinations

import numpy as np

from rllm_envs.core import Response, TextEnv
from rllm_envs.errors import TaskError
from rllm_envs.parsing import boxed_answer
from rllm_envs.puzzles.checks import check_int, check_turns, task_integers
from rllm_envs.puzzles.moves import MAX_PARSED, parse_numbers
from rllm_envs.tasks import Task

MAX_SIZE = 12


class NQueensEnv(TextEnv):
    r"""Complete a board of queens that do not attack each other.

    ## Description
    A square board holds some queens. The agent places one queen in each other row, so that no two
    of all queens share a column or a diagonal. A wrong board may be corrected.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` holds the column
    of the queen of each row, from the top, columns from 1, such as ``2 4 1 3``.

    ## Observation Space
    First the rules and the board, ``Q`` a queen, ``.`` an empty place. Then two rows whose queens
    attack each other, or a given queen that was moved, or a hint where the action holds no board.
    The last observation of a solved task is empty.

    ## Starting State
    A random solution of which ``given`` queens on uniform rows are shown. Any solution with these
    queens is right.

    ## Rewards
    1 for a solution, 0 otherwise.

    ## Episode End
    Terminates with a solution, or after ``max_turns`` actions.

    ## Information
    ``success``, ``invalid`` (no board in a box), ``turn``, ``turns_left``.

    ## Arguments
    ``size`` (6 to 12, default 8), ``given`` (1 to size - 2, default 2), ``max_turns`` (boards,
    default 3), ``split`` ("train", "test" or "all"). ``rllm/NQueensHard-v0``: ``size=12, given=3``.
    Task: ``{"columns": [0, 4, 0, 0, 0]}``: the column of each row's queen, 0 where none is given.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        size: int = 8,
        given: int = 2,
        max_turns: int | None = None,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_turns=check_turns(max_turns, 3), split=split, render_mode=render_mode)
        self.size = check_int("size", size, 6, MAX_SIZE)
        self.given = check_int("given", given, 1, size - 2)
        self._columns: list[int] = []

    def generate_task(self) -> Task:
        """Return some queens of a random solution."""
        solution = solve([0] * self.size, self.np_random)
        assert solution is not None
        rows = set(self.np_random.choice(self.size, self.given, replace=False).tolist())
        return {"columns": [c if row in rows else 0 for row, c in enumerate(solution)]}

    def validate_task(self, task: Task) -> Task:
        """Check that ``columns`` can be completed."""
        columns = task_integers(task, "columns", 0, MAX_SIZE)
        size = len(columns)
        if not 4 <= size <= MAX_SIZE or max(columns) > size or 0 not in columns:
            raise TaskError(
                f"'columns' must hold 4 to {MAX_SIZE} numbers from 0 to their number, at least one "
                f"of them 0, got {columns}"
            )
        if solve(columns) is None:
            raise TaskError(f"the queens {columns} cannot be completed")
        return task

    def begin(self, task: Task) -> str:
        """Return the rules and the board."""
        self._columns = task["columns"]
        size = len(self._columns)
        rows = ("".join("Q" if c == column else "." for column in range(1, size + 1))
                for c in self._columns)  # fmt: skip
        board = "\n".join(rows)
        return (
            f"Place queens on a board of {size} rows and {size} columns so that each row holds one "
            "queen and no two queens share a column or a diagonal. Queens marked Q are given and "
            f"stay. {self._form()} You have {self.max_turns} attempts.\n{board}"
        )

    def _form(self) -> str:
        return (
            f"Write the columns of the queens of rows 1 to {len(self._columns)}, counted from 1 at "
            "the left, in a box: \\boxed{2 4 1 3} for four rows."
        )

    def respond(self, action: str) -> Response:
        """Look for queens that attack each other."""
        left = self.max_turns - self._turn
        size = len(self._columns)
        numbers = parse_numbers((boxed_answer(action) or "")[:MAX_PARSED], size)
        is_invalid = len(numbers) != size or 0 in numbers
        problem = self._form() if is_invalid else self._problem(numbers)
        if not problem:
            return Response("", 1.0, terminated=True)
        text = f"{problem} Attempts left: {left}."
        return Response(text, terminated=left == 0, info={"invalid": is_invalid})

    def _problem(self, columns: list[int]) -> str:
        for row, (column, own) in enumerate(zip(columns, self._columns, strict=True), start=1):
            if own not in (0, column):
                return f"The queen of row {row} is given in column {own}."
        pair = attacking_rows(columns)
        return f"The queens of rows {pair[0]} and {pair[1]} attack each other." if pair else ""

    def oracle_action(self) -> str:
        """Return a solution, found by depth-first search."""
        return f"\\boxed{{{' '.join(map(str, solve(self._columns) or []))}}}"


def attacking_rows(columns: list[int]) -> tuple[int, int] | None:
    """Return the first two rows, from 1, whose queens share a column or a diagonal."""
    for (row, one), (later, other) in combinations(enumerate(columns, start=1), 2):
        if one == other or abs(one - other) == later - row:
            return row, later
    return None


def solve(columns: list[int], np_random: np.random.Generator | None = None) -> list[int] | None:
    """Return a completion of a board, None where there is none.

    Args:
        columns: The column of each row's queen, from 1; 0 where it is to be placed.
        np_random: Source of the order in which columns are tried; from the left where None.
    """
    size = len(columns)
    if attacking_rows_given(columns):
        return None
    free = [row for row, column in enumerate(columns) if not column]
    placed = {row: column for row, column in enumerate(columns) if column}

    def place(index: int) -> bool:
        if index == len(free):
            return True
        row = free[index]
        order = range(size) if np_random is None else np_random.permutation(size).tolist()
        for column in (number + 1 for number in order):
            if all(c != column and abs(c - column) != abs(r - row) for r, c in placed.items()):
                placed[row] = column
                if place(index + 1):
                    return True
                del placed[row]
        return False

    return [placed[row] for row in range(size)] if place(0) else None


def attacking_rows_given(columns: list[int]) -> bool:
    """Return whether two of the given queens attack each other; 0 is no queen."""
    queens = [(row, column) for row, column in enumerate(columns) if column]
    return any(
        one == other or abs(one - other) == later - row
        for (row, one), (later, other) in combinations(queens, 2)
    )
