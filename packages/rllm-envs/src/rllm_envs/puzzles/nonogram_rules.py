"""Nonogram clues: reading them off a picture, and finding pictures that fit."""

from collections.abc import Sequence
from functools import lru_cache

Clue = tuple[int, ...]
"""Lengths of the runs of filled cells of a line, in order; empty for an empty line."""
Board = list[list[int]]
"""Rows of cells: 1 filled, 0 empty, -1 not known."""


def line_clue(cells: Sequence[int]) -> Clue:
    """Return the lengths of the runs of 1 in a line."""
    runs = "".join("#" if cell == 1 else "." for cell in cells).replace(".", " ").split()
    return tuple(len(run) for run in runs)


@lru_cache(maxsize=4096)
def arrangements(clue: Clue, length: int) -> tuple[tuple[int, ...], ...]:
    """Return all lines of ``length`` cells that have a clue."""
    if not clue:
        return ((0,) * length,)
    first, *rest = clue
    needed = sum(rest) + len(rest)
    lines = []
    for start in range(length - needed - first + 1):
        head = (0,) * start + (1,) * first + ((0,) if rest else ())
        tails = arrangements(tuple(rest), length - len(head))
        lines.extend(head + tail for tail in tails)
    return tuple(lines)


def deduce_line(cells: Sequence[int], clue: Clue) -> list[int] | None:
    """Return a line with all cells that are the same in every arrangement that fits.

    Returns:
        The line; None where no arrangement fits the known cells.
    """
    fits = [
        line
        for line in arrangements(clue, len(cells))
        if all(known in (-1, cell) for known, cell in zip(cells, line, strict=True))
    ]
    if not fits:
        return None
    return [column[0] if len(set(column)) == 1 else -1 for column in zip(*fits, strict=True)]


def deduce(board: Board, rows: Sequence[Clue], columns: Sequence[Clue]) -> Board | None:
    """Return a board with all cells that follow line by line; None where a line has no way."""
    board = [list(row) for row in board]
    while True:
        before = [list(row) for row in board]
        for index, clue in enumerate(rows):
            line = deduce_line(board[index], clue)
            if line is None:
                return None
            board[index] = line
        for index, clue in enumerate(columns):
            line = deduce_line([row[index] for row in board], clue)
            if line is None:
                return None
            for row, cell in zip(board, line, strict=True):
                row[index] = cell
        if board == before:
            return board


def solutions(rows: Sequence[Clue], columns: Sequence[Clue], limit: int) -> list[Board]:
    """Return up to ``limit`` pictures that have the clues.

    Lines are worked out as far as they go; then a cell is tried empty and filled.
    """
    found: list[Board] = []
    stack: list[Board] = [[[-1] * len(columns) for _ in rows]]
    while stack and len(found) < limit:
        board = deduce(stack.pop(), rows, columns)
        if board is None:
            continue
        unknown = [(r, c) for r, row in enumerate(board) for c, cell in enumerate(row) if cell < 0]
        if not unknown:
            found.append(board)
            continue
        row, column = unknown[0]
        for cell in (0, 1):
            branch = [list(line) for line in board]
            branch[row][column] = cell
            stack.append(branch)
    return found
