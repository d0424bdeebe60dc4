"""Levels of Sokoban: made by playing backwards, solved by A*."""

import heapq
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from math import inf

import numpy as np

from rllm_envs.puzzles.moves import DIRECTIONS

Place = tuple[int, int]
"""Row and column, from 0."""
WALL_SHARE = 0.12
MAX_NODES = 60_000
"""Positions that a search looks at before it gives up."""


@dataclass(frozen=True, slots=True)
class Level:
    """What does not change during play. Made by ``random_level`` and by reading a drawing."""

    floor: frozenset[Place]
    """All places that are no walls."""
    goals: frozenset[Place]
    """Places where boxes belong."""


def random_level(
    np_random: np.random.Generator, *, size: int, num_boxes: int, max_moves: int
) -> tuple[Level, Place, frozenset[Place]]:
    """Return a solvable level, the place of the agent and the boxes, all off the goals.

    The boxes start on the goals and are pulled away at random. The same moves backwards solve the
    level, so it needs at most as many moves as were made.

    Args:
        np_random: Source of randomness.
        size: Cells in a row without the outer wall.
        num_boxes: Number of boxes.
        max_moves: Most moves that the known solution may have.
    """
    while True:
        is_floor = np_random.random((size, size)) >= WALL_SHARE
        floor = frozenset((int(r) + 1, int(c) + 1) for r, c in np.argwhere(is_floor))
        places = sorted(floor)
        if len(places) <= num_boxes + 1:
            continue
        chosen = [places[i] for i in np_random.choice(len(places), num_boxes + 1, replace=False)]
        player, goals = chosen[0], frozenset(chosen[1:])
        if len(distances(floor, player)) < len(floor):
            continue
        level = Level(floor, goals)
        result = _pull_away(np_random, level, player, 8 * num_boxes)
        if result is not None and result[2] <= max_moves:
            return level, result[0], result[1]


def _pull_away(
    np_random: np.random.Generator, level: Level, player: Place, num_pulls: int
) -> tuple[Place, frozenset[Place], int] | None:
    """Pull boxes at random; return agent, boxes and moves made, or None if a box is on a goal."""
    boxes, num_moves, last = level.goals, 0, None
    for _ in range(num_pulls):
        steps = distances(level.floor - boxes, player)
        pulls = []
        for box in sorted(boxes):
            for down, right in DIRECTIONS.values():
                stand = (box[0] + down, box[1] + right)
                after = (stand[0] + down, stand[1] + right)
                is_free = after in level.floor and after not in boxes
                # Pulling a box to and fro makes no task harder.
                if stand in steps and is_free and (box, stand) != last:
                    pulls.append((box, stand, after))
        if not pulls:
            break
        box, stand, player = pulls[int(np_random.integers(len(pulls)))]
        boxes = boxes - {box} | {stand}
        num_moves += steps[stand] + 1
        last = (stand, box)
    return None if boxes & level.goals else (player, boxes, num_moves)


def distances(free: frozenset[Place], start: Place) -> dict[Place, int]:
    """Return the number of steps from a place to each that can be reached over free places."""
    steps = {start: 0}
    queue = deque([start])
    while queue:
        place = queue.popleft()
        for down, right in DIRECTIONS.values():
            after = (place[0] + down, place[1] + right)
            if after in free and after not in steps:
                steps[after] = steps[place] + 1
                queue.append(after)
    return steps


def push_distances(level: Level, goal: Place) -> dict[Place, int]:
    """Return the fewest pushes that bring a lone box from a place to a goal.

    From places that are missing a box never reaches the goal.
    """
    pushes = {goal: 0}
    queue = deque([goal])
    while queue:
        place = queue.popleft()
        for down, right in DIRECTIONS.values():
            before = (place[0] - down, place[1] - right)
            stand = (before[0] - down, before[1] - right)
            if before in level.floor and stand in level.floor and before not in pushes:
                pushes[before] = pushes[place] + 1
                queue.append(before)
    return pushes


class _Bound:
    """Lower bound on the pushes left: boxes and goals paired so that lone pushes are fewest."""

    def __init__(self, level: Level) -> None:
        self._tables = [push_distances(level, goal) for goal in sorted(level.goals)]
        self._known: dict[frozenset[Place], float] = {}

    def __call__(self, boxes: frozenset[Place]) -> float:
        if boxes not in self._known:
            self._known[boxes] = min(
                sum(table.get(box, inf) for table, box in zip(self._tables, order, strict=True))
                for order in permutations(boxes)
            )
        return self._known[boxes]


def solve(level: Level, player: Place, boxes: frozenset[Place]) -> list[str]:
    """Return a solution with the fewest moves.

    A* over positions after a push; the bound on the moves left is the fewest pushes that bring the
    boxes to the goals if no box is in the way of another.

    Returns:
        Moves; empty where the level is solved or no solution is found among ``MAX_NODES``
        positions.
    """
    bound = _Bound(level)
    start = (player, boxes)
    best = {start: 0}
    came: dict[tuple[Place, frozenset[Place]], tuple] = {}
    heap = [(bound(boxes), 0, 0, start)]
    count = 0
    while heap and len(best) <= MAX_NODES:
        _, _, cost, position = heapq.heappop(heap)
        if position[1] == level.goals:
            return _trace(level, came, position)
        if cost > best[position]:
            continue
        for push, after, steps in _pushes(level, position):
            total = cost + steps + 1
            if total < best.get(after, inf) and bound(after[1]) < inf:
                best[after] = total
                came[after] = (position, push)
                count += 1
                # The counter keeps equal entries from being compared as sets; of equal bounds the
                # latest goes first.
                heapq.heappush(heap, (total + bound(after[1]), -count, total, after))
    return []


def _pushes(
    level: Level, position: tuple[Place, frozenset[Place]]
) -> Iterator[tuple[tuple[Place, str], tuple[Place, frozenset[Place]], int]]:
    player, boxes = position
    steps = distances(level.floor - boxes, player)
    for box in sorted(boxes):
        for name, (down, right) in DIRECTIONS.items():
            stand = (box[0] - down, box[1] - right)
            target = (box[0] + down, box[1] + right)
            if stand in steps and target in level.floor and target not in boxes:
                after = (box, boxes - {box} | {target})
                yield (stand, name), after, steps[stand]


def _trace(level: Level, came: dict, position: tuple[Place, frozenset[Place]]) -> list[str]:
    parts: list[list[str]] = []
    while position in came:
        before, (stand, push) = came[position]
        parts.append([*walk(level.floor - before[1], before[0], stand), push])
        position = before
    return [move for part in reversed(parts) for move in part]


def walk(free: frozenset[Place], start: Place, goal: Place) -> list[str]:
    """Return the moves of a shortest walk over free places; the goal must be reachable."""
    steps = distances(free, goal)
    moves, place = [], start
    while place != goal:
        for name, (down, right) in DIRECTIONS.items():
            after = (place[0] + down, place[1] + right)
            if steps.get(after, steps[place]) < steps[place]:
                moves.append(name)
                place = after
                break
    return moves
