"""``rllm/StringTransform-v0``: carry out a chain of operations on a text."""

from collections.abc import Callable, Mapping
from typing import Any

from rllm_envs.errors import TaskError, excerpt
from rllm_envs.reasoning.answers import read_word
from rllm_envs.reasoning.draws import draw_integer, draw_item
from rllm_envs.reasoning.fields import integer_argument, is_word, list_field, words_field
from rllm_envs.reasoning.solved import SolvedEnv
from rllm_envs.reasoning.words import WORDS
from rllm_envs.tasks import Task

MAX_STEPS = 10
MAX_LENGTH = 60
ALPHABET = "abcdefghijklmnopqrstuvwxyz"
VOWELS = "aeiou"


def _shifted(text: str, places: int) -> str:
    table = str.maketrans(ALPHABET, ALPHABET[places:] + ALPHABET[:places])
    return text.translate(table)


_PLAIN: Mapping[str, tuple[str, Callable[[str], str]]] = {
    "reverse": ("Reverse the text.", lambda text: text[::-1]),
    "sort": ("Sort the letters into alphabetical order.", lambda text: "".join(sorted(text))),
    "swap_ends": (
        "Swap the first and the last letter.",
        lambda text: text[-1] + text[1:-1] + text[0] if len(text) > 1 else text,
    ),
    "swap_halves": (
        "Cut the text in the middle and swap the halves; with an odd number of letters the middle "
        "one belongs to the second half.",
        lambda text: text[len(text) // 2 :] + text[: len(text) // 2],
    ),
    "every_second": (
        "Keep only the first, third, fifth ... letter.",
        lambda text: text[::2],
    ),
    "double_first": ("Write the first letter twice.", lambda text: text[:1] + text),
    "no_vowels": (
        "Remove all vowels (a, e, i, o, u), unless nothing would be left.",
        lambda text: "".join(c for c in text if c not in VOWELS) or text,
    ),
    "no_repeats": (
        "Keep only the first occurrence of each letter.",
        lambda text: "".join(dict.fromkeys(text)),
    ),
    "mirror": ("Append the reverse of the text to it.", lambda text: text + text[::-1]),
}
_NUMBERED: Mapping[str, tuple[str, Callable[[str, int], str]]] = {
    "rotate": (
        "Move the first {0} letters to the end, one after the other.",
        lambda text, places: text[places % len(text) :] + text[: places % len(text)],
    ),
    "shift": (
        "Replace each letter by the one {0} places later in the alphabet; after z comes a.",
        _shifted,
    ),
}
OPERATIONS = (*_PLAIN, *_NUMBERED, "replace", "append")
_MAX_NUMBER = {"rotate": 5, "shift": 25}


class StringTransformEnv(SolvedEnv):
    r"""Apply stated operations to a word, one after the other.

    ## Description
    The agent reads a word and a numbered list of operations, such as reversing it, rotating it,
    shifting letters in the alphabet or removing vowels, and gives the text at the end.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the answer, the
    final text; capitals and surrounding spaces do not matter.

    ## Observation Space
    The word and the operations, one a line. The last observation is empty.

    ## Starting State
    A word of a list of about 200 and uniform operations, none the same as the one before; the text
    keeps 2 to 40 letters.

    ## Rewards
    1 for exactly the final text, 0 otherwise.

    ## Episode End
    Terminates after one action.

    ## Information
    ``success``, ``invalid`` (no box in the action), ``turn``, ``turns_left``.

    ## Arguments
    ``num_steps`` (1 to 10, default 3), ``split`` ("train", "test" or "all").
    ``rllm/StringTransformHard-v0`` has eight steps.
    Task: ``{"word": "banana", "steps": [["reverse"], ["rotate", 2], ["shift", 3], ["replace", "a",
    "e"], ["append", "x"]]}`` (operations: see ``OPERATIONS``); ``answer`` optional.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self, *, num_steps: int = 3, split: str = "train", render_mode: str | None = None
    ) -> None:
        super().__init__(split=split, render_mode=render_mode)
        self.num_steps = integer_argument("num_steps", num_steps, 1, MAX_STEPS)

    def draw(self) -> Task:
        """Return a word and operations that do something to it."""
        word = draw_item(self.np_random, WORDS)
        text, steps = word, []
        while len(steps) < self.num_steps:
            step = self._step(text)
            result = apply_step(text, step)
            is_repeated = bool(steps) and steps[-1][0] == step[0]
            if result != text and not is_repeated and 2 <= len(result) <= 40:
                steps.append(step)
                text = result
        return {"word": word, "steps": steps}

    def _step(self, text: str) -> list[Any]:
        rng = self.np_random
        name = draw_item(rng, OPERATIONS)
        if name in _NUMBERED:
            return [name, draw_integer(rng, 1, _MAX_NUMBER[name])]
        if name == "replace":
            return [name, draw_item(rng, text), draw_item(rng, ALPHABET)]
        return [name, draw_item(rng, ALPHABET)] if name == "append" else [name]

    def check(self, task: Task) -> None:
        """Check the word and the operations, and that the text stays short."""
        words_field({"word": [task.get("word")]}, "word", (1, 1))
        if not task["word"].islower():
            raise TaskError(f"'word' must be in lower case, got {excerpt(task['word'])}")
        text = task["word"]
        for step in list_field(task, "steps", 1, MAX_STEPS):
            if not _is_step(step):
                raise TaskError(
                    f"'steps' holds {excerpt(step)}; the operations are {', '.join(OPERATIONS)}"
                )
            text = apply_step(text, step)
            if len(text) > MAX_LENGTH:
                raise TaskError(f"the text grows beyond {MAX_LENGTH} letters: {excerpt(text)}")

    def question(self, task: Task) -> str:
        """Return the word and the operations."""
        lines = [f"{n}. {describe_step(step)}" for n, step in enumerate(task["steps"], start=1)]
        return (
            f'Start with the text "{task["word"]}" and do the following in order.\n'
            + "\n".join(lines)
            + "\nGive the final text in \\boxed{}."
        )

    def solve(self, task: Task) -> str:
        """Return the final text."""
        text = task["word"]
        for step in task["steps"]:
            text = apply_step(text, step)
        return text

    def grade(self, task: Task, answer: str) -> bool:
        """Return whether an answer is the final text."""
        return read_word(answer) == task["answer"].lower()


def apply_step(text: str, step: list[Any]) -> str:
    """Return what an operation makes of a text of at least one letter, in lower case."""
    name, *arguments = step
    if name in _PLAIN:
        return _PLAIN[name][1](text)
    if name in _NUMBERED:
        return _NUMBERED[name][1](text, arguments[0])
    return text + arguments[0] if name == "append" else text.replace(*arguments)


def describe_step(step: list[Any]) -> str:
    """Return an operation as a sentence."""
    name, *arguments = step
    if name in _PLAIN:
        return _PLAIN[name][0]
    if name in _NUMBERED:
        if step == ["rotate", 1]:
            return "Move the first letter to the end."
        if step == ["shift", 1]:
            return "Replace each letter by the next one in the alphabet; after z comes a."
        return _NUMBERED[name][0].format(*arguments)
    if name == "append":
        return f'Append the letter "{arguments[0]}".'
    return f'Replace every "{arguments[0]}" by "{arguments[1]}".'


def _is_step(step: Any) -> bool:
    if not isinstance(step, list) or not step or not isinstance(step[0], str):
        return False
    name, *arguments = step
    if name in _PLAIN:
        return not arguments
    if name in _NUMBERED:
        most = _MAX_NUMBER[name]
        return len(arguments) == 1 and type(arguments[0]) is int and 1 <= arguments[0] <= most
    count = {"replace": 2, "append": 1}.get(name)
    return len(arguments) == count and all(
        is_word(letter) and len(letter) == 1 and letter.islower() for letter in arguments
    )
