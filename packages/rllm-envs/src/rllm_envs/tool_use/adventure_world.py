"""``Adventure``: rooms, locked doors, keys, chests, and what the verbs do."""

import re
from collections import deque
from typing import Any

from rllm_envs.tasks import Task
from rllm_envs.tool_use.draws import Draws

STEPS = {"north": (0, 1), "east": (1, 0), "south": (0, -1), "west": (-1, 0)}
OPPOSITES = {"north": "south", "east": "west", "south": "north", "west": "east"}
COLOURS: tuple[str, ...] = ("red", "blue", "green", "black", "white", "silver")
ROOM_NAMES = (
    *("hall", "library", "kitchen", "cellar", "chapel", "armoury", "garden", "attic", "study"),
    *("stable", "gallery", "workshop", "pantry", "tower", "crypt", "courtyard", "bath", "vault"),
    *("laundry", "observatory", "nursery", "smithy", "music room", "guard room"),
)
TREASURES = ("golden crown", "jade statue", "old map", "ruby ring", "star chart", "ivory flute")
ODDMENTS = ("rope", "lamp", "bucket", "broom", "bottle", "candle", "blanket", "hammer", "spoon")
_COMMANDS = (
    ("go", re.compile(r"(?:go |walk )?(north|east|south|west|n|e|s|w)")),
    ("take", re.compile(r"(?:take|get|pick up) (.+)")),
    ("drop", re.compile(r"drop (.+)")),
    ("open", re.compile(r"open chest")),
    ("unlock", re.compile(r"unlock (north|east|south|west|n|e|s|w)(?: door)?(?: with (.+))?")),
    ("look", re.compile(r"look(?: around)?")),
    ("inventory", re.compile(r"inventory")),
)


class Adventure:
    """The state of an adventure.

    Args:
        task: See ``TextAdventureEnv``.
    """

    def __init__(self, task: Task) -> None:
        self.names: list[str] = task["rooms"]
        self.exits: list[dict[str, int]] = [{} for _ in self.names]
        self.locks: dict[tuple[int, str], str] = {}
        for room, direction, other, lock in task["exits"]:
            back = OPPOSITES[direction]
            self.exits[room][direction], self.exits[other][back] = other, room
            if lock:
                self.locks[room, direction] = self.locks[other, back] = lock
        self.where: dict[str, int] = {name: place[0] for name, place in task["items"].items()}
        self.hidden = {name for name, place in task["items"].items() if place[1]}
        self.chests = {place[0] for place in task["items"].values() if place[1]}
        self.opened: set[int] = set()
        self.room: int = task["start"]
        self.treasure: str = task["treasure"]
        self.target: int = task["target"]

    @property
    def is_solved(self) -> bool:
        """Whether the treasure lies in the target room."""
        return self.where[self.treasure] == self.target and not self._is_hidden(self.treasure)

    def _is_hidden(self, item: str) -> bool:
        return item in self.hidden and self.where[item] not in self.opened

    def held(self) -> list[str]:
        """Return what the agent carries."""
        return [name for name, room in self.where.items() if room < 0]

    def describe(self) -> str:
        """Return the room as the agent sees it."""
        exits = []
        for direction in STEPS:
            if direction in self.exits[self.room]:
                lock = self.locks.get((self.room, direction), "")
                exits.append(f"{direction} (locked {lock} door)" if lock else direction)
        things = [
            item for item, at in self.where.items() if at == self.room and not self._is_hidden(item)
        ]
        if self.room in self.chests:
            things.append("chest (open)" if self.room in self.opened else "chest (closed)")
        return (
            f"You are in the {self.names[self.room]}. Exits: {', '.join(exits) or 'none'}. "
            f"You see: {', '.join(things) or 'nothing of use'}."
        )

    def do(self, command: str) -> str | None:
        """Carry out a command and return what happens; None where it is not understood."""
        words = re.sub(r"\bthe ", "", " ".join(command.lower().replace(".", " ").split()))
        for verb, pattern in _COMMANDS:
            match = pattern.fullmatch(words)
            if match:
                return getattr(self, f"_{verb}")(*match.groups())
        return None

    def _go(self, word: str) -> str:
        direction = _direction(word)
        if direction not in self.exits[self.room]:
            return "There is no exit that way."
        if (self.room, direction) in self.locks:
            return f"The {self.locks[self.room, direction]} door is locked."
        self.room = self.exits[self.room][direction]
        return self.describe()

    def _take(self, item: str) -> str:
        if self.where.get(item) != self.room or self._is_hidden(item):
            return f"You see no {item[:40]} here."
        self.where[item] = -1
        self.hidden.discard(item)
        return f"You take the {item}."

    def _drop(self, item: str) -> str:
        if self.where.get(item) != -1:
            return f"You do not carry a {item[:40]}."
        self.where[item] = self.room
        return f"You drop the {item} in the {self.names[self.room]}."

    def _open(self) -> str:
        if self.room not in self.chests or self.room in self.opened:
            return "There is no closed chest here."
        self.opened.add(self.room)
        found = [
            item for item in self.where if item in self.hidden and self.where[item] == self.room
        ]
        return f"You open the chest and find: {', '.join(found) or 'nothing'}."

    def _unlock(self, word: str, key: str | None) -> str:
        direction = _direction(word)
        lock = self.locks.get((self.room, direction))
        if lock is None:
            return "There is no locked door that way."
        needed = f"{lock} key"
        if key not in (None, needed, "key") or self.where.get(needed) != -1:
            return f"You need to carry and use the {needed}."
        other = self.exits[self.room][direction]
        del self.locks[self.room, direction], self.locks[other, OPPOSITES[direction]]
        return f"You unlock the {lock} door."

    def _look(self) -> str:
        return self.describe()

    def _inventory(self) -> str:
        return f"You carry: {', '.join(self.held()) or 'nothing'}."

    def next_command(self) -> str:
        """Return the next command of a good plan, or "" where no plan leads further.

        Of what helps (the treasure, the target, a key that is not held yet, a door whose key is
        held) the nearest that can be reached is done; treasure and target come first.
        """
        paths = self._paths()
        if self.where[self.treasure] < 0 and self.target in paths:
            return next(iter(paths[self.target]), f"drop {self.treasure}")
        place = self.where[self.treasure]
        if place in paths:
            return self._fetch(self.treasure, paths[place])
        options = []
        for item, room in self.where.items():
            if item.endswith(" key") and room in paths:
                options.append((len(paths[room]), self._fetch(item, paths[room])))
        for (room, direction), lock in self.locks.items():
            if room in paths and self.where.get(f"{lock} key") == -1:
                unlock = f"unlock {direction} with {lock} key"
                options.append((len(paths[room]), next(iter(paths[room]), unlock)))
        return min(options, default=(0, ""))[1]

    def _fetch(self, item: str, path: list[str]) -> str:
        if path:
            return path[0]
        return "open chest" if self._is_hidden(item) else f"take {item}"

    def _paths(self) -> dict[int, list[str]]:
        """Return the commands that lead to each room that open doors lead to."""
        paths: dict[int, list[str]] = {self.room: []}
        queue = deque([self.room])
        while queue:
            room = queue.popleft()
            for direction, other in self.exits[room].items():
                if other not in paths and (room, direction) not in self.locks:
                    paths[other] = [*paths[room], f"go {direction}"]
                    queue.append(other)
        return paths


