"""Random databases of two tables, and questions about them with a query that answers each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rllm_envs.tool_use.draws import Draws
from rllm_envs.tool_use.sql_database import Row, run_query

Tables = dict[str, Any]
Question = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Domain:
    """What the two tables are called; ``parents`` have many ``children``."""

    parents: str
    """Table name and plural."""
    parent: str
    """Singular; the child column is ``{parent}_id``."""
    group: str
    """Text column of the parents."""
    groups: tuple[str, ...]
    """Values of ``group``."""
    measure: str
    """Integer column of the parents."""
    measure_range: tuple[int, int]
    """Lowest and highest value of ``measure``."""
    children: str
    """Table name and plural of the children."""
    kind: str
    """Text column of the children."""
    kinds: tuple[str, ...]
    """Values of ``kind``."""
    amount: str
    """Integer column of the children."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


DOMAINS = (
    Domain("customers", "customer", "city", _words("Oslo Lyon Porto Ghent Turin Leeds"),
           "age", (18, 80), "orders", "product",
           _words("lamp chair kettle desk radio mirror"), "price"),
    Domain("teachers", "teacher", "subject", _words("maths history music biology art physics"),
           "salary", (30, 70), "courses", "room",
           _words("north south attic cellar hall annex"), "students"),
    Domain("authors", "author", "country", _words("Kenya Chile Norway India Canada Spain"),
           "birth_year", (1900, 1985), "books", "genre",
           _words("crime poetry travel history fantasy science"), "pages"),
    Domain("drivers", "driver", "depot", _words("east west harbour airport central hill"),
           "age", (21, 65), "trips", "destination",
           _words("Kiel Basel Graz Brno Gdansk Metz"), "distance"),
    Domain("farms", "farm", "region", _words("valley coast plain plateau island delta"),
           "area", (10, 400), "harvests", "crop",
           _words("wheat barley oats beans maize flax"), "tonnes"),
    Domain("doctors", "doctor", "ward", _words("surgery children eyes heart emergency skin"),
           "salary", (50, 120), "visits", "reason",
           _words("fever cough injury checkup vaccine allergy"), "minutes"),
)  # fmt: skip
_FIRST = _words("Ada Boris Cleo Dina Emil Farah Goran Hana Igor Jana Kofi Lena Milo Nora Omar Pia")
_LAST = _words("Abbot Brandt Castro Dupont Eriksen Fischer Grant Haas Ivanov Jansen Kovac Lopez")


