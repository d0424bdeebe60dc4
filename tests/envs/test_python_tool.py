import os
import sys
import threading
import time

import psutil
import pytest

from rllm_envs import EnvArgumentError, PythonTool, ToolEnvironment


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


def test_what_the_code_does_to_its_directory_does_not_stop_the_caller():
    pipe = "import os\nfor n in ('stdout', 'stderr'): os.mkfifo(f'../{n}')\nprint('done')"
    assert run(pipe, timeout=3) == "done"
    assert run("import shutil; shutil.rmtree('../work'); print('gone')") == "gone"


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


def test_children_that_outlive_the_code_are_killed():
    mark = "rllm-child-" + str(os.getpid())
    code = (
        "import subprocess, sys\n"
        f"subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)', '{mark}'])\n"
        "print('started')"
    )
    assert run(code) == "started"
    time.sleep(0.2)
    alive = [p for p in psutil.process_iter(["cmdline"]) if mark in (p.info["cmdline"] or [])]
    assert not alive


def test_processes_that_multiply_are_ended_together():
    mark = "rllm-fork-" + str(os.getpid())
    code = (
        "import os, sys, time\n"
        f"if not os.environ.get('MARK'): os.execve(sys.executable, [sys.executable, '-c', "
        "'import os, time; [os.fork() for _ in range(5)]; time.sleep(60)', "
        f"'{mark}'], {{'MARK': '1'}})"
    )
    assert "took longer" in run(code, timeout=1)  # 2 ** 5 processes
    time.sleep(0.2)
    assert not [p for p in psutil.process_iter(["cmdline"]) if mark in (p.info["cmdline"] or [])]


@pytest.mark.skipif(os.getuid() == 0, reason="the system does not limit processes of root")
@pytest.mark.skipif(sys.platform != "linux", reason="processes are limited on Linux")
def test_the_number_of_processes_is_limited():
    code = "import os, time\nfor n in range(500):\n    if os.fork() == 0: time.sleep(60)"
    assert "BlockingIOError" in run(code)


def test_the_code_sees_none_of_the_callers_environment(monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "abc")
    assert run("import os; print(os.environ.get('SECRET_KEY'), os.listdir('.'))") == "None []"


def test_two_calls_at_once_do_not_meet():
    answers: dict[int, str] = {}

    def call(number: int) -> None:
        answers[number] = run(f"open('f', 'w').write('{number}'); print(open('f').read())")

    threads = [threading.Thread(target=call, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {0: "0", 1: "1"}


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
