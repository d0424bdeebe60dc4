"""What can go wrong in this package, one class per remedy, and how values are quoted.

Every class derives from :class:`RllmEnvsError`, so a caller that wants to show a user's mistake as
one line catches that one class.
"""

import gymnasium


class RllmEnvsError(Exception):
    """Base of every error that this package raises on purpose."""


class EnvArgumentError(RllmEnvsError, ValueError):
    """An argument of an environment, a tool or a bridge has a value that is not allowed."""


class UnknownEnvError(RllmEnvsError, LookupError):
    """No environment is registered under the given id."""


class TaskError(RllmEnvsError, ValueError):
    """A task handed to an environment or to a reward function lacks a field or has a wrong one."""


class EpisodeError(RllmEnvsError, gymnasium.error.ResetNeeded):
    """``step`` is called before ``reset``, or after the end of an episode."""


class InfrastructureError(RllmEnvsError, RuntimeError):
    """What an environment or a tool relies on failed, so nothing is known of what the agent did.

    It is never an observation: an episode that meets it has failed and has no reward.
    """


class EnvProcessError(InfrastructureError):
    """The process of an environment died, hung or could not be started."""


class DatasetError(RllmEnvsError, ValueError):
    """A data set, or one of its rows, cannot be used."""


class DatasetNotFoundError(DatasetError):
    """No registered data set, split or file has the given name."""


class ReferenceAnswerError(DatasetError):
    """A reference answer cannot be read, so nothing can be graded against it."""


class GradingError(InfrastructureError):
    """The process that compares mathematical expressions cannot be started."""


class SandboxError(InfrastructureError):
    """A sandbox failed, not the program in it; nothing is known of what the program would do."""


class SandboxUnavailableError(SandboxError):
    """This machine does not reach the level of isolation that was asked for."""


class ToolServerError(InfrastructureError):
    """A server of tools cannot be reached, or ends each time it is started."""


class MissingDependencyError(RllmEnvsError, ImportError):
    """An optional library is not installed; the message names the command that installs it."""


class ToolError(RllmEnvsError):
    """A tool cannot do what it is asked; the message is written for the agent that asked."""


class ContractError(RllmEnvsError, AssertionError):
    """An environment breaks a rule of :class:`rllm_envs.TextEnv`."""


def excerpt(value: object, limit: int = 80) -> str:
    """Return the start of ``repr(value)``, at most ``limit`` characters, for error messages.

    A value that cannot be written (nested too deep, an integer of thousands of digits) is named by
    its type.
    """
    try:
        text = repr(value) if not isinstance(value, str) else repr(value[: limit + 1])
    except (RecursionError, ValueError):
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= limit else text[: limit - 3] + "..."
