"""``rllm/ShortestPath-v0``: a shortest way through a weighted graph."""

import heapq
import re
from collections import defaultdict
from itertools import pairwise
from typing import Any

from rllm_envs.errors import TaskError, excerpt
from rllm_envs.reasoning.answers import plain_text
from rllm_envs.reasoning.draws import draw_integer, draw_items, shuffled
from rllm_envs.reasoning.fields import (
    flag_argument,
    integer_argument,
    is_word,
    list_field,
    words_field,
)
from rllm_envs.reasoning.solved import SolvedEnv
from rllm_envs.tasks import Task

NODES = "ABCDEFGHIJKLMNOPQRST"
MAX_EDGES = 400
MAX_GIVEN_LENGTH = 10**6

_SEPARATORS = re.compile(r"->|[,;\s>\-|]+")


class ShortestPathEnv(SolvedEnv):
    r"""Find a shortest way between two places of a small road map.

    ## Description
    Roads of given lengths join places named by letters; they may be used in both directions, or in
    one only where ``directed`` is set. The agent names the places on a way from the start to the
    end that is as short as possible.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the answer:
    ``A -> C -> F``; arrows, commas, dashes or spaces may separate.

    ## Observation Space
    The roads, one a line, and the question. The last observation is empty.

    ## Starting State
    A random tree (so that every place can be reached) and further random roads, with uniform
    lengths from 1 to ``max_length``; the shortest way has at least two roads.

    ## Rewards
    1 for any way of the least total length, 0 otherwise.

    ## Episode End
    Terminates after one action.

    ## Information
    ``success``, ``invalid`` (no box in the action), ``turn``, ``turns_left``.

    ## Arguments
    ``num_places`` (4 to 20, default 7), ``num_roads`` (at least ``num_places``, at most
    ``num_places * (num_places - 1) / 2``; default None: 1.7 for each place), ``max_length`` (2 to
    1,000, default 20), ``directed`` (default False), ``split`` ("train", "test" or "all").
    ``rllm/ShortestPathHard-v0`` has 14 places and 30 roads.
    Task: ``{"roads": [["A", "B", 4], ["B", "C", 7]], "start": "A", "end": "C"}``, ``directed`` and
    ``answer`` optional.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        num_places: int = 7,
        num_roads: int | None = None,
        max_length: int = 20,
        directed: bool = False,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(split=split, render_mode=render_mode)
        self.num_places = integer_argument("num_places", num_places, 4, len(NODES))
        most = num_places * (num_places - 1) // 2
        wanted = min(most, num_places * 17 // 10) if num_roads is None else num_roads
        self.num_roads = integer_argument("num_roads", wanted, num_places, most)
        self.max_length = integer_argument("max_length", max_length, 2, 1000)
        self.directed = flag_argument("directed", directed)

    def draw(self) -> Task:
        """Return a connected graph and two places that are not neighbours on a shortest way."""
        rng = self.np_random
        while True:
            places = shuffled(rng, NODES[: self.num_places])
            pairs = [
                (places[draw_integer(rng, 0, number - 1)], places[number])
                for number in range(1, len(places))
            ]
            known = {frozenset(pair) for pair in pairs}
            while len(pairs) < self.num_roads:
                first, second = draw_items(rng, places, 2)
                if frozenset((first, second)) not in known:
                    known.add(frozenset((first, second)))
                    pairs.append((first, second))
            roads = [
                [*pair, draw_integer(rng, 1, self.max_length)] for pair in shuffled(rng, pairs)
            ]
            start, end = draw_items(rng, places, 2)
            task: Task = {"roads": roads, "start": start, "end": end}
            if self.directed:
                task["directed"] = True
            path = shortest_path(task)
            if path is not None and len(path) > 2:
                return task

    def check(self, task: Task) -> None:
        """Check the roads and that start and end are two different places."""
        for road in list_field(task, "roads", 1, MAX_EDGES):
            if not _is_road(road):
                raise TaskError(
                    "'roads' must hold lists of two different places (words) and a length from 1 "
                    f"to {MAX_GIVEN_LENGTH}, got {excerpt(road)}"
                )
        if not isinstance(task.get("directed", False), bool):
            raise TaskError(f"'directed' must be true or false, got {excerpt(task['directed'])}")
        places = sorted({place for road in task["roads"] for place in road[:2]})
        words_field({"roads": places}, "roads", (2, 2 * MAX_EDGES))
        start, end = task.get("start"), task.get("end")
        if start not in places or end not in places or start == end:
            raise TaskError(
                f"'start' and 'end' must be two places with roads, got {excerpt([start, end])}"
            )

    def question(self, task: Task) -> str:
        """Return the roads and the question."""
        is_directed = task.get("directed", False)
        roads = "\n".join(
            f"{a} -> {b}: {length}" if is_directed else f"{a} - {b}: {length}"
            for a, b, length in task["roads"]
        )
        use = "in the direction of its arrow only" if is_directed else "in both directions"
        return (
            f"These roads join places; each may be used {use}.\n{roads}\nFind a way from "
            f"{task['start']} to {task['end']} with the least total length. Give its places in "
            "order, like \\boxed{X -> Y -> Z}."
        )

    def solve(self, task: Task) -> str:
        """Return a shortest way.

        Raises:
            TaskError: There is no way.
        """
        path = shortest_path(task)
        if path is None:
            raise TaskError(f"there is no way from {task['start']} to {task['end']}")
        return " -> ".join(path)

    def grade(self, task: Task, answer: str) -> bool:
        """Return whether an answer is a way of the least length."""
        names = {place.lower(): place for road in task["roads"] for place in road[:2]}
        parts = [part for part in _SEPARATORS.split(plain_text(answer).strip("[](){}. ")) if part]
        path = [names.get(part.strip("\"'").lower(), "") for part in parts]
        best = shortest_path(task)
        if not path or (path[0], path[-1]) != (task["start"], task["end"]) or best is None:
            return False
        return path_length(task, path) == path_length(task, best)


def shortest_path(task: Task) -> list[str] | None:
    """Return the places of a shortest way (Dijkstra), or None where there is no way."""
    roads = _roads(task)
    start, end = task["start"], task["end"]
    queue: list[tuple[int, list[str]]] = [(0, [start])]
    done: set[str] = set()
    while queue:
        length, path = heapq.heappop(queue)
        place = path[-1]
        if place == end:
            return path
        if place in done:
            continue
        done.add(place)
        for following, step in roads[place].items():
            if following not in done:
                heapq.heappush(queue, (length + step, [*path, following]))
    return None


def path_length(task: Task, path: list[str]) -> int | None:
    """Return the total length of a way, or None where two of its places are not joined."""
    roads = _roads(task)
    total = 0
    for place, following in pairwise(path):
        if following not in roads[place]:
            return None
        total += roads[place][following]
    return total


def _roads(task: Task) -> defaultdict[str, dict[str, int]]:
    """Return the shortest road to each neighbour of each place."""
    roads: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for a, b, length in task["roads"]:
        directions = [(a, b)] if task.get("directed", False) else [(a, b), (b, a)]
        for place, following in directions:
            roads[place][following] = min(length, roads[place].get(following, length))
    return roads


def _is_road(road: Any) -> bool:
    return (
        isinstance(road, list)
        and len(road) == 3
        and all(map(is_word, road[:2]))
        and road[0] != road[1]
        and type(road[2]) is int
        and 1 <= road[2] <= MAX_GIVEN_LENGTH
    )
