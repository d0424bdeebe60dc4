"""``rllm/Nonogram-v0``: find the picture that has the given runs in rows and columns."""

from typing import Any

from rllm_envs.core import Response, TextEnv
from rllm_envs.errors import TaskError, excerpt
from rllm_envs.parsing import boxed_answer
from rllm_envs.puzzles.checks import check_int, check_turns, is_int
from rllm_envs.puzzles.nonogram_rules import Board, Clue, deduce, line_clue, solutions
from rllm_envs.tasks import Task

MAX_SIZE = 10
FILLED_SHARE = 0.55


class NonogramEnv(TextEnv):
    r"""Find the picture that has the given runs in rows and columns.

    ## Description
    Each cell of a square picture is filled or empty. For each row and each column the lengths of
    its runs of filled cells are given, in order. The picture follows from them without guessing. A
    wrong picture may be corrected.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` holds the picture
    row by row, ``#`` for a filled and ``.`` for an empty cell; spaces and line breaks do not count.

    ## Observation Space
    First the rules with all runs. Then the rows and the columns whose runs the picture does not
    have, or a hint where the action holds no picture. The last observation of a solved task is
    empty.

    ## Starting State
    Each cell is filled with probability 0.55; pictures that do not follow line by line are drawn
    again.

    ## Rewards
    1 for the picture, 0 otherwise.

    ## Episode End
    Terminates with the picture, or after ``max_turns`` actions.

    ## Information
    ``success``, ``invalid`` (no picture in a box), ``turn``, ``turns_left``, ``wrong_lines`` (int:
    rows and columns that the last picture has wrong; all of them before the first).

    ## Arguments
    ``size`` (rows and columns, 3 to 10, default 5), ``max_turns`` (pictures, default 3), ``split``
    ("train", "test" or "all"). ``rllm/NonogramHard-v0``: ``size=8``.
    Task: ``{"rows": [[2], [1], [1, 1]], "columns": [[1, 1], [2], [1]]}``.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        size: int = 5,
        max_turns: int | None = None,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        turns = check_turns(max_turns, 3)
        super().__init__(max_turns=turns, split=split, render_mode=render_mode)
        self.size = check_int("size", size, 3, MAX_SIZE)
        self._rows: list[Clue] = []
        self._columns: list[Clue] = []
        self._wrong_lines = 0

    def generate_task(self) -> Task:
        """Return the runs of a random picture that follows from them."""
        size = self.size
        unknown: Board = [[-1] * size for _ in range(size)]
        while True:
            picture = (self.np_random.random((size, size)) < FILLED_SHARE).astype(int).tolist()
            rows, columns = clues(picture)
            if deduce(unknown, rows, columns) == picture:
                return {"rows": list(map(list, rows)), "columns": list(map(list, columns))}

    def validate_task(self, task: Task) -> Task:
        """Check that exactly one picture has the runs."""
        rows, columns = (task_clues(task, field) for field in ("rows", "columns"))
        for field, lines, length in (("rows", rows, len(columns)), ("columns", columns, len(rows))):
            if any(sum(clue) + len(clue) - 1 > length for clue in lines):
                raise TaskError(f"a line of {field!r} is longer than {length}: {excerpt(lines)}")
        if len(solutions(rows, columns, 2)) != 1:
            raise TaskError(f"not exactly one picture has the runs of {excerpt(task)}")
        return task

    def begin(self, task: Task) -> str:
        """Return the rules and the runs."""
        self._rows = [tuple(clue) for clue in task["rows"]]
        self._columns = [tuple(clue) for clue in task["columns"]]
        self._wrong_lines = len(self._rows) + len(self._columns)
        return (
            f"Find the picture of {len(self._rows)} rows and {len(self._columns)} columns. Each "
            "line lists the lengths of its runs of filled cells, in order, with at least one empty "
            f"cell between two runs; 0 is an empty line.\nRows from the top: {_words(self._rows)}\n"
            f"Columns from the left: {_words(self._columns)}\n{self._form()} You have "
            f"{self.max_turns} attempts."
        )

    def _form(self) -> str:
        return (
            f"Write the {len(self._rows)} rows of {len(self._columns)} cells in a box, # for a "
            "filled and . for an empty cell: \\boxed{##. #.. .#.} for three rows of three."
        )

    def respond(self, action: str) -> Response:
        """Compare the runs of a picture with the given ones."""
        is_last = self._turn >= self.max_turns
        picture = self._picture(boxed_answer(action) or "")
        if picture is None:
            return Response(self._form(), terminated=is_last, info={"invalid": True})
        rows, columns = clues(picture)
        wrong = [
            [index for index, (one, other) in enumerate(zip(*pair, strict=True), 1) if one != other]
            for pair in ((rows, self._rows), (columns, self._columns))
        ]
        self._wrong_lines = sum(map(len, wrong))
        if not self._wrong_lines:
            return Response("", 1.0, terminated=True)
        parts = [
            f"Wrong {name}: {', '.join(map(str, lines))}."
            for name, lines in zip(("rows", "columns"), wrong, strict=True)
            if lines
        ]
        left = f"Attempts left: {self.max_turns - self._turn}."
        return Response(" ".join([*parts, left]), terminated=is_last)

    def _picture(self, text: str) -> Board | None:
        cells = "".join(text[:2000].split())
        height, width = len(self._rows), len(self._columns)
        if len(cells) != height * width or set(cells) - set("#."):
            return None
        flat = [int(cell == "#") for cell in cells]
        return [flat[start : start + width] for start in range(0, len(flat), width)]

    def _info(self, *, success: bool, invalid: bool) -> dict[str, Any]:
        base = super()._info(success=success, invalid=invalid)
        return base | {"wrong_lines": self._wrong_lines}

    def oracle_action(self) -> str:
        """Return the picture, worked out line by line."""
        picture = solutions(self._rows, self._columns, 1)[0]
        rows = ("".join("#" if cell else "." for cell in row) for row in picture)
        return f"\\boxed{{{' '.join(rows)}}}"


def clues(picture: Board) -> tuple[list[Clue], list[Clue]]:
    """Return the runs of all rows and of all columns."""
    return [line_clue(row) for row in picture], [
        line_clue(column) for column in zip(*picture, strict=True)
    ]


def task_clues(task: Task, field: str) -> list[Clue]:
    """Return the runs of a given task.

    Raises:
        TaskError: The field is no list of 2 to 10 lists of run lengths.
    """
    lines = task.get(field)
    is_right = isinstance(lines, list) and 2 <= len(lines) <= MAX_SIZE
    for clue in lines if is_right and isinstance(lines, list) else ():
        is_right &= isinstance(clue, list) and all(is_int(run, 1, MAX_SIZE) for run in clue)
    if not is_right:
        raise TaskError(
            f"the task needs {field!r}, 2 to {MAX_SIZE} lists of run lengths, got {excerpt(lines)}"
        )
    return [tuple(clue) for clue in task[field]]


def _words(lines: list[Clue]) -> str:
    return "; ".join(" ".join(map(str, clue)) or "0" for clue in lines)
