"""``MoveEnv``, the base of puzzles that are played by moves, and moves in four directions."""

import re
from abc import abstractmethod
from typing import Any

from rllm_envs.core import Response, TextEnv
from rllm_envs.parsing import boxed_answer

DIRECTIONS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
"""Row and column steps of the four moves; row 0 is on top."""
_DIRECTION_WORDS = {name: name for name in DIRECTIONS} | {name[0]: name for name in DIRECTIONS}
_NOT_NUMBERS = re.compile(r"[^0-9\s,;:()\[\]]")
_DIGITS = re.compile(r"[0-9]+")
MAX_PARSED = 10_000
"""Longer boxes are not read: no puzzle needs them."""


class MoveEnv(TextEnv):
    r"""A puzzle that is played by moves, one or several in one action.

    The moves of an action are played in order, up to the first that is not possible. A budget of
    ``max_turns`` holds for the actions and, separately, for the moves, so a plan may be written at
    once or move by move, and long lists of random moves earn nothing. A move that is not possible
    counts too.

    ``info`` holds ``moves_left`` (int) beside the keys of ``TextEnv``.

    A subclass writes ``generate_task``, ``begin`` (which calls ``start_moves``), ``parse_moves``,
    ``play``, ``board``, ``is_solved``, ``plan``, and ``lost`` where the game can be lost.

    Args:
        max_turns: Actions per episode, and moves per episode.
        split: See ``TextEnv``.
        render_mode: See ``TextEnv``.
    """

    hint: str = ""
    """What the agent reads where no move is understood."""
    separator: str = ", "
    """What the oracle writes between two moves."""

    def __init__(
        self, *, max_turns: int, split: str = "train", render_mode: str | None = None
    ) -> None:
        super().__init__(max_turns=max_turns, split=split, render_mode=render_mode)
        self._moves_left = max_turns

    @abstractmethod
    def parse_moves(self, text: str) -> list[str] | None:
        """Return the moves that a box names, in canonical words; None if one is not understood."""

    @abstractmethod
    def play(self, move: str) -> str:
        """Play a move; return the empty text, or why the move is not possible."""

    @abstractmethod
    def board(self) -> str:
        """Return the present position as the agent reads it."""

    @abstractmethod
    def is_solved(self) -> bool:
        """Return whether the goal is reached."""

    def lost(self) -> str:
        """Return why the game is lost; the empty text where it is not."""
        return ""

    @abstractmethod
    def plan(self) -> list[str]:
        """Return moves that lead from here to the goal, or the first of them.

        Where the goal is out of reach it is any one move.
        """

    def start_moves(self) -> None:
        """Restore the budget of moves; ``begin`` calls this."""
        self._moves_left = self.max_turns

    def budget_text(self) -> str:
        """Return the sentence about the budget and about several moves in one action."""
        return (
            "Several moves may be written in one box; they are made in order. "
            f"You have {self.max_turns} moves."
        )

    def respond(self, action: str) -> Response:
        """Play the boxed moves in order and show the position, or give a hint."""
        box = boxed_answer(action)
        moves = None
        if box is not None and len(box) <= MAX_PARSED:
            moves = self.parse_moves(box.strip())
        if not moves:
            return Response(self.hint, info={"invalid": True})
        problem = ""
        for move in moves:
            self._moves_left -= 1
            problem = self.play(move)
            if problem or self.is_solved() or self.lost() or self._moves_left == 0:
                break
        return self._outcome(problem)

    def _outcome(self, problem: str) -> Response:
        if self.is_solved():
            return Response(self.board(), 1.0, terminated=True)
        lost = self.lost()
        text = "\n".join(filter(None, (lost or problem, self.board())))
        if lost:
            return Response(text, terminated=True)
        if self._moves_left == 0:
            # One move is then the rule of the task, as a single turn is.
            is_rule = self.max_turns == 1
            return Response(text, terminated=is_rule, truncated=not is_rule)
        return Response(text)

    def _info(self, *, success: bool, invalid: bool) -> dict[str, Any]:
        return super()._info(success=success, invalid=invalid) | {"moves_left": self._moves_left}

    def oracle_action(self) -> str:
        r"""Return the plan from here in ``\boxed{}``."""
        return f"\\boxed{{{self.separator.join(self.plan())}}}"


def parse_directions(text: str) -> list[str] | None:
    """Return the directions in a text such as "up, up left" or "U U L"; None for other words."""
    words = [word for word in re.split(r"[\s,;]+", text.lower()) if word]
    if not all(word in _DIRECTION_WORDS for word in words):
        return None
    return [_DIRECTION_WORDS[word] for word in words]


def parse_numbers(text: str, high: int) -> list[int]:
    """Return the whole numbers of a text such as "2 3, 1 1" or "(2, 3)".

    Args:
        text: The content of a box.
        high: Greatest number allowed.

    Returns:
        The numbers; empty where one is above ``high`` or something else stands between them.
    """
    if _NOT_NUMBERS.search(text):
        return []
    words = _DIGITS.findall(text)
    if any(len(word) > 6 or int(word) > high for word in words):
        return []
    return [int(word) for word in words]


def find_symbol(rows: list[str], symbol: str) -> tuple[int, int]:
    """Return row and column of the first ``symbol`` of a grid, which must occur."""
    row = next(row for row, text in enumerate(rows) if symbol in text)
    return row, rows[row].index(symbol)


def split_moves(text: str, separators: str = r"[,;\n]") -> list[str]:
    """Return the parts of a list of moves, in lower case, with single spaces, without full stops.

    Args:
        text: The content of a box.
        separators: Regular expression of what stands between two moves.
    """
    parts = (" ".join(part.lower().split()).strip(" .") for part in re.split(separators, text))
    return [part for part in parts if part]
