"""The child process of ``env_process``: environments, one at a time, that answer over pipes.

Run as a module with the descriptor of the lifeline as its argument. Each line of standard input is
a request and is answered by one line of standard output; ``wire`` says how values are written.

    {"do": "greet"}                                            answered once the imports are done
    {"do": "make", "spec": JSON text of a Gymnasium spec}
    {"do": "make", "class": "module:Class", "task": {...}}     ``Class.from_dict(task)``
    {"do": "call", "name": ..., "arguments": ..., "named": ...}
    {"do": "set", "name": ..., "value": ...}
    {"do": "release"}                                          closes the environment
    {"do": "close"}                                            and ends the process as well

``call`` is answered with ``{"value": what the method returns}``, awaited where it is awaitable, all
others with None.

Whatever the environment raises is answered with ``{"error": [names, message]}``, the names of
its class and of all bases. What it prints goes to standard error, so it cannot disturb the answers.

The process ends with its parent, whatever the environment is doing: a thread ends it when standard
input closes, and on Linux the kernel ends it, and all that it started, when the lifeline closes,
even where the environment never gives the interpreter back.
"""

import asyncio
import importlib
import inspect
import os
import queue
import sys
import threading
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from rllm_envs.vector.child_process import end_with
from rllm_envs.vector.wire import decode_line, encode_line


def main() -> None:
    """Answer requests until told to close, or until standard input closes."""
    end_with(int(sys.argv[1]))
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
        self._loop: asyncio.AbstractEventLoop | None = None

    def answer(self, line: bytes) -> bytes:
        try:
            return encode_line({"value": self._do(decode_line(line))})
        except BaseException as error:
            kinds = [kind.__name__ for kind in type(error).__mro__]
            return encode_line({"error": [kinds, _text_of(error)]})

    def _do(self, request: dict[str, Any]) -> Any:
        kind = request["do"]
        if kind == "call":
            attribute = self._attribute(request["name"])
            if callable(attribute):
                attribute = attribute(*request.get("arguments", ()), **request.get("named", {}))
            return self._awaited(attribute)
        if kind == "make":
            self._env = _made(request)
        elif kind == "set":
            self._env.set_wrapper_attr(request["name"], request["value"])
        elif kind in ("close", "release"):
            self.is_closed = kind == "close"
            env, self._env = self._env, None
            close = getattr(env, "close", None)
            if close is not None:
                self._awaited(close())
        return None

    def _awaited(self, value: Any) -> Any:
        """Return a value, or what it gives when it is awaited."""
        if not inspect.isawaitable(value):
            return value

        async def wait() -> Any:
            return await value

        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        return self._loop.run_until_complete(wait())

    def _attribute(self, name: str) -> Any:
        get = getattr(self._env, "get_wrapper_attr", None)
        return getattr(self._env, name) if get is None else get(name)


def _made(request: dict[str, Any]) -> Any:
    if "spec" in request:
        return gymnasium.make(EnvSpec.from_json(request["spec"]))
    module, _, name = request["class"].partition(":")
    env_class: Any = importlib.import_module(module)
    for part in name.split("."):
        env_class = getattr(env_class, part)
    return env_class.from_dict(request["task"])


def _text_of(error: BaseException) -> str:
    try:
        return str(error)[:2000]
    except BaseException:
        return "its text cannot be shown"


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
