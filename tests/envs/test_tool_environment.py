import json
import threading
import time

import pytest

from rllm_envs import CalculatorTool, EnvArgumentError, Tool, ToolEnvironment, math_reward_fn
from rllm_envs.errors import SandboxError

TASK = {"question": "47 * 83?", "answer": "3901"}


class SleepTool(Tool):
    """Wait."""

    name = "sleep"

    def forward(self, seconds: float) -> str:
        """Wait and say so.

        Args:
            seconds: How long.
        """
        time.sleep(seconds)
        return f"slept {seconds}"


def call(name, arguments, call_id=None):
    made = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return made if call_id is None else made | {"id": call_id}


def make(**arguments):
    defaults = {"task": TASK, "tools": ["calculator"], "reward_fn": math_reward_fn}
    return ToolEnvironment(**(defaults | arguments))


def test_reset_shows_the_task_without_its_answer_and_calls_are_answered_by_id():
    env = make()
    assert env.reset() == ({"question": TASK["question"]}, {})
    observation, reward, done, info = env.step(
        [call("calculator", {"expression": "47 * 83"}, "a"),
         call("calculator", json.dumps({"expression": "1 + 1"}), "b")]
    )  # fmt: skip
    assert observation == {"tool_outputs": {"a": "3901", "b": "2"}}
    assert (reward, done) == (0.0, False)
    assert info == {"response": "", "metadata": {}, "is_correct": False}


def test_a_text_is_the_final_response_and_is_graded():
    env = make()
    env.reset()
    observation, reward, done, info = env.step(r"It is \boxed{3901}")
    assert (observation, reward, done) == ({}, 1.0, True)
    assert info["is_correct"] is True
    assert info["response"] == r"It is \boxed{3901}"
    assert info["metadata"]["outcome"] == "correct"


@pytest.mark.parametrize(
    "arguments", [{"response": r"\boxed{3901}"}, r'{"response": "\\boxed{3901}"}']
)
def test_finish_ends_the_episode_with_object_or_text_arguments(arguments):
    env = make()
    env.reset()
    observation, reward, done, info = env.step(call("finish", arguments))
    assert (observation, reward, done, info["response"]) == ({}, 1.0, True, r"\boxed{3901}")


def test_calls_beside_a_finish_still_run():
    env = make()
    env.reset()
    observation, _, done, _ = env.step(
        [call("finish", {"response": "x"}, "f"), call("calculator", {"expression": "6 * 7"}, "c")]
    )
    assert done
    assert observation == {"tool_outputs": {"c": "42"}}


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (call("search", {}, "a"), "Error: no tool is named 'search'; known tools: calculator"),
        (call("calculator", "{oops", "a"), "Error: arguments are not JSON"),
        (call("calculator", "[1]", "a"), "Error: arguments must be a JSON object, got [1]"),
        (call("calculator", {"expression": "1/0"}, "a"), "Error: division by zero"),
        (call("calculator", {}, "a"), "Error: calculator needs the argument 'expression'"),
        ({"id": "a"}, "Error: a tool call needs a name"),
        ({"id": "a", "function": "calculator"}, "Error: a tool call needs a name"),
        ({"id": "a", "name": "calculator", "arguments": {"expression": "1"}}, "1"),
        (call("finish", "{oops", "a"), "Error: arguments are not JSON"),
    ],
)
def test_what_cannot_be_run_is_answered_under_its_id(made, text):
    env = make()
    env.reset()
    observation, reward, done, _ = env.step([made])
    assert observation["tool_outputs"]["a"].startswith(text)
    assert (reward, done) == (0.0, False)


DEEP = '{"expression": ' + "[" * 100_000


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (DEEP, "Error: arguments are not JSON"),
        ('{"expression": NaN}', "Error: arguments are not JSON (NaN is no JSON number)"),
        ('{"expression": -Infinity}', "Error: arguments are not JSON"),
        ('{"expression": ' + "9" * 5000 + "}", "Error: arguments are not JSON"),
        ('{"expression": "\\ud800"}', "Error: a text holds half of a character pair"),
        ({"expression": float("nan")}, "Error: a number must be finite"),
        ({"expression": 10**5000}, "Error: an integer has more than"),
        ({"expression": "1" * 10**6}, "Error: arguments are larger"),
        ({"expression": "1" * 10**5}, "Error: the expression is longer"),
        ("1" * 10**6, "Error: arguments must be a JSON object"),
    ],
)
def test_hostile_arguments_are_answered_in_a_line(arguments, text):
    env = make()
    env.reset()
    answer = env.step(call("calculator", arguments, "a"))[0]["tool_outputs"]["a"]
    assert answer.startswith(text) or (arguments[:1] == "1" and answer.startswith("Error: argu"))
    assert len(answer) < 300


def test_hostile_calls_are_answered_each():
    env = make(max_steps=1)
    env.reset()
    items = [
        3, call("x" * 10**6, {}, "call_0"), {"id": 10**5000, "name": "\ud800"}, {"id": [1]},
        call("calculator", {"expression": "1"}, "call_0"), {"name": ["a"]},
    ]  # fmt: skip
    observation, reward, done, info = env.step(items)
    outputs = list(observation["tool_outputs"].values())
    assert len(outputs) == 6 and outputs[4] == "1"
    assert all(len(text) < 300 for text in outputs)
    assert (reward, done) == (0.0, True) and len(info["response"]) <= 10_000


