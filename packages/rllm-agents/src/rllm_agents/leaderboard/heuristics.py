"""Scripted heuristics: simple rules that a person would think of first, one function each."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

_LINES = ("123", "456", "789", "147", "258", "369", "159", "357")
"""Of noughts and crosses."""
_SHAPES = re.compile(r"What is (-?\d+) ([-+*]) (-?\d+)\?")


@dataclass
class Scene:
    """What a heuristic knows of its episode. Kept by HeuristicScript."""

    rng: random.Random
    observations: list[str] = field(default_factory=list)
    """All so far, the newest last."""
    actions: list[str] = field(default_factory=list)
    """Its own so far."""
    legal: tuple[str, ...] = ()
    """Actions that are legal now, where the environment lists them."""

    @property
    def first(self) -> str:
        """The first observation: rules and question."""
        return self.observations[0]

    @property
    def newest(self) -> str:
        """The newest observation."""
        return self.observations[-1]


def arithmetic(scene: Scene) -> str | None:
    """Compute a sum, a difference or a product."""
    found = _SHAPES.search(scene.first)
    if found is None:
        return None
    left, right = int(found[1]), int(found[3])
    results = {"+": left + right, "-": left - right, "*": left * right}
    return _boxed(results[found[2]])


def calculator(scene: Scene) -> str | None:
    """Ask the calculator, then repeat what it says."""
    found = re.search(r"What is (.+?)\?", scene.first)
    if len(scene.observations) == 1 and found is not None:
        return f"<calc>{found[1]}</calc>"
    result = re.search(r"Result: (\S+)", scene.newest)
    return None if result is None else _boxed(result[1])


def number_sequence(scene: Scene) -> str | None:
    """Go on with constant differences, also of differences; else with constant ratios."""
    listed = re.search(r"comes next: ([-\d, ]+)\?", scene.first)
    if listed is None:
        return None
    numbers = [int(number) for number in listed[1].split(",")]
    steps = [after - before for before, after in pairwise(numbers)]
    bends = [after - before for before, after in pairwise(steps)]
    if len(set(bends)) == 1:
        return _boxed(numbers[-1] + steps[-1] + bends[-1])
    if numbers[-2] and numbers[-1] % numbers[-2] == 0:
        return _boxed(numbers[-1] * (numbers[-1] // numbers[-2]))
    return _boxed(numbers[-1] + steps[-1])


def longest_choice(scene: Scene) -> str | None:
    """Take the choice with the most letters, of equally long ones the first."""
    choices = re.findall(r"^([A-Z])\) (.*)$", scene.first, re.MULTILINE)
    return _boxed(max(choices, key=lambda choice: len(choice[1]))[0]) if choices else None


def sort_plainly(scene: Scene) -> str | None:
    """Sort numbers by value and words by the alphabet, whatever the rule."""
    lines = [line for line in scene.first.splitlines() if "," in line]
    items = [item.strip() for item in lines[-1].split(",")] if lines else []
    if not items:
        return None
    are_numbers = all(re.fullmatch(r"-?\d+", item) for item in items)
    return _boxed(", ".join(sorted(items, key=int) if are_numbers else sorted(items)))


def bisect(scene: Scene) -> str | None:
    """Halve what is left."""
    bounds = re.search(r"from (-?\d+) to (-?\d+)", scene.first)
    if bounds is None:
        return None
    low, high = int(bounds[1]), int(bounds[2])
    for word, number in re.findall(
        r"is (lower|higher) than (-?\d+)", "\n".join(scene.observations)
    ):
        low, high = (low, int(number) - 1) if word == "lower" else (int(number) + 1, high)
    return _boxed((low + high) // 2)


def best_arm(scene: Scene) -> str | None:
    """Play the machine with the best share of wins, counting one win more than there was."""
    named = re.search(r"machines: ([\w, ]+)\.", scene.first)
    if named is None:
        return None
    plays = re.findall(r"^(\w+): (won|lost)", "\n".join(scene.observations), re.MULTILINE)
    machines = [name.strip() for name in named[1].split(",")]

    def promise(machine: str) -> float:
        outcomes = [outcome == "won" for name, outcome in plays if name == machine]
        return (sum(outcomes) + 1) / (len(outcomes) + 1)

    return _boxed(max(machines, key=promise))


def three_in_a_row(scene: Scene) -> str | None:
    """Win if possible, else block, else take the centre, a corner, any cell."""
    mark = re.search(r"with the mark ([XO])", scene.first)
    rows = re.findall(r"^([XO\d]) ([XO\d]) ([XO\d])$", scene.newest, re.MULTILINE)
    if mark is None or len(rows) != 3:
        return None
    cells = dict(zip("123456789", "".join("".join(row) for row in rows), strict=True))
    for wanted in (mark[1], "O" if mark[1] == "X" else "X"):
        for line in _LINES:
            free = [cell for cell in line if cells[cell] == cell]
            if len(free) == 1 and sum(cells[cell] == wanted for cell in line) == 2:
                return _boxed(free[0])
    return next((_boxed(cell) for cell in "513792468" if cells[cell] == cell), None)


def empty_a_pile(scene: Scene) -> str | None:
    """Take the whole largest pile, or all but one of it where an odd number would be left."""
    piles = [int(size) for size in re.findall(r"^Pile \d+: (\d+)", scene.newest, re.MULTILINE)]
    if not any(piles):
        return None
    largest = max(range(len(piles)), key=lambda index: piles[index])
    others = sum(size > 0 for size in piles) - 1
    taken = piles[largest] - (others % 2 if piles[largest] > 1 else 0)
    return _boxed(f"{largest + 1} {taken}")


HEURISTICS: Mapping[str, Callable[[Scene], str | None]] = {
    "rllm/Arithmetic-v0": arithmetic,
    "rllm/Calculator-v0": calculator,
    "rllm/NumberSequence-v0": number_sequence,
    "rllm/MCQ-v0": longest_choice,
    "rllm/Sorting-v0": sort_plainly,
    "rllm/GuessNumber-v0": bisect,
    "rllm/GuessNumberHard-v0": bisect,
    "rllm/Bandit-v0": best_arm,
    "rllm/BanditHard-v0": best_arm,
    "rllm/TicTacToe-v0": three_in_a_row,
    "rllm/Nim-v0": empty_a_pile,
}
"""By environment, or game; each returns None where it finds no action."""


def _boxed(answer: object) -> str:
    return f"\\boxed{{{answer}}}"
