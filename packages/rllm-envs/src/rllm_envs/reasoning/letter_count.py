"""``rllm/LetterCount-v0``: count letters in words."""

from rllm_envs.errors import TaskError, excerpt
from rllm_envs.reasoning.answers import read_integer
from rllm_envs.reasoning.draws import draw_items, shuffled
from rllm_envs.reasoning.fields import integer_argument, words_field
from rllm_envs.reasoning.solved import SolvedEnv
from rllm_envs.reasoning.words import WORDS
from rllm_envs.tasks import Task

MAX_WORDS = 40
MAX_LETTERS = 5


class LetterCountEnv(SolvedEnv):
    r"""Count how often some letters occur in a text.

    ## Description
    The text is a few English words in lower case. The letters asked for are counted together.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the answer, an
    integer.

    ## Observation Space
    One question with the letters and the text. The last observation is empty.

    ## Starting State
    Words uniform without repetition from a list of about 200; the letters are those at
    random places of the text, so that the count is at least the number of letters.

    ## Rewards
    1 for the exact count, 0 otherwise.

    ## Episode End
    Terminates after one action.

    ## Information
    ``success``, ``invalid`` (no box in the action), ``turn``, ``turns_left``.

    ## Arguments
    ``num_words`` (1 to 40, default 6), ``num_letters`` (1 to 5, default 1; at most 3 for a single
    word), ``split`` ("train", "test" or "all").
    ``rllm/LetterCountHard-v0`` asks for two letters in fifteen words.
    Task: ``{"words": ["banana", "split"], "letters": ["a"]}``; ``answer`` optional.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        num_words: int = 6,
        num_letters: int = 1,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(split=split, render_mode=render_mode)
        self.num_words = integer_argument("num_words", num_words, 1, MAX_WORDS)
        # A single word may have as few as three different letters.
        most = 3 if num_words == 1 else MAX_LETTERS
        self.num_letters = integer_argument("num_letters", num_letters, 1, most)

    def draw(self) -> Task:
        """Return random words and some of their letters."""
        words = draw_items(self.np_random, WORDS, self.num_words)
        # Frequent letters come first more often, so that counts differ.
        letters = [*dict.fromkeys(shuffled(self.np_random, "".join(words)))]
        return {"words": words, "letters": sorted(letters[: self.num_letters])}

    def check(self, task: Task) -> None:
        """Check that there are words, and that each letter is one, in lower case."""
        words = words_field(task, "words", (1, MAX_WORDS), distinct=False)
        letters = words_field(task, "letters", (1, MAX_LETTERS))
        if any(len(letter) > 1 for letter in letters):
            raise TaskError(f"'letters' must hold single letters, got {excerpt(letters)}")
        if any(not text.islower() for text in (*words, *letters)):
            raise TaskError(f"words and letters must be in lower case, got {excerpt(task)}")

    def question(self, task: Task) -> str:
        """Return the question."""
        quoted = [f'"{letter}"' for letter in task["letters"]]
        text = " ".join(task["words"])
        if len(quoted) == 1:
            ask = f"How many times does the letter {quoted[0]} occur"
        else:
            listed = ", ".join(quoted[:-1]) + f" and {quoted[-1]}"
            ask = f"How many times do the letters {listed} occur together"
        return f'{ask} in "{text}"? Give the number in \\boxed{{}}.'

    def solve(self, task: Task) -> str:
        """Return the count."""
        return str(sum("".join(task["words"]).count(letter) for letter in task["letters"]))

    def grade(self, task: Task, answer: str) -> bool:
        """Return whether an answer is the count."""
        return read_integer(answer) == int(task["answer"])
