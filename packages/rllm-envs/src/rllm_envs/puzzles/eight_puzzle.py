"""``rllm/EightPuzzle-v0``: slide numbered tiles into order."""

import heapq
import re

from rllm_envs.errors import TaskError
from rllm_envs.puzzles.checks import check_int, check_turns, task_integers
from rllm_envs.puzzles.moves import DIRECTIONS, MoveEnv
from rllm_envs.tasks import Task

GOAL = (1, 2, 3, 4, 5, 6, 7, 8, 0)
_SEPARATORS = re.compile(r"[\s,;]+")
MOST_MOVES = 31


class EightPuzzleEnv(MoveEnv):
    r"""Slide numbered tiles into order.

    ## Description
    Eight tiles and one empty place lie in three rows. A tile beside, above or below the empty place
    slides into it. The goal is the order 1 to 8 with the empty place last.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` holds the number
    of the tile that slides, or several numbers, made in order up to the first that cannot slide.

    ## Observation Space
    The rules, then the tiles with ``_`` for the empty place. After an action the tiles again,
    behind the reason where a tile cannot slide.

    ## Starting State
    The ordered tiles after ``scramble`` random slides, of which none undoes the one before;
    the ordered tiles themselves are drawn again.

    ## Rewards
    1 for the order, 0 otherwise.

    ## Episode End
    Terminates with the order. Truncates when the budget of moves or of actions is spent.

    ## Information
    ``success``, ``invalid`` (no tiles in a box), ``turn``, ``turns_left``, ``moves_left``.

    ## Arguments
    ``scramble`` (1 to 200, default 12), ``max_turns`` (actions, and moves; by default twice
    ``scramble``, at least 10 and at most 62, which is twice the most that any task needs),
    ``split`` ("train", "test" or "all"). ``rllm/EightPuzzleHard-v0``: ``scramble=100``, for about
    22 moves. Task: ``{"tiles": [1, 2, 3, 4, 5, 6, 7, 0, 8]}``, row by row, 0 for the empty place.

    ## Version History
    * v0: Initial version
    """

    hint = "Write the numbers of tiles that slide in a box, such as \\boxed{5, 2}."

    def __init__(
        self,
        *,
        scramble: int = 12,
        max_turns: int | None = None,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        self.scramble = check_int("scramble", scramble, 1, 200)
        turns = check_turns(max_turns, min(max(2 * scramble, 10), 2 * MOST_MOVES))
        super().__init__(max_turns=turns, split=split, render_mode=render_mode)
        self._tiles = GOAL

    def generate_task(self) -> Task:
        """Return randomly slid tiles."""
        while True:
            tiles, last = GOAL, 0
            for _ in range(self.scramble):
                movable = [tile for tile in movable_tiles(tiles) if tile != last]
                last = movable[int(self.np_random.integers(len(movable)))]
                tiles = slide(tiles, last)
            if tiles != GOAL:
                return {"tiles": list(tiles)}

    def validate_task(self, task: Task) -> Task:
        """Check that ``tiles`` can be brought into order within the budget."""
        tiles = tuple(task_integers(task, "tiles", 0, 8))
        if sorted(tiles) != sorted(GOAL) or tiles == GOAL:
            raise TaskError(f"'tiles' must be 0 to 8 out of order, got {list(tiles)}")
        if not is_solvable(tiles):
            raise TaskError(f"the tiles {list(tiles)} cannot be brought into order by slides")
        needed = len(shortest_slides(tiles))
        if needed > self.max_turns:
            raise TaskError(f"the task needs {needed} moves, and max_turns is {self.max_turns}")
        return task

    def begin(self, task: Task) -> str:
        """Return the rules and the tiles."""
        self._tiles = tuple(task["tiles"])
        self.start_moves()
        return (
            "Bring the tiles into the order 1 2 3 / 4 5 6 / 7 8 _ by sliding. _ is the empty "
            "place; a tile beside, above or below it slides into it. Write the number of the tile "
            f"in a box, such as \\boxed{{5}} or \\boxed{{5, 2}}. {self.budget_text()}\n"
            f"{self.board()}"
        )

    def parse_moves(self, text: str) -> list[str] | None:
        """Return the tiles in a box."""
        words = [word for word in _SEPARATORS.split(text) if word]
        return words if all(word in tuple("12345678") for word in words) else None

    def play(self, move: str) -> str:
        """Slide a tile, if it lies at the empty place."""
        if int(move) not in movable_tiles(self._tiles):
            return f"Tile {move} cannot slide: it is not next to the empty place."
        self._tiles = slide(self._tiles, int(move))
        return ""

    def board(self) -> str:
        """Return the tiles in three rows."""
        words = [str(tile) if tile else "_" for tile in self._tiles]
        return "\n".join(" ".join(words[start : start + 3]) for start in (0, 3, 6))

    def is_solved(self) -> bool:
        """Return whether the tiles are in order."""
        return self._tiles == GOAL

    def plan(self) -> list[str]:
        """Return the fewest slides."""
        return [str(tile) for tile in shortest_slides(self._tiles)]


def movable_tiles(tiles: tuple[int, ...]) -> list[int]:
    """Return the tiles next to the empty place."""
    row, column = divmod(tiles.index(0), 3)
    places = [(row + down, column + right) for down, right in DIRECTIONS.values()]
    return [tiles[3 * r + c] for r, c in places if 0 <= r < 3 and 0 <= c < 3]


def slide(tiles: tuple[int, ...], tile: int) -> tuple[int, ...]:
    """Return the tiles after a tile and the empty place have changed places."""
    return tuple(0 if one == tile else tile if one == 0 else one for one in tiles)


def is_solvable(tiles: tuple[int, ...]) -> bool:
    """Return whether slides can bring the tiles into order.

    On three columns a slide changes the number of inversions among the tiles by an even number, so
    that number must be even; half of all arrangements are solvable.
    """
    order = [tile for tile in tiles if tile]
    inversions = sum(a > b for i, a in enumerate(order) for b in order[i + 1 :])
    return inversions % 2 == 0


def shortest_slides(tiles: tuple[int, ...]) -> list[int]:
    """Return the fewest tiles to slide, one after the other, into order.

    A* whose bound is the sum of the tiles' distances from their places, along rows and columns.
    """
    heap = [(_distance(tiles), 0, tiles)]
    cost_of = {tiles: 0}
    came: dict[tuple[int, ...], tuple[tuple[int, ...], int]] = {}
    while heap:
        _, minus_cost, here = heapq.heappop(heap)
        if here == GOAL:
            break
        cost = -minus_cost
        if cost > cost_of[here]:
            continue
        for tile in movable_tiles(here):
            after = slide(here, tile)
            if cost + 1 < cost_of.get(after, MOST_MOVES + 1):
                cost_of[after] = cost + 1
                came[after] = (here, tile)
                # Of equal bounds the deepest goes first.
                heapq.heappush(heap, (cost + 1 + _distance(after), -cost - 1, after))
    slides, here = [], GOAL
    while here != tiles:
        here, tile = came[here]
        slides.append(tile)
    return slides[::-1]


_DISTANCES = [
    [
        abs(place // 3 - (tile - 1) // 3) + abs(place % 3 - (tile - 1) % 3) if tile else 0
        for tile in range(9)
    ]
    for place in range(9)
]


def _distance(tiles: tuple[int, ...]) -> int:
    return sum(_DISTANCES[place][tile] for place, tile in enumerate(tiles))
