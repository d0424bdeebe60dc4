"""Hostile programs, each with what a sandbox must make of it: the rows of docs/security.md.

A row runs one or more programs in a sandbox and returns whether it was stopped. Rows say from which
level on they must hold. The programs bound themselves, so that a run at a level that does not stop
them does no harm to the machine.
"""

import contextlib
import os
import secrets
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rllm_envs.sandbox import Sandbox, SandboxResult

MIB = 2**20
CANARY = "canary-" + secrets.token_hex(8)
DONE = "the hostile act was done"
"""What a program prints once it has done what it must not do."""


@dataclass(slots=True)
class Machine:
    """What the programs attack. Made by ``attacked_machine``, read by the rows."""

    folder: Path
    """A folder of this process's user."""
    secret: Path
    """A file that only its user may read."""
    port: int
    """Of a TCP and a UDP listener on loopback."""
    abstract_socket: str
    """Name of a listening socket in the abstract name space."""
    file_socket: Path
    """Of a listening and of a datagram socket with a path."""
    hits: list[str] = field(default_factory=list)
    """What has reached a listener."""


Check = Callable[[Sandbox, Machine], bool]


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table."""

    name: str
    """What the program tries."""
    must_hold_from: str
    """"process" or "lockdown"."""
    is_stopped: Check
    """Runs it; True where it was stopped, or bounded, as it must be."""


ROWS: list[Row] = []


def row(name: str, must_hold_from: str = "lockdown") -> Callable[[Check], Check]:
    """Enter a function as a row."""

    def enter(check: Check) -> Check:
        ROWS.append(Row(name, must_hold_from, check))
        return check

    return enter


@contextlib.contextmanager
def attacked_machine() -> Iterator[Machine]:
    """Yield listeners, a secret file and secret variables; they go at the end."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rllm-attacked-")))
        secret = folder / "secret"
        secret.write_text(CANARY)
        secret.chmod(0o600)
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        port = tcp.getsockname()[1]
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", port))
        abstract = f"\0rllm-{secrets.token_hex(8)}"
        by_name = stack.enter_context(socket.socket(socket.AF_UNIX))
        by_name.bind(abstract)
        by_name.listen()
        by_path = stack.enter_context(socket.socket(socket.AF_UNIX))
        by_path.bind(str(folder / "socket"))
        by_path.listen()
        datagrams = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        datagrams.bind(str(folder / "socket.dgram"))
        machine = Machine(folder, secret, port, abstract[1:], folder / "socket")
        listeners = {"tcp": tcp, "udp": udp, "abstract": by_name, "path": by_path}
        for name, listener in (*listeners.items(), ("datagram", datagrams)):
            listener.settimeout(0.2)
            thread = threading.Thread(target=_listen, args=(machine, name, listener), daemon=True)
            thread.start()
        os.environ["OPENAI_API_KEY"] = os.environ["HF_TOKEN"] = CANARY
        stack.callback(os.environ.pop, "OPENAI_API_KEY")
        stack.callback(os.environ.pop, "HF_TOKEN")
        # The environment that the system shows of a process is the one that it was started with.
        neighbour = subprocess.Popen(["sleep", "300"])
        stack.callback(neighbour.wait)
        stack.callback(neighbour.kill)
        yield machine


def _listen(machine: Machine, name: str, listener: socket.socket) -> None:
    while True:
        try:
            if listener.type == socket.SOCK_STREAM:
                listener.accept()[0].close()
            else:
                listener.recv(64)
        except TimeoutError:
            continue
        except OSError:
            return
        machine.hits.append(name)


def _run(sandbox: Sandbox, code: str, **limits: int | float) -> SandboxResult:
    return sandbox.run(code, **{"timeout_seconds": 10.0, **limits})  # type: ignore[arg-type]


def _is_blocked(sandbox: Sandbox, action: str) -> bool:
    """Return whether every one of the statements fails that a program tries, one by one."""
    lines = "\n".join(f"attempt({line!r})" for line in action.strip().splitlines())
    code = (
        "import ctypes, os, socket, signal, sys\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "def syscall(*arguments):\n"
        "    if libc.syscall(*map(ctypes.c_long, arguments)) < 0:\n"
        "        raise OSError(ctypes.get_errno(), 'refused')\n"
        "def attempt(line):\n"
        "    try:\n"
        "        exec(line, globals())\n"
        "    except (OSError, ValueError, ImportError):\n"
        "        pass\n"
        "    else:\n"
        f"        print({DONE!r}, line)\n"
        f"{lines}\n"
        "print('end')\n"
    )
    result = _run(sandbox, code)
    return "end" in result.stdout and DONE not in result.stdout


