"""``rllm/GuessNumber-v0``: find a hidden number from "higher" and "lower"."""

import re

from rllm_envs.core import Response, TextEnv
from rllm_envs.parsing import boxed_answer
from rllm_envs.puzzles.checks import check_int, task_int
from rllm_envs.tasks import Task

MAX_LOW = 100_000
_INTEGER = re.compile(r"\s*\+?\d{1,7}\s*", re.ASCII)


class GuessNumberEnv(TextEnv):
    r"""Find a hidden number from "higher" and "lower".

    ## Description
    A number is hidden in a stated range. Each guess is answered with ``higher`` or ``lower``, so
    halving the range finds it in the fewest guesses.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` holds the guess.

    ## Observation Space
    First the range and the number of guesses. Then ``The number is higher than 50. Guesses left:
    9.``, or a hint where the action holds no whole number of the range. The last observation of a
    solved task is ``50 is right.``.

    ## Starting State
    The lowest number of the range is uniform from 1 to ``max_low``, the hidden number uniform over
    the range.

    ## Rewards
    1 for the number, 0 otherwise.

    ## Episode End
    Terminates with the number, or after ``max_turns`` actions, each of which counts as a guess.

    ## Information
    ``success``, ``invalid`` (no number of the range in a box), ``turn``, ``turns_left``.

    ## Arguments
    ``width`` (numbers in the range, 2 to 1000000, default 100), ``max_low`` (1 to 100000, default
    900), ``max_turns`` (guesses, default 10), ``split`` ("train", "test" or "all"). Halving needs
    7 guesses for 100 numbers. ``rllm/GuessNumberHard-v0``: ``width=1000``, for which its 10 guesses
    are just enough. Task: ``{"low": 17, "high": 116, "number": 42}``.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        width: int = 100,
        max_low: int = 900,
        max_turns: int = 10,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_turns=max_turns, split=split, render_mode=render_mode)
        self.width = check_int("width", width, 2, 1_000_000)
        self.max_low = check_int("max_low", max_low, 1, MAX_LOW)
        self._range = (0, 0)
        self._possible = (0, 0)
        self._number = 0

    def generate_task(self) -> Task:
        """Return a random range and a number in it."""
        low = int(self.np_random.integers(1, self.max_low + 1))
        number = low + int(self.np_random.integers(self.width))
        return {"low": low, "high": low + self.width - 1, "number": number}

    def validate_task(self, task: Task) -> Task:
        """Check that ``number`` is one of ``low`` to ``high``."""
        low = task_int(task, "low", 0, MAX_LOW)
        high = task_int(task, "high", low, low + 1_000_000)
        task_int(task, "number", low, high)
        return task

    def begin(self, task: Task) -> str:
        """Return the range and the rules."""
        self._range = self._possible = (task["low"], task["high"])
        self._number = task["number"]
        return (
            f"I have chosen a whole number from {task['low']} to {task['high']}. Find it in at "
            f"most {self.max_turns} guesses. After each guess I say whether my number is higher or "
            "lower. Write your guess in \\boxed{}."
        )

    def respond(self, action: str) -> Response:
        """Compare the guess with the number."""
        left = self.max_turns - self._turn
        is_over = left == 0
        guess = self._guess(action)
        if guess is None:
            text = f"Write a whole number from {self._range[0]} to {self._range[1]} in \\boxed{{}}."
            return Response(f"{text} Guesses left: {left}.", 0.0, is_over, info={"invalid": True})
        if guess == self._number:
            return Response(f"{guess} is right.", 1.0, terminated=True)
        low, high = self._possible
        if guess < self._number:
            self._possible, word = (max(low, guess + 1), high), "higher"
        else:
            self._possible, word = (low, min(high, guess - 1)), "lower"
        return Response(f"The number is {word} than {guess}. Guesses left: {left}.", 0.0, is_over)

    def _guess(self, action: str) -> int | None:
        box = boxed_answer(action)
        if box is None or not _INTEGER.fullmatch(box):
            return None
        guess = int(box)
        return guess if self._range[0] <= guess <= self._range[1] else None

    def oracle_action(self) -> str:
        """Return the middle of the numbers that are still possible."""
        return f"\\boxed{{{sum(self._possible) // 2}}}"
