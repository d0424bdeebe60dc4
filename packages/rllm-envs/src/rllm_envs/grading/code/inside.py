"""What runs in the sandbox to grade a program: the side of the solution and the side of the tests.

The file is sent as the text of a program, after that of ``values``; its last line calls one of
``call_once``, ``serve`` or ``test``. What to do arrives as JSON on stdin.

The solution's side never learns what is expected. It may print, end the process or replace
anything it finds: all of that only changes which values come back, and they are compared elsewhere.
"""

from __future__ import annotations

import builtins
import json
import os
import socket
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from values import MAX_MESSAGE_BYTES, CrossingError, dumps, loads

CHANNEL = 3
_LOOP_ENDS = (StopIteration, StopAsyncIteration)


def _task():
    task = json.loads(sys.stdin.buffer.read())
    sys.stdin = open(os.devnull)  # noqa: SIM115  # for as long as the process lives
    return task


def _result_stream():
    """Return a stream for the result, and let what is printed go nowhere."""
    result = os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    return result


def _load(source, name):
    import linecache

    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    sys.modules["solution"] = type(sys)("solution")
    scope = sys.modules["solution"].__dict__
    scope["__builtins__"] = builtins
    exec(compile(source, name, "exec", dont_inherit=True), scope)
    return scope


def _resolve(scope, path):
    """Return what a path such as ``f`` or ``Solution().f`` names."""
    first, _, rest = path.partition("()")
    found = scope[first] if rest or path.endswith("()") else None
    if found is None:
        names = path.split(".")
        found = scope[names[0]]
        for name in names[1:]:
            found = getattr(found, name)
        return found
    found = found()
    for name in rest.lstrip(".").split(".") if rest else ():
        found = getattr(found, name)
    return found


def _explain(error):
    import traceback

    lines = traceback.format_exception(type(error), error, error.__traceback__)
    return "".join(lines)[-2000:]


# One call, its value printed


def call_once():
    """Call one function of the solution and print what it returns, as one line of JSON."""
    task = _task()
    result = _result_stream()
    try:
        scope = _load(task["solution"], "solution.py")
        entry = task["entry"]
        if entry not in scope and "Solution" in scope and "(" not in entry:
            entry = "Solution()." + entry
        classes = {name: scope[name] for name in task["classes"] if name in scope}
        arguments, named = loads(task["arguments"], classes)
        returned = _resolve(scope, entry)(*arguments, **named)
        reply = {"value": dumps(returned, task["classes"])}
    except BaseException as error:
        reply = {"error": _explain(error)}
    result.write(json.dumps(reply))
    result.flush()


# The two sides of tests that call


def _send(connection, message):
    data = json.dumps(message).encode()
    connection.sendall(len(data).to_bytes(4, "big") + data)


def _receive(connection):
    size = int.from_bytes(_exactly(connection, 4), "big")
    if size > MAX_MESSAGE_BYTES * 2:
        raise EOFError("a message is too long")
    return json.loads(_exactly(connection, size))


def _exactly(connection, size):
    parts = []
    while size:
        part = connection.recv(min(size, 65536))
        if not part:
            raise EOFError("the process of the solution has ended")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def serve():
    """Be the solution: load it, and answer calls until the channel closes."""
    task = _task()
    connection = socket.socket(fileno=CHANNEL)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    try:
        scope = _load(task["solution"], "solution.py")
    except BaseException as error:
        _send(connection, {"failed": _explain(error)})
        return
    _send(connection, {"names": [name for name in scope if not name.startswith("__")]})
    served = _Served(scope, task["classes"])
    while True:
        try:
            message = _receive(connection)
        except EOFError:
            return
        _send(connection, served.answer(message))


class _Served:
    """The names of the solution, and the objects that it has returned and that cannot cross."""

    def __init__(self, scope, classes):
        self._scope = scope
        self._names = classes
        self._classes = {name: scope[name] for name in classes if name in scope}
        self._kept = []

    def answer(self, message):
        try:
            target = self._target(message["target"])
            if message["attribute"]:
                target = getattr(target, message["attribute"])
            if message["arguments"] is None:
                return self._reply(target)
            arguments, named = loads(message["arguments"], self._classes)
            reply = self._reply(target(*arguments, **named))
            try:
                after = dumps([arguments, named], self._names)
            except CrossingError:
                after = message["arguments"]
            if after != message["arguments"]:
                reply["arguments"] = after
            return reply
        except BaseException as error:
            return {"raised": [type(error).__name__, str(error)[:500]]}

    def _target(self, target):
        return self._kept[target] if isinstance(target, int) else _resolve(self._scope, target)

    def _reply(self, value):
        try:
            return {"value": dumps(value, self._names)}
        except CrossingError:
            self._kept.append(value)
            return {"kept": len(self._kept) - 1, "callable": callable(value)}


