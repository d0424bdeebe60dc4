"""``rllm/Game2048-v0``: merge tiles until one reaches a target."""

from functools import lru_cache
from typing import Any

import numpy as np

from rllm_envs.errors import EnvArgumentError, TaskError, excerpt
from rllm_envs.puzzles.checks import check_int, check_turns, is_int
from rllm_envs.puzzles.moves import DIRECTIONS, MoveEnv, parse_directions
from rllm_envs.tasks import Task

TARGETS = tuple(2**power for power in range(4, 12))
START_TILES = 4
_DECAY = 0.6
_EMPTY_WEIGHT = 3.0
Rows = tuple[tuple[int, ...], ...]


class Game2048Env(MoveEnv):
    r"""Merge tiles until one reaches a target.

    ## Description
    The known game as text. A move shifts all tiles of a square board to one side; two equal tiles
    that meet become one of twice the number, each at most once in a move. After each move that
    changes the board a 2 (with probability 0.9) or a 4 appears on a uniform empty place.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` holds one or
    several of ``up``, ``down``, ``left``, ``right`` (first letters do), made in order up to the
    first that changes nothing.

    ## Observation Space
    The rules, then the board, one row per line, ``.`` for an empty place. After an action the board
    again, behind the reason where a move changes nothing.

    ## Starting State
    Four tiles, each 2 or 4 as above, on uniform places.

    ## Rewards
    1 for the target, 0 otherwise.

    ## Episode End
    Terminates with the target, and where no move is possible. Truncates when the budget of moves or
    of actions is spent.

    ## Information
    ``success``, ``invalid`` (no directions in a box), ``turn``, ``turns_left``, ``moves_left``,
    ``largest_tile`` (int).

    ## Arguments
    ``size`` (3 to 6, default 4), ``target`` (a power of 2 from 16 to 2048, default 64),
    ``max_turns`` (actions, and moves; 11/16 of ``target`` by default, which is tight), ``split``
    ("train", "test" or "all"). ``rllm/Game2048Hard-v0``: ``target=128``. The oracle reaches the
    target in 0.94 of the episodes, and in 0.93 with 128 (500 seeds), so 0.85 counts as solved.
    Task: ``{"rows": [[0, 2, 0, 0], [0, 0, 0, 4], [2, 0, 0, 0], [0, 0, 2, 0]]}``.

    ## References
    The rules are those of Gabriele Cirulli's game of 2014.

    ## Version History
    * v0: Initial version
    """

    hint = "Write moves in a box, such as \\boxed{left}: up, down, left, right."

    def __init__(
        self,
        *,
        size: int = 4,
        target: int = 64,
        max_turns: int | None = None,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        self.size = check_int("size", size, 3, 6)
        if isinstance(target, bool) or target not in TARGETS:
            raise EnvArgumentError(
                f"target must be one of {', '.join(map(str, TARGETS))}, got {target!r:.80}"
            )
        self.target = target
        turns = check_turns(max_turns, target * 11 // 16)
        super().__init__(max_turns=turns, split=split, render_mode=render_mode)
        self._rows: Rows = ()

    def generate_task(self) -> Task:
        """Return a board with four random tiles."""
        rows: Rows = ((0,) * self.size,) * self.size
        for _ in range(START_TILES):
            rows = self._with_new_tile(rows)
        return {"rows": [list(row) for row in rows]}

    def validate_task(self, task: Task) -> Task:
        """Check that ``rows`` is a square of tiles below the target, with a possible move."""
        rows = task.get("rows")
        tiles = (0, *(2**power for power in range(1, 11)))
        is_square = isinstance(rows, list) and 3 <= len(rows) <= 6
        for row in rows if is_square and isinstance(rows, list) else ():
            is_row = isinstance(row, list) and isinstance(rows, list) and len(row) == len(rows)
            is_square &= is_row and all(is_int(tile, 0, 1024) and tile in tiles for tile in row)
        if not is_square:
            raise TaskError(
                "the task needs 'rows', 3 to 6 lists of as many tiles (0 or a power of 2 from 2 to "
                f"1024), got {excerpt(rows)}"
            )
        board = tuple(map(tuple, task["rows"]))
        if max(map(max, board)) >= self.target or not possible_moves(board):
            raise TaskError(
                f"'rows' must hold a possible move and no tile of {self.target} or more, got "
                f"{excerpt(rows)}"
            )
        return task

    def begin(self, task: Task) -> str:
        """Return the rules and the board."""
        self._rows = tuple(map(tuple, task["rows"]))
        self.start_moves()
        return (
            f"Merge tiles until one shows {self.target}. A move shifts all tiles up, down, left or "
            "right; two equal tiles that meet become one of twice the number. After each move a "
            "new tile, 2 or seldom 4, appears on an empty place. Write moves in a box, such as "
            f"\\boxed{{left}}. {self.budget_text()}\n{self.board()}"
        )

    def parse_moves(self, text: str) -> list[str] | None:
        """Return the directions in a box."""
        return parse_directions(text)

    def play(self, move: str) -> str:
        """Shift the tiles and add one, if the move changes the board."""
        after = shift(self._rows, move)
        if after == self._rows:
            return f"Moving {move} changes nothing."
        self._rows = self._with_new_tile(after)
        return ""

    def _with_new_tile(self, rows: Rows) -> Rows:
        empty = [(r, c) for r, row in enumerate(rows) for c, tile in enumerate(row) if not tile]
        place = empty[int(self.np_random.integers(len(empty)))]
        return _placed(rows, place, 2 if self.np_random.random() < 0.9 else 4)

    def board(self) -> str:
        """Return the board, columns aligned."""
        width = max(len(str(tile)) for row in self._rows for tile in row)
        return "\n".join(
            " ".join(str(tile or ".").rjust(width) for tile in row) for row in self._rows
        )

    def is_solved(self) -> bool:
        """Return whether the target is on the board."""
        return self._largest() >= self.target

    def lost(self) -> str:
        """Return the sentence about a board without possible moves."""
        return "" if possible_moves(self._rows) else "No move is possible."

    def _largest(self) -> int:
        return max(map(max, self._rows))

    def _info(self, *, success: bool, invalid: bool) -> dict[str, Any]:
        base = super()._info(success=success, invalid=invalid)
        return base | {"largest_tile": self._largest()}

    def plan(self) -> list[str]:
        """Return the move with the best expected value two moves ahead."""
        best, best_value = "left", -np.inf
        for move in possible_moves(self._rows):
            value = _expected_value(shift(self._rows, move))
            if value > best_value:
                best, best_value = move, value
        return [best]


@lru_cache(maxsize=1 << 16)
def merge_row(row: tuple[int, ...]) -> tuple[int, ...]:
    """Return a row shifted to the left: equal neighbours merge, each tile at most once."""
    merged: list[int] = []
    can_merge = False
    for tile in filter(None, row):
        if can_merge and merged[-1] == tile:
            merged[-1] = 2 * tile
            can_merge = False
        else:
            merged.append(tile)
            can_merge = True
    return (*merged, *(0,) * (len(row) - len(merged)))


def shift(rows: Rows, move: str) -> Rows:
    """Return the board after a move, without a new tile."""
    if move in ("up", "down"):
        return tuple(zip(*shift(tuple(zip(*rows, strict=True)), _TURNED[move]), strict=True))
    if move == "left":
        return tuple(merge_row(row) for row in rows)
    return tuple(merge_row(row[::-1])[::-1] for row in rows)


_TURNED = {"up": "left", "down": "right"}


def possible_moves(rows: Rows) -> list[str]:
    """Return the moves that change the board."""
    return [move for move in DIRECTIONS if shift(rows, move) != rows]


def _placed(rows: Rows, place: tuple[int, int], tile: int) -> Rows:
    row, column = place
    line = (*rows[row][:column], tile, *rows[row][column + 1 :])
    return (*rows[:row], line, *rows[row + 1 :])


def _expected_value(rows: Rows) -> float:
    """Return the mean, over new tiles of 2, of the best position after one more move.

    At most six of the empty places are looked at, the last ones, which lie far from the corner.
    """
    empty = [(r, c) for r, row in enumerate(rows) for c, tile in enumerate(row) if not tile][-6:]
    total = 0.0
    for place in empty:
        after = _placed(rows, place, 2)
        next_rows = (shift(after, move) for move in DIRECTIONS)
        total += max((_value(rows) for rows in next_rows if rows != after), default=-1e6)
    return total / len(empty)


@lru_cache(maxsize=1 << 16)
def _row_value(row: tuple[int, ...], start: int) -> float:
    weighted = sum(tile * _DECAY**place for place, tile in enumerate(row, start))
    return weighted + _EMPTY_WEIGHT * row.count(0)


def _value(rows: Rows) -> float:
    """Return how good a position is: empty places, and large tiles along a snake from a corner."""
    size = len(rows)
    return sum(
        _row_value(row if index % 2 == 0 else row[::-1], index * size)
        for index, row in enumerate(rows)
    )
