"""Environments in processes of their own: one that hangs or crashes is killed and replaced."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from rllm_agents.errors import UserError
from rllm_envs.errors import EnvProcessError
from rllm_envs.vector.env_process import EnvProcess, EnvRaisedError


class EnvProcesses:
    """Processes for environments of one class; those that behave are used again.

    Each plays one episode at a time. A process that hung, died or could not close its environment
    is killed, and the next episode gets a fresh one.

    Args:
        env_class: Its ``from_dict(task)`` makes an environment in the process.

    Raises:
        UserError: Another process cannot find the class.
    """

    def __init__(self, env_class: Any) -> None:
        module = getattr(env_class, "__module__", None)
        name = getattr(env_class, "__qualname__", "")
        if not isinstance(module, str) or module == "__main__" or not name or "<locals>" in name:
            raise UserError(
                'isolation="process" needs an env_class at the top of a module that can be '
                f"imported, got {env_class!r:.120}; move it from the script into a file of its own"
            )
        self.class_path = f"{module}:{name}"
        """``module:Class``."""
        self._lock = threading.Lock()
        self._idle: list[EnvProcess] = []
        self._living: set[EnvProcess] = set()
        self._is_closed = False

    @property
    def num_living(self) -> int:
        """Processes that have been started and not ended."""
        return len(self._living)

    def take(self) -> EnvProcess:
        """Return an idle process, or start one.

        Raises:
            EnvProcessError: It cannot be started, or all of this is closed.
        """
        while True:
            with self._lock:
                if self._is_closed:
                    raise EnvProcessError("the engine is closed")
                process = self._idle.pop() if self._idle else None
            if process is None:
                return self._started()
            if process.is_usable:
                return process
            self.discard(process)  # it died while nobody looked

    def _started(self) -> EnvProcess:
        process = EnvProcess()
        with self._lock:
            self._living.add(process)
            is_closed = self._is_closed
        if is_closed:
            self.discard(process)
            raise EnvProcessError("the engine is closed")
        return process

    def give_back(self, process: EnvProcess) -> None:
        """Take back a process that has closed its environment."""
        with self._lock:
            if not self._is_closed:
                self._idle.append(process)
                return
        self.discard(process)

    def discard(self, process: EnvProcess) -> None:
        """Kill a process."""
        process.kill()
        with self._lock:
            self._living.discard(process)

    def close(self) -> None:
        """Kill all processes; calls that wait for them fail, and their threads clear up."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
            busy = self._living.difference(idle)
        for process in busy:
            process.end()
        for process in idle:
            self.discard(process)


class IsolatedEnv:
    """The calls of a `BaseEnv` that lives in a process. Used by an EnvSession, in threads.

    Args:
        processes: Where it gets its process from.
        task: What ``from_dict`` makes the environment of; data only.
        call_seconds: How long one call may take before the process is killed; None: no bound.
        close_seconds: The same for `close`.
    """

    blocking = True

    def __init__(
        self,
        processes: EnvProcesses,
        task: Mapping[str, Any],
        call_seconds: float | None,
        close_seconds: float,
    ) -> None:
        self._processes = processes
        self._task = dict(task)
        self._call_seconds = call_seconds
        self._close_seconds = close_seconds
        self._lock = threading.Lock()
        self._process: EnvProcess | None = None
        self._is_made = False
        self._is_killed = False

    def make(self) -> None:
        """Make the environment; must be called first. Errors are those of `EnvProcess.ask`."""
        process = self._processes.take()
        with self._lock:
            is_killed = self._is_killed
            if not is_killed:
                self._process = process
        if is_killed:  # nobody waits for it any more
            self._processes.give_back(process)
            raise EnvProcessError("the environment was given up before it was made")
        request = {"do": "make", "class": self._processes.class_path, "task": self._task}
        self._ask(request, self._call_seconds)
        self._is_made = True

    def reset(self) -> Any:
        """Reset the environment and return what it returns; see `make`."""
        return self._ask({"do": "call", "name": "reset"}, self._call_seconds)

    def step(self, action: Any) -> Any:
        """Act on the environment and return what it returns; see `make`."""
        return self._ask({"do": "call", "name": "step", "arguments": (action,)}, self._call_seconds)

    def close(self) -> None:
        """Close the environment where it answers, and give the process back or kill it.

        Raises:
            EnvProcessError: The environment could not be closed.
        """
        process = self._process
        if process is None:
            return
        try:
            if process.is_usable and not self._is_killed:
                process.ask({"do": "release"}, self._close_seconds)
                self._is_made = False
        finally:
            with self._lock:
                self._process = None
            is_clean = process.is_usable and not self._is_made and not self._is_killed
            (self._processes.give_back if is_clean else self._processes.discard)(process)

    def kill(self) -> None:
        """End the process, whatever it does; a call that waits for it fails at once."""
        with self._lock:
            self._is_killed = True
            if self._process is not None:
                self._process.end()

    def _ask(self, request: dict[str, Any], limit_seconds: float | None) -> Any:
        assert self._process is not None
        try:
            return self._process.ask(request, limit_seconds)
        except EnvRaisedError:
            raise
        except EnvProcessError:
            self.kill()
            raise
