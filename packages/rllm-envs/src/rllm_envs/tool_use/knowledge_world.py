"""Generated worlds of people, companies, towns and books: facts, articles and chains of facts.

A world is JSON data: ``{kind: [[name, value, ...], ...]}``. The values of a record are, in the
order of ``RELATIONS``, indices of records of another kind or, for years, numbers.
"""

from dataclasses import dataclass
from typing import Any

from rllm_envs.errors import TaskError
from rllm_envs.tool_use.draws import Draws
from rllm_envs.tool_use.fields import is_integer, is_name, need

World = dict[str, list[list[Any]]]
Entity = tuple[str, int]
"""Kind and index of a record."""


@dataclass(frozen=True, slots=True)
class Relation:
    """One fact that every record of a kind has."""

    name: str
    """Short name, unique within the kind."""
    target: str
    """Kind of the value, or "year"."""
    sentences: tuple[str, ...]
    """Ways to state it; {} are the names of the record and of the value."""
    phrase: str
    """The value as a noun phrase; {} is the record."""


RELATIONS: dict[str, tuple[Relation, ...]] = {
    "person": (
        Relation("birthplace", "town", ("{} was born in {}.", "The birthplace of {} is {}."),
                 "the town where {} was born"),
        Relation("employer", "company", ("{} works for {}.", "{} has a post at {}."),
                 "the company that employs {}"),
        Relation("teacher", "person", ("{} was taught by {}.", "{} learned the trade from {}."),
                 "the person who taught {}"),
        Relation("birth year", "year", ("{} was born in the year {}.",),
                 "the year in which {} was born"),
    ),
    "company": (
        Relation("founder", "person", ("{} was founded by {}.", "{} was started by {}."),
                 "the founder of {}"),
        Relation("seat", "town", ("{} has its head office in {}.", "The seat of {} is {}."),
                 "the town where {} has its head office"),
        Relation("founding year", "year", ("{} was founded in the year {}.",),
                 "the year in which {} was founded"),
    ),
    "town": (
        Relation("mayor", "person", ("The mayor of {} is {}.", "{} has elected {} as its mayor."),
                 "the mayor of {}"),
        Relation("twin", "town", ("{} looks after a friendship with its twin town {}.",
                                  "The twin town of {} is {}."), "the twin town of {}"),
        Relation("charter year", "year", ("{} got its charter in the year {}.",),
                 "the year in which {} got its charter"),
    ),
    "book": (
        Relation("author", "person", ("{} was written by {}.", "The author of {} is {}."),
                 "the author of {}"),
        Relation("setting", "town", ("{} is set in {}.", "The story of {} takes place in {}."),
                 "the town in which {} is set"),
        Relation("publisher", "company", ("{} was published by {}.", "{} came out at {}."),
                 "the publisher of {}"),
    ),
}  # fmt: skip
KINDS = tuple(RELATIONS)
_SHARES = {"person": 0.4, "company": 0.2, "town": 0.2, "book": 0.2}
_ONSETS = (
    *("b", "br", "d", "dr", "f", "g", "gr", "h", "k", "kl", "l", "m", "n", "p", "pr", "r", "s"),
    *("st", "t", "tr", "v", "w", "z"),
)
_VOWELS = ("a", "e", "i", "o", "u", "ai", "ea", "ia", "oi")
_CODAS = ("", "l", "m", "n", "nd", "r", "rt", "s", "st", "x")
_FIRST = (
    *("Alma", "Bruno", "Clara", "Darius", "Edith", "Felix", "Greta", "Hugo", "Irene", "Jonas"),
    *("Katja", "Leon", "Marta", "Nils", "Olga", "Pavel", "Ruth", "Simon", "Tilda", "Viktor"),
)
_COMPANY = ("Works", "Mills", "Press", "Foundry", "Motors", "Textiles", "Labs", "Trading", "Optics")
_TOWN = ("burg", "ford", "haven", "bridge", "wick", "mouth", "stead", "field")
_BOOK = (
    *("The Shadow of {}", "Letters from {}", "The Garden of {}", "A Winter in {}", "{} Rising"),
    *("The Last Ship to {}", "Songs for {}", "The Clockmaker of {}"),
)


def _word(draws: Draws) -> str:
    parts = [draws.pick(_ONSETS), draws.pick(_VOWELS), draws.pick(_ONSETS)]
    return "".join((*parts, draws.pick(_VOWELS), draws.pick(_CODAS))).capitalize()


def _name(draws: Draws, kind: str, word: str) -> str:
    if kind == "person":
        return f"{draws.pick(_FIRST)} {word}"
    if kind == "company":
        return f"{word} {draws.pick(_COMPANY)}"
    if kind == "town":
        return f"{word}{draws.pick(_TOWN)}"
    return draws.pick(_BOOK).format(word)


def random_world(draws: Draws, size: int) -> World:
    """Return a world of ``size`` records, at least 20, whose names are all different."""
    words: dict[str, None] = {}
    while len(words) < size:
        words[_word(draws)] = None
    stock = iter(words)
    counts = {kind: int(size * _SHARES[kind]) for kind in KINDS}
    counts["person"] += size - sum(counts.values())
    world: World = {}
    for kind in KINDS:
        world[kind] = [
            [_name(draws, kind, next(stock)), *_values(draws, kind, index, counts)]
            for index in range(counts[kind])
        ]
    return world


