import json

import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.tool_use.calendar_env import CalendarEnv
from rllm_envs.tool_use.calendar_world import DAYS, wanted_events


def event(title, day, start, end, *attendees):
    return {"title": title, "day": day, "start": start, "end": end, "attendees": list(attendees)}


NINE, TEN, NOON, FIVE = 540, 600, 720, 1020
EVENTS = [
    event("Budget", "Monday", NINE, NOON, "Ada"),
    event("Audit", "Monday", NOON, FIVE, "Ben", "Cleo"),
    event("Demo", "Tuesday", NINE, TEN, "Ada", "Ben"),
    event("Retro", "Tuesday", 990, FIVE, "Ben"),
]


def make(kind, title="Kickoff", attendees=("Ada", "Ben"), day="Monday", minutes=60, after=NINE):
    request = {"kind": kind, "title": title, "attendees": list(attendees), "day": day,
               "minutes": minutes, "not_before": after}  # fmt: skip
    return {"people": ["Ada", "Ben", "Cleo"], "events": EVENTS, "request": request}


@pytest.mark.parametrize(
    ("task", "change"),
    [
        # On Monday Ada is busy until 12:00, Ben and Cleo after; on Tuesday Ada and Ben until 10:00.
        (make("earliest"), event("Kickoff", "Tuesday", TEN, 660, "Ada", "Ben")),
        (make("earliest", after=630), event("Kickoff", "Tuesday", 630, 690, "Ada", "Ben")),
        (make("earliest", attendees=("Ada", "Cleo")),
         event("Kickoff", "Tuesday", TEN, 660, "Ada", "Cleo")),
        (make("earliest", attendees=("Ada",)), event("Kickoff", "Monday", NOON, 780, "Ada")),
        (make("latest", day="Tuesday"), event("Kickoff", "Tuesday", 930, 990, "Ada", "Ben")),
        (make("latest", day="Tuesday", attendees=("Ada",), minutes=30),
         event("Kickoff", "Tuesday", 990, FIVE, "Ada")),
        # The own time of the meeting counts as free.
        (make("move", "Budget", day="Monday", after=TEN),
         event("Budget", "Monday", TEN, 780, "Ada")),
        (make("move", "Demo", day="Tuesday", after=570),
         event("Demo", "Tuesday", 570, 630, "Ada", "Ben")),
    ],
)  # fmt: skip
def test_the_right_time_is_the_one_worked_out_by_hand(task, change):
    rest = [item for item in EVENTS if item["title"] != change["title"]]
    assert sorted(wanted_events(task), key=str) == sorted([*rest, change], key=str)


@pytest.mark.parametrize(
    ("attendees", "day", "kept"),
    [
        (("Ben",), "Tuesday", ["Budget", "Audit"]),
        (("Ada", "Ben"), "Tuesday", ["Budget", "Audit", "Retro"]),
        (("Cleo",), "Monday", ["Budget", "Demo", "Retro"]),
    ],
)
def test_cancelling_means_the_meetings_that_all_of_them_attend(attendees, day, kept):
    wanted = wanted_events(make("cancel", attendees=attendees, day=day))
    assert [item["title"] for item in wanted] == kept


@pytest.mark.parametrize(
    "task",
    [
        make("latest", day="Monday"),
        make("cancel", day="Friday"),
        make("move", "Nothing"),
        make("move", "Demo", day="Monday"),
        make("move", "Budget", day="Monday"),
        make("earliest", title="Demo"),
        make("earliest", minutes=45),
        make("earliest", attendees=("Zoe",)),
        make("earliest", day="Sunday"),
        {**make("earliest"), "people": ["Ada"]},
        {**make("earliest"), "events": [EVENTS[0], EVENTS[0]]},
        {**make("earliest"), "events": [event("X", "Monday", 541, 600, "Ada")]},
    ],
)
def test_tasks_that_cannot_be_played_are_refused(task):
    with pytest.raises(TaskError):
        CalendarEnv().reset(options={"task": task})


def start(task):
    env = CalendarEnv()
    return env, env.reset(options={"task": task})[0]


def call(env, name, **arguments):
    return env.step(f"<tool>{json.dumps({'name': name, 'arguments': arguments})}</tool>")


