"""``rllm/Hangman-v0``: find a hidden word letter by letter."""

from collections import Counter
from typing import Any

from rllm_envs.core import Response, TextEnv
from rllm_envs.parsing import boxed_answer
from rllm_envs.puzzles.checks import check_int, task_choice
from rllm_envs.puzzles.hangman_words import HANGMAN_WORDS
from rllm_envs.tasks import Task

FORM = "Write one letter, or the whole word, in a box, such as \\boxed{e}."


class HangmanEnv(TextEnv):
    r"""Find a hidden word letter by letter.

    ## Description
    A common English word of 6 to 11 letters is hidden. A letter of the word is shown wherever it
    stands; a letter or a word that is wrong counts as a miss.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` holds one letter
    from a to z, or a whole word, in either case.

    ## Observation Space
    First the rules. Then the word with ``_`` for unknown letters, the letters tried and the misses
    left, such as ``Word: _ a _ _ e t``; a hint where the action holds no letter and no word of the
    right length, or repeats a letter.

    ## Starting State
    The word is uniform over the words of ``puzzles/hangman_words.py``.

    ## Rewards
    1 for the word, 0 otherwise.

    ## Episode End
    Terminates with the word, or after ``max_misses`` misses. Truncates after ``max_turns`` actions.

    ## Information
    ``success``, ``invalid`` (the action got a hint), ``turn``, ``turns_left``, ``misses_left``.

    ## Arguments
    ``max_misses`` (1 to 20, default 6), ``max_turns`` (default 20), ``split`` ("train", "test" or
    "all"). ``rllm/HangmanHard-v0``: ``max_misses=3``. The oracle finds 753 of the 754 words with 6
    misses and 679 with 3 (0.91 of 500 seeds), so 0.98 and 0.8 count as solved.
    Task: ``{"word": "planet"}``, one of the built-in words.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        max_misses: int = 6,
        max_turns: int = 20,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_turns=max_turns, split=split, render_mode=render_mode)
        self.max_misses = check_int("max_misses", max_misses, 1, 20)
        self._word = ""
        self._tried: list[str] = []
        self._wrong_words: list[str] = []
        self._misses_left = self.max_misses

    def generate_task(self) -> Task:
        """Return a random word."""
        return {"word": HANGMAN_WORDS[int(self.np_random.integers(len(HANGMAN_WORDS)))]}

    def validate_task(self, task: Task) -> Task:
        """Check that ``word`` is one of the built-in words."""
        task_choice(task, "word", HANGMAN_WORDS, "one of the built-in words")
        return task

    def begin(self, task: Task) -> str:
        """Return the rules and the length of the word."""
        self._word = task["word"]
        self._tried, self._wrong_words = [], []
        self._misses_left = self.max_misses
        return (
            f"I have chosen a common English word of {len(self._word)} letters. Guess it letter by "
            f"letter; you lose after {self.max_misses} wrong guesses. {FORM}\n{self._board()}"
        )

    def _pattern(self) -> str:
        return "".join(letter if letter in self._tried else "_" for letter in self._word)

    def _board(self) -> str:
        return (
            f"Word: {' '.join(self._pattern())}\nLetters tried: {' '.join(self._tried) or 'none'}\n"
            f"Wrong guesses left: {self._misses_left}"
        )

    def respond(self, action: str) -> Response:
        """Show the guessed letter, or judge the guessed word."""
        guess = (boxed_answer(action) or "").strip().lower()
        if not (guess.isascii() and guess.isalpha() and len(guess) in (1, len(self._word))):
            return Response(f"{FORM}\n{self._board()}", info={"invalid": True})
        if guess in self._tried or guess in self._wrong_words:
            text = f"You have tried {guess} before.\n{self._board()}"
            return Response(text, info={"invalid": True})
        if guess == self._word:
            return Response(f"{guess} is right.", 1.0, terminated=True)
        if len(guess) > 1:
            self._wrong_words.append(guess)
            self._misses_left -= 1
            comment = f"The word is not {guess}."
        else:
            self._tried.append(guess)
            comment = f"The letter {guess} is in the word."
            if guess not in self._word:
                self._misses_left -= 1
                comment = f"The letter {guess} is not in the word."
        if "_" not in self._pattern():
            return Response(f"{self._word} is right.", 1.0, terminated=True)
        return Response(f"{comment}\n{self._board()}", terminated=self._misses_left == 0)

    def _info(self, *, success: bool, invalid: bool) -> dict[str, Any]:
        base = super()._info(success=success, invalid=invalid)
        return base | {"misses_left": self._misses_left}

    def oracle_action(self) -> str:
        """Return the letter that most of the words that still fit contain, or the only such word.

        Among letters of equally many words the one that splits them into more patterns counts.
        """
        words = [word for word in HANGMAN_WORDS if self._fits(word)]
        if len(words) == 1 or self.max_turns - self._turn <= 1:
            return f"\\boxed{{{words[0]}}}"
        counts = Counter(letter for word in words for letter in set(word) - set(self._tried))
        kinds = {
            letter: len({"".join(own if own == letter else "_" for own in word) for word in words})
            for letter in counts
        }
        best = max(sorted(counts), key=lambda letter: (counts[letter], kinds[letter]))
        return f"\\boxed{{{best}}}"

    def _fits(self, word: str) -> bool:
        if len(word) != len(self._word) or word in self._wrong_words:
            return False
        shown = "".join(letter if letter in self._tried else "_" for letter in word)
        return shown == self._pattern()
