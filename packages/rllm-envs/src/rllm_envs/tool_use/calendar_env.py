"""``rllm/Calendar-v0``: schedule, move and cancel meetings in the calendars of several people."""

import re
from typing import Any

from rllm_envs.core import Response
from rllm_envs.errors import ToolError
from rllm_envs.tasks import Task
from rllm_envs.tool_use.calendar_world import (
    CLOSING,
    DAYS,
    GRID,
    OPENING,
    Event,
    check_week,
    clock,
    is_meant,
    is_time,
    random_week,
    request_text,
    same_events,
    wanted_events,
)
from rllm_envs.tool_use.draws import Draws
from rllm_envs.tool_use.fields import check_integer
from rllm_envs.tool_use.functions import Function, Parameter
from rllm_envs.tool_use.tool_call_env import ToolCallEnv

_EVENT = Parameter("event_id", "string", "Identifier of the event, such as E1.")
_DAY = Parameter("day", "string", "Day of the week.", DAYS)
_START = Parameter("start", "string", "Time such as 09:30.")
_TIME = re.compile(r"(\d{1,2}):(\d{2})", re.ASCII)


class CalendarEnv(ToolCallEnv):
    r"""Look into calendars and change them as asked, by functions.

    ## Description
    Several people have meetings from Monday to Friday between 09:00 and 17:00, all at full or half
    hours. The agent is asked to schedule a meeting at the earliest or latest time when all are
    free, to move one, or to cancel some, and finds out by functions when people are busy. The
    functions do not refuse overlaps.

    ## Action Space
    Any text outside of ``<think>...</think>``. ``<tool>{"name": "list_events", "arguments":
    {"person": "Ada", "day": "Monday"}}</tool>`` calls a function; the last complete call counts.

    ## Observation Space
    First the people, the functions, how to act, and the request. A call is answered with its result
    or with ``Error: ...``.

    ## Starting State
    ``num_people`` people with up to ``num_events`` events that do not overlap; one of four kinds of
    requests, which can be done.

    ## Rewards
    1 if the calendars are exactly as they must be when ``finish`` is called, 0 otherwise.

    ## Episode End
    Terminates with ``finish``. Truncates after ``max_turns`` actions.

    ## Information
    ``success``, ``invalid`` (no readable call of a known function), ``turn``, ``turns_left``.

    ## Arguments
    ``num_people`` (2 to 10, default 5), ``num_events`` (1 to 25, default 16), ``max_turns`` (20 to
    1000, default 30), ``split`` ("train", "test" or "all").
    Task: ``{"people": ["Ada", ...], "events": [{"title", "day", "start", "end", "attendees"}],
    "request": {"kind": "earliest", "title", "attendees", "day", "minutes", "not_before"}}``; kinds
    are "earliest", "latest", "move" and "cancel", times are minutes after midnight.

    ## Version History
    * v0: Initial version
    """

    hint = 'Call a function as <tool>{"name": "finish", "arguments": {}}</tool>.'
    functions = (
        Function("list_events", "List the events of a person on a day.",
                 (Parameter("person", "string", "Name."), _DAY)),
        Function("create_event", "Add an event to the calendars of its attendees.",
                 (Parameter("title", "string", "Title."),
                  Parameter("attendees", "string", "Names, separated by commas."), _DAY, _START,
                  Parameter("minutes", "integer", "Length in minutes."))),
        Function("move_event", "Give an event another day and time; its length stays.",
                 (_EVENT, _DAY, _START)),
        Function("cancel_event", "Remove an event from all calendars.", (_EVENT,)),
        Function("finish", "Say that the request is done; this ends the task.", ()),
    )  # fmt: skip

    def __init__(
        self,
        *,
        num_people: int = 5,
        num_events: int = 16,
        max_turns: int = 30,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        check_integer("num_people", num_people, 2, 10)
        check_integer("num_events", num_events, 1, 25)
        # A person has at most 16 meetings on a day that may have to be cancelled.
        check_integer("max_turns", max_turns, 20, 1000)
        super().__init__(max_turns=max_turns, split=split, render_mode=render_mode)
        self.num_people = num_people
        self.num_events = num_events
        self._people: list[str] = []
        self._events: dict[str, Event] = {}
        self._wanted: list[Event] = []
        self._request: dict[str, Any] = {}
        self._count = 0

    def generate_task(self) -> Task:
        """Return random calendars and a request that can be done."""
        return random_week(Draws(self.np_random), self.num_people, self.num_events)

    def validate_task(self, task: Task) -> Task:
        """Check people, events and request, and that the request can be done."""
        return check_week(task)

    def begin(self, task: Task) -> str:
        """Return people, functions, rules and the request."""
        self._people, self._request = task["people"], task["request"]
        self._events = {f"E{n}": dict(event) for n, event in enumerate(task["events"], 1)}
        self._count = len(self._events)
        wanted = wanted_events(task)
        assert wanted is not None
        self._wanted = wanted
        return (
            f"You keep the calendars of {', '.join(self._people)}, from Monday to Friday, "
            f"{clock(OPENING)} to {clock(CLOSING)}; meetings start and end at full or half hours.\n"
            f"Functions:\n{self.manual()}\n"
            'Each turn, call one function as <tool>{"name": "list_events", "arguments": {"person": '
            f'"{self._people[0]}", "day": "Monday"}}}}</tool>. When all is done, call finish. You '
            f"have {self.max_turns} turns.\nRequest: {request_text(self._request)}"
        )

    def run_call(self, name: str, arguments: dict[str, Any]) -> Response:
        """Run one of the functions on the calendars."""
        if name == "finish":
            is_solved = same_events(list(self._events.values()), self._wanted)
            return Response("", float(is_solved), terminated=True)
        if name == "list_events":
            return Response(self._list(self._person(arguments["person"]), arguments["day"]))
        if name == "create_event":
            return Response(self._create(arguments))
        number = arguments["event_id"].strip().upper()
        if number not in self._events:
            raise ToolError(f"there is no event {number[:40]!r}")
        if name == "cancel_event":
            return Response(f"Cancelled {self._line(number, self._events.pop(number))}")
        event = self._events[number]
        minutes = event["end"] - event["start"]
        start = _read_start(arguments["start"], minutes)
        event.update(day=arguments["day"], start=start, end=start + minutes)
        return Response(f"Moved to {event['day']}: {self._line(number, event)}")

    def oracle_action(self) -> str:
        """Make the next change that is missing, and finish when none is."""
        wanted = self._wanted
        missing = [event for event in wanted if event not in self._events.values()]
        for number, event in self._events.items():
            if self._request["kind"] == "cancel" and is_meant(event, self._request):
                return self.call("cancel_event", event_id=number)
            same = [item for item in missing if item["title"] == event["title"]]
            if same:
                start = clock(same[0]["start"])
                return self.call("move_event", event_id=number, day=same[0]["day"], start=start)
        if not missing:
            return self.call("finish")
        event = missing[0]
        return self.call(
            "create_event",
            title=event["title"],
            attendees=", ".join(event["attendees"]),
            day=event["day"],
            start=clock(event["start"]),
            minutes=event["end"] - event["start"],
        )

    def _person(self, text: str) -> str:
        for person in self._people:
            if person.lower() == text.strip().lower():
                return person
        raise ToolError(f"there is no calendar of {text[:40]!r}; known: {', '.join(self._people)}")

    def _list(self, person: str, day: str) -> str:
        found = [
            (event["start"], self._line(number, event))
            for number, event in self._events.items()
            if event["day"] == day and person in event["attendees"]
        ]
        return "\n".join(line for _, line in sorted(found)) or f"{person} is free on {day}."

    def _create(self, arguments: dict[str, Any]) -> str:
        people = [self._person(name) for name in arguments["attendees"].split(",")]
        if len(set(people)) < len(people):
            raise ToolError("name each attendee once")
        if len(self._events) >= 300:
            raise ToolError("the calendars are full")
        minutes = arguments["minutes"]
        if minutes < GRID or minutes % GRID:
            raise ToolError(f"minutes must be a multiple of {GRID}")
        start = _read_start(arguments["start"], minutes)
        self._count += 1
        number = f"E{self._count}"
        self._events[number] = {
            "title": arguments["title"].strip(),
            "day": arguments["day"],
            "start": start,
            "end": start + minutes,
            "attendees": people,
        }
        return f"Created on {arguments['day']}: {self._line(number, self._events[number])}"

    def _line(self, number: str, event: Event) -> str:
        times = f"{clock(event['start'])}-{clock(event['end'])}"
        return f"{number} {times} {event['title']} ({', '.join(event['attendees'])})"


def _read_start(text: str, minutes: int) -> int:
    """Return a start time in minutes after midnight.

    Raises:
        ToolError: It is no time, or the event would not fit into the working hours.
    """
    match = _TIME.fullmatch(text.strip())
    start = 60 * int(match[1]) + int(match[2]) if match else -1
    if not is_time(start) or start + minutes > CLOSING:
        raise ToolError(
            f"{text[:20]!r} is no possible start: give a full or half hour, such as 09:30, so that "
            f"the event lies between {clock(OPENING)} and {clock(CLOSING)}"
        )
    return start
