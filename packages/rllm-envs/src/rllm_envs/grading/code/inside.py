"""What runs in the sandbox to grade a program: the side of the solution and the side of the tests.

The file is sent as the text of a program, after that of ``values``; its last line calls one of
``call_once``, ``serve`` or ``test``. What to do arrives as JSON on stdin.

The solution's side never learns what is expected. It may print, end the process or replace
anything it finds: all of that only changes which values come back, and they are compared elsewhere.
"""

from __future__ import annotations

import builtins
import collections
import json
import operator
import os
import socket
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from values import MAX_MESSAGE_BYTES, CrossingError, UnknownTypeError, dumps, loads

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
    scope["__builtins__"] = _leetcode_names() if "class Solution" in source else builtins
    exec(compile(source, name, "exec", dont_inherit=True), scope)
    return scope


def _leetcode_names():
    """Return the names that LeetCode gives to every solution, besides those that Python does."""
    import importlib

    names = {}
    for module in ("bisect", "collections", "functools", "heapq", "itertools", "math", "typing"):
        names[module] = importlib.import_module(module)
        public = getattr(names[module], "__all__", dir(names[module]))
        names |= {name: getattr(names[module], name) for name in public if not name.startswith("_")}
    for module in ("copy", "operator", "random", "re", "string"):
        names[module] = importlib.import_module(module)
    return {**names, **vars(builtins)}


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
    """The names of the solution, and its objects that the tests know by a number."""

    def __init__(self, scope, classes):
        self._scope = scope
        self._names = classes
        self._classes = {name: scope[name] for name in classes if name in scope}
        self._kept = []
        self._references = {}

    def answer(self, message):
        try:
            arguments, named = loads(message["arguments"], self._classes, self._referred)
            target = message["target"]
            called = _OPERATIONS[target] if target in _OPERATIONS else self._referred(target)
            reply = {"value": dumps(called(*arguments, **named), self._names, self._refer)}
            try:
                after = dumps([arguments, named], self._names, self._refer)
            except CrossingError:
                after = message["arguments"]
            if after != message["arguments"]:
                reply["arguments"] = after
            return reply
        except BaseException as error:
            return {"raised": [_known_name(error), str(error)[:500]]}

    def _referred(self, reference):
        if isinstance(reference, int):
            return self._kept[reference]
        thing = _resolve(self._scope, reference)
        # A method of a new object goes with it; what it holds must not add up over the calls.
        if "(" not in reference and id(thing) not in self._references:
            self._references[id(thing)] = reference
            self._kept.append(thing)  # or another thing might get its identity
        return thing

    def _refer(self, thing):
        if id(thing) not in self._references:
            self._references[id(thing)] = len(self._kept)
            self._kept.append(thing)
        return self._references[id(thing)]


def _known_name(error):
    """Return the name of the class of an error, or of the nearest one that Python has."""
    for kind in type(error).__mro__:
        if kind is not Exception and kind is getattr(builtins, kind.__name__, None):
            return kind.__name__ if issubclass(kind, Exception) else type(error).__name__
    return type(error).__name__


