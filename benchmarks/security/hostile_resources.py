"""Hostile programs that use too much, or leave something behind."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time
from pathlib import Path

from attacked_machine import (
    DONE,
    MIB,
    NAME_ITSELF,
    Machine,
    is_blocked,
    new_mark,
    row,
    run_in,
)

from rllm_envs.sandbox import Sandbox, SandboxResult

# Memory, time, output


@row("3 GiB in one process", "process")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    return run_in(sandbox, "x = bytearray(3 * 2**30)").status == "memory"


@row("six children of 450 MiB")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    code = (
        "import os, time\n"
        "for _ in range(6):\n"
        "    try:\n"
        "        pid = os.fork()\n"
        "    except OSError:\n"
        "        print('refused'); break\n"
        "    if pid == 0:\n"
        "        x = bytearray(450 * 2**20); time.sleep(0.2); os._exit(0)\n"
    )
    return "refused" in run_in(sandbox, code).stdout


def _ends_in_time(sandbox: Sandbox, code: str) -> bool:
    start = time.monotonic()
    result = run_in(sandbox, code, timeout_seconds=1.0)
    return result.status == "timeout" and time.monotonic() - start < 2.5


@row("a loop without end", "process")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    return _ends_in_time(sandbox, "while True: pass")


@row("9**(9**9); a regular expression that backtracks", "process")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    tower = _ends_in_time(sandbox, "x = 9**(9**9)")
    return tower and _ends_in_time(sandbox, "import re; re.match(r'(a+)+$', 'a' * 40 + 'b')")


@row("a loop that catches everything", "process")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    code = (
        "import signal\n"
        "for n in range(1, 65):\n"
        "    try: signal.signal(n, signal.SIG_IGN)\n"
        "    except (OSError, ValueError): pass\n"
        "while True:\n"
        "    try:\n"
        "        while True: pass\n"
        "    except BaseException: pass\n"
    )
    return _ends_in_time(sandbox, code)


@row("sleep", "process")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    return _ends_in_time(sandbox, "import time; time.sleep(60)")


@row("1.5 GB on stdout, on stderr, on both", "process")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    results = [
        run_in(
            sandbox,
            f"import os\nfor _ in range(1500):\n    for n in {streams}: os.write(n, bytes(10**6))",
        )
        for streams in ("(1,)", "(2,)", "(1, 2)")
    ]
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return all(r.status == "output_limit" and r.truncated for r in results) and grown < 16 * 1024


@row("5,000 open files", "process")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    code = (
        "import os\n"
        "count = 0\n"
        "try:\n"
        "    while count < 5000: os.dup(1); count += 1\n"
        "except OSError as error: print(error.errno)\n"
    )
    return run_in(sandbox, code).stdout.strip() == "24"


@row("3,000 threads", "process")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    code = (
        "import threading, time\n"
        "count = 0\n"
        "try:\n"
        "    while count < 3000:\n"
        "        threading.Thread(target=time.sleep, args=(5,), daemon=True).start(); count += 1\n"
        "except (RuntimeError, MemoryError): pass\n"
        "print(count, flush=True)\n"
    )
    result = run_in(sandbox, code)
    printed = result.stdout.strip()
    return not printed or int(printed) < 300


@row("a null pointer; a stack without end", "process")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    crashes = (
        "import ctypes; ctypes.string_at(0)",
        "import sys; sys.setrecursionlimit(10**9)\n"
        "class A:\n    def __repr__(self): return repr(self)\nrepr(A())",
    )
    statuses = [run_in(sandbox, code).status for code in crashes]
    is_well = run_in(sandbox, "print('well')").stdout == "well\n"
    return statuses[0] == "signal" and statuses[1] in ("signal", "error", "memory") and is_well


@row("os._exit(0), sys.exit(0)", "process")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    start = time.monotonic()
    results = [run_in(sandbox, f"import os, sys; {call}(0)") for call in ("os._exit", "sys.exit")]
    return all(r.exit_code == 0 and not r.stdout for r in results) and time.monotonic() - start < 3


@row("bytes that are no text on stdout", "process")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    code = "import os; os.write(1, b'\\xff\\x00\\x1b[31m\\xed\\xa0\\x80 end')"
    return run_in(sandbox, code).stdout.endswith(" end")


@row("a source with NUL, half a character, 10 MB, 1,000 brackets", "process")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    sources = ("x = 1\0", "x = '\ud800'", "x" * 10**6, "x" * 10**7, "(" * 1000 + ")" * 1000)
    results = [run_in(sandbox, source) for source in sources]
    return all(result.status == "error" and result.stderr for result in results)


# Disk


def _has_written(sandbox: Sandbox, code: str) -> bool:
    before = os.statvfs(tempfile.gettempdir()).f_bavail
    result = run_in(sandbox, code)
    after = os.statvfs(tempfile.gettempdir()).f_bavail
    block = os.statvfs(tempfile.gettempdir()).f_frsize
    return DONE in result.stdout or (before - after) * block > 64 * MIB


@row("one file of 300 MB; 60 files of 10 MB; 20,000 empty files; /dev/shm")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    start, end = f"folder = {str(machine.folder)!r}\n", f"\nprint({DONE!r})"
    programs = (
        "f = open(folder + '/big', 'wb')\nfor _ in range(30): f.write(bytes(10**7))",
        "for n in range(60): open(folder + f'/f{n}', 'wb').write(bytes(10**7))",
        "for n in range(20000): open(folder + f'/e{n}', 'w').close()",
        "open('/dev/shm/rllm-test', 'wb').write(bytes(2 * 10**6))",
    )
    stopped = [not _has_written(sandbox, start + code + end) for code in programs]
    for pattern in ("big", "f*", "e*"):
        for path in machine.folder.glob(pattern):
            path.unlink()
    with contextlib.suppress(OSError):
        os.unlink("/dev/shm/rllm-test")
    return all(stopped)


@row("more than it may write into its own folder")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    programs = (
        "f = open('big', 'wb')\nfor _ in range(30): f.write(bytes(10**7))",
        "for n in range(60): open(f'f{n}', 'wb').write(bytes(10**7))",
        "import time\nfor n in range(20000): open(f'e{n}', 'w').close()\ntime.sleep(1)",
    )
    results = [run_in(sandbox, code, writable_bytes=20 * MIB) for code in programs]
    within = run_in(
        sandbox, "open('a', 'w').write('x'); print(open('a').read())", writable_bytes=MIB
    )
    return all(result.status != "ok" for result in results) and within.stdout == "x\n"


@row("leave a module behind for the next run", "process")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    run_in(sandbox, "open('random.py', 'w').write('x = 1')", writable_bytes=MIB)
    result = run_in(sandbox, "import random; print(random.randint(1, 1))", writable_bytes=MIB)
    return result.stdout == "1\n"


@row("a link to /etc/passwd among its results", "process")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    # Nothing is read back from the folder, so there is nothing that would follow the link.
    code = "import os; os.symlink('/etc/passwd', 'result.json'); print('linked')"
    result = run_in(sandbox, code, writable_bytes=MIB)
    return "root:" not in result.stdout + result.stderr


# Two at once


@row("reach into the folder and the process of another run")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    victim: list[SandboxResult] = []
    mark = new_mark()
    code = NAME_ITSELF.format(mark=mark) + (
        "import os, time\nopen('mine', 'w').write('x')\ntime.sleep(1)\nprint('unharmed')\n"
    )
    thread = threading.Thread(
        target=lambda: victim.append(run_in(sandbox, code, writable_bytes=MIB))
    )
    thread.start()
    deadline = time.monotonic() + 1
    pid = 0
    while not pid and time.monotonic() < deadline:
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdecimal() and mark in (entry / "comm").read_text():
                    pid = int(entry.name)
    folder = os.readlink(f"/proc/{pid}/cwd")
    stopped = is_blocked(
        sandbox,
        f"os.listdir({folder!r})\nopen({folder!r} + '/mine').read()\nos.kill({pid}, 0)\n"
        f"open('/proc/{pid}/mem', 'rb').close()",
    )
    thread.join()
    return stopped and victim[0].stdout == "unharmed\n"
