"""What a run is given and what it gives: ``Program``, ``Limits``, ``SandboxResult``."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rllm_envs.errors import EnvArgumentError, excerpt

MAX_SOURCE_BYTES = 256 * 1024
MAX_FILES = 256
MAX_TIMEOUT_SECONDS = 3600.0

Status = Literal["ok", "error", "timeout", "output_limit", "memory", "disk_limit", "signal"]


@dataclass(frozen=True, slots=True)
class SandboxResult:
    """What became of a program. Made by a sandbox, read by tools and graders.

    A sandbox that fails raises ``SandboxError`` instead, so a result always speaks of the program.
    """

    status: Status
    """"ok": it ended with exit code 0, which says nothing about what it did. "error": with another
    exit code, an uncaught exception, or its source cannot be run. "timeout", "output_limit",
    "memory", "disk_limit": it went beyond that limit. "signal": a signal ended it."""
    exit_code: int | None
    """What it ended with; None where it was killed."""
    signal: int | None
    """Number of the signal that ended it, by itself or by its limits; None otherwise."""
    stdout: str
    """What it printed, as far as it was read; bytes that are no UTF-8 are replaced."""
    stderr: str
    """Likewise, with the traceback of an uncaught exception."""
    truncated: bool
    """Whether a stream went beyond ``output_bytes`` and was cut there."""
    wall_seconds: float
    """From the moment the program started."""
    cpu_seconds: float
    """Processor time of its process, starting the interpreter included."""
    max_rss_bytes: int
    """Greatest resident memory of its process.

    0 where the system does not tell: a fresh process that used less than this one has held.
    """


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a program may use.

    Raises:
        EnvArgumentError: A limit is out of range.
    """

    timeout_seconds: float = 10.0
    """Wall-clock time of the program, in (0, 3600]."""
    memory_bytes: int = 2**30
    """Memory that it may add to what the interpreter has, at least 16 MiB."""
    output_bytes: int = 64 * 1024
    """Bytes of each of stdout and stderr, at least 1; more ends the program."""
    writable_bytes: int = 0
    """Bytes of files that it may write into its folder; 0 means that it writes none."""

    def __post_init__(self) -> None:
        seconds = self.timeout_seconds
        is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if not is_number or not 0 < seconds <= MAX_TIMEOUT_SECONDS:
            raise EnvArgumentError(
                f"timeout_seconds must be in (0, {MAX_TIMEOUT_SECONDS:g}], got {excerpt(seconds)}"
            )
        for name, least in (("memory_bytes", 2**24), ("output_bytes", 1), ("writable_bytes", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise EnvArgumentError(
                    f"{name} must be an integer of at least {least}, got {excerpt(value)}"
                )

    @property
    def cpu_seconds(self) -> int:
        """Processor time that the kernel grants: the time limit, rounded up, and a second."""
        return math.ceil(self.timeout_seconds) + 1


@dataclass(frozen=True, slots=True)
class Program:
    """What to run. Made by a sandbox from its caller's arguments, read where a child starts."""

    code: str
    """Source text."""
    stdin: bytes = b""
    """What it reads."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Files in its folder, by relative path."""
    limits: Limits = field(default_factory=Limits)
    """How much it may use."""
    echo: bool = False
    """Whether the value of a last expression is printed."""
    is_session: bool = False
    """Whether programs follow on its first channel, to run in one scope."""

    @property
    def needs_folder(self) -> bool:
        """Whether it is given a folder of its own."""
        return bool(self.files) or self.limits.writable_bytes > 0


def source_problem(code: object) -> str | None:
    """Return why a text cannot be a program, or None; a model's mistake, so it is not raised."""
    if not isinstance(code, str):
        return f"the program must be text, got {type(code).__name__}"
    if len(code) > MAX_SOURCE_BYTES:
        return f"the program of {len(code)} characters is longer than {MAX_SOURCE_BYTES} bytes"
    if "\0" in code:
        return "the program holds a NUL character"
    try:
        size = len(code.encode("utf-8"))
    except UnicodeEncodeError:
        return "the program holds half of a character pair"
    return (
        f"the program is longer than {MAX_SOURCE_BYTES} bytes" if size > MAX_SOURCE_BYTES else None
    )


def refused(problem: str) -> SandboxResult:
    """Return the result of a program that cannot be run."""
    return SandboxResult("error", None, None, "", f"Error: {problem}\n", False, 0.0, 0.0, 0)


def checked_files(files: Mapping[str, str | bytes] | None) -> dict[str, bytes]:
    """Return files as bytes.

    Raises:
        EnvArgumentError: There are too many, or a path is not a plain relative one.
    """
    files = files or {}
    if len(files) > MAX_FILES:
        raise EnvArgumentError(f"a program takes at most {MAX_FILES} files, got {len(files)}")
    made = {}
    for path, content in files.items():
        parts = path.split("/") if isinstance(path, str) else [""]
        plain = all(re.fullmatch(r"(?!\.{1,2}$)[^\x00/\\]{1,255}", part) for part in parts)
        if not plain or len(parts) > 16:
            raise EnvArgumentError(f"{excerpt(path)} is no plain relative path of a file")
        if not isinstance(content, str | bytes):
            raise EnvArgumentError(f"file {path!r} must be text or bytes, got {excerpt(content)}")
        made[path] = content if isinstance(content, bytes) else as_bytes(content, f"file {path!r}")
    return made


def as_bytes(text: str | bytes, what: str) -> bytes:
    """Return text as UTF-8.

    Raises:
        EnvArgumentError: It is no text, or holds half of a character pair.
    """
    if isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise EnvArgumentError(f"{what} must be text or bytes, got {excerpt(text)}")
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise EnvArgumentError(f"{what} holds half of a character pair") from None
