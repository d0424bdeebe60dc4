"""Sudoku grids: counting solutions, and making puzzles that have one."""

from functools import lru_cache

import numpy as np

Grid = list[int]
"""Digits row by row, 0 for an empty cell; ``size ** 2`` of them."""


def solutions(grid: Grid, size: int, limit: int) -> list[Grid]:
    """Return up to ``limit`` ways to fill the empty cells, none where the digits given clash.

    Depth-first, always at the cell with the fewest possible digits.

    Args:
        grid: The cells, row by row.
        size: 4 or 9.
        limit: Most solutions to look for, at least 1.
    """
    search = _Search(size, limit)
    for cell, digit in enumerate(grid):
        if digit and not search.put(cell, 1 << digit - 1):
            return []
    search.empty = [cell for cell, digit in enumerate(grid) if not digit]
    search.fill()
    return search.found


class _Search:
    """State of one search; digit d is the bit ``1 << d - 1``."""

    def __init__(self, size: int, limit: int) -> None:
        self.full = (1 << size) - 1
        self.limit = limit
        self.units = _units(size)
        self.used = [0] * (3 * size)
        self.cells = [0] * size**2
        self.empty: list[int] = []
        self.found: list[Grid] = []

    def put(self, cell: int, bit: int) -> bool:
        """Write a digit; return False where it stands in a unit of the cell already."""
        row, column, box = self.units[cell]
        used = self.used
        if (used[row] | used[column] | used[box]) & bit:
            return False
        used[row] |= bit
        used[column] |= bit
        used[box] |= bit
        self.cells[cell] = bit.bit_length()
        return True

    def take(self, cell: int, bit: int) -> None:
        """Undo ``put``."""
        for unit in self.units[cell]:
            self.used[unit] ^= bit

    def fill(self) -> None:
        """Fill the empty cells in all ways, up to the limit."""
        if not self.empty:
            self.found.append(list(self.cells))
            return
        index, free = self._narrowest()
        cell = self.empty.pop(index)
        while free and len(self.found) < self.limit:
            bit = free & -free
            free ^= bit
            self.put(cell, bit)
            self.fill()
            self.take(cell, bit)
        self.empty.insert(index, cell)

    def _narrowest(self) -> tuple[int, int]:
        best, best_free, fewest = 0, 0, 10
        used = self.used
        for index, cell in enumerate(self.empty):
            row, column, box = self.units[cell]
            free = self.full & ~(used[row] | used[column] | used[box])
            count = free.bit_count()
            if count < fewest:
                best, best_free, fewest = index, free, count
                if count <= 1:
                    break
        return best, best_free


@lru_cache(maxsize=2)
def _units(size: int) -> list[tuple[int, int, int]]:
    """Return the row, column and box of each cell, as numbers of units below ``3 * size``."""
    box = int(size**0.5)
    cells = (divmod(cell, size) for cell in range(size**2))
    return [(r, size + c, 2 * size + r // box * box + c // box) for r, c in cells]


def random_solution(np_random: np.random.Generator, size: int) -> Grid:
    """Return a filled grid: a fixed pattern with digits, rows and columns exchanged at random.

    Rows and columns change places within their bands, and bands change places, which keeps the
    grid right.

    Args:
        np_random: Source of randomness.
        size: 4 or 9.
    """
    box = int(size**0.5)
    rows, columns = (
        [
            box * band + line
            for band in np_random.permutation(box).tolist()
            for line in np_random.permutation(box).tolist()
        ]
        for _ in range(2)
    )
    digits = (np_random.permutation(size) + 1).tolist()
    return [digits[(box * (r % box) + r // box + c) % size] for r in rows for c in columns]


def random_puzzle(np_random: np.random.Generator, size: int, num_blanks: int) -> Grid:
    """Return a grid with empty cells that has one solution.

    Cells are emptied at random; where a second solution appears, one of the cells in which it
    differs is filled again and never emptied later.

    Args:
        np_random: Source of randomness.
        size: 4 or 9.
        num_blanks: Number of empty cells.
    """
    while True:
        solution = random_solution(np_random, size)
        order = np_random.permutation(size**2).tolist()
        blanks, waiting = set(order[:num_blanks]), order[num_blanks:]
        while len(blanks) == num_blanks:
            grid = [0 if cell in blanks else digit for cell, digit in enumerate(solution)]
            found = solutions(grid, size, 2)
            if len(found) == 1:
                return grid
            other = next(one for one in found if one != solution)
            wrong = [cell for cell in sorted(blanks) if other[cell] != solution[cell]]
            blanks.remove(wrong[int(np_random.integers(len(wrong)))])
            if waiting:
                blanks.add(waiting.pop())
