"""Connect Four: rules, a player that looks ahead, and ``rllm/ConnectFour-v0``."""

from functools import cache

import numpy as np

from rllm_envs.multi_agent.checks import check_integer, task_integers
from rllm_envs.multi_agent.game import TurnGame
from rllm_envs.multi_agent.single_agent_view import Opponent, SingleAgentView
from rllm_envs.tasks import Task

ROWS, COLUMNS = 6, 7
CENTRE_FIRST = (3, 2, 4, 1, 5, 0, 6)
MARKS = ("X", "O")
MAX_OPENING = 6
WIN = 1_000_000
_HEIGHT = ROWS + 1  # an empty row on top keeps shifted rows apart
_DIRECTIONS = (1, _HEIGHT, _HEIGHT - 1, _HEIGHT + 1)
_WEIGHTS = (0, 1, 8, 50, 0)


def has_four(stones: int) -> bool:
    """Return whether a set of cells, one bit each, holds four in a row."""
    for shift in _DIRECTIONS:
        pairs = stones & (stones >> shift)
        if pairs & (pairs >> 2 * shift):
            return True
    return False


@cache
def _windows() -> tuple[int, ...]:
    windows = []
    for column in range(COLUMNS):
        for row in range(ROWS):
            for step_column, step_row in ((0, 1), (1, 0), (1, -1), (1, 1)):
                cells = [(column + k * step_column, row + k * step_row) for k in range(4)]
                if all(c < COLUMNS and 0 <= r < ROWS for c, r in cells):
                    windows.append(sum(1 << (c * _HEIGHT + r) for c, r in cells))
    return tuple(windows)


class Position:
    """A position of Connect Four: one set of cells per player, and the height of each column."""

    def __init__(self) -> None:
        self.stones = [0, 0]
        self.heights = [0] * COLUMNS
        self.num_stones = 0

    @property
    def player(self) -> int:
        """The player to move, 0 or 1."""
        return self.num_stones % 2

    def columns(self) -> list[int]:
        """Return the columns that are not full, the middle first."""
        return [column for column in CENTRE_FIRST if self.heights[column] < ROWS]

    def drop(self, column: int) -> bool:
        """Drop a stone of the player to move and return whether it makes four in a row."""
        player = self.player
        self.stones[player] |= 1 << (column * _HEIGHT + self.heights[column])
        self.heights[column] += 1
        self.num_stones += 1
        return has_four(self.stones[player])

    def take_back(self, column: int) -> None:
        """Undo the last stone, which lies on top of the column."""
        self.num_stones -= 1
        self.heights[column] -= 1
        self.stones[self.player] ^= 1 << (column * _HEIGHT + self.heights[column])

    def search(self, depth: int, alpha: int, beta: int) -> int:
        """Return the value for the player to move: alpha-beta search to a depth, then a guess."""
        if depth == 0:
            return self._guess()
        best = -WIN * 2
        for column in self.columns():
            won = self.drop(column)
            value = WIN + depth if won else -self.search(depth - 1, -beta, -alpha)
            self.take_back(column)
            if value > best:
                best = value
                alpha = max(alpha, best)
                if alpha >= beta:
                    break
        return best if best > -WIN * 2 else 0

    def best_column(self, depth: int) -> int:
        """Return the column of the best move after a search to ``depth`` moves."""
        best_column, best = -1, -WIN * 3
        for column in self.columns():
            won = self.drop(column)
            value = WIN + depth if won else -self.search(depth - 1, -WIN * 3, -best)
            self.take_back(column)
            if value > best:
                best_column, best = column, value
        return best_column

    def _guess(self) -> int:
        """Return open windows of four, weighed by their stones, mine minus the other's."""
        mine, others = self.stones[self.player], self.stones[1 - self.player]
        total = 0
        for window in _windows():
            if not window & others:
                total += _WEIGHTS[(window & mine).bit_count()]
            elif not window & mine:
                total -= _WEIGHTS[(window & others).bit_count()]
        return total


