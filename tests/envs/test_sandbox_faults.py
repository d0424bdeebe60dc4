"""Sandboxes in processes that have little, have much, or fork; programs that leave much."""

import asyncio
import resource
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

from rllm_envs.errors import SandboxError, SandboxUnavailableError
from rllm_envs.sandbox import Program, Sandbox

MIB = 2**20
DESCRIPTORS = """
import fcntl
for number in range(8192):
    try: fcntl.fcntl(number, fcntl.F_GETFD)
    except OSError: continue
    print(number, end=' ')
"""


@pytest.fixture(scope="module", params=["fork server", "fresh interpreters"])
def sandbox(request):
    with Sandbox(fork_server=request.param == "fork server", modules=[]) as made:
        yield made


def _run_script(script, timeout=60):
    """Run a script in a process of its own, and return what it printed."""
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("fork_server", [True, False])
def test_a_program_gets_no_descriptor_of_a_process_that_has_thousands(fork_server):
    script = f"""
    import os, resource
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))
    from rllm_envs.sandbox import Sandbox
    with Sandbox(fork_server={fork_server}, modules=[]) as sandbox:
        kept = [os.open("/dev/null", os.O_RDONLY) for _ in range(1500)]
        print(sandbox.run({DESCRIPTORS!r}).stdout)
    """
    assert _run_script(script).split() == ["0", "1", "2"]


@pytest.mark.parametrize("fork_server", [True, False])
def test_few_descriptors_are_enough(fork_server):
    script = f"""
    import resource
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    from rllm_envs.sandbox import Sandbox
    with Sandbox(fork_server={fork_server}, modules=[]) as sandbox:
        print(sandbox.run("print(6 * 7)").stdout)
    """
    assert _run_script(script).split() == ["42"]


def test_no_descriptors_are_a_failure_of_the_sandbox_at_each_step():
    """Whatever call is the one that gets none, the error is the same, and nothing leaks."""
    script = """
    import os, resource
    from rllm_envs.errors import SandboxError
    from rllm_envs.sandbox import Sandbox, SandboxSession
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, 4096))
    def fill():
        kept = []
        while True:
            try: kept.append(os.open("/dev/null", os.O_RDONLY))
            except OSError: return kept
    for fork_server in (True, False):
        for number in range(16):
            sandbox = Sandbox(fork_server=fork_server, modules=[])
            before = len(os.listdir("/proc/self/fd"))
            kept = fill()
            for descriptor in kept[:number]: os.close(descriptor)
            try:
                sandbox.run("1")
                if fork_server: SandboxSession(sandbox).run("1")
            except SandboxError: pass
            for descriptor in kept[number:]: os.close(descriptor)
            sandbox.close()
            if not fork_server: assert len(os.listdir("/proc/self/fd")) == before
    children = open(f"/proc/self/task/{os.getpid()}/children").read()
    print("well", children)
    """
    assert _run_script(script).split() == ["well"]


def test_a_fork_server_without_descriptors_goes_on():
    with Sandbox(modules=[]) as sandbox:
        sandbox.run("1")
        assert sandbox._server is not None
        server = sandbox._server._process.pid
        most = resource.prlimit(server, resource.RLIMIT_NOFILE)[1]
        resource.prlimit(server, resource.RLIMIT_NOFILE, (9, most))
        with pytest.raises(SandboxError, match="could not start a process"):
            sandbox.run("1")
        resource.prlimit(server, resource.RLIMIT_NOFILE, (most, most))
        assert sandbox.run("print(1)").stdout == "1\n"
        assert sandbox._server._process.pid == server


def test_signals_that_the_caller_blocks_are_not_blocked_for_programs():
    everything = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        with Sandbox(modules=[]) as sandbox:
            code = "import signal; print(signal.pthread_sigmask(signal.SIG_BLOCK, ()))"
            result = sandbox.run(code, timeout_seconds=20)
            assert result.stdout == "set()\n"
            assert result.wall_seconds < 10
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, everything)


def test_a_child_that_others_collect_is_a_failure_of_the_sandbox():
    with Sandbox(fork_server=False) as sandbox:
        before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        try:
            with pytest.raises(SandboxError, match="collected by other code"):
                sandbox.run("1")
        finally:
            signal.signal(signal.SIGCHLD, before)


def test_a_fork_of_the_process_runs_programs_of_its_own():
    script = """
    import os, threading, time
    from rllm_envs.sandbox import Sandbox
    sandbox = Sandbox(modules=[], max_parallel=2)
    code = "import time; time.sleep(1.5)"
    threads = [threading.Thread(target=sandbox.run, args=(code,)) for _ in range(2)]
    for thread in threads: thread.start()
    while sandbox._slots._value: pass
    while sandbox._server is None: pass
    child = os.fork()
    if child == 0:
        print(sandbox.run("print('in the fork')").stdout, flush=True)
        time.sleep(30)  # it holds what it has of the parent's sockets
        os._exit(0)
    for thread in threads: thread.join()
    print(sandbox.run("print('in the parent')").stdout)
    start = time.monotonic()
    sandbox.close()
    print("closed", time.monotonic() - start < 5)
    os.kill(child, 9)
    """
    lines = sorted(_run_script(script).split("\n"))
    assert [line for line in lines if line] == ["closed True", "in the fork", "in the parent"]


def test_a_closed_sandbox_says_so_to_who_awaits_it():
    sandbox = Sandbox(modules=[])

    async def use():
        assert (await sandbox.run_async("print(1)")).stdout == "1\n"
        sandbox.close()
        with pytest.raises(SandboxError, match="closed"):
            await sandbox.run_async("print(2)")

    asyncio.run(use())


