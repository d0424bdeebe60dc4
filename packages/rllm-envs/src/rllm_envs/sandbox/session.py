"""``SandboxSession``: programs that share their variables, one process for all of them."""

import contextlib
import math
import os
import socket
import threading

from rllm_envs.errors import SandboxError
from rllm_envs.sandbox.inside.report import FRAME, SESSION_REPORT
from rllm_envs.sandbox.launch import ForkedChild, FreshChild, is_readable
from rllm_envs.sandbox.local import Sandbox
from rllm_envs.sandbox.results import Limits, Program, SandboxResult, refused, source_problem
from rllm_envs.sandbox.supervise import END_SECONDS, START_SECONDS, Exit, Watch


class SandboxSession:
    """A process that runs programs one after the other in one scope, under the same limits.

    It starts with the first program. A program that breaks a limit, or ends the process, takes the
    variables with it: the next one starts in a new process, and ``was_lost`` says so.

    Args:
        sandbox: Where the process runs; it must have a fork server.
        limits: Limits of each program; memory is that of all together.
        echo: Whether the value of a last expression is printed.

    Raises:
        SandboxError: The sandbox has no fork server.
    """

    def __init__(
        self, sandbox: Sandbox, limits: Limits | None = None, *, echo: bool = True
    ) -> None:
        if not sandbox.has_fork_server:
            # A fresh interpreter ends with the thread that started it.
            raise SandboxError("a session needs a sandbox with fork_server=True")
        self._sandbox = sandbox
        self._limits = limits or Limits()
        self._echo = echo
        self._lock = threading.Lock()
        self._process: _SessionProcess | None = None
        self._was_interrupted = False
        self.was_lost = False
        """Whether the variables of the programs before were lost by the last one that ran, or since
        the one before it."""

    def run(self, code: str) -> SandboxResult:
        """Run a program and return what became of it; calls from several threads wait in turn.

        Raises:
            SandboxError: The sandbox failed, not the program.
        """
        problem = source_problem(code)
        if problem is not None:
            return refused(problem)
        with self._lock, self._sandbox.place():
            self.was_lost, self._was_interrupted = self._was_interrupted, False
            process, self._process = self._process, None
            if process is not None and not process.is_idle:
                # It has ended since, or talks without being asked.
                process.end()
                process, self.was_lost = None, True
            self._was_interrupted = process is not None  # unless the program comes to its end
            process = process or _SessionProcess(self._sandbox, self._limits, self._echo)
            try:
                result = process.run(code)
                self._was_interrupted = False
                if process.is_alive:
                    self._process = process
                else:
                    self.was_lost = True
                return result
            finally:
                if self._process is None:
                    process.end()

    def close(self) -> None:
        """End the process."""
        with self._lock:
            if self._process is not None:
                self._process.end()
                self._process = None


class _SessionProcess:
    """The process of a session; a ``supervise.Child`` of each of its programs."""

    def __init__(self, sandbox: Sandbox, limits: Limits, echo: bool) -> None:
        self._limits = limits
        try:
            self._channel, theirs = socket.socketpair()
        except OSError as error:
            raise SandboxError(f"a session cannot be started: {error}") from error
        try:
            with theirs:
                program = Program("", limits=limits, echo=echo, is_session=True)
                self._child: FreshChild | ForkedChild = sandbox.start(program, [theirs.fileno()])
        except SandboxError:
            self._channel.close()
            raise
        self.stdout, self.stderr = self._child.stdout, self._child.stderr
        self.ready, self.folder = self._child.ready, self._child.folder
        self.given_bytes, self.is_wrapped = 0, self._child.is_wrapped
        self.ended = self._channel.fileno()
        self.is_alive = True
        self._report = b""
        self._number = 0
        self._used_seconds = 0.0
        if not is_readable(self.ready, START_SECONDS):
            self.end()
            raise SandboxError(f"a session did not start within {START_SECONDS:g} s")
        said = os.read(self.ready, 2000)
        if said[:1] != b"R":
            reason = said[1:].decode("utf-8", "replace")
            self.end()
            raise SandboxError(f"the sandbox cannot start a session: {reason}")

    @property
    def is_idle(self) -> bool:
        """Whether it waits for a program and says nothing."""
        return not is_readable(self.ended, 0.0)

    def run(self, code: str) -> SandboxResult:
        """Run one program."""
        source = code.encode("utf-8")
        self._report = b""
        self._number += 1
        self._channel.settimeout(min(END_SECONDS, self._limits.timeout_seconds))
        # A process that does not take it is noticed by the watch.
        with contextlib.suppress(OSError):
            self._channel.sendall(FRAME.pack(self._number, len(source)) + source)
        self._channel.settimeout(0.0)
        return Watch(self, self._limits, threading.Event(), is_running=True).run()

    def kill(self) -> None:
        """Kill the process unless it has reported the end of the program."""
        with contextlib.suppress(OSError):
            self._report = self._report or self._channel.recv(SESSION_REPORT.size)
        # One of another number came late: of a program that had said before that it had ended.
        is_whole = len(self._report) == SESSION_REPORT.size
        if not is_whole or SESSION_REPORT.unpack(self._report)[0] != self._number:
            self.is_alive = False
            self._child.kill()

    def reap(self) -> Exit:
        """Return how the program ended."""
        if not self.is_alive:
            return self._child.reap()
        _, status, user, system, max_rss = SESSION_REPORT.unpack(self._report)
        # The report comes from the program's process, so it may hold anything.
        used = user + system if math.isfinite(user + system) else self._used_seconds
        spent, self._used_seconds = used - self._used_seconds, used
        return Exit((status >> 8) & 0xFF, None, max(0.0, spent), max(0, max_rss))

    def close(self) -> None:
        """Keep the process for the next program."""

    def end(self) -> None:
        """End the process."""
        self._channel.close()
        self._child.kill()
        if self.is_alive:
            with contextlib.suppress(SandboxError):
                self._child.reap()
        self.is_alive = False
        self._child.close()