_OPERATIONS = {
    **{f"builtins.{name}": getattr(builtins, name) for name in ("getattr", "setattr", "delattr")},
    **{f"builtins.{name}": getattr(builtins, name) for name in ("iter", "next", "len", "bool")},
    **{f"builtins.{name}": getattr(builtins, name) for name in ("str", "repr", "isinstance")},
    **{f"operator.{name}": getattr(operator, name) for name in ("getitem", "setitem", "delitem")},
    **{f"operator.{name}": getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt")},
    **{f"operator.{name}": getattr(operator, name) for name in ("ge", "add", "sub", "mul")},
}


class _Proxy:
    """A name of the solution, or an object of it, as the tests see it.

    Nothing that the tests hold goes to an operator of the solution, which could answer as it likes:
    two objects of the solution are compared and added there, anything else is unequal to it.
    """

    def __init__(self, remote, target):
        object.__setattr__(self, "_remote", remote)
        object.__setattr__(self, "_target", target)

    def __call__(self, *arguments, **named):
        return self._remote.call(self._target, arguments, named)

    def __getattr__(self, name):
        # Libraries look for names such as __array_interface__, and would believe what they find.
        if name.startswith("__") and name not in _PLAIN_NAMES:
            raise AttributeError(name)
        return self._remote.call("builtins.getattr", (self, name))

    def __setattr__(self, name, value):
        self._remote.call("builtins.setattr", (self, name, value))

    def __delattr__(self, name):
        self._remote.call("builtins.delattr", (self, name))

    def __len__(self):
        return self._remote.call("builtins.len", (self,))

    def __bool__(self):
        return self._remote.call("builtins.bool", (self,)) is True

    def __str__(self):
        return str(self._remote.call("builtins.str", (self,)))

    def __repr__(self):
        return str(self._remote.call("builtins.repr", (self,)))

    def __getitem__(self, key):
        return self._remote.call("operator.getitem", (self, key))

    def __setitem__(self, key, value):
        self._remote.call("operator.setitem", (self, key, value))

    def __delitem__(self, key):
        self._remote.call("operator.delitem", (self, key))

    def __iter__(self):
        iterator = self._remote.call("builtins.iter", (self,))
        while True:
            try:
                yield self._remote.call("builtins.next", (iterator,))
            except StopIteration:
                return

    def __next__(self):
        return self._remote.call("builtins.next", (self,))

    def __instancecheck__(self, thing):
        is_theirs = type(thing) is _Proxy
        return is_theirs and self._remote.call("builtins.isinstance", (thing, self)) is True

    __hash__ = object.__hash__


def _operator(name):
    def operate(self, other):
        if type(other) is not _Proxy:
            return NotImplemented
        return self._remote.call(f"operator.{name}", (self, other))

    return operate


_PLAIN_NAMES = ("__name__", "__qualname__", "__doc__", "__annotations__")
for _name in ("eq", "ne", "lt", "le", "gt", "ge", "add", "sub", "mul"):
    setattr(_Proxy, f"__{_name}__", _operator(_name))


class _Remote:
    """The other end of the channel, for the tests."""

    def __init__(self, connection, classes):
        self._connection = connection
        self._names = list(classes)
        self._classes = classes
        self._proxies = {}
        self.untold = None

    def call(self, target, arguments, named=None):
        """Call the solution's function of a name or a number, or one of ``_OPERATIONS``."""
        arguments, named = list(arguments), named or {}
        try:
            message = dumps([arguments, named], self._names, self._refer)
        except UnknownTypeError as error:
            self.untold = str(error)
            raise
        _send(self._connection, {"target": target, "arguments": message})
        reply = _receive(self._connection)
        if "raised" in reply:
            self._raise(target, *map(str, reply["raised"]))
        if "arguments" in reply:
            self._update([arguments, named], self._loads(reply["arguments"]))
        return self._loads(reply["value"])

    def proxy(self, target):
        """Return the one proxy of a name or a number."""
        return self._proxies.setdefault(target, _Proxy(self, target))

    def _raise(self, target, name, text):
        kind = getattr(builtins, name, None)
        if not isinstance(kind, type) or not issubclass(kind, Exception):
            raise RuntimeError(f"{name}: {text}")
        # It would end a loop of the tests before they have looked at everything.
        if issubclass(kind, _LOOP_ENDS) and target != "builtins.next":
            raise RuntimeError(f"{name}: {text}")
        raise kind(text)

    def _refer(self, thing):
        return thing._target if type(thing) is _Proxy else None

    def _loads(self, text):
        return loads(text, self._classes, lambda number: self.proxy(int(number)))

    def _update(self, before, after):
        """Give changeable arguments the content that they have after the call."""
        olds, news = [*before[0], *before[1].values()], [*after[0], *after[1].values()]
        for old, new in zip(olds, news, strict=True):
            if type(old) is not type(new):
                continue
            if isinstance(old, (list, bytearray)):
                old[:] = new
            elif isinstance(old, collections.deque):
                old.clear()
                old.extend(new)
            elif isinstance(old, (dict, set)):
                old.clear()
                old.update(new)
            elif type(old).__name__ in self._classes:
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
        remote = None
        try:
            greeting = _receive(connection)
            if "failed" in greeting:
                raise RuntimeError("the solution cannot be loaded:\n" + str(greeting["failed"]))
            remote = _Remote(connection, classes)
            for name, path in task["proxies"].items():
                if path in greeting["names"] or "(" in path or path == task["entry"]:
                    scope[name] = remote.proxy(path)
            exec(tests, scope)
            outcome = {"passed": task["secret"]}
        except UnknownTypeError as error:
            told = remote is not None and remote.untold is not None
            outcome = {"broken" if told else "failed": _explain(error)}
        except BaseException as error:
            outcome = {"failed": _explain(error)}
    result.write(json.dumps(outcome))
    result.flush()
