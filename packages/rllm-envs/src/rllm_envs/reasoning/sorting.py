"""``rllm/Sorting-v0``: put numbers or words into order."""

from collections.abc import Sequence

from rllm_envs.reasoning.answers import read_integers, read_items
from rllm_envs.reasoning.draws import draw_integer, draw_item, draw_items
from rllm_envs.reasoning.fields import (
    choice_field,
    integer_argument,
    integers_field,
    names_argument,
    words_field,
)
from rllm_envs.reasoning.solved import SolvedEnv
from rllm_envs.reasoning.words import WORDS
from rllm_envs.tasks import Task

ORDERS = {
    "ascending": "Sort these numbers from the smallest to the largest.",
    "descending": "Sort these numbers from the largest to the smallest.",
    "digit_sum": "Sort these numbers by the sum of their digits, smallest sum first; numbers with "
    "the same sum from the smallest to the largest.",
    "alphabetical": "Sort these words alphabetically.",
    "reverse_alphabetical": "Sort these words alphabetically from Z to A.",
    "length": "Sort these words by length, shortest first; words of the same length "
    "alphabetically.",
    "last_letter": "Sort these words by their last letter, from A to Z; words with the same last "
    "letter alphabetically.",
}
"""How each order is asked for."""
NUMBER_ORDERS = ("ascending", "descending", "digit_sum")
MAX_ITEMS = 50
MAX_NUMBER = 10**9


class SortingEnv(SolvedEnv):
    r"""Sort a list of numbers or words by a stated order.

    ## Description
    Numbers are sorted ascending, descending or by digit sum; words alphabetically, from Z to A, by
    length or by their last letter.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the answer: all
    items in order, separated by commas.

    ## Observation Space
    The order and the list. The last observation is empty.

    ## Starting State
    A uniform order; numbers uniform from 1 to ``max_number`` (they may repeat), or words of a list
    of about 200 without repetition.

    ## Rewards
    1 for exactly the sorted list, 0 otherwise.

    ## Episode End
    Terminates after one action.

    ## Information
    ``success``, ``invalid`` (no box in the action), ``turn``, ``turns_left``.

    ## Arguments
    ``orders`` (list of "ascending", "descending", "digit_sum", "alphabetical",
    "reverse_alphabetical", "length" and "last_letter", default all), ``num_items`` (3 to 50,
    default 8), ``max_number`` (10 to 1,000,000, default 999), ``split`` ("train", "test" or "all").
    Task: ``{"order": "ascending", "items": [5, 3, 8]}``; ``answer`` optional.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        orders: Sequence[str] | None = None,
        num_items: int = 8,
        max_number: int = 999,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(split=split, render_mode=render_mode)
        self.orders = names_argument("orders", orders, tuple(ORDERS))
        self.num_items = integer_argument("num_items", num_items, 3, MAX_ITEMS)
        self.max_number = integer_argument("max_number", max_number, 10, 10**6)

    def draw(self) -> Task:
        """Return a random order and items."""
        order = draw_item(self.np_random, tuple(self.orders))
        if order in NUMBER_ORDERS:
            items = [
                draw_integer(self.np_random, 1, self.max_number) for _ in range(self.num_items)
            ]
            return {"order": order, "items": items}
        return {"order": order, "items": draw_items(self.np_random, WORDS, self.num_items)}

    def check(self, task: Task) -> None:
        """Check that the items are of the kind that the order sorts."""
        order = choice_field(task, "order", tuple(ORDERS))
        if order in NUMBER_ORDERS:
            lowest = 0 if order == "digit_sum" else -MAX_NUMBER
            integers_field(task, "items", (lowest, MAX_NUMBER), (2, MAX_ITEMS))
        else:
            words_field(task, "items", (2, MAX_ITEMS))

    def question(self, task: Task) -> str:
        """Return the order and the items."""
        items = ", ".join(map(str, task["items"]))
        return f"{ORDERS[task['order']]} Give the sorted list in \\boxed{{}}.\n{items}"

    def solve(self, task: Task) -> str:
        """Return the sorted items."""
        return ", ".join(map(str, sorted_items(task["order"], task["items"])))

    def grade(self, task: Task, answer: str) -> bool:
        """Return whether an answer is the sorted list."""
        expected = sorted_items(task["order"], task["items"])
        if task["order"] in NUMBER_ORDERS:
            return read_integers(answer) == expected
        words = read_items(answer)
        if len(words) == 1:
            words = words[0].split()
        return [word.lower() for word in words] == [word.lower() for word in expected]


def sorted_items(order: str, items: Sequence) -> list:
    """Return the items in an order of ``ORDERS``; capitals do not matter."""
    if order == "digit_sum":
        return sorted(items, key=lambda number: (sum(map(int, str(number))), number))
    if order in NUMBER_ORDERS:
        return sorted(items, reverse=order == "descending")
    if order == "length":
        return sorted(items, key=lambda word: (len(word), word.lower()))
    if order == "last_letter":
        return sorted(items, key=lambda word: (word[-1].lower(), word.lower()))
    return sorted(items, key=str.lower, reverse=order == "reverse_alphabetical")
