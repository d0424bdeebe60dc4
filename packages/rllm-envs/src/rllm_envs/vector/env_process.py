"""``EnvProcess``: a child process in which environments live, and which can be killed."""

import contextlib
import os
import select
import subprocess
import time
from typing import Any

from rllm_envs.errors import EnvProcessError
from rllm_envs.vector.child_process import ChildProcess
from rllm_envs.vector.wire import decode_line, encode_line

START_LIMIT_SECONDS = 120.0
CLOSE_LIMIT_SECONDS = 2.0


class EnvHungError(EnvProcessError):
    """A call took longer than it may, and its process was killed."""


class EnvRaisedError(EnvProcessError):
    """The environment raised something; its process goes on.

    Attributes:
        kinds: Names of the class that was raised and of all its bases, itself first.
        message: Its text.
    """

    def __init__(self, kinds: tuple[str, ...], message: str) -> None:
        super().__init__(f"{kinds[0]}: {message}")
        self.kinds = kinds
        self.message = message


class EnvProcess:
    """A child process that makes an environment and answers for it.

    The child is a fresh interpreter, so the caller's script needs no ``if __name__ ==
    "__main__"``. It ends when this object is closed and when this process ends, however that
    happens. One thread calls at a time.

    Raises:
        EnvProcessError: The process cannot be started.
    """

    max_reply_bytes = 64 * 2**20
    """Longest answer that is read; a longer one fails its call."""

    def __init__(self) -> None:
        self._has_answered = False
        self._owes_answer = False
        self._child = ChildProcess(
            "rllm_envs.vector.process_worker", stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        popen = self._child.popen
        assert popen.stdin is not None and popen.stdout is not None
        self._requests = popen.stdin.fileno()
        self._replies = popen.stdout.fileno()
        os.set_blocking(self._requests, False)

    @property
    def pid(self) -> int:
        """Id of the process."""
        return self._child.pid

    @property
    def is_usable(self) -> bool:
        """Whether the process lives and owes no answer."""
        return not self._owes_answer and self._child.is_alive

    def ask(self, request: dict[str, Any], limit_seconds: float | None = None) -> Any:
        """Send a request of ``process_worker`` and return its answer.

        Args:
            request: What to do.
            limit_seconds: How long it may take before the process is killed; None waits for ever.
                The interpreter's own start, before the first answer, is not counted.

        Raises:
            EnvHungError: It took longer.
            EnvRaisedError: The environment raised.
            UnsendableError: The request is not data.
            EnvProcessError: The process died.
        """
        if self._owes_answer:
            raise EnvProcessError("the environment's process still owes an answer")
        line = encode_line(request)
        if not self._has_answered:
            self._exchange(encode_line({"do": "greet"}), START_LIMIT_SECONDS)
            self._has_answered = True
        return self._exchange(line, limit_seconds)

    def close(self) -> None:
        """Close the environment if it can be done soon, end the process, and release its pipes."""
        if not self._child.is_mine:
            # A forked copy of this object: the process belongs to the original.
            return
        if self._has_answered and self.is_usable:
            with contextlib.suppress(EnvProcessError):
                self._exchange(encode_line({"do": "close"}), CLOSE_LIMIT_SECONDS)
        self.kill()

    def end(self) -> None:
        """End the process and all that it started; a call that waits for it fails at once."""
        self._child.end()

    def kill(self) -> None:
        """End the process and release its pipes."""
        self._child.kill()

    def _exchange(self, line: bytes, limit_seconds: float | None) -> Any:
        end = None if limit_seconds is None else time.monotonic() + limit_seconds
        self._owes_answer = True
        try:
            self._write(line, end)
            reply = decode_line(self._read_line(end))
        except TimeoutError:
            raise EnvHungError(f"took longer than {limit_seconds:g} s, killed") from None
        except OSError:
            raise EnvProcessError(f"the environment's process {self._child.ending()}") from None
        self._owes_answer = False
        if "error" in reply:
            kinds, message = reply["error"]
            raise EnvRaisedError(tuple(kinds), message)
        return reply["value"]

    def _write(self, line: bytes, end: float | None) -> None:
        view = memoryview(line)
        while view:
            _await(self._requests, select.POLLOUT, end)
            with contextlib.suppress(BlockingIOError):
                view = view[os.write(self._requests, view) :]

    def _read_line(self, end: float | None) -> bytes:
        parts, size = [], 0
        while True:
            _await(self._replies, select.POLLIN, end)
            part = os.read(self._replies, 1 << 16)
            if not part:
                raise BrokenPipeError
            parts.append(part)
            size += len(part)
            if size > self.max_reply_bytes:
                raise EnvProcessError(f"an answer of more than {self.max_reply_bytes} bytes")
            # The child writes one line for each request and nothing else.
            if part.endswith(b"\n"):
                return b"".join(parts)


def _await(descriptor: int, event: int, end: float | None) -> None:
    """Wait until a descriptor is ready; ``poll`` because ``select`` knows the first 1,024 only."""
    poll = select.poll()
    poll.register(descriptor, event)
    milliseconds = None if end is None else max(0.0, end - time.monotonic()) * 1000
    if not poll.poll(milliseconds):
        raise TimeoutError
