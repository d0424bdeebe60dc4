"""All open sessions of a gateway: bounded in number, dropped when nobody uses them."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from rllm_agents.gateway.endings import Ending
from rllm_agents.gateway.refusals import RequestError, refused
from rllm_agents.gateway.sessions import GatewaySession
from rllm_agents.types import Episode, TerminationReason

_ID = re.compile(r"[A-Za-z0-9_.~@:-]{1,128}")


class SessionTable:
    """Sessions by id.

    Sessions that were opened over HTTP can be finished over HTTP, and are dropped when they are
    idle. Those that this process opened are its own to end: an agent that knows its address can
    neither give itself a reward nor read what was recorded.

    Args:
        max_sessions: Most sessions that are open at a time.
        idle_seconds: After how long without a call a session opened over HTTP is dropped.
        on_episode: Called with the Episode of each session that was opened over HTTP and ended.
    """

    def __init__(
        self,
        *,
        max_sessions: int,
        idle_seconds: float,
        on_episode: Callable[[Episode], None] | None = None,
    ) -> None:
        self._max_sessions = max_sessions
        self._idle_seconds = idle_seconds
        self._on_episode = on_episode
        self._sessions: dict[str, GatewaySession] = {}
        self._remote: set[str] = set()

    def __len__(self) -> int:
        return len(self._sessions)

    def add(self, session: GatewaySession, *, is_remote: bool) -> None:
        """Take in a session.

        Raises:
            RequestError: There are as many as are allowed, or one has this id already.
        """
        if len(self._sessions) >= self._max_sessions:
            raise RequestError(
                429,
                f"{self._max_sessions} sessions are open, as many as are allowed",
                code="too_many_sessions",
            )
        if session.id in self._sessions:
            raise RequestError(409, "a session with this id is open", code="session_exists")
        self._sessions[session.id] = session
        if is_remote:
            self._remote.add(session.id)

    def find(self, id: str) -> GatewaySession | None:
        """Return an open session; None where there is none of this id."""
        return self._sessions.get(id)

    def get(self, id: str) -> GatewaySession:
        """Return an open session.

        Raises:
            RequestError: There is none of this id.
        """
        session = self._sessions.get(id)
        if session is None:
            raise RequestError(404, "there is no such session", code="session_not_found")
        return session

    def get_remote(self, id: str) -> GatewaySession:
        """Return an open session that was opened over HTTP.

        Raises:
            RequestError: There is none of this id, or it is this process's own.
        """
        session = self.get(id)
        if id not in self._remote:
            raise RequestError(403, "only its owner may end this session", code="not_yours")
        return session

    def drop(self, id: str) -> None:
        """Close a session and forget it; nothing happens where there is none."""
        session = self._sessions.pop(id, None)
        self._remote.discard(id)
        if session is not None:
            session.close()

    def end_remote(self, id: str, ending: Ending) -> Episode:
        """End a session that was opened over HTTP.

        Raises:
            RequestError: There is none of this id, or it is this process's own.
        """
        episode = self.get_remote(id).end(ending)
        self.drop(id)
        if self._on_episode is not None:
            self._on_episode(episode)
        return episode

    def reap(self, now: float | None = None) -> int:
        """End what was opened over HTTP and is idle; return how many.

        Args:
            now: Of the monotonic clock; None reads it.
        """
        moment = time.monotonic() if now is None else now
        idle = [
            id
            for id in self._remote
            if not self._sessions[id].is_busy
            and moment - self._sessions[id].last_used >= self._idle_seconds
        ]
        for id in idle:
            self.end_remote(id, _unrewarded(f"idle for {self._idle_seconds:g} s"))
        return len(idle)

    def close(self) -> None:
        """End what was opened over HTTP without a reward, and close all others."""
        for id in list(self._remote):
            self.end_remote(id, _unrewarded("the gateway was closed"))
        for id in list(self._sessions):
            self.drop(id)


def check_session_id(id: str, parameter: str) -> str:
    """Return an id that a client chose.

    Raises:
        RequestError: It is too long or has other characters than are allowed.
    """
    if not _ID.fullmatch(id):
        raise refused(f"{parameter} must be 1 to 128 letters, digits or _.~@:-", parameter)
    return id


def _unrewarded(why: str) -> Ending:
    return Ending(
        None, reason=TerminationReason.AGENT_EXCEPTION, error=f"no reward was given: {why}"
    )
