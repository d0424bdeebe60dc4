"""Python's collector of reference cycles, called less often while many episodes run.

It looks for cycles whenever 700 more objects were made than freed, and now and then walks through
all that are there. Episodes in flight are many objects without a cycle, so that it walks far and
finds nothing: the more of them, the more.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_OBJECTS = 100_000
"""Made more than freed, between two looks."""

_lock = threading.Lock()
_num_users = 0
_before = (0, 0, 0)


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Have cycles looked for every 100,000 objects inside the block, in the whole process.

    Blocks may overlap, in any threads; after the last one all is as before the first. A collector
    that is off, or is called even less often, stays as it is.
    """
    global _num_users, _before
    with _lock:
        if _num_users == 0:
            _before = gc.get_threshold()
            if 0 < _before[0] < _OBJECTS:
                gc.set_threshold(_OBJECTS, *_before[1:])
        _num_users += 1
    try:
        yield
    finally:
        with _lock:
            _num_users -= 1
            if _num_users == 0:
                gc.set_threshold(*_before)
