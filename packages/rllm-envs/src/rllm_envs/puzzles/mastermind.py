"""``rllm/Mastermind-v0``: find a hidden code from counted agreements."""

from collections import Counter
from functools import lru_cache
from itertools import product

import numpy as np

from rllm_envs.core import Response, TextEnv
from rllm_envs.errors import EnvArgumentError, TaskError, excerpt
from rllm_envs.parsing import boxed_answer
from rllm_envs.puzzles.checks import check_int
from rllm_envs.tasks import Task

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class MastermindEnv(TextEnv):
    r"""Find a hidden code from counted agreements.

    ## Description
    A code of letters is hidden; letters may repeat. Each guess is answered with the number of
    letters that are right and in the right place, and of those that are right but in another place.
    A letter of the code or of the guess is counted once.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` holds the guess:
    ``num_pegs`` of the allowed letters, with or without spaces and commas, in either case.

    ## Observation Space
    First the rules. Then ``ABCD: 1 in the right place, 2 in a wrong place. Guesses left: 9.``, or a
    hint where the action holds no guess.

    ## Starting State
    The allowed letters are a uniform choice of ``num_colors`` of the alphabet, the code is uniform
    over the codes of those letters.

    ## Rewards
    1 for the code, 0 otherwise.

    ## Episode End
    Terminates with the code, or after ``max_turns`` actions, each of which counts as a guess.

    ## Information
    ``success``, ``invalid`` (no guess in a box), ``turn``, ``turns_left``.

    ## Arguments
    ``num_pegs`` (2 to 6, default 4), ``num_colors`` (2 to 10, default 6; at most 100000 codes),
    ``max_turns`` (guesses, default 10), ``split`` ("train", "test" or "all").
    ``rllm/MastermindHard-v0``: ``num_pegs=5, num_colors=8, max_turns=12``.
    Task: ``{"letters": "ABCDEF", "code": "AABC"}``.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        num_pegs: int = 4,
        num_colors: int = 6,
        max_turns: int = 10,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_turns=max_turns, split=split, render_mode=render_mode)
        self.num_pegs = check_int("num_pegs", num_pegs, 2, 6)
        self.num_colors = check_int("num_colors", num_colors, 2, 10)
        if num_colors**num_pegs > 100_000:
            raise EnvArgumentError(
                f"num_pegs={num_pegs} and num_colors={num_colors} make {num_colors**num_pegs} "
                "codes, more than 100000; lower one of them"
            )
        self._letters, self._code = "", ""
        self._history: list[tuple[str, int, int]] = []

    def generate_task(self) -> Task:
        """Return random letters and a code of them."""
        chosen = sorted(self.np_random.choice(len(LETTERS), self.num_colors, replace=False))
        letters = "".join(LETTERS[i] for i in chosen)
        code = "".join(
            letters[i] for i in self.np_random.integers(len(letters), size=self.num_pegs)
        )
        return {"letters": letters, "code": code}

    def validate_task(self, task: Task) -> Task:
        """Check ``letters`` and that ``code`` is made of them."""
        letters, code = task.get("letters"), task.get("code")
        if (
            not isinstance(letters, str)
            or not 2 <= len(letters) <= 10
            or len(set(letters)) < len(letters)
            or set(letters) - set(LETTERS)
        ):
            raise TaskError(
                f"the task needs 'letters', 2 to 10 different capitals, got {excerpt(letters)}"
            )
        if not isinstance(code, str) or not 2 <= len(code) <= 6 or set(code) - set(letters):
            raise TaskError(f"the task needs 'code', 2 to 6 of {letters}, got {excerpt(code)}")
        if len(letters) ** len(code) > 100_000:
            raise TaskError(
                f"{len(letters)} letters and a code of {len(code)} make more than 100000 codes"
            )
        return task

    def begin(self, task: Task) -> str:
        """Return the rules."""
        self._letters, self._code = task["letters"], task["code"]
        self._history = []
        return (
            f"I have chosen a code of {len(self._code)} letters out of "
            f"{', '.join(self._letters)}; a letter may appear several times. Find it in at most "
            f"{self.max_turns} guesses. After each guess I say how many letters are right and in "
            "the right place, and how many more are in the code but in another place. "
            f"{self._form()}"
        )

    def _form(self) -> str:
        example = (self._letters * len(self._code))[: len(self._code)]
        return f"Write your guess in a box, such as \\boxed{{{example}}}."

    def respond(self, action: str) -> Response:
        """Count the agreements of the guess with the code."""
        left = self.max_turns - self._turn
        box = boxed_answer(action) or ""
        guess = "".join(box[:100].upper().replace(",", " ").split())
        if len(guess) != len(self._code) or set(guess) - set(self._letters):
            text = f"{self._form()} Allowed letters: {', '.join(self._letters)}."
            text = f"{text} Guesses left: {left}."
            return Response(text, 0.0, terminated=left == 0, info={"invalid": True})
        if guess == self._code:
            return Response(f"{guess} is right.", 1.0, terminated=True)
        exact, partial = count_agreements(guess, self._code)
        self._history.append((guess, exact, partial))
        text = f"{guess}: {exact} in the right place, {partial} in a wrong place."
        return Response(f"{text} Guesses left: {left}.", 0.0, terminated=left == 0)

    def oracle_action(self) -> str:
        """Return the first code, after a spread opening, that agrees with all answers so far."""
        codes, counts = _all_codes(len(self._letters), len(self._code))
        fits = np.ones(len(codes), dtype=bool)
        for guess, exact, partial in self._history:
            digits = np.array([self._letters.index(letter) for letter in guess], dtype=np.int8)
            same = (codes == digits).sum(axis=1)
            shared = np.minimum(counts, np.bincount(digits, minlength=counts.shape[1])).sum(axis=1)
            fits &= (same == exact) & (shared == exact + partial)
        left = np.flatnonzero(fits)
        # The middle of the list, unlike its start, differs from earlier guesses in many places.
        code = codes[left[len(left) // 2]]
        return f"\\boxed{{{''.join(self._letters[digit] for digit in code)}}}"


def count_agreements(guess: str, code: str) -> tuple[int, int]:
    """Return how many letters agree in place, and how many more agree elsewhere.

    With ``m`` the number of letters that both share, counted with multiplicity, and ``e`` the
    number of places where both agree, the answer is ``(e, m - e)``.
    """
    exact = sum(one == other for one, other in zip(guess, code, strict=True))
    return exact, sum((Counter(guess) & Counter(code)).values()) - exact


@lru_cache(maxsize=4)
def _all_codes(num_colors: int, num_pegs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all codes, shape (codes, pegs), and how often each holds each color."""
    codes = np.array(list(product(range(num_colors), repeat=num_pegs)), dtype=np.int8)
    counts = np.stack([(codes == color).sum(axis=1) for color in range(num_colors)], axis=1)
    return codes, counts.astype(np.int8)
