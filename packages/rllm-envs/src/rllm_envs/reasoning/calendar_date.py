"""``rllm/CalendarDate-v0``: weekdays, dates and the days between them."""

import re
from collections.abc import Sequence
from datetime import date, timedelta

from rllm_envs.errors import TaskError, excerpt
from rllm_envs.reasoning.answers import plain_text, read_integer, read_word
from rllm_envs.reasoning.draws import draw_integer, draw_item
from rllm_envs.reasoning.fields import (
    choice_field,
    integer_argument,
    integer_field,
    names_argument,
)
from rllm_envs.reasoning.solved import SolvedEnv
from rllm_envs.tasks import Task

KINDS = ("weekday", "shifted_date", "days_between", "nth_weekday")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
FIRST_YEAR, LAST_YEAR = 1900, 2099
MAX_SHIFT = 36_525
_ORDINALS = ("first", "second", "third", "fourth")
_ISO = re.compile(r"(\d{4})\s*-\s*(\d{1,2})\s*-\s*(\d{1,2})")
_DAY_FIRST = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?(?: of)? ([a-z]+),? (\d{4})")
_MONTH_FIRST = re.compile(r"([a-z]+) (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})")


class CalendarDateEnv(SolvedEnv):
    r"""Compute with dates of the Gregorian calendar.

    ## Description
    Four kinds of question: ``weekday`` (of a date), ``shifted_date`` (some days after or before a
    date), ``days_between`` two dates, and ``nth_weekday`` (the date of, say, the third Tuesday of a
    month).

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the answer: the
    name of a weekday, a date such as ``2031-05-20`` (or 20 May 2031), or a number of days.

    ## Observation Space
    One question. The last observation is empty.

    ## Starting State
    A uniform kind; dates uniform over the years 1900 to 2099, numbers of days uniform from 1 to
    ``max_days``.

    ## Rewards
    1 for the right answer, 0 otherwise.

    ## Episode End
    Terminates after one action.

    ## Information
    ``success``, ``invalid`` (no box in the action), ``turn``, ``turns_left``.

    ## Arguments
    ``kinds`` (list of kinds, default all), ``max_days`` (10 to 36,525, default 400), ``split``
    ("train", "test" or "all").
    Task: ``{"kind": "weekday", "date": "2031-05-20"}``, ``{"kind": "shifted_date", "date": ...,
    "days": -30}``, ``{"kind": "days_between", "date": ..., "end": ...}`` or ``{"kind":
    "nth_weekday", "month": "2031-05", "weekday": "Tuesday", "nth": 3}``; ``answer`` optional.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        kinds: Sequence[str] | None = None,
        max_days: int = 400,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(split=split, render_mode=render_mode)
        self.kinds = names_argument("kinds", kinds, KINDS)
        self.max_days = integer_argument("max_days", max_days, 10, MAX_SHIFT)

    def draw(self) -> Task:
        """Return a random question."""
        rng = self.np_random
        kind = draw_item(rng, self.kinds)
        if kind == "nth_weekday":
            month = f"{draw_integer(rng, FIRST_YEAR, LAST_YEAR)}-{draw_integer(rng, 1, 12):02}"
            weekday, nth = draw_item(rng, WEEKDAYS), draw_integer(rng, 1, 4)
            return {"kind": kind, "month": month, "weekday": weekday, "nth": nth}
        first, last = date(FIRST_YEAR, 1, 1), date(LAST_YEAR, 12, 31)
        day = first + timedelta(draw_integer(rng, 0, (last - first).days))
        task: Task = {"kind": kind, "date": day.isoformat()}
        if kind == "weekday":
            return task
        days = draw_integer(rng, 1, self.max_days) * draw_item(rng, (1, -1))
        if kind == "shifted_date":
            return {**task, "days": days}
        start, end = sorted((day, day + timedelta(days)))
        return {"kind": kind, "date": start.isoformat(), "end": end.isoformat()}

    def check(self, task: Task) -> None:
        """Check the kind and its dates."""
        kind = choice_field(task, "kind", KINDS)
        if kind == "nth_weekday":
            _date_field({"month": f"{task.get('month')}-01"}, "month")
            choice_field(task, "weekday", WEEKDAYS)
            integer_field(task, "nth", 1, 4)
            return
        start = _date_field(task, "date")
        if kind == "shifted_date":
            integer_field(task, "days", -MAX_SHIFT, MAX_SHIFT)
        if kind == "days_between" and _date_field(task, "end") < start:
            raise TaskError(f"'end' must not be before 'date', got {excerpt(task['end'])}")

    def question(self, task: Task) -> str:
        """Return the question."""
        kind = task["kind"]
        if kind == "nth_weekday":
            month = date.fromisoformat(f"{task['month']}-01")
            return (
                f"What is the date of the {_ORDINALS[task['nth'] - 1]} {task['weekday']} of "
                f"{MONTHS[month.month - 1]} {month.year}? Give it in \\boxed{{}} as "
                "year-month-day, such as 2001-12-31."
            )
        day = _written(task["date"])
        if kind == "weekday":
            return f"What day of the week is {day}? Give its name in \\boxed{{}}."
        if kind == "days_between":
            return (
                f"How many days is it from {day} to {_written(task['end'])} (the difference of the "
                "dates)? Give the number in \\boxed{}."
            )
        days = task["days"]
        unit = "day" if abs(days) == 1 else "days"
        direction = "before" if days < 0 else "after"
        return (
            f"What date is {abs(days)} {unit} {direction} {day}? Give it in \\boxed{{}} as "
            "year-month-day, such as 2001-12-31."
        )

    def solve(self, task: Task) -> str:
        """Return a weekday, a date as year-month-day or a number of days."""
        kind = task["kind"]
        if kind == "nth_weekday":
            first = date.fromisoformat(f"{task['month']}-01")
            ahead = (WEEKDAYS.index(task["weekday"]) - first.weekday()) % 7
            return (first + timedelta(ahead + 7 * (task["nth"] - 1))).isoformat()
        day = date.fromisoformat(task["date"])
        if kind == "weekday":
            return WEEKDAYS[day.weekday()]
        if kind == "shifted_date":
            return (day + timedelta(task["days"])).isoformat()
        return str((date.fromisoformat(task["end"]) - day).days)

    def grade(self, task: Task, answer: str) -> bool:
        """Return whether an answer is the right weekday, date or number."""
        if task["kind"] == "weekday":
            return read_word(answer) == task["answer"].lower()
        if task["kind"] == "days_between":
            return read_integer(answer) == int(task["answer"])
        return read_date(answer) == date.fromisoformat(task["answer"])


def read_date(answer: str) -> date | None:
    """Return the date written as 2031-05-20, 20 May 2031 or May 20, 2031; None for others."""
    text = plain_text(answer).lower().strip(" .")
    text = text.removeprefix("the ")
    for weekday in WEEKDAYS:
        text = text.removeprefix(f"{weekday.lower()}, ")
    names = [month.lower() for month in MONTHS]
    if match := _ISO.fullmatch(text):
        year, month, day = map(int, match.groups())
    elif (match := _DAY_FIRST.fullmatch(text)) and match.group(2) in names:
        day, month, year = int(match[1]), names.index(match[2]) + 1, int(match[3])
    elif (match := _MONTH_FIRST.fullmatch(text)) and match.group(1) in names:
        month, day, year = names.index(match[1]) + 1, int(match[2]), int(match[3])
    else:
        return None
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _written(iso: str) -> str:
    """Return a date in words: ``20 May 2031``."""
    day = date.fromisoformat(iso)
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def _date_field(task: Task, name: str) -> date:
    value = task.get(name)
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value, re.ASCII):
        try:
            day = date.fromisoformat(value)
        except ValueError:
            day = None
        if day is not None and FIRST_YEAR <= day.year <= LAST_YEAR:
            return day
    raise TaskError(
        f"{name!r} must be a date of {FIRST_YEAR} to {LAST_YEAR} such as 2031-05-20, got "
        f"{excerpt(value)}"
    )
