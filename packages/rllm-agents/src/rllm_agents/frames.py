"""Python values as frames of bytes, between a process and those that it has started."""

from __future__ import annotations

import pickle
from typing import Any

HEADER = 8
"""Bytes of a frame's length, the greatest first; a pickle follows."""


def framed(value: Any) -> bytes:
    """Return a value as one frame; errors are those of pickling, which are of many kinds."""
    content = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return len(content).to_bytes(HEADER, "big") + content
