"""The 26 kinds of faults, which episodes meet them, and how long each may cost at most."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

SHARE = 0.05
"""Of episodes that meet a fault of a kind."""
NUM_TURNS = 2
ALWAYS = 1_000_000

# Deadlines of the runs, in seconds.
REQUEST_SECONDS = 6.0
STEP_SECONDS = 6.0
SLOW_SECONDS = 1.0
RETRY_AFTER_SECONDS = 0.5
MAX_RETRIES = 2
"""Attempts at a request after the first; backing off costs up to 0.5 s and then 1 s."""
GRACE_SECONDS = 1.0
"""What ending and closing a hung environment may cost beside its deadline."""

_BACKOFF_SECONDS = 0.5 + 1.0


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of fault."""

    name: str
    place: str
    """"server", "env" or "grader"."""
    worst_seconds: float
    """Longest delay of an episode that meets it, beside what the work itself costs."""
    reasons: tuple[str, ...]
    """What an episode may end for that meets it and nothing else."""
    needs_process: bool = False
    """Whether it would end the run's own process."""


def _server(name: str, seconds: float, *reasons: str) -> Kind:
    return Kind(name, "server", seconds, ("env_done", *reasons))


def _env(name: str, seconds: float, *reasons: str, needs_process: bool = False) -> Kind:
    return Kind(name, "env", seconds, reasons, needs_process)


HUNG = STEP_SECONDS + GRACE_SECONDS
ASKED = MAX_RETRIES * RETRY_AFTER_SECONDS
UNANSWERED = (1 + MAX_RETRIES) * REQUEST_SECONDS

KINDS = (
    _server("HTTP 500", _BACKOFF_SECONDS, "llm_http_error"),
    _server("HTTP 503", _BACKOFF_SECONDS, "llm_http_error"),
    _server("HTTP 429 with Retry-After", _BACKOFF_SECONDS + ASKED, "llm_http_error"),
    _server("accepts and hangs", _BACKOFF_SECONDS + UNANSWERED, "llm_timeout"),
    _server("connection reset", _BACKOFF_SECONDS, "llm_connection"),
    _server("garbage bytes", _BACKOFF_SECONDS, "llm_bad_response"),
    _server("truncated body", _BACKOFF_SECONDS, "llm_connection"),
    _server("empty choices", _BACKOFF_SECONDS, "llm_bad_response"),
    _server("wrong types", _BACKOFF_SECONDS, "llm_bad_response"),
    _server("slow but good", SLOW_SECONDS),
    _env("construction raises", 0.0, "env_exception"),
    _env("reset raises", 0.0, "env_exception"),
    _env("step raises, or loses a connection once", 0.5, "env_exception", "env_done"),
    _env("close raises", 0.0, "env_done"),
    _env("asynchronous hang", HUNG, "env_step_timeout"),
    _env("synchronous hang", HUNG, "env_step_timeout"),
    _env("SystemExit", 0.0, "env_exit"),
    _env("leaked cancellation", 0.0, "env_leaked_cancel"),
    _env("wrong tuple", 0.0, "env_protocol"),
    _env("reward NaN, None or text", 0.0, "env_bad_reward"),
    _env("observation of 10 MB, or no text", 0.0, "env_obs_too_large", "agent_exception"),
    _env("segfault or SIGKILL", 0.5, "env_exit", "env_done", needs_process=True),
    Kind("grader raises", "grader", _BACKOFF_SECONDS, ("grader_error",)),
    Kind("grader hangs", "grader", HUNG, ("env_step_timeout",)),
    Kind("grader's process killed", "grader", _BACKOFF_SECONDS, ("env_done", "grader_error")),
    Kind("verdict not finite", "grader", 0.0, ("env_bad_reward",)),
)

Faults = dict[str, dict[str, Any]]
"""Faults of one episode by kind: `turn` from 0, how many `times`, and the `variant`."""


def draw_faults(
    kinds: Sequence[Kind], num_episodes: int, *, share: float = SHARE, seed: int = 0
) -> list[Faults]:
    """Draw which episodes meet which kinds, each kind independently of the others.

    A quarter of the faults that may pass never does; the others come once.
    """
    plan: list[Faults] = []
    for episode in range(num_episodes):
        faults: Faults = {}
        for kind in kinds:
            chance = random.Random(f"{seed}/{episode}/{kind.name}")
            if chance.random() < share:
                faults[kind.name] = {
                    "turn": chance.randrange(NUM_TURNS),
                    "times": ALWAYS if chance.random() < 0.25 else 1,
                    "variant": chance.randrange(6),
                }
        plan.append(faults)
    return plan


def wall_bound(plan: Sequence[Faults], num_parallel: int, clean_seconds: float) -> float:
    """Longest wall-clock time of a run, in seconds.

    Any order of n jobs on m places ends within sum / m + longest (Graham 1966). The delays are
    those of the kinds; the work itself is what a run without faults took, three times over, as the
    machine has other work and faults cause some.
    """
    worst = {kind.name: kind.worst_seconds for kind in KINDS}
    delays = [sum(worst[name] for name in faults) for faults in plan]
    return 3.0 * clean_seconds + sum(delays) / num_parallel + max(delays, default=0.0)
