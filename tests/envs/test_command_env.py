import pytest

from rllm_envs.core import Response
from rllm_envs.errors import ToolError
from rllm_envs.tool_use.command_env import MAX_COMMAND_LENGTH, CommandEnv, clipped
from rllm_envs.tool_use.functions import Function, Parameter, write_call
from rllm_envs.tool_use.tool_call_env import ToolCallEnv


class Echo(CommandEnv):
    takes_answer = True

    def generate_task(self):
        return {"word": int(self.np_random.integers(1000))}

    def begin(self, task):
        return "Say it."

    def run_command(self, command):
        return Response(f"heard {command}")

    def is_correct(self, answer):
        return answer == "yes"

    def oracle_action(self):
        return r"\boxed{yes}"


class Doubler(ToolCallEnv):
    functions = (
        Function("double", "Double a number.", (Parameter("x", "integer", "Number.", (), 2),)),
    )

    def generate_task(self):
        return {"word": int(self.np_random.integers(1000))}

    def begin(self, task):
        return self.manual()

    def run_call(self, name, arguments):
        if arguments["x"] < 0:
            raise ToolError("too small")
        return Response(str(2 * arguments["x"]))

    def oracle_action(self):
        return self.call("double", x=1)


def step(env, action):
    observation, reward, terminated, _, info = env.step(action)
    return observation, reward, terminated, info["invalid"]


@pytest.mark.parametrize(
    ("action", "answer"),
    [
        ("<command> a b </command>", ("heard a b", 0.0, False, False)),
        ("<command>a</command> or <command>b</command>", ("heard b", 0.0, False, False)),
        (r"<command>a</command> \boxed{yes}", ("", 1.0, True, False)),
        (r"\boxed{no}", ("", 0.0, True, False)),
        ("<command></command>", (CommandEnv.hint, 0.0, False, True)),
        ("<think><command>a</command></think>", (CommandEnv.hint, 0.0, False, True)),
        ("", (CommandEnv.hint, 0.0, False, True)),
    ],
)
def test_a_box_counts_before_the_last_command(action, answer):
    env = Echo(max_turns=5)
    env.reset(seed=0)
    assert step(env, action) == answer


def test_a_command_that_is_too_long_is_invalid():
    env = Echo(max_turns=5)
    env.reset(seed=0)
    assert step(env, env.tagged("x" * MAX_COMMAND_LENGTH))[3] is False
    observation, _, _, is_invalid = step(env, env.tagged("x" * (MAX_COMMAND_LENGTH + 1)))
    assert (str(MAX_COMMAND_LENGTH) in observation, is_invalid) == (True, True)


def test_long_text_is_cut_and_says_how_much():
    assert clipped("abc", 3) == "abc"
    assert clipped("abcdef", 4) == "abcd\n... (2 more characters are not shown)"


@pytest.mark.parametrize(
    ("content", "observation", "is_invalid"),
    [
        (write_call("double", {"x": 21}), "42", False),
        (write_call("double", {}), "4", False),
        (f"[{write_call('double', {'x': 5})}]", "10", False),
        (write_call("double", {"x": -1}), "Error: too small", False),
        (write_call("double", {"x": "2"}), "Error: x must be of type integer, got '2'", True),
        (write_call("triple", {}), "Error: there is no function 'triple'; known: double", True),
    ],
)
def test_calls_are_checked_before_they_are_run(content, observation, is_invalid):
    env = Doubler(max_turns=5)
    assert env.reset(seed=0)[0] == "double(x: integer = 2): Double a number."
    assert step(env, env.tagged(content)) == (observation, 0.0, False, is_invalid)


def test_several_calls_or_none_are_refused():
    env = Doubler(max_turns=5)
    env.reset(seed=0)
    for content in ("[]", f"[{write_call('double', {})}, {write_call('double', {})}]", "{", "1"):
        observation, _, _, is_invalid = step(env, env.tagged(content))
        assert observation.startswith("Error: ")
        assert is_invalid is True
