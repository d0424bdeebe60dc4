"""``ProcessEnv``: an environment in a process of its own, which can be killed."""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from typing import Any

from rllm_envs.errors import EnvArgumentError, EnvProcessError, TaskError
from rllm_envs.vector.wire import decode_line, encode_line

START_LIMIT_SECONDS = 120.0
CLOSE_LIMIT_SECONDS = 2.0
_CALLERS_MISTAKES = {"TaskError": TaskError, "EnvArgumentError": EnvArgumentError}


class ProcessEnv:
    """The calls of a Gymnasium environment that lives in a child process.

    The child is a fresh interpreter, so the caller's script needs no ``if __name__ ==
    "__main__"``; it makes the environment from the JSON text of its spec. It ends when this object
    is closed and when this process ends, however that happens. One thread calls at a time.

    Args:
        spec: JSON text of the environment's spec (``env.spec.to_json()``).
        limit_seconds: How long one call may take before the process is killed; None waits for
            ever.

    Raises:
        EnvProcessError: The process cannot be started.
    """

    def __init__(self, spec: str, limit_seconds: float | None = None) -> None:
        if os.name != "posix":
            raise EnvProcessError(f"processes of their own need Linux or macOS, not {os.name}")
        self._spec = spec
        self._limit_seconds = limit_seconds
        self._owner = os.getpid()
        self._is_made = False
        self._owes_answer = False
        # Never written: the child ends when this end closes.
        lifeline, self._lifeline = os.pipe()
        # The child finds exactly the modules that this process finds.
        paths = [path or os.getcwd() for path in sys.path]
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "rllm_envs.vector.process_worker", str(lifeline)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
                pass_fds=(lifeline,),
                # Ctrl-C is for the parent. The child leads a group that is killed as a whole.
                start_new_session=True,
            )
        except OSError as error:
            os.close(self._lifeline)
            raise EnvProcessError(f"cannot start {sys.executable}: {error}") from error
        finally:
            os.close(lifeline)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._requests = self._process.stdin.fileno()
        self._replies = self._process.stdout.fileno()
        os.set_blocking(self._requests, False)

    @property
    def pid(self) -> int:
        """Id of the process."""
        return self._process.pid

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset the environment.

        Raises:
            TaskError: The given task cannot be played.
            EnvArgumentError: ``options`` has another key.
            EnvProcessError: The environment raised anything else, or its process died or hung.
        """
        return self._ask({"do": "reset", "seed": seed, "options": options})

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step the environment.

        Raises:
            EnvProcessError: It raised something, or its process died or hung.
        """
        return self._ask({"do": "step", "action": action})

    def call(self, name: str, *arguments: Any, **named: Any) -> Any:
        """Return an attribute of the environment, or what its method returns; see ``step``."""
        return self._ask({"do": "call", "name": name, "arguments": arguments, "named": named})

    def set_wrapper_attr(self, name: str, value: Any) -> Any:
        """Set an attribute of the environment; see ``step``."""
        return self._ask({"do": "set", "name": name, "value": value})

    def close(self) -> None:
        """Close the environment if it can be done soon, end the process, and release its pipes."""
        if self._owner != os.getpid():
            # A forked copy of this object: the process belongs to the original.
            return
        if self._is_made and not self._owes_answer and self._process.poll() is None:
            with contextlib.suppress(EnvProcessError, EnvArgumentError, TaskError):
                self._exchange(encode_line({"do": "close"}), CLOSE_LIMIT_SECONDS)
        self.kill()

    def end(self) -> None:
        """End the process and all that it started; a call that waits for it fails at once."""
        # The group of a process that was waited for may be another one's by now.
        if self._process.returncode is None and self._owner == os.getpid():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def kill(self) -> None:
        """End the process and release its pipes."""
        self.end()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1

    def _ask(self, request: dict[str, Any]) -> Any:
        if self._owes_answer:
            raise EnvProcessError("the environment's process still owes an answer")
        line = encode_line(request)
        if not self._is_made:
            self._exchange(encode_line(self._spec), START_LIMIT_SECONDS)
            self._is_made = True
        return self._exchange(line, self._limit_seconds)

    def _exchange(self, line: bytes, limit_seconds: float | None) -> Any:
        end = None if limit_seconds is None else time.monotonic() + limit_seconds
        self._owes_answer = True
        try:
            self._write(line, end)
            reply = decode_line(self._read_line(end))
        except TimeoutError:
            raise EnvProcessError(f"took longer than {limit_seconds:g} s, killed") from None
        except OSError:
            raise EnvProcessError(self._death()) from None
        self._owes_answer = False
        if "error" in reply:
            name, message = reply["error"]
            if name in _CALLERS_MISTAKES:
                raise _CALLERS_MISTAKES[name](message)
            raise EnvProcessError(f"{name}: {message}")
        return reply["value"]

    def _write(self, line: bytes, end: float | None) -> None:
        view = memoryview(line)
        while view:
            _await(self._requests, select.POLLOUT, end)
            with contextlib.suppress(BlockingIOError):
                view = view[os.write(self._requests, view) :]

    def _read_line(self, end: float | None) -> bytes:
        parts = []
        while True:
            _await(self._replies, select.POLLIN, end)
            part = os.read(self._replies, 1 << 16)
            if not part:
                raise BrokenPipeError
            parts.append(part)
            # The child writes one line for each request and nothing else.
            if part.endswith(b"\n"):
                return b"".join(parts)

    def _death(self) -> str:
        try:
            code = self._process.wait(timeout=CLOSE_LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            return "the environment's process closed its pipes"
        if code >= 0:
            return f"the environment's process ended with exit code {code}"
        try:
            return f"the environment's process was ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"the environment's process was ended by signal {-code}"


def _await(descriptor: int, event: int, end: float | None) -> None:
    """Wait until a descriptor is ready; ``poll`` because ``select`` knows the first 1,024 only."""
    poll = select.poll()
    poll.register(descriptor, event)
    milliseconds = None if end is None else max(0.0, end - time.monotonic()) * 1000
    if not poll.poll(milliseconds):
        raise TimeoutError
