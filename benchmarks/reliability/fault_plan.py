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

SLOW_SECONDS = 1.0
RETRY_AFTER_SECONDS = 0.5
GRACE_SECONDS = 1.0
"""What ending and closing a hung environment may cost beside its deadline."""
RECONNECT_SECONDS = 0.5
"""Longest wait before a second attempt at an episode, with the engine's own back-off."""


@dataclass(frozen=True, slots=True)
class Deadlines:
    """How long what may take in a run."""

    request_seconds: float = 6.0
    step_seconds: float = 6.0
    max_retries: int = 2
    """Attempts at a request after the first."""

    def delay(self, name: str) -> float:
        """Longest delay of an episode that meets a kind, beside what the work itself costs."""
        backoff = sum(0.5 * 2.0**attempt for attempt in range(self.max_retries))
        return {
            "none": 0.0,
            "slow": SLOW_SECONDS,
            "backoff": backoff,
            "asked to wait": backoff + self.max_retries * RETRY_AFTER_SECONDS,
            "unanswered": backoff + (1 + self.max_retries) * self.request_seconds,
            "hung": self.step_seconds + GRACE_SECONDS,
            "attempts": 3 * RECONNECT_SECONDS,
        }[name]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of fault."""

    name: str
    place: str
    """"server", "env" or "grader"."""
    delay: str
    """How it delays an episode; see `Deadlines.delay`."""
    reasons: tuple[str, ...]
    """What an episode may end for that meets it and nothing else."""
    needs_process: bool = False
    """Whether it would end the run's own process."""


def _server(name: str, delay: str, *reasons: str) -> Kind:
    return Kind(name, "server", delay, ("env_done", *reasons))


def _env(name: str, delay: str, *reasons: str, needs_process: bool = False) -> Kind:
    return Kind(name, "env", delay, reasons, needs_process)


KINDS = (
    _server("HTTP 500", "backoff", "llm_http_error"),
    _server("HTTP 503", "backoff", "llm_http_error"),
    _server("HTTP 429 with Retry-After", "asked to wait", "llm_http_error"),
    _server("accepts and hangs", "unanswered", "llm_timeout"),
    _server("connection reset", "backoff", "llm_connection"),
    _server("garbage bytes", "backoff", "llm_bad_response"),
    _server("truncated body", "backoff", "llm_connection"),
    _server("empty choices", "backoff", "llm_bad_response"),
    _server("wrong types", "backoff", "llm_bad_response"),
    _server("slow but good", "slow"),
    _env("construction raises", "none", "env_exception"),
    _env("reset raises", "none", "env_exception"),
    _env("step raises, or loses a connection once", "attempts", "env_exception", "env_done"),
    _env("close raises", "none", "env_done"),
    _env("asynchronous hang", "hung", "env_step_timeout"),
    _env("synchronous hang", "hung", "env_step_timeout"),
    _env("SystemExit", "none", "env_exit"),
    _env("leaked cancellation", "none", "env_leaked_cancel"),
    _env("wrong tuple", "none", "env_protocol"),
    _env("reward NaN, None or text", "none", "env_bad_reward"),
    _env("observation of 10 MB, or no text", "none", "env_obs_too_large", "agent_exception"),
    _env("segfault or SIGKILL", "attempts", "env_exit", "env_done", needs_process=True),
    Kind("grader raises", "grader", "attempts", ("grader_error",)),
    Kind("grader hangs", "grader", "hung", ("env_step_timeout",)),
    Kind("grader's process killed", "grader", "attempts", ("env_done", "grader_error")),
    Kind("verdict not finite", "grader", "none", ("env_bad_reward",)),
)

FURTHER_KINDS = (
    _server("logprobs NaN", "none", "llm_bad_response"),
    _server("fewer logprobs than ids", "none", "llm_bad_response"),
    _server("another prompt's completion", "none", "llm_bad_response"),
)
"""What only a server that returns token ids can get wrong."""

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


def wall_bound(
    plan: Sequence[Faults], deadlines: Deadlines, num_parallel: int, clean_seconds: float
) -> float:
    """Longest wall-clock time of a run, in seconds.

    Any order of n jobs on m places ends within sum / m + longest (Graham 1966). The delays are
    those of the kinds; the work itself is what a run without faults took, three times over, as the
    machine has other work and faults cause some.
    """
    worst = {kind.name: deadlines.delay(kind.delay) for kind in (*KINDS, *FURTHER_KINDS)}
    delays = [sum(worst[name] for name in faults) for faults in plan]
    return 3.0 * clean_seconds + sum(delays) / num_parallel + max(delays, default=0.0)
