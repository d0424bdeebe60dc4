"""Python values as frames of bytes, between a process and those that it has started.

Reading a pickle does what it says, so frames are read of one's own processes only, which run the
same environments and agents as this one would.
"""

from __future__ import annotations

import pickle
from typing import Any

HEADER = 8
"""Bytes of a frame's length, the greatest first; a pickle follows."""


def framed(value: Any) -> bytes:
    """Return a value as one frame; errors are those of pickling, which are of many kinds."""
    content = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return len(content).to_bytes(HEADER, "big") + content