def _values(draws: Draws, kind: str, index: int, counts: dict[str, int]) -> list[int]:
    values = []
    for relation in RELATIONS[kind]:
        if relation.target == "year":
            values.append(draws.between(1850, 1999))
        elif relation.target == kind:
            # Nobody is taught by himself: skip the record's own number.
            other = draws.below(counts[kind] - 1)
            values.append(other + (other >= index))
        else:
            values.append(draws.below(counts[relation.target]))
    return values


def name_of(world: World, entity: Entity) -> str:
    """Return the name of a record."""
    return str(world[entity[0]][entity[1]][0])


def value_of(world: World, entity: Entity, relation: str) -> Entity | int:
    """Return what a relation of a record leads to: a record, or a year."""
    kind, index = entity
    for position, item in enumerate(RELATIONS[kind], start=1):
        if item.name == relation:
            value = world[kind][index][position]
            return value if item.target == "year" else (item.target, value)
    raise KeyError(relation)


def entities(world: World) -> list[Entity]:
    """Return all records in a fixed order."""
    return [(kind, index) for kind in KINDS for index in range(len(world[kind]))]


def article(world: World, entity: Entity) -> str:
    """Return the facts of a record as sentences; the wording depends on the record's number."""
    kind, index = entity
    name, values = world[kind][index][0], world[kind][index][1:]
    sentences = []
    for position, (relation, value) in enumerate(zip(RELATIONS[kind], values, strict=True)):
        wording = relation.sentences[(index + position) % len(relation.sentences)]
        is_year = relation.target == "year"
        sentences.append(
            wording.format(name, value if is_year else name_of(world, (relation.target, value)))
        )
    return f"{name} is a {kind}. " + " ".join(sentences)


def random_chain(draws: Draws, world: World, hops: int) -> tuple[Entity, list[str], str | int]:
    """Return a start, ``hops`` relations to follow from it, and the name or year they lead to.

    No record is passed twice. The last relation may lead to a year, the others to records.
    """
    everything = entities(world)
    while True:
        start = draws.pick(everything)
        chain, passed = _walk(draws, world, start, hops)
        if len(chain) == hops and len(set(passed)) == len(passed):
            return start, chain, follow(world, start, chain)


def _walk(draws: Draws, world: World, start: Entity, hops: int) -> tuple[list[str], list[Entity]]:
    chain: list[str] = []
    passed = [start]
    for hop in range(hops):
        choices = [
            relation
            for relation in RELATIONS[passed[-1][0]]
            if hop == hops - 1 or relation.target != "year"
        ]
        relation = draws.pick(choices)
        chain.append(relation.name)
        value = value_of(world, passed[-1], relation.name)
        if not isinstance(value, int):
            passed.append(value)
    return chain, passed


def follow(world: World, start: Entity, chain: list[str]) -> str | int:
    """Return the name or the year that a chain of relations leads to."""
    position: Entity | int = start
    for relation in chain:
        assert not isinstance(position, int)
        position = value_of(world, position, relation)
    return position if isinstance(position, int) else name_of(world, position)


def question_of(world: World, start: Entity, chain: list[str]) -> str:
    """Return the question after the end of a chain, as nested noun phrases."""
    phrase, kind, asks = name_of(world, start), start[0], "Who or what"
    for name in chain:
        relation = next(item for item in RELATIONS[kind] if item.name == name)
        phrase, kind = relation.phrase.format(phrase), relation.target
    if kind in ("year", "town"):
        asks = "What"
    elif kind == "person":
        asks = "Who"
    return f"{asks} is {phrase}?"


def check_world(world: Any) -> World:
    """Return a given world if it is complete.

    Raises:
        TaskError: A kind or a value is missing or wrong; the message names it.
    """
    need(isinstance(world, dict) and set(world) == set(KINDS), f"a world needs {KINDS}", world)
    names: set[str] = set()
    for kind in KINDS:
        records = world[kind]
        need(isinstance(records, list) and 1 <= len(records) <= 1000, f"bad list {kind!r}", records)
        for record in records:
            need(
                isinstance(record, list) and len(record) == 1 + len(RELATIONS[kind]),
                f"a {kind} must be a name and {len(RELATIONS[kind])} values",
                record,
            )
            need(
                is_name(record[0]) and record[0].lower() not in names,
                "names must be different texts",
                record[0],
            )
            names.add(record[0].lower())
            for relation, value in zip(RELATIONS[kind], record[1:], strict=True):
                is_year = relation.target == "year"
                high = 9999 if is_year else len(world[relation.target]) - 1
                need(is_integer(value, 0, high), f"{relation.name!r} of {record[0]!r}", value)
    return world


def check_chain(world: World, start: Any, chain: Any) -> tuple[Entity, list[str]]:
    """Return a given start and chain if the chain can be followed.

    Raises:
        TaskError: The start is no record, or a relation does not exist where it is used.
    """
    is_pair = isinstance(start, list) and len(start) == 2 and start[0] in KINDS
    need(
        is_pair and is_integer(start[1], 0, len(world[start[0]]) - 1),
        "the start must be [kind, index] of a record",
        start,
    )
    need(
        isinstance(chain, list) and 1 <= len(chain) <= 8, "the chain must hold 1 to 8 names", chain
    )
    kind = start[0]
    for name in chain:
        targets = {relation.name: relation.target for relation in RELATIONS.get(kind, ())}
        if not isinstance(name, str) or name not in targets:
            raise TaskError(f"the chain has {name!r:.60} after a {kind}; allowed: {list(targets)}")
        kind = targets[name]
    return (start[0], start[1]), chain
