"""Start a child for a program: a fresh interpreter, or a fork of one that has libraries loaded."""

import array
import contextlib
import marshal
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any

from rllm_envs.errors import SandboxError
from rllm_envs.sandbox.inside.report import REPORT
from rllm_envs.sandbox.policy import Lockdown, import_path
from rllm_envs.sandbox.results import Program
from rllm_envs.sandbox.supervise import END_SECONDS, START_SECONDS, Exit

INSIDE = os.path.join(os.path.dirname(__file__), "inside")
_SESSION_CPU_SECONDS = 3600
_SHELL_SIGNAL_BASE = 128
_NO_STREAMS = (subprocess.DEVNULL, subprocess.DEVNULL, subprocess.DEVNULL)


@dataclass(frozen=True, slots=True)
class Confinement:
    """How the children of one level are confined. Made by ``levels``, read where a child starts."""

    lockdown: Lockdown | None
    """What a child gives up; None at the level "process"."""
    prefix: tuple[str, ...] = ()
    """A command that runs the interpreter in namespaces; empty without one."""
    base: str | None = None
    """Where folders of programs are made; None is the system's place."""


class Pipes:
    """Both ends of the pipes of one child, and its folder.

    Args:
        program: What the child is to run.
        confinement: What it gives up.
        parent: Process with which the child ends; 0 where something else sees to that.

    Raises:
        SandboxError: The system has no more descriptors, or no room.
    """

    def __init__(self, program: Program, confinement: Confinement, *, parent: int) -> None:
        self.folder = ""
        self._open: list[int] = []
        try:
            if program.needs_folder:
                self.folder = tempfile.mkdtemp(prefix="rllm-sandbox-", dir=confinement.base)
            request = _request(program, confinement.lockdown, parent, self.folder)
            self.inner = (self._file(marshal.dumps(request)), self._file(program.stdin))
            self.stdout, out = self._pipe()
            self.stderr, err = self._pipe()
            self.ready, ready = self._pipe()
        except OSError as error:
            self.close()
            raise SandboxError(f"a program cannot be started: {error}") from error
        self.inner = (*self.inner, out, err, ready)

    inner: tuple[int, ...]
    """The request, stdin, stdout, stderr and the ready mark, as the child gets them."""

    def close_inner(self) -> None:
        """Close the child's ends in this process."""
        self._close(self.inner)

    def close(self) -> None:
        """Close what is open and remove the folder."""
        self._close(tuple(self._open))
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _pipe(self) -> tuple[int, int]:
        outer, inner = os.pipe()
        self._open += (outer, inner)
        return outer, inner

    def _file(self, content: bytes) -> int:
        # A file without a name: nothing else can open it.
        if hasattr(os, "memfd_create"):
            descriptor = os.memfd_create("rllm")
        else:
            descriptor, path = tempfile.mkstemp()
            os.unlink(path)
        self._open.append(descriptor)
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        return descriptor

    def _close(self, descriptors: tuple[int, ...]) -> None:
        for descriptor in descriptors:
            if descriptor in self._open:
                self._open.remove(descriptor)
                os.close(descriptor)


def _request(
    program: Program, lockdown: Lockdown | None, parent: int, folder: str
) -> dict[str, Any]:
    """Return what the child is told, as data that ``marshal`` writes."""
    limits = program.limits
    confined = None
    if lockdown is not None:
        confined = {
            "readable": [*lockdown.readable, *([folder] if folder else [])],
            "writable": ["/dev/null", *([folder] if folder and limits.writable_bytes else [])],
            "seccomp": lockdown.seccomp,
            "pid_offsets": list(lockdown.pid_offsets),
            "capset": lockdown.capset,
        }
    return {
        "code": program.code,
        "echo": program.echo,
        "session": program.is_session,
        "files": dict(program.files),
        "work": folder,
        "path": import_path(),
        "parent": parent,
        "lockdown": confined,
        "limits": {
            "cpu_seconds": _SESSION_CPU_SECONDS if program.is_session else limits.cpu_seconds,
            "memory_bytes": limits.memory_bytes,
            "file_bytes": limits.writable_bytes,
        },
    }


