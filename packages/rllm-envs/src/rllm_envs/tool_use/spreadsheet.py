"""``rllm/Spreadsheet-v0``: fill cells with formulas that stay right when the data change."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rllm_envs.core import Response
from rllm_envs.tasks import Task
from rllm_envs.tool_use.command_env import CommandEnv
from rllm_envs.tool_use.draws import Draws
from rllm_envs.tool_use.fields import check_integer, is_integer, is_name, list_field, need
from rllm_envs.tool_use.sheet import MAX_FORMULA_LENGTH, Sheet, cells_of, shifted
from rllm_envs.tool_use.sheet_functions import FUNCTIONS, FormulaError

Row = list[Any]
"""Item, region, quantity, price."""
HEADERS = ("item", "region", "quantity", "price")
REGIONS = ("north", "south", "east", "west")
ITEMS = ("tea", "salt", "rope", "soap", "nails", "paper", "glue", "wax", "ink", "yarn", "oats")
_SET = re.compile(r"(set|fill)\s+([a-z]\d{1,2}(?::[a-z]\d{1,2})?)(?:\s+(.*))?", re.I | re.S)
_SHOW = re.compile(r"show\s+([a-z]\d{1,2}(?::[a-z]\d{1,2})?)", re.I)


@dataclass(frozen=True, slots=True)
class Goal:
    """One thing to compute; ``words`` and ``formula`` are formatted with value and last row."""

    words: str
    """What is wanted."""
    formula: str
    """A formula of the oracle, for row 2 where a column is filled."""
    compute: Callable[[list[Row], Any], Any]
    """The values of the column, or the one value, from the rows."""
    is_column: bool = False
    """Whether each row has a value."""


GOALS = {
    "revenue": Goal("quantity times price of the row", "=C2*D2",
                    lambda rows, _: [row[2] * row[3] for row in rows], True),
    "flag": Goal("the text yes where the quantity is more than {value}, and no elsewhere",
                 '=IF(C2>{value},"yes","no")',
                 lambda rows, v: ["yes" if row[2] > v else "no" for row in rows], True),
    "share": Goal("the quantity of the row divided by the sum of all quantities",
                  "=C2/SUM($C$2:$C${last})",
                  lambda rows, _: [row[2] / sum(r[2] for r in rows) for row in rows], True),
    "total": Goal("the sum of all quantities", "=SUM(C2:C{last})",
                  lambda rows, _: sum(row[2] for row in rows)),
    "mean": Goal("the average price (of the rows, without regard to quantities)",
                 "=AVERAGE(D2:D{last})", lambda rows, _: sum(r[3] for r in rows) / len(rows)),
    "spread": Goal("the highest price minus the lowest price", "=MAX(D2:D{last})-MIN(D2:D{last})",
                   lambda rows, _: max(r[3] for r in rows) - min(r[3] for r in rows)),
    "in_region": Goal("the sum of the quantities of the region {value}",
                      '=SUMIF(B2:B{last},"{value}",C2:C{last})',
                      lambda rows, v: sum(row[2] for row in rows if row[1] == v)),
    "count": Goal("the number of rows of the region {value}", '=COUNTIF(B2:B{last},"{value}")',
                  lambda rows, v: sum(row[1] == v for row in rows)),
    "turnover": Goal("the sum over all rows of quantity times price",
                     "=SUMPRODUCT(C2:C{last},D2:D{last})",
                     lambda rows, _: sum(row[2] * row[3] for row in rows)),
}  # fmt: skip
"""All kinds of goals by name."""


class SpreadsheetEnv(CommandEnv):
    r"""Fill cells of a spreadsheet with formulas.

    ## Description
    Columns A to D hold a table (item, region, quantity, price). The agent is asked to fill columns
    E to G or the cells H1 to H4 with formulas: products, shares, conditions, sums, averages.
    At the end the sheet is computed again with other data, so that numbers written by hand fail.

    ## Action Space
    Any text outside of ``<think>...</think>``. ``<command>set H1 =SUM(C2:C9)</command>`` writes
    into a cell, ``fill E2:E9 =C2*D2`` into each cell of a range, with references moved along as in
    a copy (``$`` keeps them), ``show A1:D9`` shows values, ``done`` ends the task; the last
    complete command counts.

    ## Observation Space
    First the task, the commands and the table. ``set`` and ``fill`` are answered with the values
    that result, ``show`` with lines of values separated by " | ". Wrong formulas show an error such
    as #DIV/0!, #NAME?, #REF!, #VALUE! or #CYCLE!.

    ## Starting State
    ``num_rows`` random rows and ``num_goals`` different goals.

    ## Rewards
    1 if, with the data shown and with three changed tables, all wanted cells hold the right values
    (numbers within a relative error of 1e-6), 0 otherwise.

    ## Episode End
    Terminates with ``done``. Truncates after ``max_turns`` actions.

    ## Information
    ``success``, ``invalid`` (no command, or one that is not understood), ``turn``, ``turns_left``.

    ## Arguments
    ``num_rows`` (3 to 30, default 8), ``num_goals`` (1 to 6, default 2), ``max_turns`` (8 to 1000,
    default 15), ``split`` ("train", "test" or "all").
    Task: ``{"rows": [["tea", "north", 12, 30], ...], "goals": [{"kind": "total", "place": "H1",
    "value": ""}, ...]}``; kinds are those of ``GOALS``, the place of a column is its letter.

    ## Version History
    * v0: Initial version
    """

    hint = "Write one command, such as <command>set H1 =SUM(C2:C9)</command>."

    def __init__(
        self,
        *,
        num_rows: int = 8,
        num_goals: int = 2,
        max_turns: int = 15,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        check_integer("num_rows", num_rows, 3, 30)
        check_integer("num_goals", num_goals, 1, 6)
        check_integer("max_turns", max_turns, 8, 1000)
        super().__init__(max_turns=max_turns, split=split, render_mode=render_mode)
        self.num_rows = num_rows
        self.num_goals = num_goals
        self._sheet = Sheet()
        self._rows: list[Row] = []
        self._goals: list[dict[str, Any]] = []

    def generate_task(self) -> Task:
        """Return random rows and goals."""
        draws = Draws(self.np_random)
        rows = [
            [draws.pick(ITEMS), draws.pick(REGIONS), draws.between(1, 60), draws.between(2, 90)]
            for _ in range(self.num_rows)
        ]
        columns, cells = iter("EFG"), iter(("H1", "H2", "H3", "H4"))
        goals = []
        kinds = draws.shuffled(tuple(GOALS))
        singles = [kind for kind in kinds if not GOALS[kind].is_column][:4]
        kinds = [kind for kind in kinds if GOALS[kind].is_column or kind in singles]
        for kind in kinds[: self.num_goals]:
            value: Any = draws.between(10, 50) if kind == "flag" else ""
            if kind in ("in_region", "count"):
                value = draws.pick(rows)[1]
            place = next(columns if GOALS[kind].is_column else cells)
            goals.append({"kind": kind, "place": place, "value": value})
        return {"rows": rows, "goals": goals}

    def validate_task(self, task: Task) -> Task:
        """Check rows, and kind, place and value of each goal."""
        for row in list_field(task, "rows", 1, 30):
            is_row = isinstance(row, list) and len(row) == 4 and is_name(row[0], 30)
            is_row = is_row and row[1] in REGIONS and all(is_integer(n, 1, 10**6) for n in row[2:])
            need(is_row, "a row must be item, region, quantity and price (1 to 1000000)", row)
        places: set[str] = set()
        for goal in list_field(task, "goals", 1, 7):
            is_goal = isinstance(goal, dict) and set(goal) == {"kind", "place", "value"}
            need(
                is_goal and goal["kind"] in tuple(GOALS),
                f"a goal needs kind ({', '.join(GOALS)}), place and value",
                goal,
            )
            kind, place, value = goal["kind"], goal["place"], goal["value"]
            allowed = ("E", "F", "G") if GOALS[kind].is_column else ("H1", "H2", "H3", "H4")
            need(place in allowed and place not in places, f"{kind}: place of {allowed}", place)
            places.add(place)
            is_valued = value == ""
            if kind == "flag":
                is_valued = is_integer(value, 0, 10**6)
            elif kind in ("in_region", "count"):
                is_valued = value in REGIONS
            need(is_valued, f"the value of a goal {kind!r} must fit it", value)
        return task

    def begin(self, task: Task) -> str:
        """Return the goals, the commands and the table."""
        self._rows, self._goals = task["rows"], task["goals"]
        self._sheet = Sheet(_table(self._rows))
        last = len(self._rows) + 1
        lines = []
        for number, goal in enumerate(self._goals, 1):
            words = GOALS[goal["kind"]].words.format(value=goal["value"])
            place = goal["place"]
            is_column = GOALS[goal["kind"]].is_column
            where = f"in each of {place}2 to {place}{last}" if is_column else f"in {place}"
            lines.append(f"{number}. {where}: {words}")
        return "\n".join(
            (
                "Put formulas into a spreadsheet that give:",
                *lines,
                "Write one command per turn: <command>set H1 =SUM(C2:C9)</command>, <command>fill "
                "E2:E9 =C2*D2</command> (references move along, $C$2 stays), <command>show "
                "A1:D9</command>, and <command>done</command> at the end. The values must stay "
                "right when quantities, prices and regions change. Functions: "
                f"{', '.join(FUNCTIONS)}; signs: + - * / & = <> < > <= >=. You have "
                f"{self.max_turns} turns.",
                self._view(f"A1:D{last}"),
            )
        )

    def run_command(self, command: str) -> Response:
        """Write into cells, show them, or end the task."""
        if command.lower() == "done":
            return Response("", float(self._is_right()), terminated=True)
        show = _SHOW.fullmatch(command)
        match = _SET.fullmatch(command)
        place = (show or match or {1: ""})[1 if show else 2] if show or match else ""
        names = cells_of(place)
        if names is None:
            return Response(f"That is no command. {self.hint}", info={"invalid": True})
        if match:
            problem = self._write(names, (match[3] or "").strip(), match[1].lower() == "fill")
            if problem:
                return Response(f"Error: {problem}")
        return Response(self._view(place))

    def oracle_action(self) -> str:
        """Write the formula of the first goal that does not hold yet, and then end."""
        last = len(self._rows) + 1
        for goal in self._goals:
            if self._holds(goal, self._rows):
                continue
            kind, place = GOALS[goal["kind"]], goal["place"]
            formula = kind.formula.format(value=goal["value"], last=last)
            verb, where = ("fill", f"{place}2:{place}{last}") if kind.is_column else ("set", place)
            return self.tagged(f"{verb} {where} {formula}")
        return self.tagged("done")

    def _write(self, names: list[list[str]], content: str, is_fill: bool) -> str:
        """Put content into cells and return what is wrong, or the empty text."""
        last = len(self._rows) + 1
        cells = [name for row in names for name in row]
        if len(cells) > 1 and not is_fill:
            return "set writes into one cell; use fill for a range"
        if any(name[0] in "ABCD" and int(name[1:]) <= last for name in cells):
            return f"the table A1:D{last} is protected"
        if len(content) > MAX_FORMULA_LENGTH:
            return f"a cell holds at most {MAX_FORMULA_LENGTH} characters"
        for down, row in enumerate(names):
            for right, name in enumerate(row):
                is_formula = content.startswith("=")
                self._sheet.set(name, shifted(content, down, right) if is_formula else content)
        return ""

    def _view(self, place: str) -> str:
        self._sheet.forget()
        names = cells_of(place) or []
        if sum(map(len, names)) == 1:
            return f"{names[0][0]}: {self._sheet.shown(names[0][0])}"
        return "\n".join(
            f"{row[0][1:]}: " + " | ".join(self._sheet.shown(name)[:100] for name in row)
            for row in names
        )

    def _is_right(self) -> bool:
        tables = [self._rows, *(_changed(self._rows, number) for number in (1, 2, 3))]
        return all(self._holds(goal, rows) for rows in tables for goal in self._goals)

    def _holds(self, goal: dict[str, Any], rows: list[Row]) -> bool:
        """Return whether the cells of a goal hold the right values for some rows."""
        kind = GOALS[goal["kind"]]
        expected = kind.compute(rows, goal["value"])
        place = goal["place"]
        names = [f"{place}{n}" for n in range(2, len(rows) + 2)] if kind.is_column else [place]
        sheet = Sheet(self._sheet.cells | _table(rows))
        values = expected if kind.is_column else [expected]
        return all(_same(sheet, name, value) for name, value in zip(names, values, strict=True))


def _table(rows: list[Row]) -> dict[str, str]:
    lines = [HEADERS, *rows]
    return {
        f"{letter}{number}": str(value)
        for number, line in enumerate(lines, 1)
        for letter, value in zip("ABCD", line, strict=True)
    }


def _changed(rows: list[Row], number: int) -> list[Row]:
    """Return rows with other quantities, prices and regions, always the same ones."""
    regions = [row[1] for row in rows]
    return [
        [
            row[0],
            REGIONS[(REGIONS.index(regions[index - number]) + number) % len(REGIONS)],
            (row[2] * (number + 2) + 7 * index) % 97 + 1,
            (row[3] * (number + 4) + 11 * index) % 89 + 1,
        ]
        for index, row in enumerate(rows)
    ]


def _same(sheet: Sheet, name: str, expected: float | str) -> bool:
    try:
        value = sheet.value(name)
    except FormulaError:
        return False
    if isinstance(expected, str):
        return isinstance(value, str) and value.strip().lower() == expected
    return isinstance(value, float) and math.isclose(value, expected, rel_tol=1e-6)
