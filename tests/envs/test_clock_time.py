import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.reasoning.clock_time import ClockTimeEnv


def start(task):
    env = ClockTimeEnv()
    return env, env.reset(options={"task": task})[0]


@pytest.mark.parametrize(
    ("task", "question", "answer"),
    [
        (
            {"kind": "after", "time": "23:40", "minutes": 95},
            "What time is it 1 hour and 35 minutes after 23:40 (24-hour clock)? Give the time in "
            r"\boxed{}, such as 17:05.",
            "01:15",
        ),
        (
            {"kind": "before", "time": "00:10", "minutes": 60},
            "What time is it 1 hour before 00:10 (24-hour clock)? Give the time in "
            r"\boxed{}, such as 17:05.",
            "23:10",
        ),
        (
            {"kind": "duration", "time": "22:15", "end": "05:35"},
            "How long is it from 22:15 to the next 05:35 (24-hour clock)? Give hours and minutes "
            r"in \boxed{}, such as 3:05.",
            "7:20",
        ),
        (
            {"kind": "angle", "time": "03:30"},
            "What is the smaller angle between the hour hand and the minute hand of a clock at "
            r"03:30? Give it in degrees in \boxed{}.",
            # The hour hand is at 105 degrees, the minute hand at 180.
            "75",
        ),
        ({"kind": "angle", "time": "21:00"}, "What is the smaller angle", "90"),
        ({"kind": "angle", "time": "12:01"}, "What is the smaller angle", "5.5"),
    ],
)
def test_questions_worked_by_hand(task, question, answer):
    env, observation = start(task)
    assert observation.startswith(question)
    assert env.oracle_action() == f"\\boxed{{{answer}}}"


@pytest.mark.parametrize(
    ("task", "answer", "expected"),
    [
        ({"kind": "after", "time": "12:00", "minutes": 245}, "16:05", 1.0),
        ({"kind": "after", "time": "12:00", "minutes": 245}, "4:05 pm", 1.0),
        ({"kind": "after", "time": "12:00", "minutes": 245}, r"\text{4:05 p.m.}", 1.0),
        ({"kind": "after", "time": "12:00", "minutes": 245}, "4:05", 0.0),
        ({"kind": "after", "time": "12:00", "minutes": 245}, "4:05 am", 0.0),
        ({"kind": "after", "time": "12:00", "minutes": 245}, "16:65", 0.0),
        ({"kind": "after", "time": "12:00", "minutes": 725}, "12:05 am", 1.0),
        ({"kind": "duration", "time": "22:15", "end": "05:35"}, "07:20", 1.0),
        ({"kind": "duration", "time": "22:15", "end": "05:35"}, "7:20 am", 0.0),
        ({"kind": "duration", "time": "22:15", "end": "05:35"}, "440", 0.0),
        ({"kind": "angle", "time": "12:01"}, r"\frac{11}{2}", 1.0),
        ({"kind": "angle", "time": "12:01"}, r"5.5^\circ", 1.0),
        ({"kind": "angle", "time": "12:01"}, "5.5 degrees", 1.0),
        ({"kind": "angle", "time": "12:01"}, "354.5", 0.0),
    ],
)
def test_answers_may_be_written_in_the_usual_ways(task, answer, expected):
    env, _ = start(task)
    assert env.step(f"\\boxed{{{answer}}}")[1] == expected


def _ticked(time, minutes, direction=1):
    """The time after so many single ticks."""
    hour, minute = map(int, time.split(":"))
    for _ in range(minutes):
        minute += direction
        if minute in (-1, 60):
            minute %= 60
            hour = (hour + direction) % 24
    return f"{hour:02}:{minute:02}"


def test_answers_agree_with_counting_minutes():
    env = ClockTimeEnv(max_minutes=3000)
    for seed in range(80):
        env.reset(seed=seed)
        task = env.task
        if task["kind"] in ("after", "before"):
            direction = 1 if task["kind"] == "after" else -1
            assert _ticked(task["time"], task["minutes"], direction) == task["answer"]
        elif task["kind"] == "duration":
            hours, minutes = map(int, task["answer"].split(":"))
            assert minutes < 60
            assert 0 < 60 * hours + minutes < 1440
            assert _ticked(task["time"], 60 * hours + minutes) == task["end"]
        else:
            hour, minute = map(int, task["time"].split(":"))
            angle = abs(30 * (hour % 12) + minute / 2 - 6 * minute)
            assert float(task["answer"]) == min(angle, 360 - angle)


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        ({"kind": "tide"}, "'kind' must be one of"),
        ({"kind": "angle", "time": "24:00"}, "'time' must be a time"),
        ({"kind": "angle", "time": 3}, "'time' must be a time"),
        ({"kind": "duration", "time": "10:00"}, "'end' must be a time"),
        ({"kind": "after", "time": "10:00", "minutes": 0}, "'minutes' must be an integer"),
        ({"kind": "angle", "time": "03:00", "answer": "80"}, "'90' is"),
    ],
)
def test_given_tasks_are_checked(task, reason):
    with pytest.raises(TaskError, match=reason):
        start(task)


@pytest.mark.parametrize("arguments", [{"kinds": "angle"}, {"max_minutes": 59}])
def test_arguments_out_of_range_are_refused(arguments):
    with pytest.raises(EnvArgumentError, match=next(iter(arguments))):
        ClockTimeEnv(**arguments)