def _processes_with(mark: str) -> int:
    """Return how many processes have a mark in their command line or environment."""
    count = 0
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdecimal() and mark in (entry / "comm").read_text():
                count += 1
    return count


def _is_gone(mark: str, seconds: float = 1.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not _processes_with(mark):
            return True
        time.sleep(0.02)
    return not _processes_with(mark)


def _mark() -> str:
    return "x" + secrets.token_hex(6)


_NAME_ITSELF = "import ctypes\nctypes.CDLL(None).prctl(15, {mark!r}.encode(), 0, 0, 0)\n"


# Files


@row("read /etc/passwd")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    return _is_blocked(sandbox, "open('/etc/passwd').read()\nos.listdir('/etc')")


@row("read a file that only its user may read")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    return _is_blocked(sandbox, f"open({str(machine.secret)!r}).read()")


@row("keys in its own environment", "process")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    result = _run(sandbox, "import os; print(dict(os.environ), 'end')")
    return "end" in result.stdout and CANARY not in result.stdout


@row("keys in the environments of other processes")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    code = (
        "import glob\n"
        "for path in ['/proc/self/environ', *glob.glob('/proc/[0-9]*/environ')]:\n"
        "    try:\n"
        "        print(open(path, errors='replace').read())\n"
        "    except OSError:\n"
        "        pass\n"
        "print('end')\n"
    )
    result = _run(sandbox, code, output_bytes=16 * MIB)
    return "end" in result.stdout and CANARY not in result.stdout


@row("read the memory of its parent")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    return _is_blocked(
        sandbox,
        "open(f'/proc/{os.getppid()}/mem', 'rb').close()\n"
        f"open('/proc/{os.getpid()}/mem', 'rb').close()\n"
        f"syscall(310, {os.getpid()}, 0, 0, 0, 0, 0)",
    )


@row("write, rename, link outside of its folder")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    place, secret = str(machine.folder / "mine"), str(machine.secret)
    stopped = _is_blocked(
        sandbox,
        f"open({place!r}, 'w').write('x')\n"
        f"os.rename({secret!r}, {place!r})\n"
        f"os.symlink('/etc/passwd', {place!r})\n"
        f"os.link({secret!r}, {place!r})\n"
        f"os.mkdir({place!r})\n"
        f"os.unlink({secret!r})\n"
        f"os.chmod({secret!r}, 0o777)\n"
        f"os.utime({secret!r})\n"
        f"os.truncate({secret!r}, 0)\n"
        f"os.open({secret!r}, os.O_RDONLY | os.O_TRUNC)",
    )
    unchanged = os.path.exists(secret) and machine.secret.read_text() == CANARY
    machine.secret.write_text(CANARY)
    with contextlib.suppress(OSError):
        os.unlink(place)
    with contextlib.suppress(OSError):
        os.rmdir(place)
    return stopped and unchanged


@row("alter the standard library")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    # Opened for writing and closed again: nothing is written where it is not stopped.
    return _is_blocked(sandbox, "import random; open(random.__file__, 'a').close()")


# Network and sockets


@row("TCP, UDP, raw and IPv6 sockets to this machine")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    before = len(machine.hits)
    port = machine.port
    stopped = _is_blocked(
        sandbox,
        f"socket.create_connection(('127.0.0.1', {port}), 1).close()\n"
        f"socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {port}))\n"
        "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)\n"
        "socket.socket(socket.AF_INET6, socket.SOCK_STREAM)",
    )
    return stopped and len(machine.hits) == before


@row("an abstract unix socket")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    before = len(machine.hits)
    name = machine.abstract_socket
    stopped = _is_blocked(sandbox, f"socket.socket(socket.AF_UNIX).connect('\\0' + {name!r})")
    return stopped and len(machine.hits) == before


@row("a unix socket with a path, also through a datagram pair")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    before = len(machine.hits)
    path = str(machine.file_socket)
    stopped = _is_blocked(
        sandbox,
        f"socket.socket(socket.AF_UNIX).connect({path!r})\n"
        "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b'x', "
        f"{path + '.dgram'!r})\n"
        f"socket.socketpair()[0].sendto(b'x', {path + '.dgram'!r})",
    )
    time.sleep(0.05)
    return stopped and len(machine.hits) == before


# Processes and signals


@row("signal its parent, its group, everyone; by kill, pidfd, tgkill, F_SETOWN")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    # Signal 0 and SIGCONT, which harm nobody where they arrive.
    return _is_blocked(
        sandbox,
        "os.kill(os.getppid(), 0)\n"
        "os.kill(os.getppid(), signal.SIGCONT)\n"
        "os.kill(-1, 0)\n"
        "os.kill(0, 0)\n"
        "os.killpg(0, 0)\n"
        "os.pidfd_open(os.getppid())\n"
        "syscall(234, os.getppid(), os.getppid(), 0)\n"
        "import fcntl; fcntl.fcntl(0, fcntl.F_SETOWN, os.getppid())\n"
        "import fcntl; fcntl.fcntl(0, 10, signal.SIGCONT)",
    )


@row("300 forks")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    mark = _mark()
    code = _NAME_ITSELF.format(mark=mark) + (
        "import os, time\n"
        "made = 0\n"
        "for _ in range(300):\n"
        "    try:\n"
        "        pid = os.fork()\n"
        "    except OSError:\n"
        "        break\n"
        "    if pid == 0:\n"
        "        time.sleep(3); os._exit(0)\n"
        "    made += 1\n"
        "print(made)\n"
    )
    result = _run(sandbox, code)
    return result.stdout.strip() == "0" and _is_gone(mark)


@row("a process in a session of its own that outlives the run")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    mark = _mark()
    code = _NAME_ITSELF.format(mark=mark) + (
        "import os, signal, time\n"
        "for number in (signal.SIGTERM, signal.SIGHUP): signal.signal(number, signal.SIG_IGN)\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        time.sleep(5)\n"
        "    os._exit(0)\n"
    )
    _run(sandbox, code)
    return _is_gone(mark, 0.5)


@row("the parent ends, a child keeps stdout open")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    mark = _mark()
    start = time.monotonic()
    _run(
        sandbox,
        _NAME_ITSELF.format(mark=mark) + "import os, time\nif os.fork() == 0: time.sleep(5)\n",
    )
    return time.monotonic() - start < 1.0 and _is_gone(mark, 0.5)


@row("a shell, by subprocess, posix.system, ctypes")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    return _is_blocked(
        sandbox,
        "import subprocess; subprocess.run(['/bin/sh', '-c', 'true'])\n"
        "import posix; posix.system('true') and open('/none')\n"
        "libc.system(b'true') and open('/none')",
    )


@row("new namespaces, mount, ptrace, bpf, keyctl, io_uring, userfaultfd, perf")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    calls = {"unshare": (272, 0x10000000), "keyctl": (250, 0, 0), "io_uring_setup": (425, 1, 0)}
    calls |= {"mount": (165, 0, 0, 0, 0, 0), "ptrace": (101, 0, 0, 0, 0), "bpf": (321, 0, 0, 0)}
    calls |= {"userfaultfd": (323, 0), "perf_event_open": (298, 0, 0, -1, -1, 0)}
    code = "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
    for name, arguments in calls.items():
        numbers = ", ".join(f"ctypes.c_long({value})" for value in arguments)
        code += f"print({name!r}, libc.syscall({numbers}), ctypes.get_errno())\n"
    lines = _run(sandbox, code).stdout.splitlines()
    return len(lines) == len(calls) and all(line.endswith(" -1 1") for line in lines)


@row("no new privileges, no capabilities")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    code = (
        "import ctypes, struct\n"
        "libc = ctypes.CDLL(None)\n"
        "header, data = struct.pack('Ii', 0x20080522, 0), ctypes.create_string_buffer(24)\n"
        "assert libc.capget(header, data) == 0\n"
        "print(libc.prctl(39, 0, 0, 0, 0), any(data.raw))\n"
    )
    return _run(sandbox, code).stdout.strip() == "1 False"


@row("raise its own limits")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    return _is_blocked(
        sandbox,
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (-1, -1))\n"
        "import resource; resource.setrlimit(resource.RLIMIT_CPU, (9999, 9999))\n"
        "import resource; resource.prlimit(0, resource.RLIMIT_FSIZE, (-1, -1))",
    )


