"""How far one episode may go: steps, tokens and seconds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from rllm_agents.errors import UserError
from rllm_agents.types import TerminationReason


@dataclass(frozen=True, slots=True)
class RolloutLimits:
    """Bounds of one episode. Made by AgentExecutionEngine, read by run_episode.

    The prompt of the first turn may have `max_prompt_length` tokens; everything after it, sampled
    or rendered, may have `max_response_length` together. No context is ever longer than the sum.
    With `enforce_max_prompt_length` each turn is bounded by itself instead.
    """

    max_steps: int = 64
    """Most completions of one episode; the environment usually ends it long before."""
    max_prompt_length: int = 4096
    """Most tokens of the first prompt; counted only where there is a tokenizer."""
    max_response_length: int = 8192
    """Most tokens after the first prompt: completions and the messages between them."""
    enforce_max_prompt_length: bool = False
    """Whether `max_prompt_length` bounds the whole prompt of every turn, and `max_response_length`
    each completion alone, as agents want that rewrite their history."""
    step_timeout_seconds: float | None = 600.0
    """Longest construction, `reset` or `step` of an environment in a thread; None: no bound."""
    trajectory_timeout_seconds: float | None = 7200.0
    """Longest episode, from its environment's construction on; None: no bound."""
    call_timeout_seconds: float | None = None
    """Longest call of the rollout engine; None: no bound."""
    close_timeout_seconds: float = 10.0
    """How long an environment's `close` is waited for; it is left to its thread after that."""

    def __post_init__(self) -> None:
        """Refuse values outside their ranges.

        Raises:
            UserError: With the field, its value and what is allowed.
        """
        for name in ("max_steps", "max_prompt_length", "max_response_length"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise UserError(f"{name} must be a whole number of at least 1, got {value!r}")
        for name in (
            "step_timeout_seconds",
            "trajectory_timeout_seconds",
            "call_timeout_seconds",
        ):
            if getattr(self, name) is not None:
                # Under the names that engines and settings give them.
                check_seconds(name.removesuffix("_seconds"), getattr(self, name))
        check_seconds("close_timeout", self.close_timeout_seconds)

    def room(self, num_prompt: int, num_first: int) -> int:
        """Return how many tokens may follow a prompt; 0 or less: none.

        Args:
            num_prompt: Tokens of the prompt.
            num_first: Tokens of the conversation's first prompt.
        """
        if self.enforce_max_prompt_length:
            return self.max_response_length if num_prompt <= self.max_prompt_length else 0
        if num_first > self.max_prompt_length:
            return 0
        return self.max_response_length - max(0, num_prompt - num_first)

    def too_long(self, *, is_first: bool) -> TerminationReason:
        """Return why an episode ends whose prompt leaves no room.

        Args:
            is_first: Whether it is the conversation's first.
        """
        if is_first or self.enforce_max_prompt_length:
            return TerminationReason.MAX_PROMPT_LENGTH_EXCEEDED
        return TerminationReason.MAX_RESPONSE_LENGTH_EXCEEDED

    @property
    def max_context_length(self) -> int:
        """Most tokens of any context: the first prompt and everything after it."""
        return self.max_prompt_length + self.max_response_length


def check_seconds(name: str, value: Any) -> None:
    """Refuse what is no finite number of seconds above 0.

    Raises:
        UserError: With the name and the value.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value < math.inf:
        raise UserError(f"{name} must be a finite number of seconds above 0, got {value!r}")
