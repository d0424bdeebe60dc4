"""Ctrl-C between the parts of a step, never inside one that must be whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interrupt_deferred() -> Iterator[None]:
    """Hold a SIGINT or SIGTERM that arrives inside back until the end, then deliver it.

    An update that is cut in half would leave some parameters old and some new. Outside the main
    thread, where no signal arrives, this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    previous = {s: signal.signal(s, lambda number, _: received.append(number)) for s in SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        if received:
            signal.raise_signal(received[0])


def terminate_like_ctrl_c() -> None:
    """Let SIGTERM, which clusters send before they take a machine away, act as ctrl-C does."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
