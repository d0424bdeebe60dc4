"""What a gateway can be told."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from rllm_agents.errors import UserError
from rllm_agents.gateway.access import Token, check_exposure
from rllm_agents.limits import RolloutLimits
from rllm_agents.types import Episode, SamplingParams


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """How a gateway listens and what it allows. Made by users, read by Gateway."""

    host: str = "127.0.0.1"
    """Address to listen on; one that other machines reach needs a token."""
    port: int = 0
    """0 takes a free one."""
    token: Token | None = None
    """Requests must carry it as bearer token; None lets in whoever reaches the address."""
    model: str = "rllm"
    """Name of the model."""
    takes_any_model: bool = False
    """Whether requests may name any model, so that agents need no change."""
    opens_sessions: bool = True
    """Whether clients may open sessions, and call without one."""
    parser_name: str = "qwen"
    """How the model is told of tools and writes calls."""
    limits: RolloutLimits = field(default_factory=RolloutLimits)
    """Of each session: calls (`max_steps`), tokens of the first prompt and of any context."""
    sampling: SamplingParams = field(default_factory=SamplingParams)
    """For requests that do not say otherwise."""
    max_sessions: int = 1024
    """Most sessions that are open at a time."""
    idle_seconds: float = 3600.0
    """After how long without a call a session that a client opened is dropped."""
    max_requests: int = 2048
    """Most requests that are being answered at a time."""
    header_seconds: float = 30.0
    """How long a connection may be without a complete request header."""
    body_seconds: float = 60.0
    """How long the body of a request, or the reading of its answer, may take."""
    on_episode: Callable[[Episode], None] | None = None
    """Called with the Episode of each session that a client opened, when it ends."""

    def __post_init__(self) -> None:
        """Refuse values outside their ranges; raises UserError."""
        check_exposure(self.host, self.token)
        if not 0 <= self.port <= 65535:
            raise UserError(f"port must be in [0, 65535], got {self.port}")
        for name in ("max_sessions", "max_requests"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("idle_seconds", "header_seconds", "body_seconds"):
            if not 0 < getattr(self, name) < math.inf:
                raise UserError(f"{name} must be seconds above 0, got {getattr(self, name)}")
        if not self.model:
            raise UserError("model must have a name")
