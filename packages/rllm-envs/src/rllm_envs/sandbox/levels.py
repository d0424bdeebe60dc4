"""The levels of isolation, what each does not stop, and the test that a level must pass."""

import contextlib
import functools
import os
import secrets
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import Literal

from rllm_envs.errors import SandboxError, SandboxUnavailableError
from rllm_envs.sandbox.handover import Confinement
from rllm_envs.sandbox.inside.confine import landlock_abi
from rllm_envs.sandbox.launch import INSIDE, FreshChild
from rllm_envs.sandbox.policy import import_path, lockdown_policy
from rllm_envs.sandbox.results import Limits, Program
from rllm_envs.sandbox.supervise import Watch

Level = Literal["process", "lockdown", "bwrap"]
LEVELS: tuple[Level, ...] = ("process", "lockdown", "bwrap")

_NOT_STOPPED: dict[Level, str] = {
    "process": (
        "reading the user's files and other processes' environments, the network, killing this "
        "process, starting processes"
    ),
    "lockdown": "stat() of known paths, holes in the kernel, use of processor time",
    "bwrap": "holes in the kernel, use of processor time",
}

# Prints one word for each probe: whether the program could do what it must not.
_PROBES = """
import os, socket
def probe(name, action):
    try:
        action()
    except Exception:
        print(name, "stopped")
    else:
        print(name, "done")
probe("read", lambda: open("/etc/passwd").read())
probe("write", lambda: open({outside!r}, "w").write("x"))
probe("connect", lambda: socket.create_connection(("127.0.0.1", {port}), 1).close())
probe("signal", lambda: os.kill(os.getppid(), 0))
probe("fork", lambda: os.fork() or os._exit(0))
print("environment", "done" if {canary!r} in str(dict(os.environ)) else "stopped")
print("answer", 6 * 7)
"""
_MUST_STOP: dict[Level, tuple[str, ...]] = {
    "process": ("environment",),
    "lockdown": ("read", "write", "connect", "signal", "fork", "environment"),
    "bwrap": ("read", "write", "connect", "signal", "fork", "environment"),
}
_CANARY = "RLLM_SANDBOX_CANARY"


def default_level() -> Level:
    """Return the level for this system: "lockdown" on Linux, "process" elsewhere."""
    return "lockdown" if sys.platform == "linux" else "process"


def describe(level: Level) -> str:
    """Return in one line what a level is on this machine and what it does not stop."""
    means = {
        "process": "resource limits only",
        "lockdown": f"Landlock {landlock_abi() if sys.platform == 'linux' else 0}, seccomp",
        "bwrap": "namespaces by bubblewrap, Landlock, seccomp",
    }[level]
    return f"python sandbox: {level} ({means}); not stopped: {_NOT_STOPPED[level]}"


@functools.lru_cache(maxsize=8)
def reach(level: Level, allow_unsafe: bool = False) -> Confinement:
    """Return how to confine children at a level, after a test that it does what it says.

    The test runs one program that must give the right answer and must fail at everything that the
    level stops.

    Args:
        level: One of ``LEVELS``.
        allow_unsafe: Allow the level "process" for root, where it stops next to nothing.

    Raises:
        SandboxUnavailableError: This machine does not reach the level; it names what to do.
    """
    if level == "process" and os.geteuid() == 0 and not allow_unsafe:
        raise SandboxUnavailableError(
            'the sandbox level "process" does not stop what root may do: run as another user, use '
            'the level "lockdown", or pass allow_unsafe=True'
        )
    try:
        confinement = _confinement(level)
        _test(level, confinement)
    except SandboxUnavailableError:
        raise
    except (SandboxError, OSError) as error:
        raise SandboxUnavailableError(
            f'this machine does not reach the sandbox level "{level}": {error}; choose another '
            "with RLLM_SANDBOX (docs/security.md says what each stops)"
        ) from error
    return confinement


def _confinement(level: Level) -> Confinement:
    if level == "process":
        return Confinement(None)
    policy = lockdown_policy()
    if policy is None:
        raise SandboxUnavailableError(
            f'the sandbox level "{level}" is for Linux on x86-64 and aarch64; here there is '
            '"process"'
        )
    if level == "lockdown":
        return Confinement(policy)
    program = shutil.which("bwrap")
    if program is None:
        raise SandboxUnavailableError(
            'the sandbox level "bwrap" needs bubblewrap 0.8 or later: install the package '
            "bubblewrap of your system"
        )
    base = _base_folder()
    return Confinement(policy, tuple(_bwrap(program, base)), base)


@functools.lru_cache(maxsize=1)
def _base_folder() -> str:
    """Return the one folder of this machine that namespaces share; it goes with this process."""
    import atexit

    base, owner = tempfile.mkdtemp(prefix="rllm-sandbox-base-"), os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # not where a fork of this process ends
            shutil.rmtree(base, ignore_errors=True)

    atexit.register(remove)
    return base


def _bwrap(program: str, base: str) -> Iterator[str]:
    """Yield a bubblewrap command: own namespaces, and only libraries and one folder to see."""
    yield from (program, "--unshare-all", "--unshare-user", "--disable-userns")
    yield from ("--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL")
    yield from ("--setenv", "LANG", "C.UTF-8")
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        yield from ("--setenv", name, "1")
    # First what is empty, then what lies beneath it: the other way round hides the libraries.
    for place in ("/tmp", "/dev/shm", "/run"):
        yield from ("--size", str(2**24), "--tmpfs", place)
    yield from ("--proc", "/proc", "--dev", "/dev")
    library = os.path.join(sys.base_prefix, "lib")
    executables = {
        os.path.dirname(sys.executable),
        os.path.dirname(os.path.realpath(sys.executable)),
    }
    system = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/localtime")
    settings = os.path.join(sys.prefix, "pyvenv.cfg")
    for place in dict.fromkeys((*system, *executables, settings, library, *import_path(), INSIDE)):
        yield from ("--ro-bind-try", place, place)
    yield from ("--bind", base, base, "--remount-ro", "/", "--chdir", "/", "--")


def _test(level: Level, confinement: Confinement) -> None:
    """Raise :class:`SandboxError` unless the level runs a good program and stops the probes."""
    outside = os.path.join(tempfile.gettempdir(), f"rllm-probe-{secrets.token_hex(8)}")
    with _listener() as port, _canary():
        code = _PROBES.format(outside=outside, port=port, canary=_CANARY)
        # Every process of the level starts in this way, so this is the right one to test.
        program = Program(code, limits=Limits(timeout_seconds=20.0))
        result = Watch(FreshChild(program, confinement), program.limits, threading.Event()).run()
    is_written = os.path.exists(outside)
    if is_written:
        os.unlink(outside)
    said = dict(line.split(" ", 1) for line in result.stdout.splitlines() if " " in line)
    if said.get("answer") != "42":
        tail = (result.stderr or result.stdout).strip()[-300:]
        raise SandboxError(f"a plain program does not run ({result.status}): {tail}")
    passed = [probe for probe in _MUST_STOP[level] if said.get(probe) != "stopped"]
    if is_written and "write" in _MUST_STOP[level]:
        passed.append("write")
    if passed:
        raise SandboxError(f"a program in it is not stopped from: {', '.join(passed)}")


@contextlib.contextmanager
def _listener() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@contextlib.contextmanager
def _canary() -> Iterator[None]:
    os.environ[_CANARY] = _CANARY
    try:
        yield
    finally:
        del os.environ[_CANARY]
