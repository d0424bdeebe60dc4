"""Run programs that a model wrote: ``run``, ``run_async``, ``Sandbox``, ``SandboxSession``.

``run(code)`` uses the sandbox of this process, which ``default_sandbox`` makes on first use: at the
level that the environment variable RLLM_SANDBOX names ("lockdown", "bwrap", "process", or
"module:factory" for one of your own), else at the level "auto". It starts only after a test that a
good program runs and that a bad one is stopped. docs/security.md says what each level stops.
"""

import atexit
import importlib
import os
import threading
from typing import Any, Protocol, runtime_checkable

from rllm_envs.errors import SandboxUnavailableError
from rllm_envs.sandbox.levels import LEVELS, Level
from rllm_envs.sandbox.local import Sandbox
from rllm_envs.sandbox.results import Limits, Program, SandboxResult
from rllm_envs.sandbox.session import SandboxSession

__all__ = [
    "LEVELS",
    "Level",
    "Limits",
    "Program",
    "RemoteSandbox",
    "Sandbox",
    "SandboxResult",
    "SandboxSession",
    "default_sandbox",
    "run",
    "run_async",
    "use_sandbox",
]


@runtime_checkable
class RemoteSandbox(Protocol):
    """What a sandbox of your own has to offer, for example one on another machine.

    ``run`` takes the arguments of ``Sandbox.run``, returns a ``SandboxResult``, and raises
    ``SandboxError`` where the service failed and not the program.
    """

    description: str
    """What it is, in one line."""

    def run(self, code: str, **arguments: Any) -> SandboxResult:
        """Run a program."""
        ...

    async def run_async(self, code: str, **arguments: Any) -> SandboxResult:
        """Run a program without stopping the event loop."""
        ...


_lock = threading.Lock()
_default: "Sandbox | RemoteSandbox | None" = None
_owner = 0


def default_sandbox() -> "Sandbox | RemoteSandbox":
    """Return the sandbox of this process, made on first use.

    Raises:
        SandboxUnavailableError: This machine does not reach the level, or RLLM_SANDBOX names
            nothing that can be used.
    """
    global _default, _owner
    with _lock:
        if _default is None or (_owner != os.getpid() and isinstance(_default, Sandbox)):
            _default, _owner = _make(os.environ.get("RLLM_SANDBOX", "auto")), os.getpid()
            if isinstance(_default, Sandbox):
                atexit.register(_default.close)
        return _default


def use_sandbox(sandbox: "Sandbox | RemoteSandbox") -> None:
    """Make a sandbox the one of this process, for tools, graders and ``run``."""
    global _default, _owner
    with _lock:
        _default, _owner = sandbox, os.getpid()


def run(code: str, **arguments: Any) -> SandboxResult:
    """Run a program in the sandbox of this process; see ``Sandbox.run``."""
    return default_sandbox().run(code, **arguments)


async def run_async(code: str, **arguments: Any) -> SandboxResult:
    """Run a program in the sandbox of this process without stopping the event loop."""
    return await default_sandbox().run_async(code, **arguments)


def _make(name: str) -> "Sandbox | RemoteSandbox":
    if ":" not in name:
        if name not in ("auto", *LEVELS):
            allowed = ", ".join(("auto", *LEVELS))
            raise SandboxUnavailableError(
                f"RLLM_SANDBOX must be one of {allowed}, or module:factory, got {name!r:.80}"
            )
        return Sandbox(name)
    module, _, factory = name.partition(":")
    try:
        make = getattr(importlib.import_module(module), factory)
        if not callable(make):
            raise TypeError(f"{factory} is no function that makes one")
        made = make()
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise SandboxUnavailableError(f"RLLM_SANDBOX={name!r:.80}: {error}") from error
    if not isinstance(made, RemoteSandbox):
        raise SandboxUnavailableError(
            f"RLLM_SANDBOX={name!r:.80} made {made!r:.80}, which is no sandbox: it needs "
            "description, run and run_async"
        )
    return made