def test_the_first_observation_holds_people_functions_and_request():
    _, observation = start(make("earliest"))
    assert "calendars of Ada, Ben, Cleo" in observation
    assert (
        "list_events(person: string, day: Monday | Tuesday | Wednesday | Thursday | Friday)"
        in observation
    )
    assert observation.endswith(
        "Request: Schedule the meeting 'Kickoff' for Ada and Ben, 60 minutes long, at the earliest "
        "time from Monday on when all of them are free, on each day not before 09:00."
    )


def test_functions_list_and_change_events():
    env, _ = start(make("earliest"))
    assert call(env, "list_events", person="ben", day="Tuesday")[0] == (
        "E3 09:00-10:00 Demo (Ada, Ben)\nE4 16:30-17:00 Retro (Ben)"
    )
    assert call(env, "list_events", person="Cleo", day="Friday")[0] == "Cleo is free on Friday."
    arguments = {"title": "Kickoff", "attendees": "Ben, ada", "minutes": 60}
    created = call(env, "create_event", day="Friday", start="9:00", **arguments)[0]
    assert created == "Created on Friday: E5 09:00-10:00 Kickoff (Ben, Ada)"
    moved = call(env, "move_event", event_id="e5", day="Tuesday", start="10:00")[0]
    assert moved == "Moved to Tuesday: E5 10:00-11:00 Kickoff (Ben, Ada)"
    _, reward, terminated, _, info = call(env, "finish")
    assert (reward, terminated, info["success"]) == (1.0, True, True)


def test_one_change_too_many_or_none_earns_nothing():
    env, _ = start(make("cancel", attendees=("Ben",), day="Tuesday"))
    assert call(env, "cancel_event", event_id="E3")[0] == (
        "Cancelled E3 09:00-10:00 Demo (Ada, Ben)"
    )
    call(env, "cancel_event", event_id="E4")
    call(env, "cancel_event", event_id="E1")
    assert call(env, "finish")[1:3] == (0.0, True)
    env, _ = start(make("earliest"))
    assert call(env, "finish")[1:3] == (0.0, True)


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("list_events", {"person": "Zoe", "day": "Monday"}, "no calendar of 'Zoe'"),
        ("list_events", {"person": "Ada", "day": "Sunday"}, "day must be one of"),
        ("cancel_event", {"event_id": "E9"}, "there is no event 'E9'"),
        ("move_event", {"event_id": "E1", "day": "Monday", "start": "15:00"}, "no possible start"),
        ("move_event", {"event_id": "E1", "day": "Monday", "start": "9:15"}, "no possible start"),
        ("create_event", {"title": "X", "attendees": "Ada, Ada", "day": "Monday",
                          "start": "09:00", "minutes": 30}, "each attendee once"),
        ("create_event", {"title": "X", "attendees": "Ada", "day": "Monday",
                          "start": "09:00", "minutes": 45}, "multiple of 30"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_explained(name, arguments, error):
    env, _ = start(make("earliest"))
    observation, _, terminated, _, _ = call(env, name, **arguments)
    assert observation.startswith("Error: ")
    assert error in observation
    assert terminated is False


def test_generated_times_are_free_and_no_earlier_or_later_one_is():
    env = CalendarEnv(split="all")
    kinds = set()
    for seed in range(150):
        env.reset(seed=seed)
        task, request = env.task, env.task["request"]
        kinds.add(request["kind"])
        wanted = wanted_events(task)
        fresh = [item for item in wanted if item not in task["events"]]
        if request["kind"] == "cancel":
            assert not fresh
            continue
        (found,) = fresh
        busy = {
            (item["day"], minute)
            for item in task["events"]
            if item["title"] != found["title"] and set(item["attendees"]) & set(found["attendees"])
            for minute in range(item["start"], item["end"])
        }
        length = found["end"] - found["start"]
        days = DAYS[DAYS.index(request["day"]) :] if request["kind"] == "earliest" else (
            request["day"],)  # fmt: skip
        free = [
            (day, minute)
            for day in days
            for minute in range(request["not_before"], FIVE - length + 1, 30)
            if not any((day, m) in busy for m in range(minute, minute + length))
        ]
        best = free[-1] if request["kind"] == "latest" else free[0]
        assert (found["day"], found["start"]) == best
    assert kinds == {"earliest", "latest", "move", "cancel"}


def test_arguments_out_of_range_are_refused():
    for arguments in ({"num_people": 1}, {"num_events": 26}, {"max_turns": 3}):
        with pytest.raises(EnvArgumentError, match=next(iter(arguments))):
            CalendarEnv(**arguments)
