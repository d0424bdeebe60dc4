"""Solve and make puzzles of houses in a row, each with one value of every attribute.

An arrangement gives each value its house, counted from 0 at the left. While solving, the houses
that a value may still have are the bits of an integer.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from rllm_envs.reasoning.draws import draw_items, shuffled

Clue = tuple[str, str, str | int]
"""Relation, value, and the other value (for "at" and "not_at": the house, counted from 1)."""
Arrangement = dict[str, int]
Domains = dict[str, int]

RELATIONS: Mapping[str, Callable[[int, int], bool]] = {
    "at": lambda a, b: a == b,
    "not_at": lambda a, b: a != b,
    "same": lambda a, b: a == b,
    "not_same": lambda a, b: a != b,
    "left": lambda a, b: a + 1 == b,
    "next": lambda a, b: abs(a - b) == 1,
    "before": lambda a, b: a < b,
}
"""Whether a relation holds between two houses."""
NUM_DIRECT = 1
"""How many "at" clues a puzzle may hold."""


def holds(clue: Clue, arrangement: Mapping[str, int]) -> bool:
    """Return whether an arrangement fulfils a clue."""
    relation, first, second = clue
    other = second - 1 if isinstance(second, int) else arrangement[second]
    return RELATIONS[relation](arrangement[first], other)


def arrangements(groups: Sequence[Sequence[str]], clues: Sequence[Clue]) -> Iterator[Arrangement]:
    """Yield the arrangements that fulfil all clues.

    Args:
        groups: The values of each attribute, as many as there are houses.
        clues: Clues about these values.
    """
    everywhere = (1 << len(groups[0])) - 1
    domains = {value: everywhere for group in groups for value in group}
    yield from _search(domains, groups, clues)


def is_unique(groups: Sequence[Sequence[str]], clues: Sequence[Clue]) -> bool:
    """Return whether exactly one arrangement fulfils all clues."""
    found = arrangements(groups, clues)
    return next(found, None) is not None and next(found, None) is None


def draw_clues(rng: np.random.Generator, groups: Sequence[Sequence[str]]) -> list[Clue]:
    """Return clues that one random arrangement fulfils, none of which can be left out.

    Clues are added while another arrangement fulfils all so far: a random one that it breaks.
    """
    solution = {
        value: house for group in groups for house, value in enumerate(shuffled(rng, group))
    }
    candidates = _true_clues(rng, groups, solution)
    clues: list[Clue] = []
    while True:
        other = next((a for a in arrangements(groups, clues) if a != solution), None)
        if other is None:
            break
        place = next(n for n, clue in enumerate(candidates) if not holds(clue, other))
        clues.append(candidates.pop(place))
    for clue in list(clues):
        rest = [kept for kept in clues if kept is not clue]
        if is_unique(groups, rest):
            clues = rest
    return shuffled(rng, clues)


def _true_clues(
    rng: np.random.Generator, groups: Sequence[Sequence[str]], solution: Arrangement
) -> list[Clue]:
    """Return clues that hold, in random order; direct ones are few, negative ones come last."""
    size = len(groups[0])
    values = [value for group in groups for value in group]
    pairs = [(a, b) for a in values for b in values if a != b]
    group_of = {value: number for number, group in enumerate(groups) for value in group}
    clues: list[Clue] = [
        (relation, a, b)
        for a, b in pairs
        for relation in ("same", "left", "next", "before")
        if RELATIONS[relation](solution[a], solution[b])
        and not (relation in ("same", "next") and a > b)
    ]
    direct: list[Clue] = [("at", value, solution[value] + 1) for value in values]
    negative: list[Clue] = [
        ("not_same", a, b)
        for a, b in pairs
        if a < b and group_of[a] != group_of[b] and solution[a] != solution[b]
    ]
    negative += [
        ("not_at", value, house + 1)
        for value in values
        for house in range(size)
        if house != solution[value]
    ]
    some = draw_items(rng, direct, NUM_DIRECT) + draw_items(rng, negative, len(clues) // 4)
    return shuffled(rng, clues + some) + shuffled(rng, negative)


def _search(
    domains: Domains, groups: Sequence[Sequence[str]], clues: Sequence[Clue]
) -> Iterator[Arrangement]:
    if not _narrow(domains, groups, clues):
        return
    open_values = [value for value, houses in domains.items() if houses & (houses - 1)]
    if not open_values:
        yield {value: houses.bit_length() - 1 for value, houses in domains.items()}
        return
    value = min(open_values, key=lambda name: domains[name].bit_count())
    houses = domains[value]
    while houses:
        house = houses & -houses
        houses ^= house
        yield from _search({**domains, value: house}, groups, clues)


def _narrow(domains: Domains, groups: Sequence[Sequence[str]], clues: Sequence[Clue]) -> bool:
    """Remove impossible houses until nothing changes; return False for a contradiction."""
    while True:
        before = list(domains.values())
        for relation, first, second in clues:
            if isinstance(second, int):
                house = 1 << (second - 1)
                domains[first] &= house if relation == "at" else ~house
            else:
                a, b = domains[first], domains[second]
                domains[first], domains[second] = _narrowed(relation, a, b)
        if 0 in domains.values():
            return False
        for group in groups:
            _keep_apart(domains, group)
        after = list(domains.values())
        if 0 in after:
            return False
        if after == before:
            return True


def _narrowed(relation: str, a: int, b: int) -> tuple[int, int]:
    """Return the houses left to two values by a relation between them."""
    if relation == "same":
        return a & b, a & b
    if relation == "left":
        return a & (b >> 1), b & (a << 1)
    if relation == "next":
        return a & ((b >> 1) | (b << 1)), b & ((a >> 1) | (a << 1))
    if relation == "before":
        below = (1 << max(b.bit_length() - 1, 0)) - 1
        # -x & x is the lowest bit of x; what lies above it is greater.
        above = ~((a & -a) * 2 - 1) if a else 0
        return a & below, b & above
    return (
        a & ~b if b & (b - 1) == 0 else a,
        b & ~a if a & (a - 1) == 0 else b,
    )


def _keep_apart(domains: Domains, group: Sequence[str]) -> None:
    """Take a house that one value of a group has from the others."""
    seen_once, seen_twice = 0, 0
    for value in group:
        houses = domains[value]
        seen_twice |= seen_once & houses
        seen_once |= houses
        if houses & (houses - 1) == 0:
            for other in group:
                if other != value:
                    domains[other] &= ~houses
    # A house that a single value can still have is that value's.
    single = seen_once & ~seen_twice
    for value in group:
        if domains[value] & single:
            domains[value] &= single