def test_calls_beyond_a_number_are_refused():
    env = make()
    env.reset()
    outputs = env.step([call("calculator", {"expression": "1"})] * 70)[0]["tool_outputs"]
    assert list(outputs.values()) == ["1"] * 64 + ["Error: an action has at most 64 tool calls"] * 6


@pytest.mark.parametrize("response", [[[1]], {"a": 1}, 42, None])
def test_a_response_that_is_no_text_is_written_as_one(response):
    env = make()
    env.reset()
    assert env.step(call("finish", {"response": response}))[3]["response"] == str(response)


class BrokenTool(Tool):
    """Need a sandbox that is down."""

    name = "broken"

    def forward(self, kind: str) -> str:
        """Fail."""
        raise {"sandbox": SandboxError, "value": ValueError, "exit": SystemExit}[kind]("down")


def test_a_sandbox_that_fails_ends_the_episode_and_an_exception_is_an_answer():
    env = make(tools=[BrokenTool])
    env.reset()
    outputs = env.step([call("broken", {"kind": k}, k) for k in ("value", "exit", "odd")])[0]
    assert outputs["tool_outputs"] == {
        "value": "Error: ValueError: down",
        "exit": "Error: SystemExit: down",
        "odd": "Error: KeyError: 'odd'",
    }
    with pytest.raises(SandboxError, match="down"):
        env.step(call("broken", {"kind": "sandbox"}))


def test_no_call_is_answered_with_no_outputs():
    env = make()
    env.reset()
    assert env.step(None)[0] == {"tool_outputs": {}}
    assert env.step([])[0] == {"tool_outputs": {}}
    assert list(env.step([3])[0]["tool_outputs"].values()) == [
        "Error: a tool call must be an object, got 3"
    ]


def test_calls_that_share_an_id_or_have_none_are_all_answered():
    env = make()
    env.reset()
    calls = [call("calculator", {"expression": str(n)}, "same") for n in range(2)]
    calls += [call("calculator", {"expression": str(n)}) for n in range(2, 4)]
    outputs = env.step(calls)[0]["tool_outputs"]
    assert list(outputs.values()) == ["0", "1", "2", "3"]


def test_the_last_allowed_step_ends_the_episode():
    env = make(max_steps=2)
    env.reset()
    assert env.step(call("calculator", {"expression": "1"}))[2] is False
    observation, reward, done, _ = env.step(call("calculator", {"expression": "2"}, "z"))
    assert (observation, reward, done) == ({"tool_outputs": {"z": "2"}}, 0.0, True)
    env.reset()
    assert env.step(None)[2] is False


def test_tools_run_side_by_side_and_a_slow_one_is_given_up():
    env = make(tools=[SleepTool], tool_timeout=0.5)
    env.reset()
    start = time.perf_counter()
    outputs = env.step(
        [call("sleep", {"seconds": 0.2}, "a"), call("sleep", {"seconds": 0.2}, "b"),
         call("sleep", {"seconds": 60}, "c")]
    )[0]["tool_outputs"]  # fmt: skip
    assert time.perf_counter() - start < 2.0
    assert outputs == {
        "a": "slept 0.2",
        "b": "slept 0.2",
        "c": "Error: sleep took longer than 0.5 s",
    }


def test_a_reward_function_may_return_a_number():
    env = make(reward_fn=lambda task_info, action: 0.25)
    env.reset()
    _, reward, _, info = env.step("x")
    assert (reward, info["is_correct"], info["metadata"]) == (0.25, True, {})


def test_from_dict_leaves_the_callers_dict_as_it_is():
    fields = {**TASK, "tools": ["calculator"], "reward_fn": math_reward_fn, "max_steps": 2}
    before = dict(fields)
    env = ToolEnvironment.from_dict(fields)
    assert fields == before
    assert env.task == TASK
    assert env.max_steps == 2


def test_a_tool_map_names_the_tools():
    env = make(tools=None, tool_map={"calc": CalculatorTool})
    env.reset()
    assert env.step(call("calc", {"expression": "1"}, "a"))[0] == {"tool_outputs": {"a": "1"}}


def test_without_a_reward_function_it_warns_and_pays_nothing():
    with pytest.warns(UserWarning, match="reward 0"):
        env = make(reward_fn=None)
    env.reset()
    assert env.step(r"\boxed{3901}")[1] == 0.0


@pytest.mark.parametrize(
    "arguments",
    [
        {"max_steps": 0},
        {"tool_timeout": 0},
        {"tool_timeout": float("nan")},
        {"tools": ["none"]},
        {"max_steps": 1.5},
    ],
)
def test_arguments_out_of_range_are_refused(arguments):
    with pytest.raises(EnvArgumentError):
        make(**arguments)


def test_environments_in_threads_do_not_disturb_each_other():
    results = {}

    def run(number):
        env = make(task={"answer": str(number)})
        env.reset()
        shown = env.step(call("calculator", {"expression": f"{number} + 0"}, "a"))[0]
        results[number] = (shown["tool_outputs"]["a"], env.step(f"\\boxed{{{number}}}")[1])

    threads = [threading.Thread(target=run, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {n: (str(n), 1.0) for n in range(8)}
