"""``Sandbox``: runs programs on this machine, each in a process that has given up its rights."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rllm_envs.errors import EnvArgumentError, SandboxError
from rllm_envs.sandbox.launch import ForkedChild, ForkServer, FreshChild
from rllm_envs.sandbox.levels import LEVELS, Level, default_level, describe, reach
from rllm_envs.sandbox.results import (
    Limits,
    Program,
    SandboxResult,
    as_bytes,
    checked_files,
    refused,
    source_problem,
)
from rllm_envs.sandbox.supervise import Watch

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

PRELOADED = ("numpy", "sympy", "json", "re", "math", "collections", "itertools", "functools")
"""What a fork server loads by default, so that programs need not."""
_MOST_THREADS = 256
_log = logging.getLogger(__name__)


class Sandbox:
    """Runs programs at one level of isolation; usable from threads and from event loops.

    Each program runs in a process of its own, without this process's environment, at most
    ``max_parallel`` at once; the others wait, and their time limits with them.

    Args:
        level: "lockdown" (Linux: Landlock, seccomp and resource limits), "bwrap" (the same inside
            bubblewrap), "process" (resource limits only), or "auto": "lockdown" on Linux and
            "process" elsewhere.
        fork_server: Whether programs run in forks of a process that has ``modules`` loaded, which
            takes a few milliseconds, or each in a fresh interpreter.
        modules: What the fork server loads; modules that are not installed are left out.
        max_parallel: Programs at once; the number of processors, at least 2, by default.
        allow_unsafe: Allow the level "process" for root.

    Raises:
        EnvArgumentError: An argument is out of range.
        SandboxUnavailableError: This machine does not reach the level.
    """

    def __init__(
        self,
        level: Level | str = "auto",
        *,
        fork_server: bool = True,
        modules: Sequence[str] = PRELOADED,
        max_parallel: int | None = None,
        allow_unsafe: bool = False,
    ) -> None:
        if level != "auto" and level not in LEVELS:
            allowed = ", ".join(("auto", *LEVELS))
            raise EnvArgumentError(f"the sandbox level must be one of {allowed}, got {level!r:.80}")
        if max_parallel is not None and (
            isinstance(max_parallel, bool)
            or not isinstance(max_parallel, int)
            or not 1 <= max_parallel <= _MOST_THREADS
        ):
            raise EnvArgumentError(
                f"max_parallel must be in 1 to {_MOST_THREADS}, got {max_parallel!r:.80}"
            )
        self.level: Level = default_level() if level == "auto" else level  # type: ignore[assignment]
        self._confinement = reach(self.level, allow_unsafe)
        self._modules = tuple(modules) if fork_server else None
        self._max_parallel = max_parallel or max(2, os.cpu_count() or 1)
        self._server: ForkServer | None = None
        self._is_closed = False
        self._begin()
        _log.log(logging.WARNING if self.level == "process" else logging.INFO, self.description)

    def _begin(self) -> None:
        self._owner = os.getpid()
        self._slots = threading.BoundedSemaphore(self._max_parallel)
        self._lock = threading.Lock()
        self._threads: ThreadPoolExecutor | None = None

    def _begin_in_a_fork(self) -> None:
        # In a fork of the process that made it, the threads that hold its locks do not exist.
        if self._owner != os.getpid():
            self._begin()

    @contextlib.contextmanager
    def place(self) -> Iterator[None]:
        """Hold one of the ``max_parallel`` places for running programs."""
        self._begin_in_a_fork()
        with self._slots:
            yield

    @property
    def description(self) -> str:
        """What it is and what it does not stop, in one line."""
        return describe(self.level)

    @property
    def has_fork_server(self) -> bool:
        """Whether programs run in forks of a process with modules loaded."""
        return self._modules is not None

    def run(
        self,
        code: str,
        *,
        stdin: str | bytes = "",
        files: Mapping[str, str | bytes] | None = None,
        timeout_seconds: float = 10.0,
        memory_bytes: int = 2**30,
        output_bytes: int = 64 * 1024,
        writable_bytes: int = 0,
        echo: bool = False,
    ) -> SandboxResult:
        """Run a program and return what became of it.

        Args:
            code: Python source; what cannot be run is an "error" result, never an exception.
            stdin: What it reads.
            files: Files in its folder, by relative path; modules among them can be imported.
            timeout_seconds: Wall-clock time, in (0, 3600].
            memory_bytes: Memory beyond what the interpreter has, at least 16 MiB.
            output_bytes: Most bytes of stdout and of stderr.
            writable_bytes: Bytes that it may write into its folder; 0 for none.
            echo: Whether the value of a last expression is printed, as a terminal does.

        Raises:
            EnvArgumentError: An argument is out of range.
            SandboxError: The sandbox failed, not the program.
        """
        limits = Limits(timeout_seconds, memory_bytes, output_bytes, writable_bytes)
        program = Program(code, as_bytes(stdin, "stdin"), checked_files(files), limits, echo)
        return self.run_program(program)

    async def run_async(self, code: str, **arguments: Any) -> SandboxResult:
        """Do what ``run`` does without stopping the event loop; a cancelled call ends its program.

        Args:
            code: As for ``run``.
            arguments: As for ``run``.
        """
        import asyncio  # loaded already by who awaits this

        limit_names = ("timeout_seconds", "memory_bytes", "output_bytes", "writable_bytes")
        limits = Limits(**{name: arguments.pop(name) for name in limit_names if name in arguments})
        stdin = as_bytes(arguments.pop("stdin", b""), "stdin")
        files = checked_files(arguments.pop("files", None))
        program = Program(code, stdin, files, limits, **arguments)
        cancelled = threading.Event()
        call = functools.partial(self.run_program, program, cancelled=cancelled)
        executor = self._executor()
        try:
            running = asyncio.get_running_loop().run_in_executor(executor, call)
        except RuntimeError as error:  # it has been shut down since
            raise SandboxError("the sandbox has been closed") from error
        try:
            return await running
        except asyncio.CancelledError:
            cancelled.set()
            raise

    def run_program(
        self, program: Program, *, cancelled: threading.Event | None = None
    ) -> SandboxResult:
        """Run a program; ``cancelled``, set by another thread, ends it.

        Raises:
            SandboxError: The sandbox failed, not the program.
        """
        problem = source_problem(program.code)
        if problem is not None:
            return refused(problem)
        with self.place():
            if cancelled is not None and cancelled.is_set():
                raise SandboxError("the run was cancelled before the program started")
            for is_last in (False, True):
                try:
                    child = self.start(program)
                    return Watch(child, program.limits, cancelled or threading.Event()).run()
                except SandboxError:
                    # The server may have been killed from outside; then a new one takes over.
                    if is_last or self._server is None or self._server.is_alive:
                        raise
        raise AssertionError("unreachable")

    def run_pair(self, tests: Program, solution: Program) -> SandboxResult:
        """Run tests in one process and what they test in another, joined by a socket.

        Both find the socket as descriptor 3. The solution prints to nobody and is killed when the
        tests end.

        Returns:
            What became of the tests.

        Raises:
            SandboxError: The sandbox failed, not the tests or the solution.
        """
        with self.place(), contextlib.ExitStack() as cleanup:
            try:
                ours, theirs = socket.socketpair()
            except OSError as error:
                raise SandboxError(f"two programs cannot be joined: {error}") from error
            with ours, theirs:
                tested = self.start(solution, [theirs.fileno()])
                cleanup.callback(_end, tested)
                tester = self.start(tests, [ours.fileno()])
            result = Watch(tester, tests.limits, threading.Event()).run()
            if os.read(tested.ready, 1) != b"R":
                reason = os.read(tested.ready, 2000).decode("utf-8", "replace")
                raise SandboxError(f"the sandbox cannot run the solution: {reason}")
            return result

    def start(self, program: Program, channels: Sequence[int] = ()) -> FreshChild | ForkedChild:
        """Start a child for a program; who calls this watches and ends it.

        Raises:
            SandboxError: It cannot be started.
        """
        if self._modules is None:
            self._check_open()
            return FreshChild(program, self._confinement, channels)
        with self._lock:
            self._check_open()
            if self._server is None or not self._server.is_alive:
                self._end_server()
                self._server = ForkServer(self._confinement, self._modules)
            server = self._server
        return server.start(program, channels)

    def close(self) -> None:
        """End the fork server and all that it runs; the sandbox runs nothing after that."""
        self._begin_in_a_fork()
        with self._lock:
            self._is_closed = True
            self._end_server()
            if self._threads is not None:
                self._threads.shutdown(wait=False)

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._is_closed:
            raise SandboxError("the sandbox has been closed")

    def _end_server(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    def _executor(self) -> ThreadPoolExecutor:
        from concurrent.futures import ThreadPoolExecutor  # not loaded for who never awaits

        self._begin_in_a_fork()
        with self._lock:
            self._check_open()
            if self._threads is None:
                self._threads = ThreadPoolExecutor(
                    self._max_parallel, thread_name_prefix="rllm-sandbox"
                )
            return self._threads


def _end(child: FreshChild | ForkedChild) -> None:
    child.kill()
    try:
        child.reap()
    finally:
        child.close()
