"""``rllm/Maze-v0``: find the way through a maze."""

from collections import deque

import numpy as np

from rllm_envs.errors import TaskError
from rllm_envs.puzzles.checks import check_int, check_turns, task_rows
from rllm_envs.puzzles.moves import DIRECTIONS, MoveEnv, find_symbol, parse_directions
from rllm_envs.tasks import Task

MAX_SIZE = 20
Place = tuple[int, int]


class MazeEnv(MoveEnv):
    r"""Find the way through a maze.

    ## Description
    The agent sees the whole maze and walks from its place to the goal. Between any two places
    there is exactly one way.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` holds one or
    several of ``up``, ``down``, ``left``, ``right`` (first letters do), made in order up to the
    first that a wall stops.

    ## Observation Space
    The rules, then the maze: ``#`` wall, ``.`` floor, ``A`` the agent, ``G`` the goal. After an
    action the maze again, behind ``There is a wall ...`` where one was in the way.

    ## Starting State
    ``size`` by ``size`` rooms joined by a random depth-first walk, drawn as a grid of
    2 ``size`` + 1 rows. The agent starts in a uniform room, the goal is uniform over the rooms at
    least half as far as the farthest.

    ## Rewards
    1 at the goal, 0 otherwise.

    ## Episode End
    Terminates at the goal. Truncates when the budget of moves or of actions is spent.

    ## Information
    ``success``, ``invalid`` (no directions in a box), ``turn``, ``turns_left``, ``moves_left``.

    ## Arguments
    ``size`` (rooms in a row, 2 to 20, default 4), ``max_turns`` (actions, and moves; 4 size^2 by
    default, twice the longest possible way), ``split`` ("train", "test" or "all").
    ``rllm/MazeLarge-v0``: ``size=10``. Task: ``{"rows": ["#####", "#A..#", "###.#", "#G..#",
    "#####"]}``.

    ## Version History
    * v0: Initial version
    """

    hint = "Write moves in a box, such as \\boxed{down, right}: up, down, left, right."

    def __init__(
        self,
        *,
        size: int = 4,
        max_turns: int | None = None,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        self.size = check_int("size", size, 2, MAX_SIZE)
        turns = check_turns(max_turns, 4 * size**2)
        super().__init__(max_turns=turns, split=split, render_mode=render_mode)
        self._rows: list[str] = []
        self._place = (0, 0)

    def generate_task(self) -> Task:
        """Return a random maze."""
        grid = random_maze(self.np_random, self.size)
        odd = range(1, 2 * self.size, 2)
        rooms = [(row, column) for row in odd for column in odd]
        start = rooms[int(self.np_random.integers(len(rooms)))]
        ways = shortest_ways(["".join(row) for row in grid], start)
        farthest = max(len(ways[room]) for room in rooms)
        far = [room for room in rooms if 2 * len(ways[room]) >= farthest]
        goal = far[int(self.np_random.integers(len(far)))]
        grid[start[0]][start[1]] = "A"
        grid[goal[0]][goal[1]] = "G"
        return {"rows": ["".join(row) for row in grid]}

    def validate_task(self, task: Task) -> Task:
        """Check the form of ``rows``, and that the goal can be reached within the budget."""
        rows = task_rows(task, "rows", "#.AG", 3, 2 * MAX_SIZE + 1)
        flat = "".join(rows)
        border = rows[0] + rows[-1] + "".join(row[0] + row[-1] for row in rows)
        if flat.count("A") != 1 or flat.count("G") != 1 or set(border) != {"#"}:
            raise TaskError(f"'rows' must hold one A and one G within walls, got {rows}")
        way = shortest_ways(rows, find_symbol(rows, "A")).get(find_symbol(rows, "G"))
        if way is None or len(way) > self.max_turns:
            raise TaskError(f"the goal of {rows} cannot be reached in {self.max_turns} moves")
        return task

    def begin(self, task: Task) -> str:
        """Return the rules and the maze."""
        self._place = find_symbol(task["rows"], "A")
        self._rows = [row.replace("A", ".") for row in task["rows"]]
        self.start_moves()
        return (
            "Walk through the maze from A, where you are, to G. # is a wall, . is floor. The moves "
            "are up, down, left, right. Write them in a box, such as \\boxed{down, right}. "
            f"{self.budget_text()}\n{self.board()}"
        )

    def parse_moves(self, text: str) -> list[str] | None:
        """Return the directions in a box."""
        return parse_directions(text)

    def play(self, move: str) -> str:
        """Go one step, unless a wall is there."""
        down, right = DIRECTIONS[move]
        row, column = self._place[0] + down, self._place[1] + right
        if self._rows[row][column] == "#":
            return f"There is a wall: you cannot go {move} from here."
        self._place = (row, column)
        return ""

    def board(self) -> str:
        """Return the maze with the agent in it."""
        row, column = self._place
        lines = list(self._rows)
        lines[row] = f"{lines[row][:column]}A{lines[row][column + 1 :]}"
        return "\n".join(lines)

    def is_solved(self) -> bool:
        """Return whether the agent is at the goal."""
        return self._rows[self._place[0]][self._place[1]] == "G"

    def plan(self) -> list[str]:
        """Return the shortest way."""
        return shortest_ways(self._rows, self._place)[find_symbol(self._rows, "G")]


def random_maze(np_random: np.random.Generator, size: int) -> list[list[str]]:
    """Return a maze of ``size`` by ``size`` rooms with one way between any two.

    A walk goes from room to room that it has not seen, and backwards where there is none, opening
    the walls that it crosses.

    Args:
        np_random: Source of randomness.
        size: Rooms in a row.

    Returns:
        ``2 size + 1`` rows of "#" and "."; rooms lie at odd rows and columns.
    """
    grid = [["#"] * (2 * size + 1) for _ in range(2 * size + 1)]
    start = (int(np_random.integers(size)), int(np_random.integers(size)))
    grid[2 * start[0] + 1][2 * start[1] + 1] = "."
    trail = [start]
    while trail:
        row, column = trail[-1]
        steps = [
            (down, right)
            for down, right in DIRECTIONS.values()
            if 0 <= row + down < size
            and 0 <= column + right < size
            and grid[2 * (row + down) + 1][2 * (column + right) + 1] == "#"
        ]
        if not steps:
            trail.pop()
            continue
        down, right = steps[int(np_random.integers(len(steps)))]
        grid[2 * row + 1 + down][2 * column + 1 + right] = "."
        grid[2 * (row + down) + 1][2 * (column + right) + 1] = "."
        trail.append((row + down, column + right))
    return grid


def shortest_ways(rows: list[str], start: Place) -> dict[Place, list[str]]:
    """Return the moves of a shortest way to each place that can be reached."""
    ways: dict[Place, list[str]] = {start: []}
    queue = deque([start])
    while queue:
        place = queue.popleft()
        for move, (down, right) in DIRECTIONS.items():
            after = (place[0] + down, place[1] + right)
            if after not in ways and rows[after[0]][after[1]] != "#":
                ways[after] = [*ways[place], move]
                queue.append(after)
    return ways
