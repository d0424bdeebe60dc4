"""``House``: places, things, one pair of hands, and what the verbs do."""

import re
from dataclasses import dataclass, field

from rllm_envs.tool_use.draws import Draws


@dataclass(frozen=True, slots=True)
class PlaceKind:
    """What one kind of place is like."""

    room: str
    """Room that it is in."""
    count: int
    """How many a house has at most."""
    is_closed: bool
    """Whether it has a door and is closed at first."""
    preposition: str
    """"in" or "on"."""


PLACE_KINDS = {
    "fridge": PlaceKind("kitchen", 1, True, "in"),
    "microwave": PlaceKind("kitchen", 1, True, "in"),
    "sink": PlaceKind("kitchen", 1, False, "in"),
    "counter": PlaceKind("kitchen", 2, False, "on"),
    "cabinet": PlaceKind("kitchen", 4, True, "in"),
    "bin": PlaceKind("kitchen", 1, False, "in"),
    "dining table": PlaceKind("living room", 1, False, "on"),
    "sofa": PlaceKind("living room", 1, False, "on"),
    "shelf": PlaceKind("living room", 3, False, "on"),
    "chest": PlaceKind("living room", 1, True, "in"),
    "bed": PlaceKind("bedroom", 1, False, "on"),
    "nightstand": PlaceKind("bedroom", 2, False, "on"),
    "wardrobe": PlaceKind("bedroom", 1, True, "in"),
    "drawer": PlaceKind("bedroom", 3, True, "in"),
    "bathtub": PlaceKind("bathroom", 1, False, "in"),
    "mirror cabinet": PlaceKind("bathroom", 1, True, "in"),
    "towel rack": PlaceKind("bathroom", 1, False, "on"),
}
ROOMS = ("kitchen", "living room", "bedroom", "bathroom")
_ALL = ("clean", "hot", "cold")
THING_KINDS: dict[str, tuple[str, ...]] = {
    "apple": _ALL, "potato": _ALL, "tomato": _ALL, "egg": _ALL, "mug": _ALL, "plate": _ALL,
    "bowl": _ALL, "bread": ("hot", "cold"), "fork": ("clean",), "spoon": ("clean",),
    "knife": ("clean",), "cloth": ("clean",), "soap": ("clean",), "book": (), "pillow": (),
    "phone": (), "candle": (), "newspaper": (), "key": (), "watch": (),
}  # fmt: skip
"""Kinds of things, and the states that each can be brought into."""
TOOLS = {"clean": "sink", "hot": "microwave", "cold": "fridge"}
"""Where a thing gets a state."""
_VERBS = {"clean": "clean", "heat": "hot", "cool": "cold"}
_OPPOSITES = {"hot": "cold", "cold": "hot"}
_COMMANDS = (
    ("go", re.compile(r"(?:go|walk) to (.+)")),
    ("open", re.compile(r"open (.+)")),
    ("close", re.compile(r"close (.+)")),
    ("take", re.compile(r"(?:take|pick up) (.+?) (?:from|out of) (.+)")),
    ("put", re.compile(r"(?:put|place|move) (.+?) (?:into|onto|in|on|to) (.+)")),
    ("treat", re.compile(r"(clean|heat|cool) (.+?) (?:with|in) (.+)")),
    ("look", re.compile(r"look(?: around)?")),
    ("inventory", re.compile(r"inventory")),
)


