"""``rllm/FrozenLake-v0``: cross a frozen lake without falling into a hole."""

import functools
from collections import deque

import numpy as np

from rllm_envs.errors import EnvArgumentError, TaskError
from rllm_envs.puzzles.checks import check_flag, check_int, check_turns, task_rows
from rllm_envs.puzzles.moves import DIRECTIONS, MoveEnv, find_symbol, parse_directions
from rllm_envs.tasks import Task

HOLE_SHARE = 0.2
MAX_SIZE = 16
MAX_CHANCE = 0.9
_CELLS = bytes.maketrans(b"\0\1", b"FH")
_DRY_BITS = str.maketrans("SFGH", "1110")
MAX_DRAWS = 1_000
"""How many lakes are drawn before ``min_chance`` counts as too high."""
_TURNS = {
    "up": ("left", "up", "right"),
    "down": ("right", "down", "left"),
    "left": ("down", "left", "up"),
    "right": ("up", "right", "down"),
}


class FrozenLakeEnv(MoveEnv):
    r"""Cross a frozen lake without falling into a hole.

    ## Description
    The known game as text, on a lake drawn per task. The agent walks from the start to the goal;
    a hole ends the game. On slippery ice it goes where it wants with probability 1/3 only, and else
    to one of the two sides, with 1/3 each.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` holds one or
    several of ``up``, ``down``, ``left``, ``right`` (first letters do), made in order.

    ## Observation Space
    The rules, then the lake: ``S`` start, ``F`` frozen, ``H`` hole, ``G`` goal, ``A`` where the
    agent stands. After an action the lake again. Walking off the edge leaves the agent in place.

    ## Starting State
    The start is top left, the goal bottom right, each other cell a hole with probability 0.2; lakes
    without a way across are drawn again, and so are those of slippery ice that even the best policy
    crosses with a lower probability than ``min_chance``.

    ## Rewards
    1 at the goal, 0 otherwise.

    ## Episode End
    Terminates at the goal and in a hole. Truncates when the budget of moves or of actions is spent.

    ## Information
    ``success``, ``invalid`` (no directions in a box), ``turn``, ``turns_left``, ``moves_left``.

    ## Arguments
    ``size`` (rows and columns, 2 to 16, default 4), ``slippery`` (default False), ``max_turns``
    (actions, and moves; by default 2 size^2, or 6 size^2 on slippery ice), ``min_chance`` (of
    slippery ice, 0 to 0.9, default 0), ``split`` ("train", "test" or "all").
    ``rllm/FrozenLakeLarge-v0``: ``size=8``. ``rllm/FrozenLakeSlippery-v0``: ``slippery=True``,
    ``min_chance=0.5``; the best policy reaches the goal with probability 0.97 in a lake as drawn,
    and 0.91 on average over all 1,805 lakes there are, so 0.8 counts as solved however many
    different lakes are played.
    Task: ``{"rows": ["SFFF", "FHFH", "FFFH", "HFFG"]}``.

    ## References
    The game is FrozenLake-v1 of Gymnasium's toy text environments.

    ## Version History
    * v0: Initial version
    """

    hint = "Write moves in a box, such as \\boxed{down, right}: up, down, left, right."

    def __init__(
        self,
        *,
        size: int = 4,
        slippery: bool = False,
        max_turns: int | None = None,
        min_chance: float = 0.0,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        self.size = check_int("size", size, 2, MAX_SIZE)
        self.slippery = check_flag("slippery", slippery)
        turns = check_turns(max_turns, (6 if slippery else 2) * size**2)
        is_number = isinstance(min_chance, int | float) and not isinstance(min_chance, bool)
        if not is_number or not 0.0 <= min_chance <= (MAX_CHANCE if slippery else 0.0):
            raise EnvArgumentError(
                f"min_chance must be a number from 0 to {MAX_CHANCE} with slippery=True, and 0 "
                f"without, got {min_chance!r:.80}"
            )
        self.min_chance = float(min_chance)
        super().__init__(max_turns=turns, split=split, render_mode=render_mode)
        self._rows: list[str] = []
        self._place = (0, 0)
        self._values: np.ndarray | None = None

    def generate_task(self) -> Task:
        """Return a random lake that can be crossed, on slippery ice often enough.

        Raises:
            EnvArgumentError: `MAX_DRAWS` lakes were all too dangerous.
        """
        for _ in range(MAX_DRAWS):
            rows = self._random_lake()
            if not self.min_chance or best_chance(tuple(rows), self.max_turns) >= self.min_chance:
                return {"rows": rows}
        raise EnvArgumentError(
            f"none of {MAX_DRAWS} lakes of size {self.size} is crossed with probability "
            f"{self.min_chance:g} in {self.max_turns} moves; lower min_chance"
        )

    def _random_lake(self) -> list[str]:
        """Return a random lake with a way across."""
        while True:
            is_hole = self.np_random.random((self.size, self.size)) < HOLE_SHARE
            cells = f"S{is_hole.tobytes().translate(_CELLS).decode()[1:-1]}G"
            rows = [cells[i : i + self.size] for i in range(0, len(cells), self.size)]
            if has_way(rows):
                return rows

    def validate_task(self, task: Task) -> Task:
        """Check the form of ``rows``, and that the goal can be reached within the budget."""
        rows = task_rows(task, "rows", "SFHG", 2, MAX_SIZE)
        flat = "".join(rows)
        if flat.count("S") != 1 or flat.count("G") != 1:
            raise TaskError(f"'rows' must hold one S and one G, got {rows}")
        way = shortest_way(rows, find_symbol(rows, "S"))
        if not way or len(way) > self.max_turns:
            raise TaskError(f"the goal of {rows} cannot be reached in {self.max_turns} moves")
        return task

    def begin(self, task: Task) -> str:
        """Return the rules and the lake."""
        self._rows = task["rows"]
        self._place = find_symbol(self._rows, "S")
        self._values = None
        self.start_moves()
        ice = (
            "The ice is slippery: you go where you want with probability 1/3, and to the left or "
            "to the right of it with probability 1/3 each. "
            if self.slippery
            else ""
        )
        return (
            "Walk over the frozen lake from S to G. F is ice, H is a hole, which ends the game, A "
            f"is where you are. {ice}The moves are up, down, left, right. Write them in a box, "
            f"such as \\boxed{{down, right}}. {self.budget_text()}\n{self.board()}"
        )

    def parse_moves(self, text: str) -> list[str] | None:
        """Return the directions in a box."""
        return parse_directions(text)

    def play(self, move: str) -> str:
        """Go one step, or slip; the edge stops."""
        if self.slippery:
            move = _TURNS[move][int(self.np_random.integers(3))]
        self._place = step_from(self._rows, self._place, move)
        return ""

    def board(self) -> str:
        """Return the lake with the agent on it."""
        row, column = self._place
        lines = list(self._rows)
        lines[row] = f"{lines[row][:column]}A{lines[row][column + 1 :]}"
        return "\n".join(lines)

    def is_solved(self) -> bool:
        """Return whether the agent is at the goal."""
        return self._cell() == "G"

    def lost(self) -> str:
        """Return the sentence about the hole that the agent is in."""
        return "You have fallen into a hole." if self._cell() == "H" else ""

    def _cell(self) -> str:
        return self._rows[self._place[0]][self._place[1]]

    def plan(self) -> list[str]:
        """Return a shortest way, or, on slippery ice, the move most likely to succeed."""
        if not self.slippery:
            return shortest_way(self._rows, self._place) or ["down"]
        if self._values is None:
            self._values = success_probabilities(self._rows, self.max_turns)
        after = self._values[self._moves_left - 1]
        chances = {
            move: sum(after[step_from(self._rows, self._place, way)] for way in ways)
            for move, ways in _TURNS.items()
        }
        return [max(chances, key=lambda move: chances[move])]


def step_from(rows: list[str], place: tuple[int, int], move: str) -> tuple[int, int]:
    """Return the place after a step; the edge stops."""
    down, right = DIRECTIONS[move]
    row = min(max(place[0] + down, 0), len(rows) - 1)
    return row, min(max(place[1] + right, 0), len(rows[0]) - 1)


def has_way(rows: list[str]) -> bool:
    """Return whether a way leads from the first cell to the last that avoids holes.

    All cells are one number, a bit each, so that one step from everywhere at once is four shifts.
    """
    width = len(rows[0]) + 1  # a hole ends each row, so that no step leads into the next one
    dry = int("H".join(rows).translate(_DRY_BITS), 2)
    reached, before = 1, 0  # the last bit is the last cell
    while reached != before:
        before = reached
        around = reached << 1 | reached >> 1 | reached << width | reached >> width
        reached |= around & dry
    return bool(reached >> (len(rows) * width - 2) & 1)


def shortest_way(rows: list[str], start: tuple[int, int]) -> list[str]:
    """Return the moves of a shortest way to the goal that avoids holes; empty where none is."""
    before: dict[tuple[int, int], tuple[tuple[int, int], str]] = {}
    neighbours = _neighbours(len(rows), len(rows[0]))
    queue = deque([start])
    while queue:
        place = queue.popleft()
        if rows[place[0]][place[1]] == "G":
            way = []
            while place != start:
                place, move = before[place]
                way.append(move)
            return way[::-1]
        for move, after in neighbours[place]:
            if after not in before and after != start and rows[after[0]][after[1]] != "H":
                before[after] = place, move
                queue.append(after)
    return []


@functools.lru_cache(maxsize=MAX_SIZE**2)
def _neighbours(
    height: int, width: int
) -> dict[tuple[int, int], tuple[tuple[str, tuple[int, int]], ...]]:
    """Return the moves that lead away from each place, with where they lead."""
    empty = [" " * width] * height
    places = [(row, column) for row in range(height) for column in range(width)]
    return {
        place: tuple(
            (move, after)
            for move in DIRECTIONS
            if (after := step_from(empty, place, move)) != place
        )
        for place in places
    }


def success_probabilities(rows: list[str], num_moves: int) -> np.ndarray:
    """Return the best probability of reaching the goal on slippery ice.

    Value iteration over a finite horizon: with ``v[0]`` the indicator of the goal,
    ``v[n](place) = max over moves of the mean of v[n - 1] over the three places it may lead to``.

    Args:
        rows: The lake.
        num_moves: Greatest number of moves left.

    Returns:
        Shape (num_moves + 1, rows, columns): entry n is for n moves left.
    """
    height, width = len(rows), len(rows[0])
    cells = np.array([list(row) for row in rows])
    is_end = (cells == "G") | (cells == "H")
    places = [(row, column) for row in range(height) for column in range(width)]
    after = np.array(
        [
            [[step_from(rows, place, way) for way in ways] for place in places]
            for ways in _TURNS.values()
        ]
    )
    values = np.zeros((num_moves + 1, height, width))
    values[0] = cells == "G"
    for n in range(1, num_moves + 1):
        reached = values[n - 1][after[..., 0], after[..., 1]].mean(axis=-1)
        best = reached.max(axis=0).reshape(height, width)
        values[n] = np.where(is_end, values[0], best)
    return values


@functools.lru_cache(maxsize=4096)
def best_chance(rows: tuple[str, ...], num_moves: int) -> float:
    """Return the probability with which the best policy crosses a lake from its start."""
    lake = list(rows)
    row, column = find_symbol(lake, "S")
    return float(success_probabilities(lake, num_moves)[num_moves, row, column])
