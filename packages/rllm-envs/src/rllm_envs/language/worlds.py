"""Small made-up worlds of people, companies and towns, and questions that chain their facts.

Everything is invented, so that no answer can be known beforehand.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

_FIRST = (
    *("Ada", "Alma", "Anton", "Bela", "Boris", "Carla", "Cyril", "Dora", "Edgar", "Elsa", "Emil"),
    *("Fanny", "Felix", "Greta", "Hugo", "Ida", "Ivan", "Jonas", "Karin", "Klara", "Leo", "Lotte"),
    *("Marta", "Milan", "Nora", "Oskar", "Paula", "Petra", "Ralf", "Rosa", "Selma", "Signe"),
    *("Sven", "Tilda", "Tomas", "Ulla", "Vera", "Viktor", "Wanda", "Zoltan"),
)
_SURNAME_STARTS = (
    *("Ard", "Bel", "Brim", "Cor", "Dal", "Dorn", "Eld", "Fen", "Gar", "Hal", "Hest", "Jor"),
    *("Kal", "Lind", "Mor", "Nest", "Ost", "Pell", "Quin", "Rav", "Sel", "Thorn", "Vand", "Wex"),
)
_SURNAME_ENDS = (
    *("berg", "by", "dahl", "ero", "feld", "gard", "holm", "ik", "ko", "lund", "mann", "ova"),
    *("quist", "rup", "sen", "ström"),
)
_TOWN_STARTS = (
    *("Alder", "Birk", "Clay", "Dun", "Elm", "Frost", "Glen", "Hart", "Iron", "Kings", "Lark"),
    *("Marl", "North", "Oak", "Pine", "Red", "Salt", "Stone", "Thistle", "Up", "Vale", "Wind"),
)
_TOWN_ENDS = ("bridge", "brook", "bury", "cliff", "ford", "ham", "mouth", "port", "ton", "wick")
_COMPANY_STARTS = (
    *("Amber", "Arrow", "Blue", "Bright", "Cedar", "Copper", "Crown", "Delta", "Eagle", "Falcon"),
    *("Golden", "Granite", "Harbour", "Indigo", "Juniper", "Lantern", "Meridian", "Orchid"),
    *("Pioneer", "Polar", "Quartz", "River", "Silver", "Summit", "Velvet", "Willow"),
)
_COMPANY_ENDS = (
    *("Brothers", "Foundry", "Mills", "Partners", "Trading", "Union", "Workshop", "Works"),
)
_RIVERS = (
    *("Arl", "Brenn", "Corva", "Dessa", "Ester", "Flood", "Gritta", "Hone", "Isk", "Jarra"),
    *("Kell", "Lom", "Mirre", "Nadder", "Orin", "Pesh", "Ruda", "Sorne", "Tamm", "Ulse"),
)
_REGIONS = (
    *("the Eastern Hills", "the High Moor", "the Lake District", "the Long Valley"),
    *("the Northern Coast", "the Southern Plain", "the Western Isles", "the Black Forest"),
)
_JOBS = (
    *("accountant", "architect", "carpenter", "chemist", "designer", "driver"),
    *("electrician", "engineer", "gardener", "librarian", "painter", "pilot", "printer"),
    *("surveyor", "translator", "weaver"),
)
_PETS = (
    *("canary", "cat", "ferret", "goat", "hamster", "hedgehog", "horse", "lizard"),
    *("parrot", "rabbit", "spaniel", "terrier", "tortoise"),
)
_PRODUCTS = (
    *("bicycles", "candles", "carpets", "clocks", "furniture", "glassware", "lamps"),
    *("musical instruments", "paper", "pottery", "sails", "shoes", "toys", "umbrellas"),
)

MAX_HOPS = 4


@dataclass(frozen=True, slots=True)
class Relation:
    """One kind of fact. Written in ``RELATIONS``."""

    kind: str
    """Kind of record that has it: "person", "company" or "town"."""
    field: str
    """Field of the record."""
    target: str
    """Kind of record that it leads to; empty where it leads to a value."""
    phrase: str
    """How the target is described; empty where it is no record."""
    question: str
    """How it is asked for."""


RELATIONS = (
    Relation("person", "town", "town", "the town where {} lives", "In which town does {} live?"),
    Relation(
        "person", "company", "company", "the company that {} works for",
        "For which company does {} work?",
    ),
    Relation("person", "job", "", "", "What is the job of {}?"),
    Relation("person", "pet", "", "", "What animal does {} keep?"),
    Relation("person", "born", "", "", "In which year was {} born?"),
    Relation("company", "seat", "town", "the town where {} is based", "In which town is {} based?"),
    Relation("company", "founder", "person", "the founder of {}", "Who founded {}?"),
    Relation("company", "product", "", "", "What does {} make?"),
    Relation("company", "founded", "", "", "In which year was {} founded?"),
    Relation("town", "river", "", "", "Which river runs through {}?"),
    Relation("town", "region", "", "", "In which region is {}?"),
)  # fmt: skip
"""All kinds of facts."""

_TEXTS = {
    "person": "{name} is a {job} who was born in {born} and lives in {town}. {name} works for "
    "{company} and keeps a {pet}.",
    "company": "{name} makes {product}. It was founded in {founded} by {founder} and is based in "
    "{seat}.",
    "town": "{name} is a town in {region}. The river {river} runs through it.",
}


@dataclass(frozen=True, slots=True)
class ChainedQuestion:
    """A question about a world. Made by ``random_question``, read by the environments."""

    question: str
    """What is asked."""
    answer: str
    """A name or a value."""
    stations: tuple[str, ...]
    """Names of the records whose facts lead to the answer, in order."""


World = dict[str, dict[str, dict[str, Any]]]
"""Records by kind and name."""


def random_world(rng: np.random.Generator, num_people: int) -> World:
    """Return a world of ``num_people`` people, a third as many companies and half as many towns."""
    towns = _names(rng, _TOWN_STARTS, _TOWN_ENDS, "", max(2, num_people // 2))
    companies = _names(rng, _COMPANY_STARTS, _COMPANY_ENDS, " ", max(2, num_people // 3))
    surnames = _names(rng, _SURNAME_STARTS, _SURNAME_ENDS, "", num_people)
    people = [f"{_one(rng, _FIRST)} {surname}" for surname in surnames]
    return {
        "person": {
            name: {
                "name": name,
                "town": _one(rng, towns),
                "company": _one(rng, companies),
                "job": _one(rng, _JOBS),
                "pet": _one(rng, _PETS),
                "born": str(int(rng.integers(1940, 2000))),
            }
            for name in people
        },
        "company": {
            name: {
                "name": name,
                "seat": _one(rng, towns),
                "founder": _one(rng, people),
                "product": _one(rng, _PRODUCTS),
                "founded": str(int(rng.integers(1960, 2020))),
            }
            for name in companies
        },
        "town": {
            name: {"name": name, "river": _one(rng, _RIVERS), "region": _one(rng, _REGIONS)}
            for name in towns
        },
    }


def passages_of(world: World) -> list[dict[str, str]]:
    """Return one passage, with a title and a text, for each record of a world."""
    return [
        {"title": name, "text": _TEXTS[kind].format(**record)}
        for kind, records in world.items()
        for name, record in records.items()
    ]


def random_question(rng: np.random.Generator, world: World, hops: int) -> ChainedQuestion:
    """Return a question that chains ``hops`` facts, 1 to ``MAX_HOPS``, and passes no record twice.

    The world has at least four people, or there may be no such question.
    """
    while True:
        found = _walk(rng, world, hops)
        if found is not None:
            return found


def _walk(rng: np.random.Generator, world: World, hops: int) -> ChainedQuestion | None:
    kind, name = "person", _one(rng, list(world["person"]))
    stations, described = [name], name
    for hop in range(hops):
        is_last = hop == hops - 1
        known = [r for r in RELATIONS if r.kind == kind and (is_last or r.target)]
        if not known:
            return None
        relation = known[int(rng.integers(len(known)))]
        value = world[kind][name][relation.field]
        if value in stations:
            return None
        if is_last:
            return ChainedQuestion(relation.question.format(described), value, tuple(stations))
        kind, name, described = relation.target, value, relation.phrase.format(described)
        stations.append(name)
    return None


def _names(
    rng: np.random.Generator, starts: tuple[str, ...], ends: tuple[str, ...], gap: str, count: int
) -> list[str]:
    order = rng.choice(len(starts) * len(ends), size=count, replace=False)
    return [f"{starts[int(i) // len(ends)]}{gap}{ends[int(i) % len(ends)]}" for i in order]


def _one(rng: np.random.Generator, items: Any) -> Any:
    return items[int(rng.integers(len(items)))]
