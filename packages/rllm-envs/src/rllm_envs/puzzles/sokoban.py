"""``rllm/Sokoban-v0``: push all boxes onto the goals."""

from typing import Any

from rllm_envs.errors import EnvArgumentError, TaskError
from rllm_envs.puzzles.checks import check_int, check_turns, task_rows
from rllm_envs.puzzles.moves import DIRECTIONS, MoveEnv, parse_directions
from rllm_envs.puzzles.sokoban_rules import Level, Place, random_level, solve
from rllm_envs.tasks import Task

MAX_SIZE = 7
MAX_BOXES = 3


class SokobanEnv(MoveEnv):
    r"""Push all boxes onto the goals.

    ## Description
    The agent walks in a room with boxes. Walking against a box pushes it, where the place behind it
    is free; boxes are never pulled, so a careless push may spoil the game.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` holds one or
    several of ``up``, ``down``, ``left``, ``right`` (first letters do), made in order up to the
    first that is not possible.

    ## Observation Space
    The rules, then the room: ``#`` wall, ``-`` floor, ``$`` box, ``.`` goal, ``*`` box on a goal,
    ``@`` agent, ``+`` agent on a goal. After an action the room again, behind the reason where a
    move was not possible.

    ## Starting State
    A room of ``size`` by ``size`` cells with random walls. The boxes start on the goals, and
    random backward moves, which pull, take them away, so each task is solvable.

    ## Rewards
    1 with all boxes on goals, 0 otherwise.

    ## Episode End
    Terminates with all boxes on goals. Truncates when the budget of moves or of actions is spent.

    ## Information
    ``success``, ``invalid`` (no directions in a box), ``turn``, ``turns_left``, ``moves_left``,
    ``boxes_left`` (int: boxes that are not on a goal).

    ## Arguments
    ``size`` (cells in a row without the outer wall, 4 to 7, default 5), ``boxes`` (1 to 3, at most
    size - 2, default 2), ``max_turns`` (actions, and moves; 20 size by default, at least 20),
    ``split`` ("train", "test" or "all"). ``rllm/SokobanHard-v0``: ``size=6, boxes=3``.
    Task: ``{"rows": ["######", "#@-$.#", "######"]}``.

    ## Version History
    * v0: Initial version
    """

    hint = "Write moves in a box, such as \\boxed{down, right}: up, down, left, right."

    def __init__(
        self,
        *,
        size: int = 5,
        boxes: int = 2,
        max_turns: int | None = None,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        self.size = check_int("size", size, 4, MAX_SIZE)
        self.boxes = check_int("boxes", boxes, 1, min(MAX_BOXES, size - 2))
        turns = check_turns(max_turns, 20 * size)
        if turns < 20:
            raise EnvArgumentError(f"max_turns must be at least 20, got {turns}")
        super().__init__(max_turns=turns, split=split, render_mode=render_mode)
        self._level = Level(frozenset(), frozenset())
        self._player: Place = (0, 0)
        self._boxes: frozenset[Place] = frozenset()

    def generate_task(self) -> Task:
        """Return a random room."""
        level, player, boxes = random_level(
            self.np_random, size=self.size, num_boxes=self.boxes, max_moves=self.max_turns
        )
        return {"rows": draw(level, player, boxes)}

    def validate_task(self, task: Task) -> Task:
        """Check the form of ``rows``, and that the budget is enough."""
        rows = task_rows(task, "rows", "#-$.*@+", 3, MAX_SIZE + 2)
        border = rows[0] + rows[-1] + "".join(row[0] + row[-1] for row in rows)
        level, player, boxes = read(rows)
        is_even = 1 <= len(boxes) == len(level.goals) <= MAX_BOXES
        if len(player) != 1 or set(border) != {"#"} or not is_even:
            raise TaskError(
                f"'rows' must hold one agent and as many boxes as goals, 1 to {MAX_BOXES}, within "
                f"walls, got {rows}"
            )
        moves = solve(level, player[0], boxes)
        if not 1 <= len(moves) <= self.max_turns:
            raise TaskError(f"no solution of {rows} with 1 to {self.max_turns} moves is found")
        return task

    def begin(self, task: Task) -> str:
        """Return the rules and the room."""
        self._level, players, self._boxes = read(task["rows"])
        self._player = players[0]
        self.start_moves()
        return (
            "Push all boxes onto the goals. # is a wall, - floor, $ a box, . a goal, * a box on a "
            "goal, @ is you, + is you on a goal. Walking against a box pushes it one place on, if "
            "nothing is behind it; boxes cannot be pulled. The moves are up, down, left, right. "
            f"Write them in a box, such as \\boxed{{down, right}}. {self.budget_text()}\n"
            f"{self.board()}"
        )

    def parse_moves(self, text: str) -> list[str] | None:
        """Return the directions in a box."""
        return parse_directions(text)

    def play(self, move: str) -> str:
        """Go one step and push a box that is there, unless something is in the way."""
        down, right = DIRECTIONS[move]
        ahead = (self._player[0] + down, self._player[1] + right)
        if ahead not in self._level.floor:
            return f"There is a wall: you cannot go {move} from here."
        if ahead in self._boxes:
            behind = (ahead[0] + down, ahead[1] + right)
            if behind not in self._level.floor or behind in self._boxes:
                return f"The box cannot be pushed {move}."
            self._boxes = self._boxes - {ahead} | {behind}
        self._player = ahead
        return ""

    def board(self) -> str:
        """Return the room."""
        return "\n".join(draw(self._level, self._player, self._boxes))

    def is_solved(self) -> bool:
        """Return whether all boxes are on goals."""
        return self._boxes == self._level.goals

    def _info(self, *, success: bool, invalid: bool) -> dict[str, Any]:
        base = super()._info(success=success, invalid=invalid)
        return base | {"boxes_left": len(self._boxes - self._level.goals)}

    def plan(self) -> list[str]:
        """Return a solution with the fewest moves, or a step where the game is spoilt."""
        return solve(self._level, self._player, self._boxes) or ["up"]


def read(rows: list[str]) -> tuple[Level, list[Place], frozenset[Place]]:
    """Return walls and goals, the places of agents, and the boxes of a drawing."""
    cells = [((r, c), cell) for r, row in enumerate(rows) for c, cell in enumerate(row)]
    floor = frozenset(place for place, cell in cells if cell != "#")
    goals = frozenset(place for place, cell in cells if cell in ".*+")
    players = [place for place, cell in cells if cell in "@+"]
    return Level(floor, goals), players, frozenset(p for p, cell in cells if cell in "$*")


def draw(level: Level, player: Place, boxes: frozenset[Place]) -> list[str]:
    """Return the drawing of a room, with a border of walls."""
    height = max(row for row, _ in level.floor) + 2
    width = max(column for _, column in level.floor) + 2

    def symbol(place: Place) -> str:
        if place not in level.floor:
            return "#"
        on_goal = place in level.goals
        if place == player:
            return "+" if on_goal else "@"
        if place in boxes:
            return "*" if on_goal else "$"
        return "." if on_goal else "-"

    return ["".join(symbol((row, column)) for column in range(width)) for row in range(height)]
