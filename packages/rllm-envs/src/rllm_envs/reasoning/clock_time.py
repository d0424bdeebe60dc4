"""``rllm/ClockTime-v0``: times of day, durations and the hands of a clock."""

import re
from collections.abc import Sequence
from fractions import Fraction

from rllm_envs.errors import TaskError, excerpt
from rllm_envs.grading.exact import exact_value
from rllm_envs.reasoning.answers import plain_text
from rllm_envs.reasoning.draws import draw_integer, draw_item
from rllm_envs.reasoning.fields import (
    choice_field,
    integer_argument,
    integer_field,
    names_argument,
)
from rllm_envs.reasoning.solved import SolvedEnv
from rllm_envs.tasks import Task

KINDS = ("after", "before", "duration", "angle")
DAY = 24 * 60
MAX_MINUTES = 7 * DAY

_TIME = re.compile(r"(\d{1,2})\s*[:.h]\s*(\d{2})\s*([ap])?\.?\s*(?:m\.?)?")


class ClockTimeEnv(SolvedEnv):
    r"""Compute with times of day.

    ## Description
    Four kinds of question: what time it is some hours and minutes ``after`` or ``before`` a time,
    the ``duration`` from one time to the next occurrence of another, and the smaller ``angle``
    between the hands of a clock.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the answer: a
    time such as ``16:05`` (or 4:05 pm), a duration such as ``7:20`` (hours and minutes), or an
    angle in degrees.

    ## Observation Space
    One question. The last observation is empty.

    ## Starting State
    A uniform kind; times uniform over the minutes of a day, durations uniform from 1 minute to
    ``max_minutes``.

    ## Rewards
    1 for the right answer, 0 otherwise.

    ## Episode End
    Terminates after one action.

    ## Information
    ``success``, ``invalid`` (no box in the action), ``turn``, ``turns_left``.

    ## Arguments
    ``kinds`` (list of kinds, default all), ``max_minutes`` (60 to 10,080, default 1,440), ``split``
    ("train", "test" or "all").
    Task: ``{"kind": "after", "time": "09:40", "minutes": 95}`` (also "before"), ``{"kind":
    "duration", "time": "22:15", "end": "05:35"}`` or ``{"kind": "angle", "time": "03:30"}``;
    ``answer`` optional.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        kinds: Sequence[str] | None = None,
        max_minutes: int = DAY,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(split=split, render_mode=render_mode)
        self.kinds = names_argument("kinds", kinds, KINDS)
        self.max_minutes = integer_argument("max_minutes", max_minutes, 60, MAX_MINUTES)

    def draw(self) -> Task:
        """Return a random question."""
        rng = self.np_random
        kind = draw_item(rng, self.kinds)
        task: Task = {"kind": kind, "time": _clock(draw_integer(rng, 0, DAY - 1))}
        if kind in ("after", "before"):
            return {**task, "minutes": draw_integer(rng, 1, self.max_minutes)}
        if kind == "duration":
            ahead = draw_integer(rng, 1, DAY - 1)
            return {**task, "end": _clock((_minutes(task["time"]) + ahead) % DAY)}
        return task

    def check(self, task: Task) -> None:
        """Check the kind and its times."""
        kind = choice_field(task, "kind", KINDS)
        for name in ("time", "end") if kind == "duration" else ("time",):
            value = task.get(name)
            if not isinstance(value, str) or not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", value):
                raise TaskError(f"{name!r} must be a time such as 09:40, got {excerpt(value)}")
        if kind in ("after", "before"):
            integer_field(task, "minutes", 1, MAX_MINUTES)

    def question(self, task: Task) -> str:
        """Return the question."""
        kind, time = task["kind"], task["time"]
        if kind == "angle":
            return (
                f"What is the smaller angle between the hour hand and the minute hand of a clock "
                f"at {time}? Give it in degrees in \\boxed{{}}."
            )
        if kind == "duration":
            return (
                f"How long is it from {time} to the next {task['end']} (24-hour clock)? Give hours "
                "and minutes in \\boxed{}, such as 3:05."
            )
        hours, minutes = divmod(task["minutes"], 60)
        parts = [
            f"{number} {unit}{'' if number == 1 else 's'}"
            for number, unit in ((hours, "hour"), (minutes, "minute"))
            if number
        ]
        return (
            f"What time is it {' and '.join(parts)} {kind} {time} (24-hour clock)? Give the time "
            "in \\boxed{}, such as 17:05."
        )

    def solve(self, task: Task) -> str:
        """Return a time, a duration as hours:minutes, or an angle in degrees."""
        kind, start = task["kind"], _minutes(task["time"])
        if kind == "angle":
            # In a minute the hands move by 6 and by 1/2 degrees.
            apart = abs(Fraction(start % 720, 2) - 6 * (start % 60))
            angle = min(apart, 360 - apart)
            return str(angle.numerator) if angle.denominator == 1 else f"{float(angle)}"
        if kind == "duration":
            hours, minutes = divmod((_minutes(task["end"]) - start) % DAY, 60)
            return f"{hours}:{minutes:02}"
        sign = 1 if kind == "after" else -1
        return _clock((start + sign * task["minutes"]) % DAY)

    def grade(self, task: Task, answer: str) -> bool:
        """Return whether an answer is the right time, duration or angle."""
        if task["kind"] == "angle":
            text = plain_text(answer).lower().removesuffix("degrees").removesuffix("degree")
            return exact_value(text.strip()) == Fraction(task["answer"])
        given = _read_time(answer, allows_half_days=task["kind"] != "duration")
        return given is not None and given == _read_time(task["answer"])


def _minutes(time: str) -> int:
    """Return the minutes since midnight."""
    return 60 * int(time[:2]) + int(time[3:])


def _clock(minutes: int) -> str:
    """Return a time of day as ``09:40``."""
    return f"{minutes // 60:02}:{minutes % 60:02}"


def _read_time(answer: str, *, allows_half_days: bool = True) -> int | None:
    """Return the minutes that ``16:05``, or ``4:05 pm`` where allowed, writes; None for others."""
    match = _TIME.fullmatch(plain_text(answer).strip().lower())
    if match is None:
        return None
    hours, minutes, half = int(match[1]), int(match[2]), match[3]
    if half is not None:
        if not allows_half_days or not 1 <= hours <= 12:
            return None
        hours = hours % 12 + (12 if half == "p" else 0)
    return 60 * hours + minutes if hours < 24 and minutes < 60 else None
