"""Calendars of a week: events, requests in words, and the calendars as they must become."""

from typing import Any

from rllm_envs.errors import TaskError
from rllm_envs.tasks import Task
from rllm_envs.tool_use.draws import Draws
from rllm_envs.tool_use.fields import is_integer, is_name, list_field, need, object_field

DAYS: tuple[str, ...] = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
OPENING, CLOSING = 9 * 60, 17 * 60
GRID = 30
"""Minutes between possible times."""
KINDS = ("earliest", "latest", "move", "cancel")
Event = dict[str, Any]
"""``title``, ``day`` (a name of ``DAYS``), ``start`` and ``end`` in minutes, ``attendees``."""
_NAMES: tuple[str, ...] = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gina", "Hal", "Ines", "Jon")
_TITLES = (
    *("Budget", "Hiring", "Roadmap", "Safety", "Training", "Launch", "Audit", "Design", "Sales"),
    *("Support", "Research", "Planning", "Review", "Retro", "Demo", "Press", "Travel", "Archive"),
    *("Security", "Vendors", "Pricing", "Survey", "Handover", "Kickoff", "Payroll", "Legal"),
)


def clock(minutes: int) -> str:
    """Return minutes after midnight as a time such as 09:30."""
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def is_free(events: list[Event], people: list[str], day: str, start: int, end: int) -> bool:
    """Return whether none of some people has an event that overlaps a time."""
    return not any(
        event["day"] == day
        and event["start"] < end
        and start < event["end"]
        and set(people) & set(event["attendees"])
        for event in events
    )


def wanted_events(task: Task) -> list[Event] | None:
    """Return the events as they must be when a request is done; None where it cannot be done."""
    request, events = task["request"], [dict(event) for event in task["events"]]
    kind = request["kind"]
    if kind == "cancel":
        kept = [event for event in events if not is_meant(event, request)]
        return kept if len(kept) < len(events) else None
    if kind == "move":
        found = [event for event in events if event["title"] == request["title"]]
        if len(found) != 1:
            return None
        others = [event for event in events if event is not found[0]]
        minutes = found[0]["end"] - found[0]["start"]
        people = found[0]["attendees"]
        place = _first_free(others, people, [request["day"]], minutes, request["not_before"])
        if place is None or place == (found[0]["day"], found[0]["start"]):
            return None
        found[0].update(day=place[0], start=place[1], end=place[1] + minutes)
        return events
    people, minutes = request["attendees"], request["minutes"]
    if kind == "earliest":
        days = list(DAYS[DAYS.index(request["day"]) :])
        place = _first_free(events, people, days, minutes, request["not_before"])
    else:
        starts = range(CLOSING - minutes, request["not_before"] - 1, -GRID)
        day = request["day"]
        free = [s for s in starts if is_free(events, people, day, s, s + minutes)]
        place = (day, free[0]) if free else None
    if place is None:
        return None
    event = {"title": request["title"], "day": place[0], "start": place[1]}
    return [*events, event | {"end": place[1] + minutes, "attendees": list(people)}]


def is_meant(event: Event, request: dict[str, Any]) -> bool:
    """Return whether a request to cancel means an event."""
    return event["day"] == request["day"] and set(request["attendees"]) <= set(event["attendees"])


def _first_free(
    events: list[Event], people: list[str], days: list[str], minutes: int, not_before: int
) -> tuple[str, int] | None:
    for day in days:
        for start in range(not_before, CLOSING - minutes + 1, GRID):
            if is_free(events, people, day, start, start + minutes):
                return day, start
    return None


def request_text(request: dict[str, Any]) -> str:
    """Return a request in words."""
    people = " and ".join(request["attendees"])
    after = f"not before {clock(request['not_before'])}"
    if request["kind"] == "earliest":
        return (
            f"Schedule the meeting '{request['title']}' for {people}, {request['minutes']} minutes "
            f"long, at the earliest time from {request['day']} on when all of them are free, on "
            f"each day {after}."
        )
    if request["kind"] == "latest":
        return (
            f"Schedule the meeting '{request['title']}' for {people}, {request['minutes']} minutes "
            f"long, at the latest time on {request['day']} when all of them are free, {after}."
        )
    if request["kind"] == "move":
        return (
            f"Move the meeting '{request['title']}' to the earliest time on {request['day']}, "
            f"{after}, when all who attend it are free (its own present time counts as free)."
        )
    return f"Cancel all meetings on {request['day']} that {people} attend (others may attend too)."


