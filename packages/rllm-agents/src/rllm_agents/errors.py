"""The errors of this package: what went wrong, said once, by kind."""

from __future__ import annotations

from rllm_agents.types import TerminationReason


class AgentsError(Exception):
    """Base of every error that this package raises on purpose."""


class UserError(AgentsError, ValueError):
    """A mistake of the user: the message says which value, what is allowed and what to do.

    Command lines show it as one line and leave with exit code 2.
    """


class RendererError(AgentsError):
    """A conversation that the chat template refuses, or a template that cannot be followed."""


class PromptTooLongError(RendererError):
    """A prompt with too many characters to be tokenised at all."""


class EngineError(AgentsError):
    """A rollout engine failed, was closed, or was asked for something it cannot do."""


class EpisodeFailure(AgentsError):
    """Why one episode failed. Raised inside `run_episode`, which turns it into the Episode.

    Attributes:
        reason: The typed reason, always a failure.
    """

    def __init__(self, reason: TerminationReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
