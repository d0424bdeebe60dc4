"""``rllm/BaseConversion-v0``: write a number in another base."""

import re
from typing import Any

from rllm_envs.errors import TaskError, excerpt
from rllm_envs.reasoning.answers import plain_text
from rllm_envs.reasoning.draws import draw_integer, draw_items
from rllm_envs.reasoning.fields import integer_argument, integer_field
from rllm_envs.reasoning.solved import SolvedEnv
from rllm_envs.tasks import Task

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
MAX_DIGITS = 64

_PREFIXES = {2: "0b", 8: "0o", 16: "0x"}
_SUBSCRIPT = re.compile(r"_\{?\s*(\d{1,2})\s*\}?$")


class BaseConversionEnv(SolvedEnv):
    r"""Convert a whole number from one base to another.

    ## Description
    The agent reads a number in one base and writes it in another. Digits above 9 are the letters
    from a on.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the answer: the
    digits, in small or capital letters. The base may follow as a subscript, spaces and leading
    zeros do not matter, and in base 2, 8 and 16 the prefixes 0b, 0o and 0x are allowed.

    ## Observation Space
    One question. The last observation is empty.

    ## Starting State
    Two different uniform bases from 2 to ``max_base``, and a number that is uniform from 10 to
    ``max_number``.

    ## Rewards
    1 for the right digits, 0 otherwise.

    ## Episode End
    Terminates after one action.

    ## Information
    ``success``, ``invalid`` (no box in the action), ``turn``, ``turns_left``.

    ## Arguments
    ``max_base`` (10 to 36, default 16), ``max_number`` (100 to 1,000,000,000, default 1,000),
    ``split`` ("train", "test" or "all").
    Task: ``{"digits": "1f", "from_base": 16, "to_base": 2}``; ``answer`` optional.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        max_base: int = 16,
        max_number: int = 1000,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(split=split, render_mode=render_mode)
        self.max_base = integer_argument("max_base", max_base, 10, 36)
        self.max_number = integer_argument("max_number", max_number, 100, 10**9)

    def draw(self) -> Task:
        """Return a random number and two bases."""
        number = draw_integer(self.np_random, 10, self.max_number)
        first, second = draw_items(self.np_random, range(2, self.max_base + 1), 2)
        return {"digits": in_base(number, first), "from_base": first, "to_base": second}

    def check(self, task: Task) -> None:
        """Check the bases and that the digits are those of the first."""
        base = integer_field(task, "from_base", 2, 36)
        integer_field(task, "to_base", 2, 36)
        digits: Any = task.get("digits")
        is_text = isinstance(digits, str) and 0 < len(digits) <= MAX_DIGITS
        if not is_text or {*digits} - {*DIGITS[:base]}:
            raise TaskError(
                f"'digits' must be a text of 1 to {MAX_DIGITS} of the digits {DIGITS[:base]}, got "
                f"{excerpt(digits)}"
            )

    def question(self, task: Task) -> str:
        """Return the question."""
        largest = max(task["from_base"], task["to_base"])
        note = f" Digits above 9 are the letters a to {DIGITS[largest - 1]}."
        if largest <= 10:
            note = ""
        elif largest == 11:
            note = " The digit for ten is a."
        return (
            f"The number {task['digits']} is written in base {task['from_base']}. Write it in base "
            f"{task['to_base']}.{note} Give the digits in \\boxed{{}}."
        )

    def solve(self, task: Task) -> str:
        """Return the digits in the second base."""
        return in_base(int(task["digits"], task["from_base"]), task["to_base"])

    def grade(self, task: Task, answer: str) -> bool:
        """Return whether an answer has the right digits."""
        base = task["to_base"]
        text = plain_text(answer).lower()
        subscript = _SUBSCRIPT.search(text)
        if subscript is not None:
            if int(subscript.group(1)) != base:
                return False
            text = text[: subscript.start()]
        text = "".join(text.split()).strip("().")
        if base in _PREFIXES:
            text = text.removeprefix(_PREFIXES[base])
        return bool(text) and (text.lstrip("0") or "0") == task["answer"].lower()


def in_base(number: int, base: int) -> str:
    """Return the digits of an integer of at least 0 in a base from 2 to 36."""
    digits = ""
    while number or not digits:
        number, digit = divmod(number, base)
        digits = DIGITS[digit] + digits
    return digits
