"""What a child is handed: the program and its limits, its streams, its folder."""

import fcntl
import marshal
import os
import tempfile
from dataclasses import dataclass
from typing import Any

from rllm_envs.errors import SandboxError
from rllm_envs.sandbox.folders import remove_folder
from rllm_envs.sandbox.policy import Lockdown, import_path
from rllm_envs.sandbox.results import Program

_SESSION_CPU_SECONDS = 3600
_DISK_BLOCK = 8192
_ALL_SEALS = 0xF
"""No growing, no shrinking, no writing, no further seals."""


@dataclass(frozen=True, slots=True)
class Confinement:
    """How the children of one level are confined. Made by ``levels``, read where a child starts."""

    lockdown: Lockdown | None
    """What a child gives up; None at the level "process"."""
    prefix: tuple[str, ...] = ()
    """A command that runs the interpreter in namespaces; empty without one."""
    base: str | None = None
    """Where folders of programs are made; None is the system's place."""


class Pipes:
    """Both ends of the pipes of one child, and its folder.

    Args:
        program: What the child is to run.
        confinement: What it gives up.
        parent: Process with which the child ends; 0 where something else sees to that.

    Raises:
        SandboxError: The system has no more descriptors, or no room.
    """

    def __init__(self, program: Program, confinement: Confinement, *, parent: int) -> None:
        self.folder = ""
        self.given_bytes = sum(map(_room, program.files.values()))
        self._open: list[int] = []
        try:
            if program.needs_folder:
                self.folder = tempfile.mkdtemp(prefix="rllm-sandbox-", dir=confinement.base)
            request = _request(program, confinement.lockdown, parent, self.folder)
            self.inner = (self._file(marshal.dumps(request)), self._file(program.stdin))
            self.stdout, out = self._pipe()
            self.stderr, err = self._pipe()
            self.ready, ready = self._pipe()
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise SandboxError(f"a program cannot be started: {error}") from error
            raise
        self.inner = (*self.inner, out, err, ready)

    inner: tuple[int, ...]
    """The request, stdin, stdout, stderr and the ready mark, as the child gets them."""

    def close_inner(self) -> None:
        """Close the child's ends in this process."""
        self._close(self.inner)

    def close(self) -> None:
        """Close what is open and remove the folder."""
        self._close(tuple(self._open))
        if self.folder:
            remove_folder(self.folder)

    def _pipe(self) -> tuple[int, int]:
        outer, inner = os.pipe()
        self._open += (outer, inner)
        return outer, inner

    def _file(self, content: bytes) -> int:
        # A file without a name: nothing else can open it.
        has_memory_files = hasattr(os, "memfd_create")
        if has_memory_files:
            descriptor = os.memfd_create("rllm", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        else:
            descriptor, path = tempfile.mkstemp()
            os.unlink(path)
        self._open.append(descriptor)
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        if has_memory_files:
            # Or the program could keep there what its limits do not count.
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _ALL_SEALS)
        return descriptor

    def _close(self, descriptors: tuple[int, ...]) -> None:
        for descriptor in descriptors:
            if descriptor in self._open:
                self._open.remove(descriptor)
                os.close(descriptor)


def _room(content: bytes) -> int:
    """Return what a file takes of a disk, generously."""
    return 2 * len(content) + _DISK_BLOCK


def _request(
    program: Program, lockdown: Lockdown | None, parent: int, folder: str
) -> dict[str, Any]:
    """Return what the child is told, as data that ``marshal`` writes."""
    limits = program.limits
    confined = None
    if lockdown is not None:
        confined = {
            "readable": [*lockdown.readable, *([folder] if folder else [])],
            "writable": ["/dev/null", *([folder] if folder and limits.writable_bytes else [])],
            "seccomp": lockdown.seccomp,
            "pid_offsets": list(lockdown.pid_offsets),
            "capset": lockdown.capset,
        }
    return {
        "code": program.code,
        "echo": program.echo,
        "session": program.is_session,
        "files": dict(program.files),
        "work": folder,
        "path": import_path(),
        "parent": parent,
        "lockdown": confined,
        "limits": {
            "cpu_seconds": _SESSION_CPU_SECONDS if program.is_session else limits.cpu_seconds,
            "memory_bytes": limits.memory_bytes,
            "file_bytes": limits.writable_bytes,
        },
    }
