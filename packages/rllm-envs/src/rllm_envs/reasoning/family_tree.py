"""Families of several generations, and how two of their members are related."""

from collections.abc import Mapping, Sequence

import numpy as np

from rllm_envs.reasoning.draws import draw_flag, draw_integer, draw_item, draw_items
from rllm_envs.reasoning.words import MEN, WOMEN

Fact = list[str]
"""``["parent", a, b]``: a is a parent of b; ``["married", a, b]``."""

WORDINGS: Mapping[str, tuple[str, str]] = {
    "spouse": ("wife", "husband"),
    "parent": ("mother", "father"),
    "child": ("daughter", "son"),
    "sibling": ("sister", "brother"),
    "grandparent": ("grandmother", "grandfather"),
    "grandchild": ("granddaughter", "grandson"),
    "great-grandparent": ("great-grandmother", "great-grandfather"),
    "great-grandchild": ("great-granddaughter", "great-grandson"),
    "parent's sibling": ("aunt", "uncle"),
    "sibling's child": ("niece", "nephew"),
    "cousin": ("cousin", "cousin"),
    "spouse's parent": ("mother-in-law", "father-in-law"),
    "child's spouse": ("daughter-in-law", "son-in-law"),
    "sibling-in-law": ("sister-in-law", "brother-in-law"),
}
"""Names of the relations for women and for men."""
GIVEN = ("spouse", "parent", "child")
"""Relations that the facts state themselves."""


class Family:
    """A family as its facts describe it.

    Args:
        facts: Who is a parent of whom and who is married to whom, in any order.
    """

    def __init__(self, facts: Sequence[Fact]) -> None:
        self._parents: dict[str, set[str]] = {}
        self._children: dict[str, set[str]] = {}
        self._spouses: dict[str, set[str]] = {}
        for kind, first, second in facts:
            if kind == "parent":
                self._parents.setdefault(second, set()).add(first)
                self._children.setdefault(first, set()).add(second)
            else:
                self._spouses.setdefault(first, set()).add(second)
                self._spouses.setdefault(second, set()).add(first)

    def relations(self, first: str, second: str) -> list[str]:
        """Return every relation of ``WORDINGS`` in which ``first`` stands to ``second``."""
        return [kind for kind in WORDINGS if first in self._relatives(kind, second)]

    def pairs(self, people: Sequence[str]) -> dict[tuple[str, str], list[str]]:
        """Return the relations of every two of some people who are related."""
        found: dict[tuple[str, str], list[str]] = {}
        for second in people:
            for kind in WORDINGS:
                for first in sorted(self._relatives(kind, second)):
                    found.setdefault((first, second), []).append(kind)
        return found

    def _relatives(self, kind: str, person: str) -> set[str]:
        """Return those who stand in a relation to a person."""
        if kind == "spouse":
            return self._spouses.get(person, set())
        if kind == "parent":
            return self._parents.get(person, set())
        if kind == "child":
            return self._children.get(person, set())
        if kind == "sibling":
            return self._chain(person, "child", "parent") - {person}
        if kind == "sibling-in-law":
            return (
                self._chain(person, "sibling", "spouse") | self._chain(person, "spouse", "sibling")
            ) - {person}
        outer, inner = {
            "grandparent": ("parent", "parent"),
            "grandchild": ("child", "child"),
            "great-grandparent": ("parent", "grandparent"),
            "great-grandchild": ("child", "grandchild"),
            "parent's sibling": ("sibling", "parent"),
            "sibling's child": ("child", "sibling"),
            "cousin": ("child", "parent's sibling"),
            "spouse's parent": ("parent", "spouse"),
            "child's spouse": ("spouse", "child"),
        }[kind]
        return self._chain(person, outer, inner)

    def _chain(self, person: str, outer: str, inner: str) -> set[str]:
        """Return the ``outer`` relatives of the ``inner`` relatives of a person."""
        found = (self._relatives(outer, other) for other in self._relatives(inner, person))
        return set().union(*found)


def draw_family(
    rng: np.random.Generator, num_generations: int
) -> tuple[dict[str, str], list[Fact]]:
    """Return the sex ("woman" or "man") of each member of a random family, and its facts.

    One couple has two or three children. Up to the last generation the first child of each couple
    marries, the others do so with probability 1/2; later couples have one or two children.
    """
    names = {
        "woman": draw_items(rng, WOMEN, len(WOMEN)),
        "man": draw_items(rng, MEN, len(MEN)),
    }
    people: dict[str, str] = {}
    facts: list[Fact] = []

    def add(sex: str) -> str:
        name = names[sex].pop()
        people[name] = sex
        return name

    couples = [(add("woman"), add("man"))]
    facts.append(["married", *couples[0]])
    for generation in range(1, num_generations):
        following = []
        for couple in couples:
            fewest, most = (2, 3) if generation == 1 else (1, 2)
            for number in range(draw_integer(rng, fewest, most)):
                sex = draw_item(rng, ("woman", "man"))
                child = add(sex)
                facts += [["parent", parent, child] for parent in couple]
                is_last = generation == num_generations - 1
                if not is_last and (number == 0 or draw_flag(rng)):
                    partner = add("man" if sex == "woman" else "woman")
                    facts.append(["married", child, partner])
                    following.append((child, partner))
        couples = following
    return people, facts
