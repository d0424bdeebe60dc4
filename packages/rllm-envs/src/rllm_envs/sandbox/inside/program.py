"""Run one program in the process that has been confined for it, and end the process."""

from __future__ import annotations

# The module signal makes enumerations, which takes longer than all else here.
import _signal  # type: ignore[import-not-found]
import fcntl
import os
import resource
import sys

from confine import (
    ConfineError,
    end_with_parent,
    limit_resources,
    lock_down,
    offer_to_be_killed,
)
from report import FRAME, SESSION_REPORT

# Importing typing takes longer than all else that happens here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

_OWN_MODULES = ("program", "confine", "report")
PROGRAM = "program.py"
"""The name that tracebacks show."""
FIRST_CHANNEL = 3
"""Number of the first descriptor that a program is given beside its three streams."""
_SPARE = 16
"""Descriptors are kept from this number on until they get their own; greater than all of those."""
_DESCRIPTOR_FOLDER = "/dev/fd"


def take_descriptors(ready: int, channels: list[int]) -> int:
    """Give the channels the numbers from 3 on, close the rest, return the one of ``ready``."""
    kept = [fcntl.fcntl(number, fcntl.F_DUPFD, _SPARE) for number in (*channels, ready)]
    for offset, number in enumerate(kept):
        os.dup2(number, FIRST_CHANNEL + offset)
    os.closerange(FIRST_CHANNEL + len(kept), _greatest_descriptor() + 1)
    return FIRST_CHANNEL + len(kept) - 1


def _greatest_descriptor() -> int:
    try:
        return max(map(int, os.listdir(_DESCRIPTOR_FOLDER)))
    except OSError:
        return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def run_request(request: dict[str, Any], ready: int) -> NoReturn:
    """Confine this process, say so on ``ready``, run the program and end.

    ``ready`` gets R and this process's number, after which the program may run, or E and a reason.
    It is closed before the program starts, so what it says cannot come from the program.
    """
    for name in _OWN_MODULES:
        sys.modules.pop(name, None)  # a program may have modules of these names
    try:
        _prepare(request)
    except (ConfineError, OSError) as error:
        os.write(ready, b"E" + str(error).encode("utf-8", "replace")[:2000])
        os._exit(1)
    os.write(ready, b"R%d" % os.getpid())
    os.close(ready)
    if request["session"]:
        _serve(request)
    end(run(request["code"], new_scope(), echo=request["echo"]))


def _prepare(request: dict[str, Any]) -> None:
    if request["parent"]:
        end_with_parent(request["parent"])
    work = request["work"]
    for name, content in request["files"].items():
        path = os.path.join(work, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
    os.chdir(work or "/")
    os.environ["HOME"] = os.environ["TMPDIR"] = work or "/"
    sys.path[:] = [*([work] if work else []), *request["path"]]
    sys.argv[:] = [PROGRAM]
    sys.dont_write_bytecode = True
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())  # who started this may have blocked some
    stdout: Any = sys.stdout
    stdout.reconfigure(line_buffering=True)  # what was printed is kept when the time is over
    _new_randomness()
    offer_to_be_killed()
    limit_resources(**request["limits"])
    if request["lockdown"]:
        lock_down(**request["lockdown"])


def _new_randomness() -> None:
    # A process that was forked has the generators of the one that it was forked from.
    if "random" in sys.modules:
        sys.modules["random"].seed()
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    if "sympy.core.random" in sys.modules:
        sys.modules["sympy.core.random"].rng.seed()


def new_scope() -> dict[str, Any]:
    """Return the globals of a fresh ``__main__`` module."""
    module = sys.modules["__main__"] = type(sys)("__main__")
    # Without the site module these are absent, and programs call them.
    module.__dict__["exit"] = module.__dict__["quit"] = sys.exit
    return module.__dict__


def run(source: str, scope: dict[str, Any], *, echo: bool = False) -> int:
    """Execute a program and return its exit code; an uncaught exception is printed.

    Args:
        source: The program.
        scope: Its globals.
        echo: Whether the value of a last expression is printed, as a terminal does.
    """
    try:
        only_ast = 0x400
        tree: Any = compile(source, PROGRAM, "exec", only_ast, dont_inherit=True)
        last = tree.body.pop() if echo and tree.body and _is_expression(tree.body[-1]) else None
        exec(compile(tree, PROGRAM, "exec", dont_inherit=True), scope)
        if last is not None:
            # "single" prints the value of an expression.
            exec(compile(_interactive(last), PROGRAM, "single", dont_inherit=True), scope)
    except SystemExit as end_of_program:
        return _exit_code(end_of_program)
    except BaseException as error:
        _print_exception(error, source)
        return 1
    return 0


def _is_expression(node: Any) -> bool:
    return type(node).__name__ == "Expr"


def _interactive(node: Any) -> Any:
    import _ast

    return _ast.Interactive([node])


def _exit_code(error: SystemExit) -> int:
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    sys.stderr.write(f"{error.code}\n")
    return 1


def _print_exception(error: BaseException, source: str) -> None:
    import linecache
    import traceback

    linecache.cache[PROGRAM] = (len(source), None, source.splitlines(True), PROGRAM)
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != PROGRAM:
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace)


def end(code: int) -> NoReturn:
    """End the process as the interpreter would, without the time it takes to free its modules."""
    try:
        if "threading" in sys.modules:
            sys.modules["threading"]._shutdown()
        if "atexit" in sys.modules:
            sys.modules["atexit"]._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _serve(request: dict[str, Any]) -> NoReturn:
    """Run programs one after the other in one scope: a frame in, a report of its end out.

    The report's wait status is that of a process that ended with the program's exit code; its
    times are those of this process.
    """
    scope = new_scope()
    channel = FIRST_CHANNEL
    while True:
        number, size = FRAME.unpack(_read_exactly(channel, FRAME.size))
        source = _read_exactly(channel, size).decode("utf-8")
        code = run(source, scope, echo=request["echo"])
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError, AttributeError):
            pass  # the program has closed or replaced them
        os.write(channel, _report(number, code))


def _report(number: int, code: int) -> bytes:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    unit = 1 if sys.platform == "darwin" else 1024
    used = (usage.ru_utime, usage.ru_stime, usage.ru_maxrss * unit)
    return SESSION_REPORT.pack(number, code << 8, *used)


def _read_exactly(channel: int, size: int) -> bytes:
    parts = []
    while size > 0:
        part = os.read(channel, min(size, 65536))
        if not part:
            end(0)
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
