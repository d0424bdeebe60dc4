"""Sudoku grids: counting solutions, and making puzzles that have one."""

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
    box = int(size**0.5)
    full = (1 << size) - 1
    # Bit d - 1 of used[u] says that digit d stands in unit u: rows, then columns, then boxes.
    used = [0] * (3 * size)
    units = []
    for cell in range(size**2):
        row, column = divmod(cell, size)
        units.append((row, size + column, 2 * size + row // box * box + column // box))
    cells = list(grid)
    empty = []
    for cell, digit in enumerate(cells):
        if not digit:
            empty.append(cell)
            continue
        bit = 1 << digit - 1
        if any(used[unit] & bit for unit in units[cell]):
            return []
        for unit in units[cell]:
            used[unit] |= bit
    found: list[Grid] = []

    def fill() -> None:
        if not empty:
            found.append(list(cells))
            return
        best, best_free, fewest = 0, 0, size + 1
        for index, cell in enumerate(empty):
            row, column, square = units[cell]
            free = full & ~(used[row] | used[column] | used[square])
            count = free.bit_count()
            if count < fewest:
                best, best_free, fewest = index, free, count
                if count <= 1:
                    break
        cell = empty.pop(best)
        while best_free and len(found) < limit:
            bit = best_free & -best_free
            best_free ^= bit
            cells[cell] = bit.bit_length()
            for unit in units[cell]:
                used[unit] |= bit
            fill()
            for unit in units[cell]:
                used[unit] ^= bit
        cells[cell] = 0
        empty.insert(best, cell)

    fill()
    return found


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
