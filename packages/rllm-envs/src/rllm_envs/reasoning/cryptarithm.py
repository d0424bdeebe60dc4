"""``rllm/Cryptarithm-v0``: an addition in which letters stand for digits."""

from collections.abc import Iterator, Sequence
from itertools import islice

from rllm_envs.errors import TaskError, excerpt
from rllm_envs.reasoning.answers import read_pairs
from rllm_envs.reasoning.draws import draw_integer, draw_item, draw_items
from rllm_envs.reasoning.fields import integer_argument, words_field
from rllm_envs.reasoning.solved import SolvedEnv
from rllm_envs.tasks import Task

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
MAX_DIGITS = 6
Key = dict[str, int]


class CryptarithmEnv(SolvedEnv):
    r"""Find the digits that letters stand for in an addition.

    ## Description
    In ``SEND + MORE = MONEY`` each letter stands for one digit, different letters for different
    digits, and no number begins with 0. Exactly one assignment makes the addition right.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the answer:
    ``S=9, E=5, N=6, D=7, M=1, O=0, R=8, Y=2``, in any order.

    ## Observation Space
    The addition, the rules and how to answer. The last observation is empty.

    ## Starting State
    Random numbers of ``num_digits`` digits, or one fewer for the second, of few different digits,
    which are replaced by random letters; drawn until the solution is unique.

    ## Rewards
    1 for the right digit of every letter, 0 otherwise.

    ## Episode End
    Terminates after one action.

    ## Information
    ``success``, ``invalid`` (no box in the action), ``turn``, ``turns_left``.

    ## Arguments
    ``num_digits`` (2 to 5, default 4), ``split`` ("train", "test" or "all").
    Task: ``{"addends": ["SEND", "MORE"], "total": "MONEY"}``, two or three addends in capital
    letters; ``answer`` optional.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self, *, num_digits: int = 4, split: str = "train", render_mode: str | None = None
    ) -> None:
        super().__init__(split=split, render_mode=render_mode)
        self.num_digits = integer_argument("num_digits", num_digits, 2, 5)

    def draw(self) -> Task:
        """Return an addition with a unique solution."""
        rng, size = self.np_random, self.num_digits
        while True:
            # Many letters in few columns leave many solutions, so digits must repeat.
            digits = [str(digit) for digit in draw_items(rng, range(10), size)]
            first = int("".join(draw_item(rng, digits) for _ in range(size)))
            shorter = size - draw_integer(rng, 0, 1)
            second = int("".join(draw_item(rng, digits) for _ in range(shorter)))
            shown = f"{first}{second}{first + second}"
            is_long = first >= 10 ** (size - 1) and second >= 10 ** (shorter - 1)
            if not is_long or len({*shown}) > size + 2:
                continue
            letters = draw_items(rng, LETTERS, 10)
            words = [
                "".join(letters[int(digit)] for digit in str(number))
                for number in (first, second, first + second)
            ]
            if len(list(islice(solutions(words[:2], words[2]), 2))) == 1:
                return {"addends": words[:2], "total": words[2]}

    def check(self, task: Task) -> None:
        """Check that the words are short, in capitals, and have at most ten letters."""
        addends = words_field(task, "addends", (2, 3), distinct=False)
        total = words_field({"total": [task.get("total")]}, "total", (1, 1))[0]
        words = [*addends, total]
        if any(len(word) > MAX_DIGITS or not word.isupper() for word in words):
            raise TaskError(
                f"words must have at most {MAX_DIGITS} capital letters, got {excerpt(words)}"
            )
        if len({*"".join(words)}) > 10:
            raise TaskError(f"there are more than ten different letters in {excerpt(words)}")

    def question(self, task: Task) -> str:
        """Return the addition and the rules."""
        letters = _letters(task["addends"], task["total"])
        example = ", ".join(f"{letter}=..." for letter in letters)
        return (
            f"{' + '.join(task['addends'])} = {task['total']}\n"
            "Each letter stands for one digit, different letters for different digits, and no "
            f"number begins with 0. Which digits make this right? Answer as \\boxed{{{example}}}."
        )

    def solve(self, task: Task) -> str:
        """Return the one solution.

        Raises:
            TaskError: There is none, or more than one.
        """
        found = list(islice(solutions(task["addends"], task["total"]), 2))
        if len(found) != 1:
            raise TaskError(
                f"{' + '.join(task['addends'])} = {task['total']} has "
                f"{'more than one solution' if found else 'no solution'}; exactly one is needed"
            )
        letters = _letters(task["addends"], task["total"])
        return ", ".join(f"{letter}={found[0][letter]}" for letter in letters)

    def grade(self, task: Task, answer: str) -> bool:
        """Return whether an answer gives every letter its digit."""
        given = read_pairs(answer)
        return given is not None and given == read_pairs(task["answer"])


def solutions(addends: Sequence[str], total: str) -> Iterator[Key]:
    """Yield every assignment of digits that makes the addition right, column by column."""
    if len(total) < max(map(len, addends)):
        return
    leading = {word[0] for word in (*addends, total)}
    columns = [
        ([word[-place] for word in addends if len(word) >= place], total[-place])
        for place in range(1, len(total) + 1)
    ]
    yield from _search(columns, leading, {}, 0)


def _search(
    columns: Sequence[tuple[list[str], str]], leading: set[str], key: Key, carry: int
) -> Iterator[Key]:
    if not columns:
        if carry == 0:
            yield dict(key)
        return
    letters, result = columns[0]
    unknown = next((letter for letter in letters if letter not in key), None)
    if unknown is not None:
        for digit in range(unknown in leading, 10):
            if digit not in key.values():
                yield from _search(columns, leading, {**key, unknown: digit}, carry)
        return
    carried, digit = divmod(sum(key[letter] for letter in letters) + carry, 10)
    if result not in key:
        if digit in key.values() or (digit == 0 and result in leading):
            return
        key = {**key, result: digit}
    elif key[result] != digit:
        return
    yield from _search(columns[1:], leading, key, carried)


def _letters(addends: Sequence[str], total: str) -> list[str]:
    """Return the letters in the order in which they occur."""
    return [*dict.fromkeys("".join((*addends, total)))]
