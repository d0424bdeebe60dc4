"""Start a child for a program: a fresh interpreter, or a fork of one that has libraries loaded."""

import array
import contextlib
import errno
import marshal
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from typing import IO

from rllm_envs.errors import SandboxError
from rllm_envs.sandbox.handover import Confinement, Pipes
from rllm_envs.sandbox.inside.report import REPORT
from rllm_envs.sandbox.policy import import_path
from rllm_envs.sandbox.results import Program
from rllm_envs.sandbox.supervise import END_SECONDS, START_SECONDS, Exit

INSIDE = os.path.join(os.path.dirname(__file__), "inside")
_SHELL_SIGNAL_BASE = 128
_LAST_SIGNAL = 64
_SOON_SECONDS = 0.2
_NO_STREAMS = (subprocess.DEVNULL, subprocess.DEVNULL, subprocess.DEVNULL)


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
        started: subprocess.Popen[bytes] | None = None
        try:
            started = spawn(
                [os.path.join(INSIDE, "start.py"), *map(str, kept)],
                confinement,
                kept,
                streams=(stdin, stdout, stderr),
            )
            self._pipes.close_inner()
            self._end = _EndOfChild(started.pid)
        except BaseException as error:  # also an interrupt
            if started is not None:
                started.kill()
                started.wait()
            self._pipes.close()
            if isinstance(error, OSError):
                raise SandboxError(f"a program cannot be watched: {error}") from error
            raise
        self._process, self.ended = started, self._end.descriptor
        self._inherited_peak = _own_peak()
        self.is_wrapped = bool(confinement.prefix)
        self.stdout, self.stderr = self._pipes.stdout, self._pipes.stderr
        self.ready, self.folder = self._pipes.ready, self._pipes.folder
        self.given_bytes = self._pipes.given_bytes

    def kill(self) -> None:
        """Kill the process and its group, if it has not been reaped."""
        if self._process.returncode is None and not self._end.is_collected:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def reap(self) -> Exit:
        """Wait for the end and return how the process ended.

        Raises:
            SandboxError: It does not end though it was killed.
        """
        pid = self._process.pid
        if not is_readable(self.ended, END_SECONDS):
            raise SandboxError(f"process {pid} was killed and does not end")
        try:
            status, usage = self._end.collect()
        except ChildProcessError as error:
            self._process.returncode = 0
            raise SandboxError(
                f"the end of process {pid} was collected by other code of this process (os.wait, "
                "or SIGCHLD set to be ignored); leave the sandbox's children to it"
            ) from error
        code = os.waitstatus_to_exitcode(status)
        self._process.returncode = code
        # A shell's way to say which signal it was, and bubblewrap's.
        if self.is_wrapped and 0 < code - _SHELL_SIGNAL_BASE <= _LAST_SIGNAL:
            code = _SHELL_SIGNAL_BASE - code
        unit = 1 if sys.platform == "darwin" else 1024
        peak = usage.ru_maxrss * unit if usage.ru_maxrss > self._inherited_peak else 0
        return Exit.of_code(code, usage.ru_utime + usage.ru_stime, peak)

    def close(self) -> None:
        """Close the descriptors and remove the folder."""
        self._end.close()
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
        self.folder, self.given_bytes = pipes.folder, pipes.given_bytes
        self.is_wrapped = server.is_wrapped
        self.ended = lifeline.fileno()

    def kill(self) -> None:
        """Tell the server to kill the process, if it still runs."""
        with contextlib.suppress(OSError):
            self._lifeline.shutdown(socket.SHUT_WR)

    def reap(self) -> Exit:
        """Wait for the server's report.

        Raises:
            SandboxError: The server has ended, does not report in time, or could not fork.
        """
        self._lifeline.settimeout(END_SECONDS)
        try:
            report = self._lifeline.recv(REPORT.size, socket.MSG_WAITALL)
        except OSError:
            report = None
        if report is None or len(report) != REPORT.size:
            if report is None or self._server.has_ended():
                self._server.is_lost = True
                raise SandboxError("the fork server ended, and its programs with it")
            raise SandboxError(
                "the fork server could not start a process: the system has no more descriptors, "
                "processes or memory"
            )
        status, user, system, max_rss = REPORT.unpack(report)
        return Exit.of_code(os.waitstatus_to_exitcode(status), user + system, max_rss)

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
        self.is_wrapped = bool(confinement.prefix)
        self._lock = threading.Lock()
        self.owner = os.getpid()
        self.is_lost = False
        """Whether it failed to report the end of a child."""
        setup = marshal.dumps((import_path(), list(modules))).hex()
        try:
            self._requests, theirs = socket.socketpair()
        except OSError as error:
            raise SandboxError(f"the fork server cannot be started: {error}") from error
        try:
            with theirs, tempfile.TemporaryFile() as errors:
                self._process = spawn(
                    [os.path.join(INSIDE, "fork_server.py"), str(theirs.fileno()), setup],
                    confinement,
                    [theirs.fileno()],
                    streams=(subprocess.DEVNULL, subprocess.DEVNULL, errors.fileno()),
                )
                theirs.close()
                self._await_start(errors)
        except (OSError, SandboxError) as error:
            self._requests.close()
            if isinstance(error, SandboxError):
                raise
            raise SandboxError(f"the fork server cannot be started: {error}") from error

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

    def has_ended(self) -> bool:
        """Return whether its process has ended, or does so at once."""
        try:
            self._process.wait(_SOON_SECONDS)
        except subprocess.TimeoutExpired:
            return False
        return True

    def start(self, program: Program, channels: Sequence[int] = ()) -> ForkedChild:
        """Start a child for a program.

        Raises:
            SandboxError: The server has ended.
        """
        pipes = Pipes(program, self._confinement, parent=0)
        ours: socket.socket | None = None
        try:
            ours, theirs = socket.socketpair()
            with self._lock, theirs:
                self._send([*pipes.inner, theirs.fileno(), *channels])
            pipes.close_inner()
        except BaseException as error:  # also an interrupt
            if ours is not None:
                ours.close()  # which ends the child where it was started
            pipes.close()
            if isinstance(error, OSError):
                raise SandboxError(f"a program cannot be started: {error}") from error
            raise
        return ForkedChild(pipes, ours, self)

    def _send(self, descriptors: list[int]) -> None:
        numbers = array.array("i", descriptors).tobytes()
        try:
            self._requests.sendmsg([b"+"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)])
        except OSError as error:
            self.is_lost = True
            raise SandboxError(f"the fork server does not answer: {error}") from error

    def close(self) -> None:
        """End the server and all that it runs."""
        if self.owner != os.getpid():
            self._requests.close()
            return  # a fork of the process that started it, which goes on using it
        # Not only closed: a fork of this process may hold it open, too.
        with contextlib.suppress(OSError):
            self._requests.shutdown(socket.SHUT_RDWR)
        self._requests.close()
        try:
            self._process.wait(0.0 if self.is_lost else END_SECONDS)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


