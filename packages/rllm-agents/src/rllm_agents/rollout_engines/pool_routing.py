"""Which engine of a pool a request goes to: its session's, else the one with least to do."""

from __future__ import annotations

import random
from collections import OrderedDict

_MOST_SESSIONS = 65_536
"""Sessions whose engine is remembered; the one that was longest silent is forgotten first."""


class Routing:
    """Assigns requests to engines by number; knows what is in flight and which engines are lost.

    A session stays where its prefix is stored until that engine is lost. A new session goes to the
    engine with the fewest requests in flight, and among equals to the one that was given the
    fewest sessions; what is equal still is drawn, so that several routers do not choose alike.

    Args:
        num_engines: At least 1.
    """

    def __init__(self, num_engines: int) -> None:
        self._in_flight = [0] * num_engines
        self._num_sessions = [0] * num_engines
        self._engine_of: OrderedDict[str, int] = OrderedDict()
        self._lost: set[int] = set()
        self._random = random.Random()

    @property
    def lost(self) -> frozenset[int]:
        """Engines that get nothing."""
        return frozenset(self._lost)

    @property
    def in_flight(self) -> tuple[int, ...]:
        """Requests that each engine has been given and has not answered."""
        return tuple(self._in_flight)

    def choose(self, session_id: str) -> int | None:
        """Return the engine of a request, or None where all are lost.

        Args:
            session_id: Equal for all turns of one trajectory; "" is nobody's.
        """
        engine = self._engine_of.get(session_id) if session_id else None
        if engine is None or engine in self._lost:
            up = [e for e in range(len(self._in_flight)) if e not in self._lost]
            if not up:
                return None
            engine = min(
                up, key=lambda e: (self._in_flight[e], self._num_sessions[e], self._random.random())
            )
            self._num_sessions[engine] += 1
        if session_id:
            self._engine_of[session_id] = engine
            self._engine_of.move_to_end(session_id)
            if len(self._engine_of) > _MOST_SESSIONS:
                self._engine_of.popitem(last=False)
        return engine

    def begin(self, engine: int) -> None:
        """Note that an engine was given a request."""
        self._in_flight[engine] += 1

    def end(self, engine: int) -> None:
        """Note that a request has ended, however it did."""
        self._in_flight[engine] -= 1

    def lose(self, engine: int) -> None:
        """Give an engine nothing more, and its sessions to others."""
        self._lost.add(engine)

    def find(self, engine: int) -> None:
        """Give an engine requests again; it is as empty as a new one."""
        self._lost.discard(engine)
        self._num_sessions[engine] = min(self._num_sessions)
