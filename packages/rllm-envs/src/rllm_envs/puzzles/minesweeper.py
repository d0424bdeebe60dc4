"""``rllm/Minesweeper-v0``: open all places without a mine."""

from typing import Any

from rllm_envs.errors import TaskError
from rllm_envs.puzzles.checks import check_int, check_turns, task_int, task_rows
from rllm_envs.puzzles.minesweeper_rules import (
    Place,
    deduce,
    deduced_opening,
    mine_counts,
    opened_from,
)
from rllm_envs.puzzles.moves import MoveEnv, parse_numbers
from rllm_envs.tasks import Task

MAX_SIZE = 16
MAX_MINE_SHARE = 0.2


class MinesweeperEnv(MoveEnv):
    r"""Open all places without a mine.

    ## Description
    The known game as text, after a first opening. An open place shows how many of its up to eight
    neighbours hold a mine; opening a 0 opens its neighbours. Each board can be solved from its
    first opening without guessing.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` holds the row and
    the column of a place, from 1, such as ``2 3``, or several such as ``2 3, 1 1``, opened in
    order.

    ## Observation Space
    The rules, then the board: a number for an open place, ``?`` for a closed one, ``*`` for a mine
    that was opened. After an action the board again.

    ## Starting State
    ``mines`` mines on uniform places, none on or beside the uniform place opened first; boards that
    need a guess, or none at all because all is open, are drawn again.

    ## Rewards
    1 when all places without a mine are open, 0 otherwise.

    ## Episode End
    Terminates with the last opening and with a mine. Truncates when the budget of moves or of
    actions is spent.

    ## Information
    ``success``, ``invalid`` (no places in a box), ``turn``, ``turns_left``, ``moves_left``,
    ``closed`` (int: places without a mine that are still closed).

    ## Arguments
    ``size`` (rows and columns, 4 to 16, default 5), ``mines`` (1 to a fifth of the places, default
    4), ``max_turns`` (actions, and moves; size^2 by default), ``split`` ("train", "test" or
    "all"). ``rllm/MinesweeperHard-v0``: ``size=8, mines=10``.
    Task: ``{"rows": ["*...", "....", "....", "...*"], "first_row": 1, "first_column": 4}``.

    ## Version History
    * v0: Initial version
    """

    hint = "Write row and column of places in a box, such as \\boxed{2 3} or \\boxed{2 3, 1 1}."

    def __init__(
        self,
        *,
        size: int = 5,
        mines: int = 4,
        max_turns: int | None = None,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        self.size = check_int("size", size, 4, MAX_SIZE)
        self.mines = check_int("mines", mines, 1, int(MAX_MINE_SHARE * size**2))
        turns = check_turns(max_turns, size**2)
        super().__init__(max_turns=turns, split=split, render_mode=render_mode)
        self._counts: dict[Place, int] = {}
        self._mines: frozenset[Place] = frozenset()
        self._open: frozenset[Place] = frozenset()
        self._hit: Place | None = None
        self._shape = (0, 0)

    def generate_task(self) -> Task:
        """Return a random board that needs no guess."""
        number = self.size**2
        while True:
            first = divmod(int(self.np_random.integers(number)), self.size)
            places = [
                (row, column)
                for row in range(self.size)
                for column in range(self.size)
                if max(abs(row - first[0]), abs(column - first[1])) > 1
            ]
            chosen = self.np_random.choice(len(places), self.mines, replace=False)
            mines = frozenset(places[i] for i in chosen)
            counts = mine_counts(self.size, self.size, mines)
            num_safe = number - len(mines)
            if len(opened_from(counts, first, mines)) == num_safe:
                continue
            if len(deduced_opening(counts, mines, first)) == num_safe:
                rows = [
                    "".join("*" if (row, column) in mines else "." for column in range(self.size))
                    for row in range(self.size)
                ]
                return {"rows": rows, "first_row": first[0] + 1, "first_column": first[1] + 1}

    def validate_task(self, task: Task) -> Task:
        """Check the form of the board, and that it needs no guess and is not open at once."""
        rows = task_rows(task, "rows", "*.", 2, MAX_SIZE)
        first = (
            task_int(task, "first_row", 1, len(rows)) - 1,
            task_int(task, "first_column", 1, len(rows[0])) - 1,
        )
        mines = _mines(rows)
        counts = mine_counts(len(rows), len(rows[0]), mines)
        num_safe = len(counts) - len(mines)
        if first in mines or len(opened_from(counts, first, mines)) == num_safe:
            raise TaskError(f"the first opening of {rows} hits a mine or opens everything at once")
        if len(deduced_opening(counts, mines, first)) < num_safe:
            raise TaskError(f"the board {rows} cannot be solved without guessing")
        return task

    def begin(self, task: Task) -> str:
        """Return the rules and the board after the first opening."""
        self._shape = (len(task["rows"]), len(task["rows"][0]))
        self._mines = _mines(task["rows"])
        self._counts = mine_counts(*self._shape, self._mines)
        first = (task["first_row"] - 1, task["first_column"] - 1)
        self._open = opened_from(self._counts, first, self._mines)
        self._hit = None
        self.start_moves()
        return (
            f"Open all places without a mine on a board of {self._shape[0]} rows and "
            f"{self._shape[1]} columns with {len(self._mines)} mines. A number says how many of "
            "the up to eight neighbours hold a mine, ? is a closed place. Opening a mine loses. "
            "The board can be solved without guessing. Write row and column of a place, counted "
            "from 1 at the top left, in a box, such as \\boxed{2 1}, or several: "
            "\\boxed{2 1, 1 1}. "
            f"{self.budget_text()}\n{self.board()}"
        )

    def parse_moves(self, text: str) -> list[str] | None:
        """Return the places in a box."""
        numbers = parse_numbers(text, max(self._shape))
        pairs = list(zip(numbers[::2], numbers[1::2], strict=False))
        if len(numbers) % 2 or not all((r - 1, c - 1) in self._counts for r, c in pairs):
            return None
        return [f"{row} {column}" for row, column in pairs]

    def play(self, move: str) -> str:
        """Open a place, and around a 0 its neighbours."""
        row, column = (int(number) - 1 for number in move.split())
        if (row, column) in self._open:
            return f"The place {move} is open already."
        if (row, column) in self._mines:
            self._hit = (row, column)
        else:
            self._open |= opened_from(self._counts, (row, column), self._mines)
        return ""

    def board(self) -> str:
        """Return the board."""

        def symbol(place: Place) -> str:
            if place == self._hit:
                return "*"
            return str(self._counts[place]) if place in self._open else "?"

        height, width = self._shape
        rows = ([symbol((row, column)) for column in range(width)] for row in range(height))
        return "\n".join(" ".join(row) for row in rows)

    def is_solved(self) -> bool:
        """Return whether all places without a mine are open."""
        return self._closed() == 0

    def lost(self) -> str:
        """Return the sentence about a mine that was opened."""
        return "You have opened a mine." if self._hit is not None else ""

    def _closed(self) -> int:
        return len(self._counts) - len(self._mines) - len(self._open)

    def _info(self, *, success: bool, invalid: bool) -> dict[str, Any]:
        return super()._info(success=success, invalid=invalid) | {"closed": self._closed()}

    def plan(self) -> list[str]:
        """Return the places that the open numbers prove to be without a mine."""
        known = {place: self._counts[place] for place in self._open}
        safe, _ = deduce(known, frozenset(self._counts), len(self._mines))
        moves, opened = [], self._open
        for place in sorted(safe):
            if place not in opened:
                moves.append(f"{place[0] + 1} {place[1] + 1}")
                opened |= opened_from(self._counts, place, self._mines)
        return moves


def _mines(rows: list[str]) -> frozenset[Place]:
    return frozenset(
        (r, c) for r, row in enumerate(rows) for c, cell in enumerate(row) if cell == "*"
    )