def test_a_call_that_is_cancelled_before_its_turn_starts_nothing():
    cancelled = threading.Event()
    cancelled.set()
    with Sandbox(modules=[]) as sandbox:
        with pytest.raises(SandboxError, match="cancelled"):
            sandbox.run_program(Program("print(1)"), cancelled=cancelled)
        assert sandbox._server is None


def test_no_place_for_files_is_no_place_for_a_sandbox():
    script = """
    import tempfile
    tempfile.tempdir = "/no/such/folder"
    from rllm_envs.errors import SandboxError
    from rllm_envs.sandbox import Sandbox
    try: Sandbox(modules=[]).run("1")
    except SandboxError as error: print("said", "/no/such/folder" in str(error))
    """
    assert _run_script(script) == "said True\n"


def test_given_files_do_not_count_as_written(sandbox):
    code = (
        "import os, time; time.sleep(0.1); open('b', 'w').write('x'); print(sorted(os.listdir()))"
    )
    result = sandbox.run(code, files={"a": b"x" * (4 * MIB)}, writable_bytes=MIB)
    assert (result.status, result.stdout) == ("ok", "['a', 'b']\n")


def test_folders_in_folders_without_end_are_removed(sandbox):
    code = "import os\nfor _ in range(1200): os.mkdir('d'); os.chdir('d')\nprint('deep')"
    result = sandbox.run(code, writable_bytes=MIB)
    assert result.status in ("ok", "disk_limit")


def test_what_a_program_reads_is_no_place_to_keep_things(sandbox):
    code = (
        "import os\n"
        "for act in (lambda: os.write(0, b'x'), lambda: os.ftruncate(0, 10**6)):\n"
        "    try: act(); print('done')\n"
        "    except OSError: print('refused')\n"
        "print(open(0).read())"
    )
    result = sandbox.run(code, stdin="text", writable_bytes=64 * MIB)
    assert result.stdout == "refused\nrefused\ntext\n"


def test_modules_of_a_program_may_have_any_name(sandbox):
    names = ("report", "program", "confine", "fork_server")
    files = {f"{name}.py": f"value = {name!r}" for name in names}
    code = f"import {', '.join(names)}\nprint({', '.join(f'{name}.value' for name in names)})"
    assert sandbox.run(code, files=files).stdout == " ".join(names) + "\n"


def test_threads_are_bounded_and_memory_is_taken_from_the_program_first():
    code = (
        "import resource\n"
        "print(resource.getrlimit(resource.RLIMIT_NPROC)[1])\n"
        "print(open('/proc/self/oom_score_adj').read())"
    )
    with Sandbox("process", modules=[], allow_unsafe=True) as sandbox:
        threads, score = map(int, sandbox.run(code).stdout.split())
    with open("/proc/loadavg", encoding="ascii") as file:
        of_all = int(file.read().split()[3].partition("/")[2])
    assert 0 < threads < of_all + 10_000
    assert score == 1000


@pytest.mark.parametrize("code", [3, 200, 255])
def test_great_exit_codes_are_no_signals_inside_of_namespaces(code):
    try:
        with Sandbox("bwrap", fork_server=False) as sandbox:
            assert sandbox.run(f"import sys; sys.exit({code})").exit_code == code
            assert sandbox.run("import os; os.kill(os.getpid(), 6)").signal == 6
    except SandboxUnavailableError as error:
        pytest.skip(str(error))


def test_programs_run_where_the_system_knows_no_descriptors_of_processes():
    """As on macOS, whose Python before 3.13 has no waitid either."""
    script = """
    import os
    del os.pidfd_open, os.memfd_create, os.waitid
    from rllm_envs.sandbox import Sandbox
    with Sandbox(fork_server=False) as sandbox:
        before = len(os.listdir("/proc/self/fd"))
        print(sandbox.run("print(input())", stdin="text").stdout.strip())
        print(sandbox.run("import sys; sys.exit(3)").exit_code)
        print(sandbox.run("import os; os.abort()").signal)
        print(sandbox.run("while True: pass", timeout_seconds=0.3).status)
        print(len(os.listdir("/proc/self/fd")) - before)
    """
    assert _run_script(script).split() == ["text", "3", "6", "timeout", "0"]


def test_files_that_are_deleted_while_they_are_open_count(sandbox):
    code = (
        "import os, time\n"
        "for number in range(40):\n"
        "    file = os.open('f', os.O_CREAT | os.O_RDWR)\n"
        "    os.unlink('f')\n"
        "    os.write(file, bytes(900_000))\n"
        "    time.sleep(0.01)\n"
        "time.sleep(5)"
    )
    result = sandbox.run(code, writable_bytes=MIB)
    assert result.status == "disk_limit"
    few = code.replace("range(40)", "range(1)").replace("sleep(5)", "sleep(0.2)")
    assert sandbox.run(few, writable_bytes=MIB).status == "ok"


@pytest.mark.parametrize("fork_server", [True, False])
def test_the_memory_of_a_great_program_is_told_and_never_that_of_this_process(fork_server):
    script = f"""
    from rllm_envs.sandbox import Sandbox
    with Sandbox(fork_server={fork_server}, modules=[]) as sandbox:
        print(sandbox.run("held = bytearray(300 * 2**20)").max_rss_bytes // 2**20)
        held = bytearray(600 * 2**20)
        print(sandbox.run("held = 1").max_rss_bytes // 2**20)
    """
    great, small = map(int, _run_script(script).split())
    assert 300 <= great < 400
    assert 0 <= small < 100