class ConnectFour(TurnGame):
    r"""Connect Four on seven columns of six cells.

    ## Description
    Stones drop to the lowest free cell of a column. ``player_0`` has X and begins. The board is
    open. The expert searches ``depth`` moves ahead.

    ## Moves
    The number of a column that is not full, 1 to 7: ``\boxed{4}``.

    ## Rewards
    1 and -1 for the winner and the loser, 0 for a draw; -1 for who makes no legal move.

    ## Arguments
    ``opening_plies`` (0 to 6, default 0): random moves that are made before the game starts.
    ``depth`` (1 to 8, default 3): how far the expert looks ahead; 1 to 2 milliseconds a move at 3.
    Task: ``{"opening": [4, 4], "seed": 3}``.
    """

    agents = ("player_0", "player_1")
    max_moves = ROWS * COLUMNS // 2

    def __init__(self, *, opening_plies: int = 0, depth: int = 3) -> None:
        super().__init__()
        self.opening_plies = check_integer("opening_plies", opening_plies, 0, MAX_OPENING)
        self.depth = check_integer("depth", depth, 1, 8)
        self.position = Position()

    def generate_task(self, rng: np.random.Generator) -> Task:
        """Return ``{"opening": [4, 1]}``, columns from 1 to 7."""
        # Six stones are three of each player: no opening ends the game or overfills a column.
        return {"opening": [int(rng.integers(1, COLUMNS + 1)) for _ in range(self.opening_plies)]}

    def validate_task(self, task: Task) -> Task:
        """Check that ``opening`` lists at most six columns."""
        opening = task_integers({"opening": []} | task, "opening", 1, COLUMNS, (0, MAX_OPENING))
        return {"opening": opening}

    def set_up(self, task: Task) -> None:
        """Drop the stones of the opening."""
        self.position = Position()
        for column in task["opening"]:
            self.position.drop(column - 1)
        self.current = self.agents[self.position.player]

    def rules(self, agent: str) -> str:
        """Return the rules."""
        mark = MARKS[self.agents.index(agent)]
        return (
            f"You play Connect Four as {agent} with the mark {mark}; X begins. A stone drops to "
            "the lowest free cell of its column. Four of your marks in a row, column or diagonal "
            "win. Columns are numbered 1 to 7 from left to right. Write the column of your stone "
            "in \\boxed{}, such as \\boxed{4}."
        )

    def view(self, agent: str) -> str:
        """Return the board under the numbers of the columns."""
        lines = [" ".join(str(column) for column in range(1, COLUMNS + 1))]
        first, second = self.position.stones
        for row in reversed(range(ROWS)):
            bits = [1 << (column * _HEIGHT + row) for column in range(COLUMNS)]
            lines.append(
                " ".join("X" if first & bit else "O" if second & bit else "." for bit in bits)
            )
        return "\n".join(lines)

    def legal_moves(self, agent: str) -> tuple[str, ...]:
        """Return the columns that are not full, "1" to "7"."""
        if agent != self.agent_to_move:
            return ()
        return tuple(str(column + 1) for column in sorted(self.position.columns()))

    def make_move(self, agent: str, move: str) -> None:
        """Drop a stone."""
        won = self.position.drop(int(move) - 1)
        self.current = self.other(agent)
        if won:
            self.end({agent: 1, self.current: -1})
        elif self.position.num_stones == ROWS * COLUMNS:
            self.end(dict.fromkeys(self.agents, 0))

    def expert_move(self, agent: str) -> str:
        """Return the best column of a search to ``depth`` moves."""
        return str(self.position.best_column(self.depth) + 1)


class ConnectFourEnv(SingleAgentView):
    r"""Win Connect Four against an opponent.

    ## Description
    The agent plays Connect Four. The same game for two agents is
    ``pettingzoo.make("aec", "rllm/ConnectFour-v0")``.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the column, 1
    to 7: ``\boxed{4}``. A text without a legal move is answered with a hint, ``max_retries`` times
    in a row; one more loses the game.

    ## Observation Space
    First the rules, then the board after the opponent's move: six lines of cells under the numbers
    of the columns.

    ## Starting State
    An empty board, or the position after ``opening_plies`` random moves. ``player_0`` has X.

    ## Rewards
    At the end 1 for a win, 0 for a draw, -1 for a loss. The oracle, which looks ``depth`` moves
    ahead, won each of 500 games against the random opponent; the threshold is 0.95.

    ## Episode End
    Terminates with the game.

    ## Information
    ``success`` (the game is won), ``invalid``, ``action_mask`` (tuple of the legal actions),
    ``turn``, ``turns_left``.

    ## Arguments
    ``opening_plies`` (0 to 6, default 0), ``depth`` (1 to 8, default 3: of the expert),
    ``opponent`` ("random", "expert" or a function of observation and info that returns a text;
    default "random"), ``seat`` ("first", "second" or "random", the default), ``max_retries`` (0 to
    10, default 2), ``split`` ("train", "test" or "all").
    Task: ``{"seat": "player_0", "opening": [], "seed": 3}``; the seed is that of the opponent.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        opening_plies: int = 0,
        depth: int = 3,
        opponent: Opponent = "random",
        seat: str = "random",
        max_retries: int = 2,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(
            ConnectFour(opening_plies=opening_plies, depth=depth),
            opponent=opponent,
            seat=seat,
            max_retries=max_retries,
            split=split,
            render_mode=render_mode,
        )