def random_tables(draws: Draws, domain: Domain, num_rows: int) -> Tables:
    """Return a parent table and a child table of ``num_rows`` rows.

    There are about a third as many parents as children, at least 5 and at most 30.
    """
    num_parents = min(max(num_rows // 3, 5), 30)
    names = draws.sample([f"{first} {last}" for first in _FIRST for last in _LAST], num_parents)
    low, high = domain.measure_range
    parents = [
        [i + 1, names[i], draws.pick(domain.groups), draws.between(low, high)]
        for i in range(num_parents)
    ]
    children = [
        [
            i + 1,
            draws.between(1, num_parents),
            draws.pick(domain.kinds),
            draws.between(5, 499),
            draws.between(2015, 2024),
        ]
        for i in range(num_rows)
    ]
    parent_columns = [["id", "INTEGER"], ["name", "TEXT"], [domain.group, "TEXT"]]
    child_columns = [["id", "INTEGER"], [f"{domain.parent}_id", "INTEGER"], [domain.kind, "TEXT"]]
    return {
        domain.parents: {
            "columns": [*parent_columns, [domain.measure, "INTEGER"]],
            "rows": parents,
        },
        domain.children: {
            "columns": [*child_columns, [domain.amount, "INTEGER"], ["year", "INTEGER"]],
            "rows": children,
        },
    }


class _Draw:
    """Random values for one question."""

    def __init__(self, draws: Draws, domain: Domain) -> None:
        self.domain = domain
        self.group = draws.pick(domain.groups)
        self.kind = draws.pick(domain.kinds)
        self.year = draws.between(2016, 2023)
        self.limit = draws.between(50, 449)
        self.count = draws.between(1, 4)
        self.join = (
            f"FROM {domain.parents} AS p JOIN {domain.children} AS c ON c.{domain.parent}_id = p.id"
        )


def _count(draw: _Draw) -> Question:
    d = draw.domain
    return (
        f"How many {d.children} have the {d.kind} '{draw.kind}' and a {d.amount} above "
        f"{draw.limit}?",
        f"SELECT COUNT(*) FROM {d.children} WHERE {d.kind} = '{draw.kind}' "
        f"AND {d.amount} > {draw.limit}",
    )


def _total(draw: _Draw) -> Question:
    d = draw.domain
    return (
        f"What is the sum of {d.amount} over all {d.children} of the year {draw.year} or later "
        f"with the {d.kind} '{draw.kind}'?",
        f"SELECT SUM({d.amount}) FROM {d.children} WHERE year >= {draw.year} "
        f"AND {d.kind} = '{draw.kind}'",
    )


def _average(draw: _Draw) -> Question:
    d = draw.domain
    return (
        f"What is the average {d.measure} of the {d.parents} with the {d.group} '{draw.group}', "
        "rounded to 2 decimals?",
        f"SELECT ROUND(AVG({d.measure}), 2) FROM {d.parents} WHERE {d.group} = '{draw.group}'",
    )


def _names(draw: _Draw) -> Question:
    d = draw.domain
    return (
        f"What are the names of all {d.parents} with the {d.group} '{draw.group}'?",
        f"SELECT name FROM {d.parents} WHERE {d.group} = '{draw.group}'",
    )


def _joined_total(draw: _Draw) -> Question:
    d = draw.domain
    return (
        f"What is the sum of {d.amount} over the {d.children} of all {d.parents} with the "
        f"{d.group} '{draw.group}'?",
        f"SELECT SUM(c.{d.amount}) {draw.join} WHERE p.{d.group} = '{draw.group}'",
    )


def _top(draw: _Draw) -> Question:
    d = draw.domain
    totals = (
        f"SELECT SUM({d.amount}) AS total FROM {d.children} WHERE year >= {draw.year} "
        f"GROUP BY {d.parent}_id"
    )
    return (
        f"Which {d.parent} has the largest sum of {d.amount} over the {d.children} of the year "
        f"{draw.year} or later? Give the name, or all names if several share it.",
        f"SELECT p.name {draw.join} WHERE c.year >= {draw.year} GROUP BY p.id "
        f"HAVING SUM(c.{d.amount}) = (SELECT MAX(total) FROM ({totals}))",
    )


def _many(draw: _Draw) -> Question:
    d = draw.domain
    return (
        f"How many {d.parents} have more than {draw.count} {d.children} each?",
        f"SELECT COUNT(*) FROM (SELECT {d.parent}_id FROM {d.children} GROUP BY {d.parent}_id "
        f"HAVING COUNT(*) > {draw.count})",
    )


def _without(draw: _Draw) -> Question:
    d = draw.domain
    return (
        f"What are the names of the {d.parents} without any {d.children} of the {d.kind} "
        f"'{draw.kind}'?",
        f"SELECT name FROM {d.parents} WHERE id NOT IN (SELECT {d.parent}_id FROM {d.children} "
        f"WHERE {d.kind} = '{draw.kind}')",
    )


def _above_average(draw: _Draw) -> Question:
    d = draw.domain
    return (
        f"How many {d.children} of the {d.kind} '{draw.kind}' have a {d.amount} above the average "
        f"{d.amount} of all {d.children}?",
        f"SELECT COUNT(*) FROM {d.children} WHERE {d.kind} = '{draw.kind}' AND {d.amount} > "
        f"(SELECT AVG({d.amount}) FROM {d.children})",
    )


def _per_group(draw: _Draw) -> Question:
    d = draw.domain
    return (
        f"For each {d.group} with at least one of the {d.children}: what is the {d.group} and how "
        f"many {d.children} belong to its {d.parents}?",
        f"SELECT p.{d.group}, COUNT(*) {draw.join} GROUP BY p.{d.group}",
    )


EASY: tuple[Callable[[_Draw], Question], ...] = (_count, _total, _average, _names)
"""Questions about one table."""
HARD: tuple[Callable[[_Draw], Question], ...] = (
    *(_joined_total, _top, _many, _without, _above_average, _per_group),
)
"""Questions that need a join, groups or a query inside a query."""
LEVELS = {"easy": EASY, "hard": HARD, "mixed": (*EASY, *HARD)}


def random_question(draws: Draws, domain: Domain, tables: Tables, level: str) -> Question:
    """Return a question in words and a query whose result answers it and is not empty."""
    while True:
        draw = _Draw(draws, domain)
        question, query = draws.pick(LEVELS[level])(draw)
        if has_answer(run_query(tables, query)[1]):
            return question, query


def has_answer(rows: list[Row]) -> bool:
    """Return whether a result holds rows and no missing value."""
    return bool(rows) and all(value is not None for row in rows for value in row)
