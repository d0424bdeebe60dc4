"""The child process of ``process_env``: one environment that answers over pipes.

Run as a module with the descriptor of the lifeline as its argument. Each line of standard input is
a request and is answered by one line of standard output; ``wire`` says how values are written. The
first request is the JSON text of the environment's spec.

    in   the JSON text of a spec                          out  {"value": None}
    in   {"do": "reset", "seed": 3, "options": None}      out  {"value": (observation, info)}
    in   {"do": "step", "action": "..."}                  out  {"value": (..., info)}
    in   {"do": "call", "name": ..., "arguments": ..., "named": ...}
    in   {"do": "set", "name": ..., "value": ...}
    in   {"do": "close"}

Whatever the environment raises is answered with ``{"error": [class, message]}``. What it prints
goes to standard error, so it cannot disturb the answers.

The process ends with its parent, whatever the environment is doing: a thread ends it when standard
input closes, and on Linux the kernel ends it, and all that it started, when the lifeline closes,
even where the environment never gives the interpreter back.
"""

import contextlib
import fcntl
import os
import queue
import sys
import threading
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from rllm_envs.vector.wire import decode_line, encode_line


def main() -> None:
    """Answer requests until told to close, or until standard input closes."""
    _end_with(int(sys.argv[1]))
    requests, replies = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(requests, lines), daemon=True).start()
    server = _Server()
    while not server.is_closed:
        _write(replies, server.answer(lines.get()))
    # Threads that the environment has started must not keep the process.
    os._exit(0)


class _Server:
    """The environment and its requests."""

    def __init__(self) -> None:
        self.is_closed = False
        self._env: Any = None

    def answer(self, line: bytes) -> bytes:
        try:
            request = decode_line(line)
            if self._env is None:
                self._env = gymnasium.make(EnvSpec.from_json(request))
                return encode_line({"value": None})
            return encode_line({"value": self._do(request)})
        except BaseException as error:
            return encode_line({"error": [type(error).__name__, str(error)[:2000]]})

    def _do(self, request: dict[str, Any]) -> Any:
        kind = request["do"]
        if kind == "step":
            return self._env.step(request["action"])
        if kind == "reset":
            return self._env.reset(seed=request["seed"], options=request["options"])
        if kind == "call":
            attribute = self._env.get_wrapper_attr(request["name"])
            if callable(attribute):
                return attribute(*request["arguments"], **request["named"])
            return attribute
        if kind == "set":
            return self._env.set_wrapper_attr(request["name"], request["value"])
        self.is_closed = True
        return self._env.close()


def _end_with(lifeline: int) -> None:
    async_flag = getattr(os, "O_ASYNC", getattr(fcntl, "FASYNC", 0))
    with contextlib.suppress(OSError):
        # The default action of SIGIO ends each process of the group. The parent leads another one.
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
        flags = fcntl.fcntl(lifeline, fcntl.F_GETFL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, flags | async_flag)


def _read(descriptor: int, lines: "queue.SimpleQueue[bytes]") -> None:
    with os.fdopen(descriptor, "rb") as file:
        for line in file:
            lines.put(line)
    os._exit(0)


def _write(descriptor: int, line: bytes) -> None:
    view = memoryview(line)
    while view:
        view = view[os.write(descriptor, view) :]


if __name__ == "__main__":
    main()
