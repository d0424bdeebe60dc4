import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.reasoning.calendar_date import WEEKDAYS, CalendarDateEnv


def start(task):
    env = CalendarDateEnv()
    return env, env.reset(options={"task": task})[0]


# 1 January 2000 was a Saturday; 2000 was a leap year, 1900 was not.
@pytest.mark.parametrize(
    ("task", "question", "answer"),
    [
        (
            {"kind": "weekday", "date": "2000-01-01"},
            r"What day of the week is 1 January 2000? Give its name in \boxed{}.",
            "Saturday",
        ),
        (
            {"kind": "shifted_date", "date": "2000-02-28", "days": 2},
            r"What date is 2 days after 28 February 2000? Give it in \boxed{} as year-month-day, "
            "such as 2001-12-31.",
            "2000-03-01",
        ),
        (
            {"kind": "shifted_date", "date": "1900-03-01", "days": -1},
            r"What date is 1 day before 1 March 1900? Give it in \boxed{} as year-month-day, "
            "such as 2001-12-31.",
            "1900-02-28",
        ),
        (
            {"kind": "days_between", "date": "1999-12-25", "end": "2000-03-01"},
            "How many days is it from 25 December 1999 to 1 March 2000 (the difference of the "
            r"dates)? Give the number in \boxed{}.",
            # 6 to the 31st, then 31, 29 and 1.
            "67",
        ),
        (
            {"kind": "nth_weekday", "month": "2000-01", "weekday": "Monday", "nth": 2},
            "What is the date of the second Monday of January 2000? Give it in "
            r"\boxed{} as year-month-day, such as 2001-12-31.",
            "2000-01-10",
        ),
    ],
)
def test_questions_worked_by_hand(task, question, answer):
    env, observation = start(task)
    assert observation == question
    assert env.oracle_action() == f"\\boxed{{{answer}}}"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("2000-03-01", 1.0),
        ("2000-3-1", 1.0),
        ("1 March 2000", 1.0),
        (r"\text{March 1, 2000}", 1.0),
        ("Wednesday, 1st March 2000", 1.0),
        ("2000-01-03", 0.0),
        ("2000-02-30", 0.0),
        ("1 Marchember 2000", 0.0),
        ("March", 0.0),
        ("", 0.0),
    ],
)
def test_dates_may_be_written_in_words(answer, expected):
    env, _ = start({"kind": "shifted_date", "date": "2000-02-28", "days": 2})
    assert env.step(f"\\boxed{{{answer}}}")[1] == expected


def _day_number(text):
    """The Julian day number of a Gregorian date, by the formula of Fliegel and Van Flandern."""
    year, month, day = map(int, text.split("-"))
    before_march = (14 - month) // 12
    y, m = year + 4800 - before_march, month + 12 * before_march - 3
    return day + (153 * m + 2) // 5 + 365 * y + y // 4 - y // 100 + y // 400 - 32045


def test_answers_agree_with_julian_day_numbers():
    env = CalendarDateEnv(max_days=36_525)
    for seed in range(120):
        env.reset(seed=seed)
        task = env.task
        kind, answer = task["kind"], task["answer"]
        if kind == "weekday":
            # Day number 0 was a Monday.
            assert WEEKDAYS[_day_number(task["date"]) % 7] == answer
        elif kind == "shifted_date":
            assert _day_number(answer) == _day_number(task["date"]) + task["days"]
        elif kind == "days_between":
            assert _day_number(task["end"]) - _day_number(task["date"]) == int(answer)
        else:
            assert answer.startswith(task["month"])
            assert WEEKDAYS[_day_number(answer) % 7] == task["weekday"]
            assert (int(answer[-2:]) - 1) // 7 + 1 == task["nth"]
        assert env.step(env.oracle_action())[1] == 1.0


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        ({"kind": "easter"}, "'kind' must be one of"),
        ({"kind": "weekday", "date": "2001-02-29"}, "'date' must be a date of 1900 to 2099"),
        ({"kind": "weekday", "date": 5}, "'date' must be a date"),
        ({"kind": "weekday", "date": "1899-01-01"}, "'date' must be a date"),
        ({"kind": "nth_weekday", "month": "2000-13", "weekday": "Monday", "nth": 1}, "'month'"),
        ({"kind": "nth_weekday", "month": "2000-12", "weekday": "Mon", "nth": 1}, "'weekday'"),
        ({"kind": "days_between", "date": "2000-01-02", "end": "2000-01-01"}, "not be before"),
        ({"kind": "weekday", "date": "2000-01-01", "answer": "Sunday"}, "'Saturday' is"),
    ],
)
def test_given_tasks_are_checked(task, reason):
    with pytest.raises(TaskError, match=reason):
        start(task)


@pytest.mark.parametrize("arguments", [{"kinds": ["easter"]}, {"max_days": 9}])
def test_arguments_out_of_range_are_refused(arguments):
    with pytest.raises(EnvArgumentError, match=next(iter(arguments))):
        CalendarDateEnv(**arguments)
