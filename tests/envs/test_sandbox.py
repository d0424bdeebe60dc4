import asyncio
import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from rllm_envs import sandbox as sandbox_package
from rllm_envs.errors import EnvArgumentError, SandboxError, SandboxUnavailableError
from rllm_envs.sandbox import Sandbox, SandboxResult, default_sandbox, run, use_sandbox

MIB = 2**20


@pytest.fixture(scope="module", params=["fork server", "fresh interpreters"])
def sandbox(request):
    with Sandbox(fork_server=request.param == "fork server", modules=["numpy"]) as made:
        yield made


def test_a_good_program_prints_its_answer(sandbox):
    result = sandbox.run("print(6 * 7)")
    assert (result.status, result.exit_code, result.signal) == ("ok", 0, None)
    assert (result.stdout, result.stderr, result.truncated) == ("42\n", "", False)
    assert 0 < result.cpu_seconds < 5
    assert 0 <= result.max_rss_bytes < 500 * MIB


def test_an_exception_is_shown_with_the_programs_lines_only(sandbox):
    result = sandbox.run("def f():\n    return 1 / 0\nf()")
    assert result.status == "error"
    assert result.exit_code == 1
    assert 'File "program.py", line 2, in f\n    return 1 / 0' in result.stderr
    assert "ZeroDivisionError: division by zero" in result.stderr
    assert "inside" not in result.stderr


def test_exit_codes_are_those_of_the_program(sandbox):
    assert sandbox.run("import sys; sys.exit(3)").exit_code == 3
    assert sandbox.run("exit()").exit_code == 0
    assert sandbox.run("raise SystemExit('why')").stderr == "why\n"
    assert sandbox.run("import os; os.abort()").signal == signal.SIGABRT


def test_a_program_reads_its_stdin_and_its_files(sandbox):
    code = "import helper, sys; print(helper.double(int(input())), open('d/data.txt').read())"
    files = {"helper.py": "def double(x): return 2 * x", "d/data.txt": "text"}
    assert sandbox.run(code, stdin="21\n", files=files).stdout == "42 text\n"
    assert sandbox.run("import sys; print(len(sys.stdin.read()))", stdin="x" * MIB).stdout == (
        f"{MIB}\n"
    )


def test_what_was_printed_before_the_time_was_over_is_kept(sandbox):
    result = sandbox.run("print('first')\nwhile True: pass", timeout_seconds=0.5)
    assert (result.status, result.exit_code, result.stdout) == ("timeout", None, "first\n")
    assert 0.5 <= result.wall_seconds < 2


def test_output_is_cut_at_the_limit_and_the_program_ended(sandbox):
    result = sandbox.run("while True: print('x' * 99)", output_bytes=1000)
    assert result.status == "output_limit"
    assert result.truncated
    assert result.stdout == ("x" * 99 + "\n") * 10


def test_memory_counts_from_what_the_interpreter_has(sandbox):
    assert sandbox.run("x = bytearray(40 * 2**20)", memory_bytes=64 * MIB).status == "ok"
    assert sandbox.run("x = bytearray(80 * 2**20)", memory_bytes=64 * MIB).status == "memory"
    numpy = "import numpy\nx = numpy.ones(2**27)"
    assert sandbox.run(numpy, memory_bytes=512 * MIB).status == "memory"


def test_files_can_be_written_only_where_it_is_allowed(sandbox):
    code = "open('a.txt', 'w').write('x'); import os; print(sorted(os.listdir()))"
    assert "PermissionError" in sandbox.run(code, files={"b": "y"}).stderr
    assert sandbox.run(code, files={"b": "y"}, writable_bytes=MIB).stdout == "['a.txt', 'b']\n"


def test_ordinary_libraries_work(sandbox):
    code = """
import asyncio, collections, concurrent.futures, dataclasses, datetime, decimal, fractions, json
import random, re, sqlite3, statistics, threading, uuid, zoneinfo
import numpy as np
assert concurrent.futures.ThreadPoolExecutor(4).submit(pow, 2, 5).result() == 32
async def work():
    await asyncio.sleep(0.001)
    return 7
assert asyncio.run(work()) == 7
assert sqlite3.connect(':memory:').execute('select 1 + 1').fetchone() == (2,)
assert np.linalg.det(np.eye(3)) == 1
assert zoneinfo.ZoneInfo('UTC') and uuid.uuid4() and re.match('a', 'a') and json.loads('1')
print(round(statistics.mean([1, 2]), 1), datetime.date(2020, 1, 1), random.random() < 1)
open('/dev/null', 'w').write('x')
"""
    result = sandbox.run(code)
    assert (result.stdout, result.stderr) == ("1.5 2020-01-01 True\n", "")


