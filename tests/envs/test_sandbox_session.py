import os
import signal
import threading
import time

import pytest

from rllm_envs.errors import SandboxError
from rllm_envs.sandbox import Limits, Sandbox, SandboxSession


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(modules=[]) as made:
        yield made


@pytest.fixture
def session(sandbox):
    made = SandboxSession(sandbox, Limits(timeout_seconds=5.0, output_bytes=2**20))
    yield made
    made.close()


def test_a_new_sandbox_can_begin_with_a_session():
    with Sandbox(modules=[]) as sandbox:
        session = SandboxSession(sandbox)
        result = session.run("x = 20\nx + 1")
        assert (result.status, result.stdout, result.stderr) == ("ok", "21\n", "")
        assert session.run("x * 2").stdout == "40\n"
        assert not session.was_lost
        session.close()


def test_a_program_that_takes_too_long_is_ended_at_its_limit(sandbox):
    session = SandboxSession(sandbox, Limits(timeout_seconds=0.5))
    started = time.monotonic()
    assert session.run("while True: pass").status == "timeout"
    assert time.monotonic() - started < 4
    assert session.was_lost
    assert session.run("5").stdout == "5\n"
    assert not session.was_lost
    session.close()


def test_a_process_that_ends_between_programs_is_replaced_before_the_next(session):
    session.run("x = 1\nimport os, threading\nthreading.Timer(0.05, os._exit, (0,)).start()")
    deadline = time.monotonic() + 5
    while session._process.is_idle and time.monotonic() < deadline:
        os.sched_yield()
    result = session.run("print('well'); x")
    assert result.stdout == "well\n"
    assert "NameError" in result.stderr
    assert session.was_lost


def test_output_without_end_after_a_program_holds_nobody_up(session):
    flood = (
        "import os, threading\n"
        "def flood():\n"
        "    while True: os.write(1, bytes(65536))\n"
        "for _ in range(4): threading.Thread(target=flood, daemon=True).start()"
    )
    started = time.monotonic()
    assert session.run(flood).status in ("ok", "output_limit")
    assert time.monotonic() - started < 4


FORGED = "import os, struct, time\nos.write(3, struct.pack('=qiddq', {}, 7 << 8, {}, {}, -5))\n"


def test_a_report_that_the_program_makes_up_is_only_believed_to_be_one(session):
    result = session.run(FORGED.format(1, "float('inf')", "float('nan')") + "time.sleep(60)")
    assert (result.exit_code, result.cpu_seconds, result.max_rss_bytes) == (7, 0.0, 0)
    assert session.run("1").status == "timeout"
    assert session.was_lost


def test_a_made_up_report_does_not_shift_the_results_of_the_next_programs(session):
    assert session.run(FORGED.format(1, 0.0, 0.0) + "time.sleep(0.2)").exit_code == 7
    result = session.run("import time; time.sleep(2); print(2)")
    assert (result.stdout, result.exit_code) == ("", None)  # the true report came, of another
    assert session.was_lost
    assert session.run("print(3)").stdout == "3\n"
    assert session.run("import os; os.write(3, b'short'); time.sleep(9)").exit_code is None
    assert session.run("6").stdout == "6\n"


def test_an_interrupted_program_takes_its_process_with_it(session):
    session.run("x = 1")
    before = len(os.listdir("/proc/self/fd"))
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        session.run("import time; time.sleep(60)")
    timer.join()
    assert len(os.listdir("/proc/self/fd")) < before
    assert "NameError" in session.run("x").stderr
    assert session.was_lost


def test_programs_of_sessions_take_the_places_of_the_sandbox():
    with Sandbox(modules=[], max_parallel=1) as sandbox:
        sessions = [SandboxSession(sandbox) for _ in range(2)]
        for session in sessions:
            session.run("import time")
        threads = [
            threading.Thread(target=session.run, args=("time.sleep(0.4)",)) for session in sessions
        ]
        started = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert time.monotonic() - started >= 0.8
        for session in sessions:
            session.close()


def test_a_sandbox_that_is_closed_ends_its_sessions():
    sandbox = Sandbox(modules=[])
    session = SandboxSession(sandbox)
    session.run("1")
    before = len(os.listdir("/proc/self/fd"))
    sandbox.close()
    with pytest.raises(SandboxError):
        session.run("2")
    assert len(os.listdir("/proc/self/fd")) < before
