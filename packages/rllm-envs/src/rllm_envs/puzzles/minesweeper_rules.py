"""Boards of Minesweeper: numbers, openings, and what follows from open numbers."""

from collections import deque
from collections.abc import Mapping, Set

Place = tuple[int, int]
"""Row and column, from 0."""


def neighbours(place: Place) -> list[Place]:
    """Return the eight places around a place, on or off the board."""
    row, column = place
    return [
        (row + down, column + right)
        for down in (-1, 0, 1)
        for right in (-1, 0, 1)
        if (down, right) != (0, 0)
    ]


def mine_counts(height: int, width: int, mines: Set[Place]) -> dict[Place, int]:
    """Return, for each place of a board, how many of its neighbours hold a mine."""
    places = [(row, column) for row in range(height) for column in range(width)]
    return {place: sum(near in mines for near in neighbours(place)) for place in places}


def opened_from(counts: Mapping[Place, int], first: Place, mines: Set[Place]) -> frozenset[Place]:
    """Return the places that open with one that holds no mine: around each 0 all neighbours."""
    opened = {first}
    queue = deque([first])
    while queue:
        place = queue.popleft()
        if counts[place] == 0 and place not in mines:
            for near in neighbours(place):
                if near in counts and near not in opened:
                    opened.add(near)
                    queue.append(near)
    return frozenset(opened)


def deduce(
    known: Mapping[Place, int], places: Set[Place], num_mines: int
) -> tuple[set[Place], set[Place]]:
    """Return closed places that hold no mine, and closed places that hold one, by proof.

    Each open number states how many mines lie in a set of closed places; one more such statement is
    about the whole board. The rules, used until nothing follows: a set without mines is safe; a set
    with as many mines as places is mined; and where one set holds as many mines more than another
    as it has places outside of it, those places are mined and the rest of the other set is safe.

    Args:
        known: Numbers of the open places.
        places: All places of the board.
        num_mines: Mines on the board.
    """
    closed = frozenset(places - known.keys())
    statements: dict[frozenset[Place], int] = {closed: num_mines}
    for place, count in known.items():
        around = frozenset(near for near in neighbours(place) if near in closed)
        if around:
            statements[around] = count
    safe: set[Place] = set()
    mined: set[Place] = set()
    while True:
        before = len(safe) + len(mined)
        _read_off(statements, safe, mined)
        if len(safe) + len(mined) == before:
            _compare(statements, safe, mined)
        if len(safe) + len(mined) == before:
            return safe, mined
        statements = _without(statements, safe, mined)


def _read_off(statements: Mapping[frozenset, int], safe: set[Place], mined: set[Place]) -> None:
    for group, count in statements.items():
        if count == 0:
            safe |= group
        elif count == len(group):
            mined |= group


def _compare(statements: Mapping[frozenset, int], safe: set[Place], mined: set[Place]) -> None:
    groups = [(group, count) for group, count in statements.items() if group]
    for first, count in groups:
        for second, other in groups:
            # At most ``other`` mines lie in the shared part, so the rest holds the others, and is
            # full; then all mines of the second set lie in the shared part.
            rest = first - second
            if count - other == len(rest):
                mined |= rest
                safe |= second - first


def _without(
    statements: Mapping[frozenset, int], safe: set[Place], mined: set[Place]
) -> dict[frozenset, int]:
    smaller: dict[frozenset, int] = {}
    for group, count in statements.items():
        rest = group - safe - mined
        if rest:
            smaller[rest] = count - len(group & mined)
    return smaller


def deduced_opening(
    counts: Mapping[Place, int], mines: Set[Place], first: Place
) -> frozenset[Place]:
    """Return all places that a player opens who starts at ``first`` and never guesses."""
    opened = opened_from(counts, first, mines)
    while True:
        known = {place: counts[place] for place in opened}
        safe, _ = deduce(known, frozenset(counts), len(mines))
        if not safe:
            return opened
        for place in safe:
            opened |= opened_from(counts, place, mines)
