"""Fresh interpreters that run a module, and that end when this process ends."""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

from rllm_envs.errors import EnvProcessError

_ENDING_SECONDS = 2.0
_LOOK_SECONDS = 0.005


class ChildProcess:
    """A fresh interpreter that runs a module: ``python -m MODULE LIFELINE [DESCRIPTORS ...]``.

    It needs no ``if __name__ == "__main__"`` in the caller's script, finds exactly the modules that
    this process finds, and leads a group of its own, so that Ctrl-C is for the parent. The module
    calls `end_with` with its first argument, the lifeline; it then ends when this object's `kill`
    is called and when this process ends, however that happens.

    Args:
        module: What to run.
        descriptors: Further open files of this process that the child gets, under their numbers.
        pipes: Arguments of ``subprocess.Popen`` for standard input and output.

    Raises:
        EnvProcessError: The process cannot be started.
    """

    def __init__(self, module: str, *, descriptors: tuple[int, ...] = (), **pipes: Any) -> None:
        if os.name != "posix":
            raise EnvProcessError(f"processes of their own need Linux or macOS, not {os.name}")
        self._owner = os.getpid()
        self._lock = threading.Lock()
        paths = [path or os.getcwd() for path in sys.path]
        try:
            # Never written: the child ends when this end closes.
            lifeline, self._lifeline = os.pipe()
        except OSError as error:
            raise EnvProcessError(f"cannot start {sys.executable}: {error}") from error
        given = (lifeline, *descriptors)
        try:
            self.popen = subprocess.Popen(
                [sys.executable, "-P", "-m", module, *map(str, given)],
                bufsize=0,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
                pass_fds=given,
                start_new_session=True,
                **pipes,
            )
        except BaseException as error:
            os.close(self._lifeline)
            if isinstance(error, OSError):
                raise EnvProcessError(f"cannot start {sys.executable}: {error}") from error
            raise
        finally:
            os.close(lifeline)

    @property
    def pid(self) -> int:
        """Id of the process."""
        return self.popen.pid

    @property
    def is_mine(self) -> bool:
        """Whether this process started it: a forked copy of this object owns nothing."""
        return self._owner == os.getpid()

    @property
    def is_alive(self) -> bool:
        """Whether the process runs and has not been killed."""
        return self._lifeline >= 0 and not self._has_ended()

    def end(self) -> None:
        """End the process and all that it started."""
        # The group of a process that was waited for may be another one's by now.
        if self.popen.returncode is None and self.is_mine:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.popen.pid, signal.SIGKILL)

    def wait(self, seconds: float) -> bool:
        """Wait for the process to end by itself, and return whether it has.

        What it has started may live on; `kill` and `ending` end that.
        """
        end = time.monotonic() + seconds
        while not self._has_ended():
            if time.monotonic() >= end:
                return False
            time.sleep(_LOOK_SECONDS)
        return True

    def kill(self) -> None:
        """End the process and all that it started, wait for it, and release its pipes."""
        self.end()
        self.popen.wait()
        with self._lock:
            lifeline, self._lifeline = self._lifeline, -1
        if lifeline >= 0:
            os.close(lifeline)
            for pipe in (self.popen.stdin, self.popen.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()

    def ending(self) -> str:
        """Say how it ended: "ended with exit code 1"; waits two seconds for that."""
        if not self.wait(_ENDING_SECONDS):
            return "closed its pipes"
        self.end()
        code = self.popen.wait()
        if code >= 0:
            return f"ended with exit code {code}"
        try:
            return f"was ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"was ended by signal {-code}"

    def _has_ended(self) -> bool:
        """Look without taking note of the end, so that the group stays this one's until `end`."""
        if self.popen.returncode is not None:
            return True
        if not hasattr(os, "waitid"):  # macOS before Python 3.13
            return self.popen.poll() is not None
        try:
            found = os.waitid(os.P_PID, self.popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:  # another thread waits for it, or this is a forked copy
            return True
        return found is not None


def end_with(lifeline: int) -> None:
    """Have the kernel end this process, and all that it starts, when a lifeline closes.

    That is so even where something never gives the interpreter back. Called by the child.

    Args:
        lifeline: Descriptor of the end of a pipe that is read.
    """
    async_flag = getattr(os, "O_ASYNC", getattr(fcntl, "FASYNC", 0))
    with contextlib.suppress(OSError):
        # The default action of SIGIO ends each process of the group. The parent leads another one.
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
        flags = fcntl.fcntl(lifeline, fcntl.F_GETFL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, flags | async_flag)
