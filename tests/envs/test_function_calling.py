import json

import pytest

from rllm_envs import EnvArgumentError, TaskError, ToolError
from rllm_envs.tool_use.function_calling import FunctionCallingEnv
from rllm_envs.tool_use.functions import Function, Parameter, function_of, read_calls, write_call

ALARM = Function(
    "set_alarm",
    "Set an alarm.",
    (
        Parameter("hour", "integer", "Hour of the day."),
        Parameter("tone", "string", "Sound.", ("bell", "bird"), "bell"),
        Parameter("volume", "number", "From 0 to 1.", (), 0.5),
        Parameter("daily", "boolean", "Every day.", (), False),
    ),
)
LAMP = Function("lamp_off", "Turn off a lamp.", (Parameter("room", "string", "Which room."),))
TASK = {
    "functions": [ALARM.schema(), LAMP.schema()],
    "request": "Wake me at 7 with birds. Turn off the lamp in the hall.",
    "calls": [
        {"name": "set_alarm", "arguments": {"hour": 7, "tone": "bird"}},
        {"name": "lamp_off", "arguments": {"room": "hall"}},
    ],
}


def play(content, task=TASK):
    env = FunctionCallingEnv()
    env.reset(options={"task": task})
    _, reward, terminated, _, info = env.step(content)
    assert terminated
    return reward, info["invalid"]


RIGHT = [
    {"name": "lamp_off", "arguments": {"room": " hall"}},
    {"name": "set_alarm", "arguments": {"hour": 7.0, "tone": "bird", "volume": 0.5}},
]


@pytest.mark.parametrize(
    ("calls", "reward"),
    [
        (TASK["calls"], 1.0),
        (RIGHT, 1.0),
        ([RIGHT[0]], 0.0),
        ([*RIGHT, RIGHT[0]], 0.0),
        ([RIGHT[0], {"name": "set_alarm", "arguments": {"hour": 7}}], 0.0),
        ([RIGHT[0], {"name": "set_alarm", "arguments": {"hour": "7", "tone": "bird"}}], 0.0),
        ([RIGHT[0], {"name": "set_alarm", "arguments": {"hour": True, "tone": "bird"}}], 0.0),
        ([RIGHT[0], {**RIGHT[1], "name": "set_alarms"}], 0.0),
        ([{"name": "lamp_off", "arguments": {"room": "Hall"}}, RIGHT[1]], 0.0),
        ([{"name": "lamp_off", "arguments": {"room": "hall", "now": 1}}, RIGHT[1]], 0.0),
        ([], 0.0),
    ],
)
def test_calls_are_right_only_if_names_and_arguments_are(calls, reward):
    assert play(f"<tool>{json.dumps(calls)}</tool>") == (reward, False)


@pytest.mark.parametrize(
    "content",
    ["", "<tool></tool>", "<tool>{</tool>", "<tool>[1]</tool>", '<tool>{"name": 1}</tool>',
     '<tool>{"name": "x", "arguments": [1]}</tool>', "<tool>" + "[" * 5000 + "</tool>",
     '<tool>{"name": "x", "arguments": {"y": NaN}}</tool>', "<tool>" + "9" * 5000 + "</tool>",
     "<think><tool>[]</tool></think>"],
)  # fmt: skip
def test_what_cannot_be_read_is_invalid(content):
    assert play(content) == (0.0, True)


def test_an_empty_list_answers_a_request_that_no_function_fits():
    task = {**TASK, "calls": []}
    assert play("<tool>[]</tool>", task) == (1.0, False)
    assert play(f"<tool>{json.dumps(RIGHT)}</tool>", task) == (0.0, False)


def test_one_object_is_one_call():
    call = {"name": "lamp_off", "arguments": {"room": "hall"}}
    text = write_call(**call)
    assert play(f"<tool>{text}</tool>", {**TASK, "calls": [call]}) == (1.0, False)
    assert read_calls('{"name": "now"}') == [("now", {})]


def test_a_schema_and_its_function_are_the_same_thing():
    assert function_of(json.loads(json.dumps(ALARM.schema()))) == ALARM
    assert ALARM.schema()["parameters"]["required"] == ["hour"]
    assert ALARM.signature() == (
        "set_alarm(hour: integer, tone: bell | bird = 'bell', volume: number = 0.5, "
        "daily: boolean = False): Set an alarm."
    )
    assert ALARM.completed({"hour": 6}) == {
        "hour": 6, "tone": "bell", "volume": 0.5, "daily": False
    }  # fmt: skip
    for broken in ({}, {**ALARM.schema(), "extra": 1}, "x", None):
        with pytest.raises(ToolError):
            function_of(broken)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"hour": 7}, ""),
        ({}, "set_alarm needs the argument hour"),
        ({"hour": 7.5}, "hour must be of type integer, got 7.5"),
        ({"hour": 7, "tone": "horn"}, "tone must be one of bell, bird, got 'horn'"),
        ({"hour": 7, "daily": 1}, "daily must be of type boolean, got 1"),
        ({"hour": 7, "x": 1}, "set_alarm has no argument 'x'; known: hour, tone, volume, daily"),
    ],
)
def test_arguments_that_do_not_fit_are_explained(arguments, problem):
    assert ALARM.problem(arguments) == problem


def test_requests_state_every_argument_of_their_calls():
    env = FunctionCallingEnv(num_functions=12, max_calls=3, split="all")
    sizes = set()
    for seed in range(150):
        observation, _ = env.reset(seed=seed)
        task = env.task
        sizes.add(len(task["calls"]))
        names = [schema["name"] for schema in task["functions"]]
        assert len(set(names)) == 12
        for call in task["calls"]:
            assert call["name"] in names
            assert all(str(value) in task["request"] for value in call["arguments"].values())
        assert task["request"].count(".") == max(len(task["calls"]), 1)
        assert observation.count('"parameters"') == 12
    assert sizes == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"functions": [{}]}, "cannot be read"),
        ({"request": ""}, "request"),
        ({"calls": [{"name": "f", "arguments": {}}]}, "given functions"),
        ({"calls": [{"name": "lamp_off", "arguments": {}}]}, "room"),
        ({"calls": [3]}, "cannot be read"),
    ],
)
def test_tasks_that_cannot_be_played_are_refused(change, message):
    with pytest.raises(TaskError, match=message):
        FunctionCallingEnv().reset(options={"task": {**TASK, **change}})


def test_arguments_out_of_range_are_refused():
    for arguments in ({"num_functions": 40}, {"max_calls": 0}):
        with pytest.raises(EnvArgumentError, match=next(iter(arguments))):
            FunctionCallingEnv(**arguments)
