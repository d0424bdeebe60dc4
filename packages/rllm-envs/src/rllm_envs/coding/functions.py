"""Functions to write, made up from steps: what each does in words, in Python, and in fact.

A function takes a list of integers or a text, changes it step by step, and returns one result of
it. What it returns is computed by the functions of the steps; the source text is for people.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

ENTRY_POINT = "solve"


@dataclass(frozen=True, slots=True)
class Step:
    """One step, for a number ``k``. Written in the tables below, read by ``random_function``."""

    words: str
    """What it does; ``{k}`` stands for the number."""
    line: str
    """Right side of its assignment to ``x``, or, of a last step, of ``return``."""
    apply: Callable[[Any, int], Any]
    """The step itself, of a value and the number."""
    k: int = 0
    """The number."""


_LIST_STEPS = (
    Step(
        "keep the even numbers",
        "[v for v in x if v % 2 == 0]",
        lambda x, k: [v for v in x if v % 2 == 0],
    ),
    Step(
        "keep the odd numbers",
        "[v for v in x if v % 2 == 1]",
        lambda x, k: [v for v in x if v % 2 == 1],
    ),
    Step(
        "keep the numbers greater than {k}",
        "[v for v in x if v > {k}]",
        lambda x, k: [v for v in x if v > k],
    ),
    Step(
        "keep the numbers less than {k}",
        "[v for v in x if v < {k}]",
        lambda x, k: [v for v in x if v < k],
    ),
    Step(
        "keep the multiples of {k}",
        "[v for v in x if v % {k} == 0]",
        lambda x, k: [v for v in x if v % k == 0],
    ),
    Step("add {k} to each number", "[v + {k} for v in x]", lambda x, k: [v + k for v in x]),
    Step("subtract {k} from each number", "[v - {k} for v in x]", lambda x, k: [v - k for v in x]),
    Step("multiply each number by {k}", "[v * {k} for v in x]", lambda x, k: [v * k for v in x]),
    Step(
        "replace each number by its remainder modulo {k}",
        "[v % {k} for v in x]",
        lambda x, k: [v % k for v in x],
    ),
    Step("square each number", "[v * v for v in x]", lambda x, k: [v * v for v in x]),
    Step(
        "take the absolute value of each number",
        "[abs(v) for v in x]",
        lambda x, k: [abs(v) for v in x],
    ),
    Step("reverse the list", "x[::-1]", lambda x, k: x[::-1]),
    Step("sort the list in ascending order", "sorted(x)", lambda x, k: sorted(x)),
    Step(
        "sort the list in descending order",
        "sorted(x, reverse=True)",
        lambda x, k: sorted(x, reverse=True),
    ),
    Step("drop the first {k} numbers", "x[{k}:]", lambda x, k: x[k:]),
    Step("keep the first {k} numbers", "x[:{k}]", lambda x, k: x[:k]),
    Step("keep every second number, starting with the first", "x[::2]", lambda x, k: x[::2]),
    Step(
        "drop repeated numbers, keeping the first of each",
        "list(dict.fromkeys(x))",
        lambda x, k: list(dict.fromkeys(x)),
    ),
)
_LIST_ENDS = (
    Step("return the list", "x", lambda x, k: x),
    Step("return the sum", "sum(x)", lambda x, k: sum(x)),
    Step("return how many numbers are left", "len(x)", lambda x, k: len(x)),
    Step(
        "return the largest number, or 0 if none is left",
        "max(x, default=0)",
        lambda x, k: max(x, default=0),
    ),
    Step(
        "return the smallest number, or 0 if none is left",
        "min(x, default=0)",
        lambda x, k: min(x, default=0),
    ),
    Step(
        "return the largest minus the smallest, or 0 if none is left",
        "max(x) - min(x) if x else 0",
        lambda x, k: max(x) - min(x) if x else 0,
    ),
    Step("return whether the sum is greater than {k}", "sum(x) > {k}", lambda x, k: sum(x) > k),
)
_TEXT_STEPS = (
    Step("turn it to lower case", "x.lower()", lambda x, k: x.lower()),
    Step("turn it to upper case", "x.upper()", lambda x, k: x.upper()),
    Step("reverse it", "x[::-1]", lambda x, k: x[::-1]),
    Step("remove its spaces", "x.replace(' ', '')", lambda x, k: x.replace(" ", "")),
    Step(
        "remove the vowels a, e, i, o and u in either case",
        "''.join(c for c in x if c.lower() not in 'aeiou')",
        lambda x, k: "".join(c for c in x if c.lower() not in "aeiou"),
    ),
    Step(
        "keep its letters only",
        "''.join(c for c in x if c.isalpha())",
        lambda x, k: "".join(c for c in x if c.isalpha()),
    ),
    Step(
        "write each character {k} times",
        "''.join(c * {k} for c in x)",
        lambda x, k: "".join(c * k for c in x),
    ),
    Step("drop its first {k} characters", "x[{k}:]", lambda x, k: x[k:]),
    Step("keep its first {k} characters", "x[:{k}]", lambda x, k: x[:k]),
    Step("keep every second character, starting with the first", "x[::2]", lambda x, k: x[::2]),
    Step("swap the case of each letter", "x.swapcase()", lambda x, k: x.swapcase()),
    Step("sort its characters", "''.join(sorted(x))", lambda x, k: "".join(sorted(x))),
    Step(
        "reverse the order of its words",
        "' '.join(x.split()[::-1])",
        lambda x, k: " ".join(x.split()[::-1]),
    ),
)
_TEXT_ENDS = (
    Step("return the text", "x", lambda x, k: x),
    Step("return its length", "len(x)", lambda x, k: len(x)),
    Step("return how many different characters it has", "len(set(x))", lambda x, k: len(set(x))),
    Step("return the list of its words", "x.split()", lambda x, k: x.split()),
    Step(
        "return how often the letter e is in it, in either case",
        "x.lower().count('e')",
        lambda x, k: x.lower().count("e"),
    ),
    Step("return whether it reads the same backwards", "x == x[::-1]", lambda x, k: x == x[::-1]),
)
KINDS = {"list": (_LIST_STEPS, _LIST_ENDS), "text": (_TEXT_STEPS, _TEXT_ENDS)}
_WORDS = (
    "Level",
    "apple",
    "Noon",
    "river",
    "Tree",
    "queen",
    "under",
    "ICE",
    "see",
    "Otter",
    "a",
    "x1",
)


@dataclass(frozen=True, slots=True)
class Function:
    """A function to write. Made by ``random_function``."""

    kind: str
    """"list" or "text"."""
    steps: tuple[Step, ...]
    """In their order; the last returns."""

    def __call__(self, value: Any) -> Any:
        """Return what the function returns."""
        for step in self.steps:
            value = step.apply(value, step.k)
        return value

    @property
    def source(self) -> str:
        """The function in Python."""
        lines = [f"    x = {step.line.format(k=step.k)}" for step in self.steps[:-1]]
        last = self.steps[-1]
        return "\n".join(
            [f"def {ENTRY_POINT}(x):", *lines, f"    return {last.line.format(k=last.k)}"]
        )

    @property
    def words(self) -> str:
        """What the function does, in words."""
        taken = "a list of integers x" if self.kind == "list" else "a text x"
        said = [step.words.format(k=step.k) for step in self.steps]
        return f"takes {taken}; its steps are: " + "; ".join(said) + "."


def random_function(rng: np.random.Generator, *, kind: str, num_steps: int) -> Function:
    """Return a random function of a kind, with ``num_steps`` steps before it returns."""
    steps, ends = KINDS[kind]
    chosen = [steps[int(i)] for i in rng.integers(len(steps), size=num_steps)]
    chosen.append(ends[int(rng.integers(len(ends)))])
    return Function(kind, tuple(replace(step, k=int(rng.integers(2, 6))) for step in chosen))


def broken(rng: np.random.Generator, function: Function, inputs: list[Any]) -> Function | None:
    """Return the function with one step changed so that some input shows it; None if none does."""
    steps, ends = KINDS[function.kind]
    for _ in range(20):
        place = int(rng.integers(len(function.steps)))
        step = function.steps[place]
        if "{k}" in step.line and rng.random() < 0.5:
            changed = replace(step, k=step.k + (1 if rng.random() < 0.5 or step.k <= 2 else -1))
        else:
            table = ends if place == len(function.steps) - 1 else steps
            changed = replace(table[int(rng.integers(len(table)))], k=step.k)
        other = Function(
            function.kind, (*function.steps[:place], changed, *function.steps[place + 1 :])
        )
        if any(other(value) != function(value) for value in inputs):
            return other
    return None


def random_inputs(rng: np.random.Generator, kind: str, count: int) -> list[Any]:
    """Return inputs of a kind; the empty one is the last, and none comes twice."""
    empty: Any = [] if kind == "list" else ""
    found: list[Any] = []
    while len(found) < count - 1:
        size = int(rng.integers(1, 9))
        if kind == "list":
            value: Any = [int(v) for v in rng.integers(-9, 21, size=size)]
        else:
            value = " ".join(_WORDS[int(i)] for i in rng.integers(len(_WORDS), size=size))
        if value not in found:
            found.append(value)
    return [*found, empty]