def plan_length(task: Task, limit: int) -> int:
    """Return how many commands the plan of ``next_command`` takes, or ``limit`` + 1 if too many."""
    world = Adventure(task)
    for count in range(1, limit + 1):
        world.do(world.next_command())
        if world.is_solved:
            return count
    return limit + 1


def random_adventure(draws: Draws, num_rooms: int, num_locks: int) -> Task:
    """Return rooms on a grid, locked doors with a key before each, a treasure and a target."""
    cells = [(0, 0)]
    tree: dict[int, tuple[int, str]] = {}
    while len(cells) < num_rooms:
        parent, direction = draws.below(len(cells)), draws.pick(tuple(STEPS))
        cell = (cells[parent][0] + STEPS[direction][0], cells[parent][1] + STEPS[direction][1])
        if cell not in cells:
            tree[len(cells)] = (parent, direction)
            cells.append(cell)
    locked = draws.sample(range(1, num_rooms), num_locks)
    colours = dict(zip(locked, draws.sample(COLOURS, num_locks), strict=True))
    region = _regions(num_rooms, tree, locked)
    items, last = _hide_keys(draws, tree, region, colours)
    treasure = draws.pick(TREASURES)
    rooms_of_last = [room for room in range(num_rooms) if region[room] == last]
    items[treasure] = [draws.pick(rooms_of_last), draws.random() < 0.5]
    for oddment in draws.sample(ODDMENTS, min(len(ODDMENTS), num_rooms // 2)):
        items[oddment] = [draws.below(num_rooms), draws.random() < 0.3]
    exits: list[list[Any]] = [
        [parent, direction, room, colours.get(room, "")]
        for room, (parent, direction) in tree.items()
    ]
    exits += _loops(draws, cells, region, exits)
    others = [room for room in range(num_rooms) if room != items[treasure][0]]
    return {
        "rooms": draws.sample(ROOM_NAMES, num_rooms),
        "exits": exits,
        "items": items,
        "start": 0,
        "treasure": treasure,
        "target": draws.pick(others),
    }


def _regions(num_rooms: int, tree: dict[int, tuple[int, str]], locked: list[int]) -> list[int]:
    """Return for each room the room just behind the last locked door on the way to it (or 0)."""
    region = [0] * num_rooms
    for room in range(1, num_rooms):
        region[room] = room if room in locked else region[tree[room][0]]
    return region


def _hide_keys(
    draws: Draws, tree: dict[int, tuple[int, str]], region: list[int], colours: dict[int, str]
) -> tuple[dict[str, list[Any]], int]:
    """Put each key where it can be reached before its door; return them and the last region."""
    items: dict[str, list[Any]] = {}
    reached, rest, last = [0], sorted(colours), 0
    while rest:
        last = draws.pick([room for room in rest if region[tree[room][0]] in reached])
        rooms = [room for room, name in enumerate(region) if name in reached]
        items[f"{colours[last]} key"] = [draws.pick(rooms), draws.random() < 0.5]
        reached.append(last)
        rest.remove(last)
    return items, last


def _loops(
    draws: Draws, cells: list[tuple[int, int]], region: list[int], exits: list[list[Any]]
) -> list[list[Any]]:
    """Return further exits between neighbours of the same region, about a third of those."""
    joined = {frozenset((a, b)) for a, _, b, _ in exits}
    loops: list[list[Any]] = []
    for room, (x, y) in enumerate(cells):
        for direction in ("north", "east"):
            neighbour = (x + STEPS[direction][0], y + STEPS[direction][1])
            if neighbour not in cells:
                continue
            other = cells.index(neighbour)
            is_fresh = frozenset((room, other)) not in joined and region[room] == region[other]
            if is_fresh and draws.random() < 0.35:
                loops.append([room, direction, other, ""])
    return loops


def _direction(word: str) -> str:
    return next(name for name in STEPS if name.startswith(word))