@dataclass
class House:
    """The state of a house. Made from a task; the verbs change it."""

    places: list[str]
    """Names, such as "cabinet 2"."""
    where: dict[str, str]
    """Place of each thing; "" is in the hands of the agent."""
    states: dict[str, set[str]] = field(default_factory=dict)
    """States of each thing that has any."""
    opened: set[str] = field(default_factory=set)
    """Places with a door that are open."""
    position: str = ""
    """Where the agent stands; "" is the hall."""

    def is_closed(self, place: str) -> bool:
        """Return whether a place has a door that is closed."""
        return PLACE_KINDS[kind_of(place)].is_closed and place not in self.opened

    def held(self) -> str:
        """Return the thing in the agent's hands, or ""."""
        return next((thing for thing, place in self.where.items() if not place), "")

    def contents(self, place: str) -> str:
        """Return what is to be seen at a place."""
        if self.is_closed(place):
            return f"The {place} is closed."
        things = [f"a {thing}" for thing, at in self.where.items() if at == place]
        preposition = PLACE_KINDS[kind_of(place)].preposition.capitalize()
        return f"{preposition} the {place} you see {', '.join(things) or 'nothing'}."

    def do(self, command: str) -> str | None:
        """Carry out a command and return what happens; None where it is not understood."""
        words = " ".join(command.lower().replace(".", " ").split())
        words = re.sub(r"\bthe ", "", words)
        for verb, pattern in _COMMANDS:
            match = pattern.fullmatch(words)
            if match:
                return getattr(self, f"_{verb}")(*match.groups())
        return None

    def _go(self, place: str) -> str:
        if place not in self.places:
            return f"There is no {place[:40]} here."
        self.position = place
        room = PLACE_KINDS[kind_of(place)].room
        return f"You stand at the {place} in the {room}. {self.contents(place)}"

    def _open(self, place: str) -> str:
        if place != self.position:
            return f"You do not stand at the {place[:40]}."
        if not self.is_closed(place):
            return f"The {place} cannot be opened, or is open."
        self.opened.add(place)
        return f"You open the {place}. {self.contents(place)}"

    def _close(self, place: str) -> str:
        if place != self.position or place not in self.opened:
            return f"You cannot close the {place[:40]} now."
        self.opened.discard(place)
        return f"You close the {place}."

    def _take(self, thing: str, place: str) -> str:
        if place != self.position:
            return f"You do not stand at the {place[:40]}."
        if self.is_closed(place):
            return f"The {place} is closed."
        if self.where.get(thing) != place:
            return f"You see no {thing[:40]} there. {self.contents(place)}"
        if self.held():
            return f"You carry the {self.held()} and have no hand free."
        self.where[thing] = ""
        return f"You take the {thing} from the {place}."

    def _put(self, thing: str, place: str) -> str:
        if self.where.get(thing) != "":
            return f"You do not carry a {thing[:40]}."
        if place != self.position:
            return f"You do not stand at the {place[:40]}."
        if self.is_closed(place):
            return f"The {place} is closed."
        self.where[thing] = place
        return f"You put the {thing} {PLACE_KINDS[kind_of(place)].preposition} the {place}."

    def _treat(self, verb: str, thing: str, place: str) -> str:
        state = _VERBS[verb]
        if self.where.get(thing) != "":
            return f"You do not carry a {thing[:40]}."
        if place != self.position:
            return f"You do not stand at the {place[:40]}."
        if kind_of(place) != TOOLS[state]:
            return f"You cannot {verb} anything with the {place}."
        if state not in THING_KINDS[kind_of(thing)]:
            return f"You cannot {verb} the {thing}."
        states = self.states.setdefault(thing, set())
        states.discard(_OPPOSITES.get(state, ""))
        states.add(state)
        return f"You {verb} the {thing} with the {place}. It is {state} now."

    def _look(self) -> str:
        if not self.position:
            return "You stand in the hall."
        return f"You stand at the {self.position}. {self.contents(self.position)}"

    def _inventory(self) -> str:
        return f"You carry {'the ' + self.held() if self.held() else 'nothing'}."


def kind_of(name: str) -> str:
    """Return the kind of a place or thing: its name without the number."""
    return name.rpartition(" ")[0]


def random_house(draws: Draws, num_things: int) -> tuple[list[str], dict[str, str]]:
    """Return the places of a house, and ``num_things`` things at random places."""
    places = [
        f"{kind} {number}"
        for kind, item in PLACE_KINDS.items()
        for number in range(1, draws.between(1, item.count) + 1)
    ]
    counts: dict[str, int] = {}
    where: dict[str, str] = {}
    for _ in range(num_things):
        kind = draws.pick(tuple(THING_KINDS))
        counts[kind] = counts.get(kind, 0) + 1
        where[f"{kind} {counts[kind]}"] = draws.pick(places)
    return places, where
