"""Complete lines of a file that another process is writing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

MAX_LINE_BYTES = 64 * 2**20
"""Longer lines are passed over: an episode of a million tokens takes about 40 MB."""


class FileReplacedError(Exception):
    """The file is not the one that was read before: what is known of it is void."""


class GrowingFile:
    """Reads on from where it stopped; a line without its end is left for later.

    Args:
        path: Need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        """Where it is."""
        self.offset = 0
        """Bytes read so far."""
        self.num_too_long = 0
        """Lines that were passed over."""
        self._inode: int | None = None

    def size(self) -> int:
        """Return its bytes as of this moment; 0 where it does not exist.

        Raises:
            FileReplacedError: It was exchanged for another, or shortened.
        """
        try:
            status = os.stat(self.path)
        except OSError:
            if self._inode is not None:
                raise FileReplacedError(str(self.path)) from None
            return 0
        if self._inode not in (None, status.st_ino) or status.st_size < self.offset:
            raise FileReplacedError(str(self.path))
        return status.st_size

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield offset and bytes of each complete line that was not read before.

        Raises:
            FileReplacedError: It was exchanged for another, or shortened.
        """
        if self.size() <= self.offset:
            return
        with self.path.open("rb") as file:
            self._inode = os.fstat(file.fileno()).st_ino
            file.seek(self.offset)
            while line := file.readline(MAX_LINE_BYTES):
                start = self.offset
                if line.endswith(b"\n"):
                    self.offset += len(line)
                    yield start, line
                    continue
                if len(line) < MAX_LINE_BYTES:
                    return
                while line and not line.endswith(b"\n"):
                    start += len(line)
                    line = file.readline(MAX_LINE_BYTES)
                if not line:
                    return
                self.offset = start + len(line)
                self.num_too_long += 1
