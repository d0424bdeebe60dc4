import threading
import time

import pytest

from rllm_envs import EnvArgumentError, PythonTool, ToolEnvironment
from rllm_envs.errors import SandboxError


def run(code: str, **settings: float) -> str:
    return PythonTool(**settings).call({"code": code}).text  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("print('a'); print('b')", "a\nb"),
        ("x = 6\nx * 7", "42"),
        ("'text'", "'text'"),
        ("x = 1", "[the code printed nothing]"),
        ("print('\u00e9\u4e16\U0001f600')", "\u00e9\u4e16\U0001f600"),
        ("def f():\n    return 3\nf()", "3"),
        ("import sys; print(len(sys.argv)); sys.exit(0)", "1"),
    ],
)
def test_what_is_printed_and_the_last_value_are_returned(code, text):
    assert run(code) == text


def test_errors_come_after_the_output_and_name_the_line():
    text = run("print('before')\n1 / 0")
    assert text.startswith("before\nTraceback")
    assert text.endswith("ZeroDivisionError: division by zero")
    assert 'File "program.py", line 2' in text and "<string>" not in text
    assert "    1 / 0" in text
    assert "SyntaxError" in run("print(")
    assert "EOFError" in run("input()")
    assert run("import sys; sys.exit(3)") == "Error: the process ended with status 3"


def test_an_error_is_shown_however_much_stands_before_it():
    noise = "import sys\nfor i in range(20_000): print('warning', i, file=sys.stderr)\n"
    text = run(noise + "1 / 0", max_output_characters=300)
    assert text.endswith("ZeroDivisionError: division by zero") and len(text) <= 300
    calls = "def f(): return g()\ndef g(): return f()\nf()"
    assert run(calls).endswith("RecursionError: maximum recursion depth exceeded")


def test_classes_of_the_code_can_be_pickled():
    code = "import pickle\nclass C: pass\ntype(pickle.loads(pickle.dumps(C()))).__name__"
    assert run(code) == "'C'"


def test_an_endless_loop_is_ended_in_time():
    started = time.monotonic()
    text = run("print('before')\nwhile True: pass", timeout=1)
    assert text == "before\nError: the code took longer than 1 s and was ended"
    assert time.monotonic() - started < 10


def test_memory_and_output_are_bounded():
    assert "MemoryError" in run("x = bytearray(10 * 2**30)")
    text = run("for i in range(10**9): print('y' * 1000)", max_output_characters=500, timeout=20)
    assert text.startswith("y" * 500) and len(text) < 2000
    assert "the output is longer and was cut here" in text


def test_output_without_end_is_ended():
    assert "printed more than 1048576 bytes" in run("while True: print('y' * 1000)")


def test_the_code_is_confined():
    assert "PermissionError" in run("open('/etc/passwd')")
    assert "PermissionError" in run("import subprocess; subprocess.run(['true'])")


def test_the_code_sees_none_of_the_callers_environment(monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "abc")
    assert run("import os; print(os.environ.get('SECRET_KEY'))") == "None"


def call(env, code, call_id="c"):
    observation, *_ = env.step([{"id": call_id, "name": "python", "arguments": {"code": code}}])
    return observation["tool_outputs"][call_id]


def test_variables_live_as_long_as_the_episode_if_asked():
    tool = PythonTool(persistent=True, timeout=2)
    envs = [ToolEnvironment({}, tools=[tool], reward_fn=lambda **_: 1.0) for _ in range(2)]
    for number, env in enumerate(envs):
        env.reset()
        assert call(env, f"x = {number}\ndef f(): return x + 10") == "[the code printed nothing]"
    assert [call(env, "f()") for env in envs] == ["10", "11"]
    assert "ZeroDivisionError" in call(envs[0], "1 / 0")
    assert call(envs[0], "x") == "0"
    lost = call(envs[0], "print('on')\nwhile True: pass")
    assert lost.startswith("on\nError: the code took longer than 2 s")
    assert lost.endswith("[the variables are lost]")
    assert "NameError" in call(envs[0], "x")
    envs[1].reset()
    assert "NameError" in call(envs[1], "x")
    for env in envs:
        env.close()


def test_calls_without_persistence_share_nothing():
    env = ToolEnvironment({}, tools=["python"], reward_fn=lambda **_: 1.0)
    env.reset()
    call(env, "x = 1")
    assert "NameError" in call(env, "x")


class _BrokenSandbox:
    description = "broken"

    def run(self, code, **arguments):
        raise SandboxError("the machine is gone")

    async def run_async(self, code, **arguments):
        raise SandboxError("the machine is gone")


def test_a_sandbox_that_fails_is_no_answer_to_the_agent():
    tool = PythonTool(sandbox=_BrokenSandbox())
    env = ToolEnvironment({}, tools=[tool], reward_fn=lambda **_: 1.0)
    env.reset()
    with pytest.raises(SandboxError, match="gone"):
        call(env, "1")
    with pytest.raises(SandboxError, match="on this machine, not broken"):
        PythonTool(sandbox=_BrokenSandbox(), persistent=True).call({"code": "1"})


@pytest.mark.parametrize(
    "settings",
    [
        {"timeout": 0},
        {"timeout": 1e9},
        {"timeout": "3"},
        {"memory_bytes": 1},
        {"memory_bytes": 1e9},
        {"max_output_characters": 9},
        {"max_output_characters": 500.5},
    ],
)
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(EnvArgumentError, match="must be"):
        PythonTool(**settings)


def test_code_that_cannot_be_run_is_answered():
    assert run("\ud800").startswith("Error: ")
    assert run("1" * 200_000).startswith("Error: the code is longer")


def test_an_environment_gives_a_call_up_before_the_tool_does():
    tool = PythonTool(timeout=3)
    env = ToolEnvironment({}, tools=[tool], reward_fn=lambda **_: 1.0, tool_timeout=0.3)
    env.reset()
    started = time.monotonic()
    call = {"id": "c", "name": "python", "arguments": {"code": "while True: pass"}}
    observation, *_ = env.step([call])
    assert observation == {"tool_outputs": {"c": "Error: python took longer than 0.3 s"}}
    assert time.monotonic() - started < 2


def test_it_is_known_by_name_in_an_environment():
    env = ToolEnvironment({"question": "?"}, tools=["python"], reward_fn=lambda **_: 1.0)
    env.reset()
    call = {"id": "c", "function": {"name": "python", "arguments": '{"code": "2 ** 10"}'}}
    observation, *_ = env.step([call])
    assert observation == {"tool_outputs": {"c": "1024"}}


def test_first_calls_at_once_share_their_variables():
    tool = PythonTool(persistent=True, timeout=5)
    code = "n = globals().get('n', 0) + 1"
    threads = [threading.Thread(target=tool.call, args=({"code": code},)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tool.call({"code": "n"}).text == "8"
    tool.close()