def test_each_run_has_randomness_of_its_own(sandbox):
    code = "import random, numpy; print(random.random(), numpy.random.rand())"
    assert len({sandbox.run(code).stdout for _ in range(3)}) == 3


def test_the_value_of_a_last_expression_is_printed_if_asked(sandbox):
    assert sandbox.run("x = 2\nx + 1", echo=True).stdout == "3\n"
    assert sandbox.run("x = 2\nx + 1").stdout == ""
    assert sandbox.run("None", echo=True).stdout == ""


def test_threads_that_run_on_are_waited_for(sandbox):
    code = (
        "import threading, time\n"
        "threading.Thread(target=lambda: (time.sleep(.1), print('end'))).start()"
    )
    assert sandbox.run(code).stdout == "end\n"
    assert sandbox.run("import atexit; atexit.register(print, 'bye')").stdout == "bye\n"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (None, "must be text"),
        ("x = 1\0", "NUL"),
        ("'\ud800'", "half of a character pair"),
        ("x" * 300_000, "longer than 262144"),
    ],
)
def test_a_source_that_cannot_be_run_is_an_error_of_the_program(sandbox, source, reason):
    result = sandbox.run(source)
    assert result.status == "error"
    assert reason in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        {"timeout_seconds": 0},
        {"timeout_seconds": float("nan")},
        {"timeout_seconds": True},
        {"memory_bytes": 1000},
        {"output_bytes": 0},
        {"writable_bytes": -1},
        {"files": {"../x": ""}},
        {"files": {"/etc/x": ""}},
        {"files": {"a/../../x": ""}},
        {"files": {"": ""}},
        {"files": {"a": 3}},
        {"stdin": 3},
        {"stdin": "\ud800"},
    ],
)
def test_a_wrong_argument_is_the_callers_error(sandbox, arguments):
    with pytest.raises(EnvArgumentError):
        sandbox.run("print(1)", **arguments)


def test_the_event_loop_goes_on_and_the_results_are_those_of_the_calls(sandbox):
    async def many():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        ticking = asyncio.create_task(tick())
        results = await asyncio.gather(
            *(sandbox.run_async(f"import time; time.sleep(.1); print({n})") for n in range(8))
        )
        ticking.cancel()
        return ticks, [result.stdout for result in results]

    ticks, printed = asyncio.run(many())
    assert printed == [f"{n}\n" for n in range(8)]
    assert ticks >= 10


def test_a_cancelled_call_ends_its_program(sandbox):
    async def cancel():
        call = asyncio.create_task(sandbox.run_async("import time; time.sleep(60)"))
        await asyncio.sleep(0.3)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    before = _children_of_children()
    asyncio.run(cancel())
    assert _soon(lambda: _children_of_children() <= before)


