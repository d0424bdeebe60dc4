"""Hostile programs, each with what a sandbox must make of it: the rows of docs/security.md.

A row runs one or more programs in a sandbox and returns whether it was stopped. Rows say from which
level on they must hold. The programs bound themselves, so that a run at a level that does not stop
them does no harm to the machine.
"""

from __future__ import annotations

import contextlib
import os
import time

from attacked_machine import (
    CANARY,
    MIB,
    NAME_ITSELF,
    ROWS,
    Machine,
    attacked_machine,
    is_blocked,
    is_gone,
    new_mark,
    row,
    run_in,
)

from rllm_envs.sandbox import Sandbox

__all__ = ["ROWS", "attacked_machine"]

# Files


@row("read /etc/passwd")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    return is_blocked(sandbox, "open('/etc/passwd').read()\nos.listdir('/etc')")


@row("read a file that only its user may read")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    return is_blocked(sandbox, f"open({str(machine.secret)!r}).read()")


@row("keys in its own environment", "process")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    result = run_in(sandbox, "import os; print(dict(os.environ), 'end')")
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
    result = run_in(sandbox, code, output_bytes=16 * MIB)
    return "end" in result.stdout and CANARY not in result.stdout


@row("read the memory of its parent")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    return is_blocked(
        sandbox,
        "open(f'/proc/{os.getppid()}/mem', 'rb').close()\n"
        f"open('/proc/{os.getpid()}/mem', 'rb').close()\n"
        f"syscall(310, {os.getpid()}, 0, 0, 0, 0, 0)",
    )


@row("write, rename, link outside of its folder")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    place, secret = str(machine.folder / "mine"), str(machine.secret)
    stopped = is_blocked(
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
    return is_blocked(sandbox, "import random; open(random.__file__, 'a').close()")


# Network and sockets


@row("TCP, UDP, raw and IPv6 sockets to this machine")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    before = len(machine.hits)
    port = machine.port
    stopped = is_blocked(
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
    stopped = is_blocked(sandbox, f"socket.socket(socket.AF_UNIX).connect('\\0' + {name!r})")
    return stopped and len(machine.hits) == before


@row("a unix socket with a path, also through a datagram pair")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    before = len(machine.hits)
    path = str(machine.file_socket)
    stopped = is_blocked(
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
    return is_blocked(
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
    mark = new_mark()
    code = NAME_ITSELF.format(mark=mark) + (
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
    result = run_in(sandbox, code)
    return result.stdout.strip() == "0" and is_gone(mark)


@row("a process in a session of its own that outlives the run")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    mark = new_mark()
    code = NAME_ITSELF.format(mark=mark) + (
        "import os, signal, time\n"
        "for number in (signal.SIGTERM, signal.SIGHUP): signal.signal(number, signal.SIG_IGN)\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        time.sleep(5)\n"
        "    os._exit(0)\n"
    )
    run_in(sandbox, code)
    return is_gone(mark, 0.5)


@row("the parent ends, a child keeps stdout open")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    mark = new_mark()
    start = time.monotonic()
    run_in(
        sandbox,
        NAME_ITSELF.format(mark=mark) + "import os, time\nif os.fork() == 0: time.sleep(5)\n",
    )
    return time.monotonic() - start < 1.0 and is_gone(mark, 0.5)


@row("a shell, by subprocess, posix.system, ctypes")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    return is_blocked(
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
    lines = run_in(sandbox, code).stdout.splitlines()
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
    return run_in(sandbox, code).stdout.strip() == "1 False"


@row("raise its own limits")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    return is_blocked(
        sandbox,
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (-1, -1))\n"
        "import resource; resource.setrlimit(resource.RLIMIT_CPU, (9999, 9999))\n"
        "import resource; resource.prlimit(0, resource.RLIMIT_FSIZE, (-1, -1))",
    )


@row("shared memory and semaphores left behind")
def _(sandbox: Sandbox, machine: Machine) -> bool:
    return is_blocked(
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
    return run_in(sandbox, code).stdout.split() == ["1", "1", "1"]


import hostile_resources  # noqa: E402, F401  # its rows follow