def same_events(events: list[Event], wanted: list[Event]) -> bool:
    """Return whether two calendars hold the same events in any order."""
    return sorted(map(_key, events)) == sorted(map(_key, wanted))


def _key(event: Event) -> tuple[Any, ...]:
    return (event["title"], event["day"], event["start"], event["end"], sorted(event["attendees"]))


def random_week(draws: Draws, num_people: int, num_events: int) -> Task:
    """Return calendars without overlaps, and a request that can be done."""
    people = list(_NAMES[:num_people])
    while True:
        titles = draws.shuffled(_TITLES)
        events: list[Event] = []
        for _ in range(num_events):
            minutes = GRID * draws.between(1, 4)
            start = OPENING + GRID * draws.below((CLOSING - OPENING - minutes) // GRID + 1)
            attendees = sorted(draws.sample(people, draws.between(1, min(3, num_people))))
            day = draws.pick(DAYS)
            if len(titles) > 1 and is_free(events, attendees, day, start, start + minutes):
                event = {"title": titles.pop(), "day": day, "start": start, "end": start + minutes}
                events.append(event | {"attendees": attendees})
        if not events:
            continue
        task = {"people": people, "events": events, "request": {}}
        for _ in range(20):
            task["request"] = _random_request(draws, people, events, titles[0])
            if wanted_events(task) is not None:
                return task


def _random_request(
    draws: Draws, people: list[str], events: list[Event], title: str
) -> dict[str, Any]:
    kind = draws.pick(KINDS)
    event = draws.pick(events)
    attendees = sorted(draws.sample(people, draws.between(2, min(3, len(people)))))
    if kind == "cancel":
        count = draws.between(1, len(event["attendees"]))
        attendees = sorted(draws.sample(event["attendees"], count))
    return {
        "kind": kind,
        "title": event["title"] if kind == "move" else title,
        "attendees": attendees,
        "day": event["day"] if kind == "cancel" else draws.pick(DAYS),
        "minutes": GRID * draws.between(1, 4),
        "not_before": OPENING + GRID * draws.between(0, 6),
    }


def check_week(task: Task) -> Task:
    """Return a given task if it is complete and its request can be done.

    Raises:
        TaskError: A field is missing or has a wrong value; the message names it.
    """
    people = list_field(task, "people", 1, 30)
    is_named = all(is_name(name, 30) and "," not in name for name in people)
    need(is_named and len(set(map(str.lower, people))) == len(people), "people must differ", people)
    titles: list[str] = []
    for event in list_field(task, "events", 0, 200):
        is_event = (
            isinstance(event, dict)
            and is_name(event.get("title"), 60)
            and event.get("day") in DAYS
            and is_time(event.get("start"))
            and is_time(event.get("end"))
            and event["start"] < event["end"]
            and _are_people(event.get("attendees"), people)
        )
        need(is_event, "an event needs title, day, start, end and attendees", event)
        titles.append(event["title"])
    need(len(set(titles)) == len(titles), "titles must differ", titles)
    request = object_field(task, "request", 6, 6)
    is_request = (
        request.get("kind") in KINDS
        and is_name(request.get("title"), 60)
        and request.get("day") in DAYS
        and is_integer(request.get("minutes"), GRID, CLOSING - OPENING)
        and request["minutes"] % GRID == 0
        and is_time(request.get("not_before"))
        and _are_people(request.get("attendees"), people)
    )
    need(is_request, "a request needs kind, title, attendees, day, minutes, not_before", request)
    is_fresh = request["title"] not in titles or request["kind"] in ("move", "cancel")
    if not is_fresh or wanted_events(task) is None:
        raise TaskError(f"the request cannot be done, or changes nothing: {request}")
    return task


def is_time(value: object) -> bool:
    """Return whether a value is a time on the grid within the working hours, ends included."""
    return is_integer(value, OPENING, CLOSING) and int(value) % GRID == 0  # type: ignore[call-overload]


def _are_people(names: Any, people: list[str]) -> bool:
    is_list = isinstance(names, list) and len(names) >= 1
    return is_list and all(name in people for name in names) and len(set(names)) == len(names)
