"""``rllm/Sudoku-v0``: fill a grid with digits."""

from typing import Any

from rllm_envs.core import Response, TextEnv
from rllm_envs.errors import EnvArgumentError, TaskError
from rllm_envs.parsing import boxed_answer
from rllm_envs.puzzles.checks import check_int, check_turns, task_rows
from rllm_envs.puzzles.moves import MAX_PARSED, parse_numbers
from rllm_envs.puzzles.sudoku_rules import Grid, random_puzzle, solutions
from rllm_envs.tasks import Task

MAX_BLANKS = {4: 10, 9: 50}


class SudokuEnv(TextEnv):
    r"""Fill a grid with digits.

    ## Description
    Each row, each column and each box of the grid must hold each digit once. The agent answers with
    the whole grid, or fills in cells step by step; an entry may be replaced later. There is exactly
    one solution.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` holds either the
    whole grid, row by row, digits with or without spaces, which is the final answer, or cells as
    triples ``row column digit``, from 1, such as ``1 2 3, 4 1 2``.

    ## Observation Space
    The rules, then the grid, ``.`` for an empty cell. After an action with cells the grid again,
    behind the reason where an entry was refused: a given cell, or a digit that stands in the same
    row, column or box already; the entries behind it are not made.

    ## Starting State
    A random solution with ``blanks`` cells emptied so that no other solution fits.

    ## Rewards
    1 for the solution, 0 otherwise.

    ## Episode End
    Terminates with a whole grid as answer, and when the last cell is filled in. Truncates after
    ``max_turns`` actions.

    ## Information
    ``success``, ``invalid`` (neither a grid nor cells in a box), ``turn``, ``turns_left``,
    ``blanks`` (int: empty cells).

    ## Arguments
    ``size`` (4 or 9, default 4), ``blanks`` (4 to 10 for 4 rows, default 8; 4 to 50 for 9 rows,
    default 40), ``max_turns`` (by default twice ``blanks``), ``split`` ("train", "test" or "all").
    ``rllm/SudokuHard-v0``: ``size=9``.
    Task: ``{"rows": ["1.3.", "..12", ".1.3", "43.1"]}``.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        size: int = 4,
        blanks: int | None = None,
        max_turns: int | None = None,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        if isinstance(size, bool) or size not in MAX_BLANKS:
            raise EnvArgumentError(f"size must be 4 or 9, got {size!r:.80}")
        self.size = size
        default = {4: 8, 9: 40}[size]
        chosen = default if blanks is None else blanks
        self.blanks = check_int("blanks", chosen, 4, MAX_BLANKS[size])
        turns = check_turns(max_turns, 2 * self.blanks)
        super().__init__(max_turns=turns, split=split, render_mode=render_mode)
        self._given: Grid = []
        self._cells: Grid = []
        self._solution: Grid = []
        self._size = size

    def generate_task(self) -> Task:
        """Return a random puzzle."""
        return {"rows": _rows(random_puzzle(self.np_random, self.size, self.blanks), self.size)}

    def validate_task(self, task: Task) -> Task:
        """Check that ``rows`` is a puzzle with exactly one solution."""
        size = len(task["rows"]) if isinstance(task.get("rows"), list) else 0
        size = size if size in MAX_BLANKS else 4
        rows = task_rows(task, "rows", ".123456789"[: size + 1], size, size)
        grid = _grid(rows)
        if 0 not in grid:
            raise TaskError(f"'rows' must have an empty cell, got {rows}")
        # A grid with few digits has many solutions and takes long to search.
        if grid.count(0) > 64 or len(solutions(grid, size, 2)) != 1:
            raise TaskError(f"'rows' must have exactly one solution, got {rows}")
        return task

    def begin(self, task: Task) -> str:
        """Return the rules and the grid."""
        self._given = _grid(task["rows"])
        self._size = len(task["rows"])
        self._cells = list(self._given)
        self._solution = solutions(self._given, self._size, 1)[0]
        box = int(self._size**0.5)
        return (
            f"Fill in the grid so that each row, each column and each {box} by {box} box holds "
            f"each digit from 1 to {self._size} once. A dot is an empty cell. {self._form()} You "
            f"have {self.max_turns} turns.\n{self._board()}"
        )

    def _form(self) -> str:
        return (
            "Write the whole grid, row by row, in a box as your final answer, or fill in cells by "
            "row, column, digit, counted from 1: \\boxed{1 2 3} or \\boxed{1 2 3, 4 1 2}."
        )

    def _board(self) -> str:
        return "\n".join(_rows(self._cells, self._size))

    def respond(self, action: str) -> Response:
        """Judge a whole grid, or fill in cells."""
        box = boxed_answer(action)
        numbers = parse_grid(box, self._size) if box is not None else []
        if len(numbers) == self._size**2:
            return Response("", float(numbers == self._solution), terminated=True)
        if not numbers:
            return Response(f"{self._form()}\n{self._board()}", info={"invalid": True})
        problem = ""
        for start in range(0, len(numbers), 3):
            problem = self._enter(*numbers[start : start + 3])
            if problem:
                break
        if 0 not in self._cells:
            # Entries never clash, so a full grid is the solution.
            return Response(self._board(), 1.0, terminated=True)
        return Response("\n".join(filter(None, (problem, self._board()))))

    def _enter(self, row: int, column: int, digit: int) -> str:
        cell = (row - 1) * self._size + column - 1
        if self._given[cell]:
            return f"The cell in row {row}, column {column} is given."
        before, self._cells[cell] = self._cells[cell], 0
        if digit in self._peers(row - 1, column - 1):
            self._cells[cell] = before
            return (
                f"The {digit} does not fit in row {row}, column {column}: it stands in the same "
                "row, column or box."
            )
        self._cells[cell] = digit
        return ""

    def _peers(self, row: int, column: int) -> set[int]:
        size, box = self._size, int(self._size**0.5)
        top, left = row // box * box, column // box * box
        return {
            self._cells[r * size + c]
            for r in range(size)
            for c in range(size)
            if r == row or c == column or (r - r % box, c - c % box) == (top, left)
        }

    def _info(self, *, success: bool, invalid: bool) -> dict[str, Any]:
        base = super()._info(success=success, invalid=invalid)
        return base | {"blanks": self._cells.count(0)}

    def oracle_action(self) -> str:
        """Return the solution, which the search found."""
        return f"\\boxed{{{' '.join(_rows(self._solution, self._size))}}}"


def parse_grid(text: str, size: int) -> list[int]:
    """Return the digits of a whole grid, or the numbers of triples; empty for other text.

    Args:
        text: The content of a box.
        size: Rows of the grid.
    """
    compact = "".join(text[:MAX_PARSED].replace(",", " ").split())
    if len(compact) == size**2 and compact.isascii() and compact.isdigit():
        digits = [int(digit) for digit in compact]
        return digits if max(digits) <= size and min(digits) >= 1 else []
    numbers = parse_numbers(text[:MAX_PARSED], size)
    return numbers if len(numbers) % 3 == 0 and 0 not in numbers else []


def _grid(rows: list[str]) -> Grid:
    return [0 if cell == "." else int(cell) for row in rows for cell in row]


def _rows(grid: Grid, size: int) -> list[str]:
    words = "".join(str(digit) if digit else "." for digit in grid)
    return [words[start : start + size] for start in range(0, size**2, size)]