@row("shared memory and semaphores left behind")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    return _is_blocked(
        sandbox,
        "import _posixshmem; _posixshmem.shm_open('/rllm', os.O_CREAT | os.O_RDWR)\n"
        "syscall(29, 0, 4096, 0o1600)\n"
        "syscall(64, 0, 1, 0o1600)\n"
        "syscall(319, 0, 0)",
    )


@row("type into the terminal (TIOCSTI)")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    code = (
        "import fcntl\n"
        "for number in (0, 1, 2):\n"
        "    try:\n"
        "        fcntl.ioctl(number, 0x5412, b'x')\n"
        "        print('done')\n"
        "    except OSError as error:\n"
        "        print(error.errno)\n"
    )
    return _run(sandbox, code).stdout.split() == ["1", "1", "1"]


# Memory, time, output


@row("3 GiB in one process", "process")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    return _run(sandbox, "x = bytearray(3 * 2**30)").status == "memory"


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
    return "refused" in _run(sandbox, code).stdout


def _ends_in_time(sandbox: Sandbox, code: str) -> bool:
    start = time.monotonic()
    result = _run(sandbox, code, timeout_seconds=1.0)
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
        _run(
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
    return _run(sandbox, code).stdout.strip() == "24"


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
    result = _run(sandbox, code)
    printed = result.stdout.strip()
    return not printed or int(printed) < 300


@row("a null pointer; a stack without end", "process")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    crashes = (
        "import ctypes; ctypes.string_at(0)",
        "import sys; sys.setrecursionlimit(10**9)\n"
        "class A:\n    def __repr__(self): return repr(self)\nrepr(A())",
    )
    statuses = [_run(sandbox, code).status for code in crashes]
    is_well = _run(sandbox, "print('well')").stdout == "well\n"
    return statuses[0] == "signal" and statuses[1] in ("signal", "error", "memory") and is_well


@row("os._exit(0), sys.exit(0)", "process")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    start = time.monotonic()
    results = [_run(sandbox, f"import os, sys; {call}(0)") for call in ("os._exit", "sys.exit")]
    return all(r.exit_code == 0 and not r.stdout for r in results) and time.monotonic() - start < 3


@row("bytes that are no text on stdout", "process")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    code = "import os; os.write(1, b'\\xff\\x00\\x1b[31m\\xed\\xa0\\x80 end')"
    return _run(sandbox, code).stdout.endswith(" end")


@row("a source with NUL, half a character, 10 MB, 1,000 brackets", "process")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    sources = ("x = 1\0", "x = '\ud800'", "x" * 10**6, "x" * 10**7, "(" * 1000 + ")" * 1000)
    results = [_run(sandbox, source) for source in sources]
    return all(result.status == "error" and result.stderr for result in results)


# Disk


def _has_written(sandbox: Sandbox, code: str) -> bool:
    before = os.statvfs(tempfile.gettempdir()).f_bavail
    result = _run(sandbox, code)
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
    results = [_run(sandbox, code, writable_bytes=20 * MIB) for code in programs]
    within = _run(sandbox, "open('a', 'w').write('x'); print(open('a').read())", writable_bytes=MIB)
    return all(result.status != "ok" for result in results) and within.stdout == "x\n"


@row("leave a module behind for the next run", "process")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    _run(sandbox, "open('random.py', 'w').write('x = 1')", writable_bytes=MIB)
    result = _run(sandbox, "import random; print(random.randint(1, 1))", writable_bytes=MIB)
    return result.stdout == "1\n"


@row("a link to /etc/passwd among its results", "process")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    # Nothing is read back from the folder, so there is nothing that would follow the link.
    code = "import os; os.symlink('/etc/passwd', 'result.json'); print('linked')"
    result = _run(sandbox, code, writable_bytes=MIB)
    return "root:" not in result.stdout + result.stderr


# Two at once


@row("reach into the folder and the process of another run")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    victim: list[SandboxResult] = []
    mark = _mark()
    code = _NAME_ITSELF.format(mark=mark) + (
        "import os, time\nopen('mine', 'w').write('x')\ntime.sleep(1)\nprint('unharmed')\n"
    )
    thread = threading.Thread(target=lambda: victim.append(_run(sandbox, code, writable_bytes=MIB)))
    thread.start()
    deadline = time.monotonic() + 1
    pid = 0
    while not pid and time.monotonic() < deadline:
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdecimal() and mark in (entry / "comm").read_text():
                    pid = int(entry.name)
    folder = os.readlink(f"/proc/{pid}/cwd")
    stopped = _is_blocked(
        sandbox,
        f"os.listdir({folder!r})\nopen({folder!r} + '/mine').read()\nos.kill({pid}, 0)\n"
        f"open('/proc/{pid}/mem', 'rb').close()",
    )
    thread.join()
    return stopped and victim[0].stdout == "unharmed\n"
