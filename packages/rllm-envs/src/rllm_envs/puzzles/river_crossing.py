"""``rllm/RiverCrossing-v0``: bring passengers over a river that must not be left alone together."""

import re
from collections import deque
from itertools import combinations

from rllm_envs.errors import EnvArgumentError, TaskError, excerpt
from rllm_envs.puzzles.checks import check_int, check_turns, task_int
from rllm_envs.puzzles.moves import MoveEnv, split_moves
from rllm_envs.tasks import Task

NAMES = (
    *("bear", "beetle", "cabbage", "carrot", "cat", "chicken", "dog", "duck", "eagle", "fox"),
    *("frog", "goat", "grain", "hare", "hay", "horse", "lettuce", "lion", "mouse", "owl", "pig"),
    *("rat", "sheep", "snake", "spider", "squirrel", "tiger", "turnip", "wolf", "worm"),
)
MAX_DRAWS = 2000
NOBODY = "nothing"
_BETWEEN = re.compile(r"[\s,&+]+|\band\b|\bthe\b|\btake\b|\bwith\b")

State = tuple[frozenset[str], bool]
"""Who is on the left bank, and whether the boat is there."""


class RiverCrossingEnv(MoveEnv):
    r"""Bring passengers over a river that must not be left alone together.

    ## Description
    The agent rows all passengers from the left to the right bank of a river. The boat holds the
    agent and few passengers. Stated pairs must never be together on a bank where the agent is not:
    that ends the game.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` holds who crosses
    with the agent, such as ``goat``, ``goat, wolf`` or ``nothing``. Several crossings are separated
    by semicolons, such as ``goat; nothing; wolf``, made in order up to the first that is not
    possible.

    ## Observation Space
    The rules with the pairs, then both banks and the place of the boat. After an action the banks
    again, behind the reason where a crossing was not possible.

    ## Starting State
    ``items`` different names, a uniform choice; each pair is a forbidden one with probability 0.4.
    Draws that are impossible or that need no more crossings than without forbidden pairs are drawn
    again.

    ## Rewards
    1 when all are on the right bank, 0 otherwise.

    ## Episode End
    Terminates when all are on the right bank, and when a forbidden pair is left alone. Truncates
    when the budget of crossings or of actions is spent.

    ## Information
    ``success``, ``invalid`` (no crossings in a box), ``turn``, ``turns_left``, ``moves_left``.

    ## Arguments
    ``items`` (3 to 7, default 4), ``capacity`` (passengers in the boat, 1 to 3, less than
    ``items``, default 2; ``items`` may be at most 3 capacity + 1), ``max_turns`` (actions, and
    crossings; default 30), ``split`` ("train", "test" or "all"). ``rllm/RiverCrossingHard-v0``:
    ``items=6, capacity=3``.
    Task: ``{"items": ["cabbage", "goat", "wolf"], "pairs": [["cabbage", "goat"], ["goat",
    "wolf"]], "capacity": 1}``.

    ## Version History
    * v0: Initial version
    """

    hint = (
        "Write who crosses with you in a box, such as \\boxed{goat}, \\boxed{goat, wolf} or "
        "\\boxed{nothing}, with ; between crossings. Use the given names."
    )
    separator = "; "

    def __init__(
        self,
        *,
        items: int = 4,
        capacity: int = 2,
        max_turns: int | None = None,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        self.items = check_int("items", items, 3, 7)
        self.capacity = check_int("capacity", capacity, 1, min(3, items - 1))
        if items > 3 * capacity + 1:
            raise EnvArgumentError(
                f"items={items} with capacity={capacity} is hardly ever possible; items may be at "
                "most 3 capacity + 1"
            )
        turns = check_turns(max_turns, 30)
        super().__init__(max_turns=turns, split=split, render_mode=render_mode)
        self._names: list[str] = []
        self._pairs: list[frozenset[str]] = []
        self._seats = capacity
        self._state: State = (frozenset(), True)

    def generate_task(self) -> Task:
        """Return random passengers and pairs.

        Raises:
            EnvArgumentError: No draw is possible within ``max_turns``.
        """
        usual = 2 * -(-self.items // self.capacity) - 1
        for _ in range(MAX_DRAWS):
            chosen = self.np_random.choice(len(NAMES), self.items, replace=False)
            names = sorted(NAMES[i] for i in chosen)
            pairs = [list(p) for p in combinations(names, 2) if self.np_random.random() < 0.4]
            plan = crossings(names, [frozenset(pair) for pair in pairs], self.capacity)
            if usual < len(plan) <= self.max_turns:
                return {"items": names, "pairs": pairs, "capacity": self.capacity}
        raise EnvArgumentError(
            f"none of {MAX_DRAWS} draws with items={self.items} and capacity={self.capacity} can "
            f"be solved in max_turns={self.max_turns} crossings; raise max_turns"
        )

    def validate_task(self, task: Task) -> Task:
        """Check names and pairs, and that the crossing is possible within the budget."""
        names, pairs = task.get("items"), task.get("pairs")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise TaskError(f"the task needs 'items', a list of names, got {excerpt(names)}")
        if not 1 <= len(names) <= 8 or len(set(names)) < len(names) or set(names) - set(NAMES):
            raise TaskError(f"'items' must be 1 to 8 different names of {NAMES}, got {names}")
        if not isinstance(pairs, list):
            raise TaskError(f"the task needs 'pairs', a list, got {excerpt(pairs)}")
        for pair in pairs:
            if not isinstance(pair, list) or len(pair) != 2 or pair[0] == pair[1]:
                raise TaskError(f"each of 'pairs' must be two different items, got {excerpt(pair)}")
            if not all(isinstance(name, str) and name in names for name in pair):
                raise TaskError(f"each of 'pairs' must be two of 'items', got {excerpt(pair)}")
        capacity = task_int(task, "capacity", 1, 8)
        plan = crossings(names, [frozenset(pair) for pair in pairs], capacity)
        if not 1 <= len(plan) <= self.max_turns:
            raise TaskError(f"{excerpt(task)} cannot be solved in {self.max_turns} crossings")
        return task

    def begin(self, task: Task) -> str:
        """Return the rules, the pairs and the banks."""
        self._names, self._seats = task["items"], task["capacity"]
        self._pairs = [frozenset(pair) for pair in task["pairs"]]
        self._state = (frozenset(self._names), True)
        self.start_moves()
        pairs = "; ".join(" and ".join(pair) for pair in task["pairs"]) or "none"
        seats = "1 passenger" if self._seats == 1 else f"up to {self._seats} passengers"
        return (
            f"Row {', '.join(self._names)} from the left to the right bank of a river. The boat "
            f"holds you and {seats}. These must never be together on a bank where you are not: "
            f"{pairs}. Write who crosses with you in a box, such as \\boxed{{{self._names[0]}}}, "
            f"or \\boxed{{{NOBODY}}} to cross alone. Several crossings may be written in one box "
            f"with ; between them. You have {self.max_turns} crossings.\n{self.board()}"
        )

    def parse_moves(self, text: str) -> list[str] | None:
        """Return crossings such as "goat, wolf" or "nothing"."""
        moves = []
        for part in split_moves(text, r"[;\n]|\bthen\b"):
            words = [word for word in _BETWEEN.split(part) if word]
            if words in ([NOBODY], ["nobody"], ["alone"]):
                moves.append(NOBODY)
            elif words and all(word in self._names for word in words):
                moves.append(", ".join(sorted(set(words))))
            else:
                return None
        return moves

    def play(self, move: str) -> str:
        """Cross with some passengers, if they are here and the boat holds them."""
        group = frozenset() if move == NOBODY else frozenset(move.split(", "))
        left, is_left = self._state
        here = left if is_left else frozenset(self._names) - left
        if len(group) > self._seats:
            return f"The boat does not hold {len(group)} passengers."
        missing = sorted(group - here)
        if missing:
            return f"The {missing[0]} is not on the bank where the boat is."
        self._state = (left - group if is_left else left | group, not is_left)
        return ""

    def board(self) -> str:
        """Return both banks and the place of the boat."""
        left, is_left = self._state
        right = frozenset(self._names) - left
        return (
            f"Left bank: {', '.join(sorted(left)) or NOBODY}. "
            f"Right bank: {', '.join(sorted(right)) or NOBODY}. "
            f"You and the boat: {'left' if is_left else 'right'}."
        )

    def is_solved(self) -> bool:
        """Return whether all are on the right bank."""
        return not self._state[0]

    def lost(self) -> str:
        """Return the sentence about a forbidden pair that was left alone."""
        pair = left_alone(self._names, self._pairs, self._state)
        return f"You have left {' and '.join(sorted(pair))} alone together." if pair else ""

    def plan(self) -> list[str]:
        """Return the fewest crossings."""
        return crossings(self._names, self._pairs, self._seats, self._state)


def left_alone(names: list[str], pairs: list[frozenset[str]], state: State) -> frozenset[str]:
    """Return a forbidden pair on the bank where the boat is not; the empty set where none is."""
    left, is_left = state
    alone = frozenset(names) - left if is_left else left
    return next((pair for pair in pairs if pair <= alone), frozenset())


def crossings(
    names: list[str], pairs: list[frozenset[str]], capacity: int, start: State | None = None
) -> list[str]:
    """Return the fewest crossings that bring all to the right bank; empty where there are none.

    Args:
        names: All passengers.
        pairs: Pairs that must not be alone together.
        capacity: Passengers in the boat.
        start: Where all are; all on the left bank where None.
    """
    first = start if start is not None else (frozenset(names), True)
    came: dict[State, tuple[State, str]] = {first: (first, "")}
    queue = deque([first])
    while queue:
        state = queue.popleft()
        left, is_left = state
        if not left:
            plan = []
            while state != first:
                state, move = came[state]
                plan.append(move)
            return plan[::-1]
        here = sorted(left if is_left else frozenset(names) - left)
        for size in range(min(capacity, len(here)) + 1):
            for group in combinations(here, size):
                after = (left - set(group) if is_left else left | set(group), not is_left)
                if after not in came and not left_alone(names, pairs, after):
                    came[after] = (state, ", ".join(group) or NOBODY)
                    queue.append(after)
    return []