def _own_peak() -> int:
    """Return the most kilobytes that this process has held; 0 where the system does not tell.

    Linux counts them as the peak of each process that this one starts.
    """
    with contextlib.suppress(OSError), open("/proc/self/status", "rb") as file:
        for line in file:
            if line.startswith(b"VmHWM:"):
                return int(line.split()[1])
    return 0


def is_readable(descriptor: int, seconds: float) -> bool:
    """Return whether a descriptor, whatever its number, becomes readable within a time."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(1000 * seconds))


class _EndOfChild:
    """The end of a child process: a descriptor that becomes readable then, and how it ended.

    Args:
        pid: A child of this process that nobody else waits for.

    Raises:
        OSError: The system has no more descriptors, or no more threads.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._waiting: threading.Thread | None = None
        self._outcome: tuple[int, resource.struct_rusage] | None = None
        if hasattr(os, "pidfd_open"):
            try:
                self.descriptor = os.pidfd_open(pid)
                return
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
                    raise
                # The kernel, or what stands between, does not know the call.
        self.descriptor, writer = os.pipe()
        self._waiting = threading.Thread(target=self._wait, args=(writer,), daemon=True)
        try:
            self._waiting.start()
        except RuntimeError as error:
            os.close(self.descriptor)
            os.close(writer)
            raise OSError(str(error)) from error

    def _wait(self, writer: int) -> None:
        with contextlib.suppress(ChildProcessError):
            self._outcome = os.wait4(self._pid, 0)[1:]
        os.close(writer)

    @property
    def is_collected(self) -> bool:
        """Whether the system may have given the process's number to another one."""
        return self._waiting is not None and is_readable(self.descriptor, 0.0)

    def collect(self) -> tuple[int, resource.struct_rusage]:
        """Return the wait status and the use of resources of a process that has ended.

        Raises:
            ChildProcessError: Somebody else has collected it.
        """
        if self._waiting is None:
            return os.wait4(self._pid, 0)[1:]
        self._waiting.join()
        if self._outcome is None:
            raise ChildProcessError(errno.ECHILD, "no such child")
        return self._outcome

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.descriptor)
