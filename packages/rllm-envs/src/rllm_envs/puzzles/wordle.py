"""``rllm/Wordle-v0``: find a hidden word of five letters in six guesses."""

import re
from collections import Counter
from functools import lru_cache

import numpy as np

from rllm_envs.core import Response, TextEnv
from rllm_envs.parsing import boxed_answer
from rllm_envs.puzzles.checks import check_flag, task_choice
from rllm_envs.puzzles.five_letter_words import FIVE_LETTER_WORDS
from rllm_envs.tasks import Task

FORM = "Write a word of five letters in a box, such as \\boxed{crane}."
_WORD = re.compile(r"[a-z]{5}")


class WordleEnv(TextEnv):
    r"""Find a hidden word of five letters in six guesses.

    ## Description
    A common English word of five letters is hidden. Each guess is answered letter by letter: right
    place, wrong place, or not in the word. A letter of the word accounts for one letter of the
    guess: first those in the right place, then the others from left to right.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` holds the guess,
    any five letters from a to z in either case; they need not be a word.

    ## Observation Space
    First the rules. Then the guess with one mark under each letter, such as ``C R A N E`` over
    ``- Y G - -``, and the number of guesses left, or a hint where the action holds no guess.

    ## Starting State
    The word is uniform over the words of ``puzzles/five_letter_words.py``.

    ## Rewards
    1 for the word, 0 otherwise.

    ## Episode End
    Terminates with the word, or after ``max_turns`` actions, each of which counts as a guess.

    ## Information
    ``success``, ``invalid`` (no guess in a box, or one that ``hard`` forbids), ``turn``,
    ``turns_left``.

    ## Arguments
    ``hard`` (default False: whether guesses must keep letters marked G in place and contain those
    marked Y), ``max_turns`` (guesses, default 6), ``split`` ("train", "test" or "all").
    The oracle needs at most 5 guesses. ``rllm/WordleHard-v0``: ``hard=True``, where rhymes such as
    found, hound, mound are a trap: the oracle finds 865 of the 867 words (all of 500 seeds), and
    0.95 counts as solved.
    Task: ``{"word": "crane"}``, one of the built-in words.

    ## References
    The rules are those of Josh Wardle's game of 2021.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        hard: bool = False,
        max_turns: int = 6,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_turns=max_turns, split=split, render_mode=render_mode)
        self.hard = check_flag("hard", hard)
        self._word = ""
        self._history: list[tuple[str, str]] = []

    def generate_task(self) -> Task:
        """Return a random word."""
        return {"word": FIVE_LETTER_WORDS[int(self.np_random.integers(len(FIVE_LETTER_WORDS)))]}

    def validate_task(self, task: Task) -> Task:
        """Check that ``word`` is one of the built-in words."""
        task_choice(task, "word", FIVE_LETTER_WORDS, "one of the built-in words")
        return task

    def begin(self, task: Task) -> str:
        """Return the rules."""
        self._word = task["word"]
        self._history = []
        hard = (
            " Letters marked G must stay in their place in all later guesses, and letters marked Y "
            "must appear in them."
            if self.hard
            else ""
        )
        return (
            f"I have chosen a common English word of five letters. Find it in at most "
            f"{self.max_turns} guesses. I mark each letter of a guess: G for the right place, Y "
            "for a letter that is in the word but in another place, - for a letter that is not in "
            f"the word.{hard} {FORM}"
        )

    def respond(self, action: str) -> Response:
        """Mark the letters of the guess."""
        left = self.max_turns - self._turn
        guess = (boxed_answer(action) or "").strip().lower()
        problem = "" if _WORD.fullmatch(guess) else FORM
        if not problem and self.hard:
            problem = forbidden_by_hints(guess, self._history)
        if problem:
            text = f"{problem} Guesses left: {left}."
            return Response(text, terminated=left == 0, info={"invalid": True})
        if guess == self._word:
            return Response(f"{guess} is right.", 1.0, terminated=True)
        marks = mark_letters(guess, self._word)
        self._history.append((guess, marks))
        text = f"{' '.join(guess.upper())}\n{' '.join(marks)}\nGuesses left: {left}."
        return Response(text, terminated=left == 0)

    def oracle_action(self) -> str:
        """Return the allowed word whose marks tell most of the remaining words apart."""
        marks = _marks_of_all()
        possible = np.ones(len(FIVE_LETTER_WORDS), dtype=bool)
        for guess, pattern in self._history:
            # Guesses need not come from the list, so their marks are computed here.
            possible &= [mark_letters(guess, word) == pattern for word in FIVE_LETTER_WORDS]
        left = np.flatnonzero(possible)
        if len(left) <= 2 or self.max_turns - self._turn <= 1:
            return f"\\boxed{{{FIVE_LETTER_WORDS[left[0]]}}}"
        allowed = [
            index
            for index, word in enumerate(FIVE_LETTER_WORDS)
            if not self.hard or not forbidden_by_hints(word, self._history)
        ]
        ordered = np.sort(marks[allowed][:, left], axis=1)
        num_kinds = 1.0 + (np.diff(ordered, axis=1) != 0).sum(axis=1)
        # Among equals a word that may be the answer itself.
        best = int(np.argmax(num_kinds + 0.5 * possible[allowed]))
        return f"\\boxed{{{FIVE_LETTER_WORDS[allowed[best]]}}}"


def mark_letters(guess: str, word: str) -> str:
    """Return one mark per letter of a guess: G right place, Y wrong place, - not in the word.

    Letters in the right place are marked first; each other letter is marked Y, from left to right,
    as long as the word holds a further one that no mark accounts for.
    """
    free = Counter(letter for letter, own in zip(word, guess, strict=True) if letter != own)
    marks = []
    for letter, own in zip(word, guess, strict=True):
        if letter == own:
            marks.append("G")
        elif free[own] > 0:
            free[own] -= 1
            marks.append("Y")
        else:
            marks.append("-")
    return "".join(marks)


def forbidden_by_hints(guess: str, history: list[tuple[str, str]]) -> str:
    """Return which known letter a guess ignores; the empty text where it ignores none.

    Args:
        guess: Five letters.
        history: Earlier guesses with their marks.
    """
    for earlier, marks in history:
        needed: Counter[str] = Counter()
        for place, (letter, mark) in enumerate(zip(earlier, marks, strict=True)):
            if mark == "G" and guess[place] != letter:
                return f"Letter {place + 1} must be {letter.upper()}."
            if mark != "-":
                needed[letter] += 1
        missing = needed - Counter(guess)
        if missing:
            return f"The guess must contain {', '.join(sorted(missing)).upper()}."
    return ""


@lru_cache(maxsize=1)
def _marks_of_all() -> np.ndarray:
    """Return the marks of each word as guess (row) for each word as answer (column), as numbers."""
    letters = np.array([[ord(letter) for letter in word] for word in FIVE_LETTER_WORDS])
    table = np.zeros((len(letters), len(letters)), dtype=np.uint8)
    for row, guess in enumerate(letters):
        exact = letters == guess
        code = (exact * 2) @ 3 ** np.arange(5)
        for place in range(5):
            in_word = ((letters == guess[place]) & ~exact).sum(axis=1)
            before = ((guess[:place] == guess[place]) & ~exact[:, :place]).sum(axis=1)
            code = code + (~exact[:, place] & (before < in_word)) * 3**place
        table[row] = code
    return table
