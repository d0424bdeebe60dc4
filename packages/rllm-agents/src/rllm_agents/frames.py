"""Python values as frames of bytes, between a process and those that it has started.

Reading a pickle does what it says, so frames are read of one's own processes only, which run the
same environments and agents as this one would. What is theirs lies in a frame as bytes, a pickle of
its own, so that one value that cannot be read spoils no other.
"""

from __future__ import annotations

import pickle
from typing import Any, BinaryIO

HEADER = 8
"""Bytes of a frame's length, the greatest first; a pickle follows."""


def pickled(value: Any) -> bytes:
    """Return the pickle of a value; errors are those of its classes, of any kind."""
    return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)


def framed(value: Any) -> bytes:
    """Return a value as one frame."""
    content = pickled(value)
    return len(content).to_bytes(HEADER, "big") + content


def read_frame(file: BinaryIO) -> Any:
    """Wait for a frame and return its value.

    Raises:
        EOFError: The other side has ended, before a frame or within one.
    """
    header = file.read(HEADER)
    size = int.from_bytes(header, "big")
    content = file.read(size) if len(header) == HEADER else b""
    if not content or len(content) < size:
        raise EOFError
    return pickle.loads(content)