def test_500_runs_from_64_threads_leave_nothing_behind(sandbox):
    sandbox.run("print(1)")
    before = len(os.listdir("/proc/self/fd"))
    wrong, numbers = [], queue.SimpleQueue()
    for number in range(500):
        numbers.put(number)

    def work():
        with contextlib.suppress(queue.Empty):
            while True:
                number = numbers.get_nowait()
                result = sandbox.run(f"print({number})", timeout_seconds=60)
                if result.stdout != f"{number}\n":
                    wrong.append(result)

    threads = [threading.Thread(target=work) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert numbers.empty()
    assert len(os.listdir("/proc/self/fd")) == before
    assert _zombies() == 0


def test_500_runs_from_64_tasks_leave_nothing_behind(sandbox):
    sandbox.run("print(1)")
    before = len(os.listdir("/proc/self/fd"))

    async def all_of_them():
        slots = asyncio.Semaphore(64)

        async def one(number):
            async with slots:
                return (await sandbox.run_async(f"print({number})", timeout_seconds=60)).stdout

        return await asyncio.gather(*map(one, range(500)))

    assert asyncio.run(all_of_them()) == [f"{number}\n" for number in range(500)]
    assert len(os.listdir("/proc/self/fd")) <= before + 2
    assert _zombies() == 0


def test_a_time_limit_that_races_with_the_end_confuses_nothing(sandbox):
    """The limit is about as long as the program, so kill and end come in either order."""
    statuses = set()
    for number in range(200):
        seconds = 0.001 * (1 + number % 10)
        result = sandbox.run(
            f"import time; time.sleep({seconds}); print({number})", timeout_seconds=seconds + 0.0005
        )
        statuses.add(result.status)
        assert result.status in ("ok", "timeout")
        assert result.stdout in ("", f"{number}\n")
        if result.status == "ok":
            assert result.stdout == f"{number}\n"
    assert "timeout" in statuses


@pytest.mark.parametrize("fork_server", [True, False])
def test_a_supervisor_that_is_killed_leaves_no_child(fork_server):
    script = (
        "import os, threading, time\n"
        "from rllm_envs.sandbox import Sandbox\n"
        f"s = Sandbox(fork_server={fork_server}, modules=[])\n"
        "code = \"import ctypes, time; ctypes.CDLL(None).prctl(15, b'orphan-test', 0, 0, 0); \"\n"
        "code += 'time.sleep(60)'\n"
        "threading.Thread(target=s.run, args=(code,), daemon=True).start()\n"
        "time.sleep(30)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script])
    try:
        assert _soon(lambda: _named("orphan-test") == 1, 20)
    finally:
        process.kill()
        process.wait()
    assert _soon(lambda: _named("orphan-test") == 0, 2)


def test_a_fork_server_that_is_killed_is_replaced():
    with Sandbox(modules=[]) as sandbox:
        assert sandbox.run("print(1)").stdout == "1\n"
        assert sandbox._server is not None
        os.kill(sandbox._server._process.pid, signal.SIGKILL)
        assert sandbox.run("print(2)").stdout == "2\n"


def test_a_program_that_cannot_be_confined_is_the_sandboxs_failure():
    with Sandbox(fork_server=False) as sandbox:
        policy = sandbox._confinement.lockdown
        if policy is None:
            pytest.skip("there is no lockdown on this system")
        broken = type(policy)(policy.readable, b"\0" * 8, (), policy.capset)
        sandbox._confinement = type(sandbox._confinement)(broken)
        with pytest.raises(SandboxError, match="PR_SET_SECCOMP"):
            sandbox.run("print(1)")


def test_a_closed_sandbox_says_so():
    sandbox = Sandbox(modules=[])
    sandbox.close()
    with pytest.raises(SandboxError, match="closed"):
        sandbox.run("print(1)")


@pytest.mark.parametrize("arguments", [{"level": "docker"}, {"max_parallel": 0}])
def test_a_sandbox_names_the_arguments_that_are_allowed(arguments):
    with pytest.raises(EnvArgumentError):
        Sandbox(**arguments)


class _Remote:
    description = "elsewhere"

    def run(self, code, **arguments):
        return SandboxResult("ok", 0, None, f"ran {code}", "", False, 0.0, 0.0, 0)

    async def run_async(self, code, **arguments):
        return self.run(code)


@pytest.fixture
def fresh_default(monkeypatch):
    before = sandbox_package._default
    monkeypatch.setattr(sandbox_package, "_default", None)
    yield
    made = sandbox_package._default
    if made is not before and isinstance(made, Sandbox):
        made.close()


def test_a_sandbox_of_ones_own_takes_the_place_of_the_default(fresh_default, monkeypatch):
    use_sandbox(_Remote())
    assert run("x").stdout == "ran x"
    monkeypatch.setattr(sandbox_package, "_default", None)
    monkeypatch.setenv("RLLM_SANDBOX", f"{__name__}:_Remote")
    assert run("y").stdout == "ran y"


@pytest.mark.parametrize("name", ["docker", "no_such_module:make", "os:sep", "os:nothing"])
def test_a_name_that_is_no_sandbox_is_refused(fresh_default, monkeypatch, name):
    monkeypatch.setenv("RLLM_SANDBOX", name)
    with pytest.raises(SandboxUnavailableError):
        default_sandbox()


def _soon(is_true, seconds=5.0):
    deadline = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _named(name):
    count = 0
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            count += entry.name.isdecimal() and (entry / "comm").read_text().strip() == name
    return count


def _stats():
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdecimal():
                _, _, rest = (entry / "stat").read_text().rpartition(") ")
                state, parent = rest.split()[:2]
                yield int(entry.name), state, int(parent)


def _children_of_children():
    stats = list(_stats())
    children = {pid for pid, _, parent in stats if parent == os.getpid()}
    return sum(parent in children for _, _, parent in stats) + len(children)


def _zombies():
    stats = list(_stats())
    children = {pid for pid, _, parent in stats if parent == os.getpid()} | {os.getpid()}
    return sum(state == "Z" and parent in children for _, state, parent in stats)