def environment() -> dict[str, str]:
    """Return what a child may know: nothing of this process's environment but where programs are.

    Libraries get one thread each, since one for each core would take most of the memory allowed.
    """
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
    return {"PATH": os.defpath, "LANG": "C.UTF-8", **dict.fromkeys(threads, "1")}


def spawn(
    arguments: Sequence[str],
    confinement: Confinement,
    kept: Sequence[int],
    *,
    streams: tuple[int, int, int] = _NO_STREAMS,
) -> subprocess.Popen[bytes]:
    """Start an interpreter on a file of ``inside``.

    Args:
        arguments: The file and its arguments.
        confinement: The command in front.
        kept: Descriptors that it inherits.
        streams: Its stdin, stdout and stderr.

    Raises:
        SandboxError: The system refuses.
    """
    command = [sys.executable, "-I", "-S", "-X", "utf8", *arguments]
    stdin, stdout, stderr = streams
    try:
        return subprocess.Popen(
            [*confinement.prefix, *command],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=tuple(kept),
            cwd="/",
            env=environment(),
            start_new_session=True,
        )
    except OSError as error:
        raise SandboxError(f"cannot start {sys.executable} for a program: {error}") from error


class FreshChild:
    """A fresh interpreter that runs one program; a ``supervise.Child``.

    Args:
        program: What it runs.
        confinement: What it gives up.
        channels: Descriptors that it is given as 3, 4 and so on.
    """

    def __init__(
        self, program: Program, confinement: Confinement, channels: Sequence[int] = ()
    ) -> None:
        # Inside bubblewrap the parent is another process, and bubblewrap ends with this one.
        ends_with_us = sys.platform == "linux" and not confinement.prefix
        self._pipes = Pipes(program, confinement, parent=os.getpid() if ends_with_us else 0)
        request, stdin, stdout, stderr, ready = self._pipes.inner
        kept = (request, ready, *channels)
        try:
            self._process = spawn(
                [os.path.join(INSIDE, "start.py"), *map(str, kept)],
                confinement,
                kept,
                streams=(stdin, stdout, stderr),
            )
        except SandboxError:
            self._pipes.close()
            raise
        self._pipes.close_inner()
        self._is_wrapped = bool(confinement.prefix)
        self.stdout, self.stderr = self._pipes.stdout, self._pipes.stderr
        self.ready, self.folder = self._pipes.ready, self._pipes.folder
        self.ended = _descriptor_of_end(self._process.pid)

    def kill(self) -> None:
        """Kill the process and its group, if it has not been reaped."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def reap(self) -> Exit:
        """Wait for the end and return how the process ended.

        Raises:
            SandboxError: It does not end though it was killed.
        """
        if not select.select([self.ended], [], [], END_SECONDS)[0]:
            raise SandboxError(f"process {self._process.pid} was killed and does not end")
        _, status, usage = os.wait4(self._process.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        self._process.returncode = code
        if self._is_wrapped and code > _SHELL_SIGNAL_BASE:
            code = _SHELL_SIGNAL_BASE - code
        unit = 1 if sys.platform == "darwin" else 1024
        return _exit(code, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit)

    def close(self) -> None:
        """Close the descriptors and remove the folder."""
        os.close(self.ended)
        self._pipes.close()


class ForkedChild:
    """A fork of the fork server that runs one program; a ``supervise.Child``.

    Args:
        pipes: Its pipes; the inner ends have been handed over.
        lifeline: The socket on which the server reports the end, and which ends the child.
        server: The server; it is marked as lost when it does not report.
    """

    def __init__(self, pipes: Pipes, lifeline: socket.socket, server: "ForkServer") -> None:
        self._pipes = pipes
        self._server = server
        self._lifeline = lifeline
        self.stdout, self.stderr, self.ready = pipes.stdout, pipes.stderr, pipes.ready
        self.folder = pipes.folder
        self.ended = lifeline.fileno()

    def kill(self) -> None:
        """Tell the server to kill the process, if it still runs."""
        with contextlib.suppress(OSError):
            self._lifeline.shutdown(socket.SHUT_WR)

    def reap(self) -> Exit:
        """Wait for the server's report.

        Raises:
            SandboxError: The server has ended, or does not report in time.
        """
        self._lifeline.settimeout(END_SECONDS)
        try:
            report = self._lifeline.recv(REPORT.size, socket.MSG_WAITALL)
        except OSError:
            report = b""
        if len(report) != REPORT.size:
            self._server.is_lost = True
            raise SandboxError("the fork server ended, and its programs with it")
        status, user, system, max_rss = REPORT.unpack(report)
        return _exit(os.waitstatus_to_exitcode(status), user + system, max_rss)

    def close(self) -> None:
        """Close the descriptors and remove the folder."""
        self._lifeline.close()
        self._pipes.close()


class ForkServer:
    """A process with modules loaded that forks a child for each program.

    Args:
        confinement: What the children give up.
        modules: Names of modules that it loads; those that are not installed are left out.

    Raises:
        SandboxError: It does not start.
    """

    def __init__(self, confinement: Confinement, modules: Sequence[str] = ()) -> None:
        self._confinement = confinement
        self._requests, theirs = socket.socketpair()
        self._lock = threading.Lock()
        self.owner = os.getpid()
        self.is_lost = False
        """Whether it failed to report the end of a child."""
        setup = marshal.dumps((import_path(), list(modules))).hex()
        with theirs, tempfile.TemporaryFile() as errors:
            self._process = spawn(
                [os.path.join(INSIDE, "fork_server.py"), str(theirs.fileno()), setup],
                confinement,
                [theirs.fileno()],
                streams=(subprocess.DEVNULL, subprocess.DEVNULL, errors.fileno()),
            )
            theirs.close()
            self._await_start(errors)

    def _await_start(self, errors: IO[bytes]) -> None:
        self._requests.settimeout(START_SECONDS)
        try:
            is_ready = self._requests.recv(1) == b"R"
        except OSError:
            is_ready = False
        if not is_ready:
            self.is_lost = True
            self.close()
            errors.seek(0)
            reason = errors.read()[-500:].decode("utf-8", "replace").strip()
            raise SandboxError(f"the fork server does not start: {reason or 'it says nothing'}")

    @property
    def is_alive(self) -> bool:
        """Whether it takes programs, and those of this process."""
        is_ours = self.owner == os.getpid()
        return is_ours and not self.is_lost and self._process.poll() is None

    def start(self, program: Program, channels: Sequence[int] = ()) -> ForkedChild:
        """Start a child for a program.

        Raises:
            SandboxError: The server has ended.
        """
        pipes = Pipes(program, self._confinement, parent=0)
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            pipes.close()
            raise SandboxError(f"a program cannot be started: {error}") from error
        numbers = array.array("i", [*pipes.inner, theirs.fileno(), *channels])
        try:
            with self._lock, theirs:
                self._requests.sendmsg(
                    [b"+"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers.tobytes())]
                )
        except OSError as error:
            ours.close()
            pipes.close()
            self.is_lost = True
            raise SandboxError(f"the fork server does not answer: {error}") from error
        pipes.close_inner()
        return ForkedChild(pipes, ours, self)

    def close(self) -> None:
        """End the server and all that it runs."""
        self._requests.close()
        if self.owner != os.getpid():
            return  # a fork of the process that started it, which goes on using it
        try:
            self._process.wait(0.0 if self.is_lost else END_SECONDS)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


def _exit(code: int, cpu_seconds: float, max_rss_bytes: int) -> Exit:
    if code < 0:
        return Exit(None, -code, cpu_seconds, max_rss_bytes)
    return Exit(code, None, cpu_seconds, max_rss_bytes)


def _descriptor_of_end(pid: int) -> int:
    """Return a descriptor that becomes readable when a child process has ended."""
    if hasattr(os, "pidfd_open"):
        return os.pidfd_open(pid)
    reader, writer = os.pipe()

    def wait() -> None:
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        os.close(writer)

    threading.Thread(target=wait, daemon=True).start()
    return reader