class _Proxy:
    """A name of the solution, or an object of it, as the tests see it.

    It has no ``==`` of its own: it is equal to itself alone, whatever the solution says.
    """

    def __init__(self, remote, target):
        object.__setattr__(self, "_remote", remote)
        object.__setattr__(self, "_target", target)

    def __call__(self, *arguments, **named):
        return self._remote.call(self._target, "", arguments, named)

    def __getattr__(self, name):
        return self._remote.attribute(self._target, name)

    def __len__(self):
        return self._remote.call(self._target, "__len__", (), {})

    def __getitem__(self, key):
        return self._remote.call(self._target, "__getitem__", (key,), {})

    def __iter__(self):
        iterator = self._remote.call(self._target, "__iter__", (), {})
        while True:
            try:
                yield self._remote.call(iterator._target, "__next__", (), {})
            except StopIteration:
                return

    def __bool__(self):
        return True


class _Remote:
    """The other end of the channel, for the tests."""

    def __init__(self, connection, classes):
        self._connection = connection
        self._names = list(classes)
        self._classes = classes

    def call(self, target, attribute, arguments, named):
        message = dumps([list(arguments), named], self._names)
        reply = self._ask(target, attribute, message)
        if "arguments" in reply:
            self._update([list(arguments), named], loads(reply["arguments"], self._classes))
        return self._value(reply)

    def attribute(self, target, name):
        return self._value(self._ask(target, name, None))

    def _ask(self, target, attribute, arguments):
        message = {"target": target, "attribute": attribute, "arguments": arguments}
        _send(self._connection, message)
        reply = _receive(self._connection)
        if "raised" in reply:
            name, text = map(str, reply["raised"])
            kind = getattr(builtins, name, None)
            if not isinstance(kind, type) or not issubclass(kind, Exception):
                raise RuntimeError(f"{name}: {text}")
            # It would end a loop of the tests before they have looked at everything.
            if issubclass(kind, _LOOP_ENDS) and attribute != "__next__":
                raise RuntimeError(f"{name}: {text}")
            raise kind(text)
        return reply

    def _value(self, reply):
        if "kept" in reply:
            return _Proxy(self, int(reply["kept"]))
        return loads(reply["value"], self._classes)

    def _update(self, before, after):
        """Give changeable arguments the content that they have after the call."""
        olds, news = [*before[0], *before[1].values()], [*after[0], *after[1].values()]
        for old, new in zip(olds, news, strict=True):
            if isinstance(old, list) and isinstance(new, list):
                old[:] = new
            elif isinstance(old, (dict, set)) and type(old) is type(new):
                old.clear()
                old.update(new)
            elif type(old).__name__ in self._classes and type(old) is type(new):
                old.__dict__.clear()
                old.__dict__.update(new.__dict__)


def test():
    """Be the tests: run them against the solution, and say on stdout how they ended.

    The last line is the secret that came with the task where all of them passed.
    """
    task = _task()
    result = _result_stream()
    connection = socket.socket(fileno=CHANNEL)
    scope = {"__name__": "__main__", "__builtins__": builtins}
    outcome = {}
    try:
        exec(compile(task["prelude"], "prelude.py", "exec", dont_inherit=True), scope)
        tests = compile(task["tests"], "tests.py", "exec", dont_inherit=True)
    except BaseException as error:
        outcome = {"broken": _explain(error)}
    else:
        classes = {name: scope[name] for name in task["classes"]}
        try:
            greeting = _receive(connection)
            if "failed" in greeting:
                raise RuntimeError("the solution cannot be loaded:\n" + str(greeting["failed"]))
            remote = _Remote(connection, classes)
            for name, path in task["proxies"].items():
                if path in greeting["names"] or "(" in path or path == task["entry"]:
                    scope[name] = _Proxy(remote, path)
            exec(tests, scope)
            outcome = {"passed": task["secret"]}
        except BaseException as error:
            outcome = {"failed": _explain(error)}
    result.write(json.dumps(outcome))
    result.flush()
