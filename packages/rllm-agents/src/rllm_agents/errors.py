"""The errors of this package: what went wrong, said once, by kind."""

from __future__ import annotations

import traceback
from typing import Any

from rllm_agents.types import Episode, TerminationReason


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
    """A rollout engine failed, was closed, or was asked for something it cannot do.

    Attributes:
        reason: What an episode ends for that meets it.
    """

    reason = TerminationReason.LLM_ERROR


class BadReplyError(EngineError):
    """A server answered what is no completion of the request."""

    reason = TerminationReason.LLM_BAD_RESPONSE


class TransientError(EngineError):
    """What went wrong may go right at another attempt.

    Attributes:
        retry_after: Seconds that the other side wants to be left alone; None where it does not say.
    """

    def __init__(
        self,
        message: str,
        retry_after: float | None = None,
        reason: TerminationReason = TerminationReason.LLM_ERROR,
    ) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.reason = reason


class GaveUpError(EngineError):
    """A server failed as often as it was asked; nobody asks it again for the same request."""

    def __init__(self, message: str, reason: TerminationReason) -> None:
        super().__init__(message)
        self.reason = reason


class TerminationEvent(AgentsError):
    """Ends a workflow for a reason. Raised inside `Workflow.run`, where the user likes.

    Attributes:
        reason: Why, an outcome or a failure.
    """

    def __init__(self, reason: TerminationReason, message: str = "") -> None:
        super().__init__(message or str(reason))
        self.reason = TerminationReason(reason)


class EpisodeFailure(AgentsError):
    """Why one episode failed. Raised where it does, turned into the Episode by who runs it.

    Attributes:
        reason: The typed reason, always a failure.
        is_transient: Whether it may pass, whatever it was raised from says.
    """

    def __init__(
        self, reason: TerminationReason, message: str, *, is_transient: bool = False
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.is_transient = is_transient


class WorkflowError(AgentsError):
    """A request of an AgentWorkflowEngine failed that raises on errors.

    Attributes:
        episode: Of the request.
    """

    def __init__(self, episode: Episode) -> None:
        super().__init__(f"{episode.id}: {episode.termination_reason}: {episode.error}")
        self.episode = episode


def in_words(error: BaseException) -> str:
    """Type and message of an error, of bounded length, whatever its class does."""
    try:
        text = str(error)
    except BaseException:
        text = "its text cannot be shown"
    return f"{type(error).__name__}: {text}"[:2000]


def failure_info(error: EpisodeFailure | None, close_error: str | None) -> dict[str, Any]:
    """Return what `Episode.info` says of a failure: `traceback` and `close_error`, if any."""
    info: dict[str, Any] = {}
    if error is not None and error.__cause__ is not None:
        info["traceback"] = "".join(traceback.format_exception(error.__cause__))[-4000:]
    if close_error is not None:
        info["close_error"] = close_error
    return info
