"""Watch one running program: read its output, keep its limits, end it on every path."""

import contextlib
import os
import re
import selectors
import signal
import threading
import time
from dataclasses import dataclass
from typing import Protocol

from rllm_envs.errors import SandboxError
from rllm_envs.sandbox.folders import deleted_bytes, holds_more_than
from rllm_envs.sandbox.results import Limits, SandboxResult, Status

START_SECONDS = 30.0
"""How long a child may take until its program starts."""
END_SECONDS = 10.0
"""How long a killed process may take to be gone."""
_HOLDER_SECONDS = 0.2
"""How long output is read after the end, for what another process holds open."""
_MOST_LAST_READS = 64
"""How often each stream is read after the end; a pipe holds less."""
_TICK_SECONDS = 0.2
"""How often a cancelled run is noticed."""
_FULL_TICK_SECONDS = 0.02
"""How often a folder is measured that a program may write into."""
_MOST_ENTRIES = 2000
"""Files and folders that a program may make."""
_MEMORY_ERROR = re.compile(r"^(?:[\w.]*\.)?_?\w*MemoryError\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended. Made by a ``Child``, read by ``watch``."""

    exit_code: int | None
    """None where a signal ended it."""
    signal: int | None
    """None where it ended by itself."""
    cpu_seconds: float
    """User and system time."""
    max_rss_bytes: int
    """Greatest resident memory; 0 where it is not known."""

    @classmethod
    def of_code(cls, code: int, cpu_seconds: float, max_rss_bytes: int) -> "Exit":
        """Return the end of a process by its code, negative for a signal."""
        if code < 0:
            return cls(None, -code, cpu_seconds, max_rss_bytes)
        return cls(code, None, cpu_seconds, max_rss_bytes)


class Child(Protocol):
    """A process that runs a program, however it was started."""

    stdout: int
    """Descriptor to read."""
    stderr: int
    """Descriptor to read."""
    ready: int
    """Descriptor that tells R and a process number when the program starts, or E and a reason."""
    ended: int
    """Descriptor that becomes readable when the process has ended."""
    folder: str
    """Its own folder; empty where it has none."""
    given_bytes: int
    """Room on the disk for the files that it was given."""
    is_wrapped: bool
    """Whether it is in a namespace, where processes have other numbers."""

    def kill(self) -> None:
        """Kill the process and its group; harmless when it has ended."""
        ...

    def reap(self) -> Exit:
        """Wait for the end of an ended or killed process and return how it ended."""
        ...

    def close(self) -> None:
        """Close the descriptors and remove the folder."""
        ...


class _Stream:
    """Output as far as it was read."""

    def __init__(self, limit: int) -> None:
        self.data = bytearray()
        self._limit = limit
        self.is_cut = False

    def read_from(self, descriptor: int) -> bool:
        """Read what is there; return False at the end of the stream."""
        try:
            part = os.read(descriptor, 65536)
        except BlockingIOError:
            return True
        room = self._limit - len(self.data)
        self.is_cut = self.is_cut or len(part) > room
        self.data += part[: max(0, room)]
        return bool(part)

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


class Watch:
    """One run of one child, from its start to its end.

    Args:
        child: The process; ``run`` ends it and closes it on every path.
        limits: What it may use.
        cancelled: Set by another thread to end the run.
        is_running: Whether the process runs already, and goes on after this call; then ``ready`` is
            not read, and output only as far as it is there at the end.
    """

    def __init__(
        self,
        child: Child,
        limits: Limits,
        cancelled: threading.Event,
        *,
        is_running: bool = False,
    ) -> None:
        self._child = child
        self._limits = limits
        self._cancelled = cancelled
        self._streams = {
            child.stdout: _Stream(limits.output_bytes),
            child.stderr: _Stream(limits.output_bytes),
        }
        self._is_running = is_running
        self._ready = bytearray()
        self._started = time.monotonic() if is_running else 0.0
        limit = limits.timeout_seconds if is_running else START_SECONDS
        self._deadline = time.monotonic() + limit

    def run(self) -> SandboxResult:
        """Return what became of the program.

        Raises:
            SandboxError: The program could not be started, or its process cannot be ended.
        """
        end: Exit | None = None
        try:
            with selectors.DefaultSelector() as selector:
                self._register(selector)
                broken = self._until_ended(selector)
                self._child.kill()
                end = self._child.reap()
                self._drain(selector)
        except BaseException as error:
            if end is None:
                self._child.kill()
                with contextlib.suppress(SandboxError):
                    self._child.reap()
            if isinstance(error, OSError):
                raise SandboxError(f"a program cannot be watched: {error}") from error
            raise
        finally:
            self._child.close()
        return self._result(broken, end)

    def _register(self, selector: selectors.BaseSelector) -> None:
        extra = () if self._is_running else (self._child.ready,)
        for descriptor in (*self._streams, *extra, self._child.ended):
            os.set_blocking(descriptor, False)
            selector.register(descriptor, selectors.EVENT_READ)

    def _until_ended(self, selector: selectors.BaseSelector) -> Status | None:
        """Return the limit that was broken, or None when the process has ended by itself."""
        tick = _FULL_TICK_SECONDS if self._limits.writable_bytes else _TICK_SECONDS
        while True:
            left = self._deadline - time.monotonic()
            if left <= 0 or self._cancelled.is_set():
                return "timeout"
            for key, _ in selector.select(min(left, tick)):
                if key.fd == self._child.ended:
                    return None
                self._read(selector, key.fd)
            if any(stream.is_cut for stream in self._streams.values()):
                return "output_limit"
            if self._limits.writable_bytes and self._is_folder_full():
                return "disk_limit"

    def _read(self, selector: selectors.BaseSelector, descriptor: int) -> None:
        if descriptor == self._child.ready:
            part = os.read(descriptor, 4096)
            self._ready += part
            if part and not self._started and self._ready[:1] == b"R":
                self._started = time.monotonic()
                self._deadline = self._started + self._limits.timeout_seconds
            more = bool(part)
        else:
            more = self._streams[descriptor].read_from(descriptor)
        if not more:
            selector.unregister(descriptor)

    def _drain(self, selector: selectors.BaseSelector) -> None:
        """Read what is left in the pipes; not for ever, since others may hold and fill them."""
        selector.unregister(self._child.ended)
        deadline = time.monotonic() + (0.0 if self._is_running else _HOLDER_SECONDS)
        for _ in range(_MOST_LAST_READS):
            if not selector.get_map():
                break
            events = selector.select(max(0.0, deadline - time.monotonic()))
            for key, _ in events:
                self._read(selector, key.fd)
            if not events or all(stream.is_cut for stream in self._streams.values()):
                break

    def _is_folder_full(self) -> bool:
        size = self._limits.writable_bytes + self._child.given_bytes
        number = bytes(self._ready[1:])
        if number.isdigit() and not self._child.is_wrapped:
            size -= deleted_bytes(int(number), self._child.folder)
        return holds_more_than(self._child.folder, entries=_MOST_ENTRIES, size=size)

    def _result(self, broken: Status | None, end: Exit) -> SandboxResult:
        stdout, stderr = (self._streams[d] for d in (self._child.stdout, self._child.stderr))
        if not self._started:
            self._raise_not_started(end, stderr.text)
        is_cut = stdout.is_cut or stderr.is_cut
        status: Status = broken or ("output_limit" if is_cut else self._status_of(end, stderr.text))
        return SandboxResult(
            status=status,
            exit_code=None if broken else end.exit_code,
            signal=int(signal.SIGKILL) if broken else end.signal,
            stdout=stdout.text,
            stderr=stderr.text,
            truncated=is_cut,
            wall_seconds=time.monotonic() - self._started,
            cpu_seconds=end.cpu_seconds,
            max_rss_bytes=end.max_rss_bytes,
        )

    def _raise_not_started(self, end: Exit, stderr: str) -> None:
        reason = bytes(self._ready[1:]).decode("utf-8", "replace") or stderr.strip()[-500:]
        if not reason and end.exit_code is None:
            reason = f"its process was ended by signal {end.signal} before the program started"
        if self._cancelled.is_set():
            reason = "the run was cancelled before the program started"
        reason = reason or f"it did not start within {START_SECONDS:g} s"
        raise SandboxError(f"the sandbox cannot run the program: {reason}")

    def _status_of(self, end: Exit, stderr: str) -> Status:
        if end.signal is not None:
            return "timeout" if end.signal == signal.SIGXCPU else "signal"
        if end.exit_code == 0:
            return "ok"
        last = stderr.rstrip().rpartition("\n")[2]
        return "memory" if _MEMORY_ERROR.match(last) else "error"
