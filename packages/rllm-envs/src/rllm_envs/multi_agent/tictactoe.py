"""Noughts and crosses: rules, a perfect player, and ``rllm/TicTacToe-v0``."""

from functools import cache

import numpy as np

from rllm_envs.errors import TaskError
from rllm_envs.multi_agent.checks import check_integer, task_integers
from rllm_envs.multi_agent.game import TurnGame
from rllm_envs.multi_agent.single_agent_view import Opponent, SingleAgentView
from rllm_envs.tasks import Task

EMPTY = "." * 9
LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))
MARKS = ("X", "O")
MAX_OPENING = 4


def winner(board: str) -> str:
    """Return the mark with three in a row, or the empty text."""
    for first, second, third in LINES:
        if board[first] != "." and board[first] == board[second] == board[third]:
            return board[first]
    return ""


def mark_to_move(board: str) -> str:
    """Return the mark whose turn it is; X begins."""
    return "X" if board.count("X") == board.count("O") else "O"


def put(board: str, cell: int) -> str:
    """Return the board after the mark to move is set on a cell (0 to 8)."""
    return board[:cell] + mark_to_move(board) + board[cell + 1 :]


@cache
def value(board: str) -> tuple[int, float]:
    """Return what a position is worth to the mark to move.

    First the result of best play by both (1, 0 or -1), then the mean result against an opponent
    that moves at random while this side plays ``best_cell``.
    """
    if winner(board):
        return -1, -1.0
    if "." not in board:
        return 0, 0.0
    return max(_value_of_cell(board, cell) for cell in _free(board))


@cache
def best_cell(board: str) -> int:
    """Return a cell (0 to 8) of a perfect move; among those the best against a random opponent."""
    return max(_free(board), key=lambda cell: (*_value_of_cell(board, cell), -cell))


def _free(board: str) -> list[int]:
    return [cell for cell, mark in enumerate(board) if mark == "."]


@cache
def _value_of_cell(board: str, cell: int) -> tuple[int, float]:
    after = put(board, cell)
    if winner(after):
        return 1, 1.0
    replies = _free(after)
    if not replies:
        return 0, 0.0
    total = 0.0
    for reply in replies:
        then = put(after, reply)
        total += -1.0 if winner(then) else value(then)[1]
    return -value(after)[0], total / len(replies)


class TicTacToe(TurnGame):
    r"""Noughts and crosses on nine cells.

    ## Description
    ``player_0`` has X, ``player_1`` O; X begins. The board is open. The expert is perfect.

    ## Moves
    The number of a free cell, 1 to 9: ``\boxed{5}``.

    ## Rewards
    1 and -1 for the winner and the loser, 0 for a draw; -1 for who makes no legal move.

    ## Arguments
    ``opening_plies`` (0 to 4, default 0): random moves that are made before the game starts.
    Task: ``{"opening": [5, 1], "seed": 3}``.
    """

    agents = ("player_0", "player_1")
    max_moves = 5

    def __init__(self, *, opening_plies: int = 0) -> None:
        super().__init__()
        self.opening_plies = check_integer("opening_plies", opening_plies, 0, MAX_OPENING)
        self.board = EMPTY

    def generate_task(self, rng: np.random.Generator) -> Task:
        """Return ``{"opening": [5, 1]}``, different cells from 1 to 9."""
        cells = rng.permutation(9)[: self.opening_plies]
        return {"opening": [int(cell) + 1 for cell in cells]}

    def validate_task(self, task: Task) -> Task:
        """Check that ``opening`` lists at most four different cells."""
        opening = task_integers({"opening": []} | task, "opening", 1, 9, (0, MAX_OPENING))
        if len(set(opening)) < len(opening):
            raise TaskError(f"'opening' must name different cells, got {opening}")
        return {"opening": opening}

    def set_up(self, task: Task) -> None:
        """Put the opening on the board; four marks never make three in a row."""
        self.board = EMPTY
        for cell in task["opening"]:
            self.board = put(self.board, cell - 1)
        self.current = self.agents[MARKS.index(mark_to_move(self.board))]

    def rules(self, agent: str) -> str:
        """Return the rules."""
        mark = MARKS[self.agents.index(agent)]
        return (
            f"You play noughts and crosses as {agent} with the mark {mark}; X begins. Three of "
            "your marks in a row, column or diagonal win. Cells are numbered 1 to 9 from left to "
            "right and top to bottom. Write the cell of your mark in \\boxed{}, such as \\boxed{5}."
        )

    def view(self, agent: str) -> str:
        """Return the board; free cells show their numbers."""
        cells = [str(n) if mark == "." else mark for n, mark in enumerate(self.board, start=1)]
        return "\n".join(" ".join(cells[row : row + 3]) for row in (0, 3, 6))

    def legal_moves(self, agent: str) -> tuple[str, ...]:
        """Return the free cells, "1" to "9"."""
        if agent != self.agent_to_move:
            return ()
        return tuple(str(cell + 1) for cell in _free(self.board))

    def make_move(self, agent: str, move: str) -> None:
        """Set a mark."""
        self.board = put(self.board, int(move) - 1)
        self.current = self.other(agent)
        if winner(self.board):
            self.end({agent: 1, self.current: -1})
        elif "." not in self.board:
            self.end(dict.fromkeys(self.agents, 0))

    def expert_move(self, agent: str) -> str:
        """Return a minimax move; the whole game is searched."""
        return str(best_cell(self.board) + 1)


class TicTacToeEnv(SingleAgentView):
    r"""Win noughts and crosses against an opponent.

    ## Description
    The agent plays noughts and crosses. It sees the board with numbered free cells. The same game
    for two agents is ``pettingzoo.make("aec", "rllm/TicTacToe-v0")``.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the cell, 1 to
    9: ``\boxed{5}``. A text without a legal move is answered with a hint, ``max_retries`` times in
    a row; one more loses the game.

    ## Observation Space
    First the rules, then the board after the opponent's move: three lines such as ``1 X 3``.

    ## Starting State
    An empty board, or the position after ``opening_plies`` random moves. ``player_0`` has X.

    ## Rewards
    At the end 1 for a win, 0 for a draw, -1 for a loss. The oracle, which searches the whole game,
    earns 0.95 on average against the random opponent (500 seeds); the threshold is 0.8.

    ## Episode End
    Terminates with the game.

    ## Information
    ``success`` (the game is won), ``invalid``, ``action_mask`` (tuple of the legal actions),
    ``turn``, ``turns_left``.

    ## Arguments
    ``opening_plies`` (0 to 4, default 0), ``opponent`` ("random", "expert" or a function of
    observation and info that returns a text; default "random"), ``seat`` ("first", "second" or
    "random", the default), ``max_retries`` (0 to 10, default 2), ``split`` ("train", "test" or
    "all").
    Task: ``{"seat": "player_0", "opening": [], "seed": 3}``; the seed is that of the opponent.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        opening_plies: int = 0,
        opponent: Opponent = "random",
        seat: str = "random",
        max_retries: int = 2,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(
            TicTacToe(opening_plies=opening_plies),
            opponent=opponent,
            seat=seat,
            max_retries=max_retries,
            split=split,
            render_mode=render_mode,
        )
