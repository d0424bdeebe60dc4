"""``rllm/LightsOut-v0``: switch off all lights of a board whose buttons switch their neighbours."""

from functools import lru_cache

import numpy as np

from rllm_envs.errors import TaskError
from rllm_envs.puzzles.checks import check_int, check_turns, task_rows
from rllm_envs.puzzles.moves import MoveEnv, parse_numbers
from rllm_envs.tasks import Task

MAX_SIZE = 9


class LightsOutEnv(MoveEnv):
    r"""Switch off all lights of a board whose buttons switch their neighbours.

    ## Description
    Each place of a square board has a light and a button. A button switches its own light and those
    above, below, left and right of it. The goal is a dark board.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` holds the row and
    the column of a button, from 1, such as ``2 3``, or several such as ``2 3, 1 1``.

    ## Observation Space
    The rules, then the board: ``1`` a light, ``0`` none. After an action the board again.

    ## Starting State
    The dark board after each button was pressed with probability 1/2; a dark board is drawn again.

    ## Rewards
    1 for the dark board, 0 otherwise.

    ## Episode End
    Terminates with the dark board. Truncates when the budget of moves or of actions is spent.

    ## Information
    ``success``, ``invalid`` (no buttons in a box), ``turn``, ``turns_left``, ``moves_left``.

    ## Arguments
    ``size`` (2 to 9, default 4), ``max_turns`` (actions, and moves; size^2 by default, which every
    task can be solved in), ``split`` ("train", "test" or "all").
    ``rllm/LightsOutHard-v0``: ``size=6``. Task: ``{"rows": ["010", "111", "010"]}``.

    ## Version History
    * v0: Initial version
    """

    hint = "Write row and column of buttons in a box, such as \\boxed{2 3} or \\boxed{2 3, 1 1}."

    def __init__(
        self,
        *,
        size: int = 4,
        max_turns: int | None = None,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        self.size = check_int("size", size, 2, MAX_SIZE)
        turns = check_turns(max_turns, size**2)
        super().__init__(max_turns=turns, split=split, render_mode=render_mode)
        self._lights = np.zeros((size, size), dtype=np.uint8)

    def generate_task(self) -> Task:
        """Return the board after random presses."""
        effects = press_effects(self.size)
        while True:
            presses = self.np_random.integers(2, size=self.size**2)
            lights = effects @ presses % 2
            # A budget below the default may be too small for a drawn board.
            if lights.any() and len(fewest_presses(lights)) <= self.max_turns:
                return {"rows": _rows(lights.reshape(self.size, self.size))}

    def validate_task(self, task: Task) -> Task:
        """Check that ``rows`` is a square board that can be darkened within the budget."""
        rows = task_rows(task, "rows", "01", 2, MAX_SIZE)
        if len(rows) != len(rows[0]) or "1" not in "".join(rows):
            raise TaskError(f"'rows' must be a square with at least one 1, got {rows}")
        lights = np.array([[int(cell) for cell in row] for row in rows]).ravel()
        try:
            needed = len(fewest_presses(lights))
        except ValueError:
            raise TaskError(f"no presses darken the board {rows}") from None
        if needed > self.max_turns:
            raise TaskError(f"the task needs {needed} moves, and max_turns is {self.max_turns}")
        return task

    def begin(self, task: Task) -> str:
        """Return the rules and the board."""
        self._lights = np.array([[int(cell) for cell in row] for row in task["rows"]])
        self.start_moves()
        size = len(self._lights)
        return (
            f"Switch off all lights of a board of {size} rows and {size} columns. 1 is a light, 0 "
            "is none. The button of a place switches its own light and those directly above, "
            "below, left and right of it. Write row and column of a button, counted from 1 at the "
            "top left, in a box, such as \\boxed{2 1}, or several: \\boxed{2 1, 1 1}. "
            f"{self.budget_text()}\n{self.board()}"
        )

    def parse_moves(self, text: str) -> list[str] | None:
        """Return the buttons in a box."""
        numbers = parse_numbers(text, len(self._lights))
        if len(numbers) % 2 or 0 in numbers:
            return None
        return [f"{r} {c}" for r, c in zip(numbers[::2], numbers[1::2], strict=True)]

    def play(self, move: str) -> str:
        """Press a button."""
        row, column = (int(number) - 1 for number in move.split())
        size = len(self._lights)
        effect = press_effects(size)[:, row * size + column]
        self._lights = (self._lights + effect.reshape(size, size)) % 2
        return ""

    def board(self) -> str:
        """Return the lights."""
        return "\n".join(_rows(self._lights))

    def is_solved(self) -> bool:
        """Return whether the board is dark."""
        return not self._lights.any()

    def plan(self) -> list[str]:
        """Return the fewest presses, row by row."""
        size = len(self._lights)
        places = fewest_presses(self._lights.ravel())
        return [f"{place // size + 1} {place % size + 1}" for place in places]


def _rows(lights: np.ndarray) -> list[str]:
    return ["".join(str(int(light)) for light in row) for row in lights]


@lru_cache(maxsize=8)
def press_effects(size: int) -> np.ndarray:
    """Return which lights each button switches, shape (lights, buttons), values 0 and 1."""
    row, column = np.divmod(np.arange(size**2), size)
    steps = abs(row[:, None] - row) + abs(column[:, None] - column)
    return (steps <= 1).astype(np.int64)


@lru_cache(maxsize=8)
def _inverse(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return ``(inverse, quiet)`` by elimination over GF(2).

    ``inverse @ lights`` are presses that darken any board that can be darkened; the rows of
    ``quiet`` are all sets of presses that switch nothing.
    """
    number = size**2
    rows = np.concatenate([press_effects(size), np.eye(number, dtype=np.int64)], axis=1)
    pivots: list[int] = []
    for column in range(number):
        below = np.flatnonzero(rows[len(pivots) :, column])
        if not len(below):
            continue
        here, found = len(pivots), len(pivots) + below[0]
        rows[[here, found]] = rows[[found, here]]
        others = np.flatnonzero(rows[:, column])
        others = others[others != here]
        rows[others] ^= rows[here]
        pivots.append(column)
    inverse = np.zeros((number, number), dtype=np.int64)
    inverse[pivots] = rows[: len(pivots), number:]
    quiet = [np.zeros(number, dtype=np.int64)]
    for free in sorted(set(range(number)) - set(pivots)):
        base = np.zeros(number, dtype=np.int64)
        base[free] = 1
        base[pivots] = rows[: len(pivots), free]
        quiet += [one ^ base for one in quiet]
    return inverse, np.array(quiet)


def fewest_presses(lights: np.ndarray) -> list[int]:
    """Return the fewest buttons that darken a board.

    Solves ``effects @ presses = lights`` over GF(2), and takes the lightest of all solutions.

    Args:
        lights: Shape (size^2,), row by row, values 0 and 1.

    Raises:
        ValueError: No presses darken the board.
    """
    size = int(len(lights) ** 0.5)
    inverse, quiet = _inverse(size)
    solutions = (inverse @ lights + quiet) % 2
    best = solutions[solutions.sum(axis=1).argmin()]
    if ((press_effects(size) @ best - lights) % 2).any():
        raise ValueError("the board cannot be darkened")
    return [int(place) for place in np.flatnonzero(best)]
