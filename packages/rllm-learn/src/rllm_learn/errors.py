"""What can go wrong in learning, in few kinds. Raised where the value is first seen."""

from rllm_agents.errors import AgentsError, UserError


class LearnError(AgentsError):
    """Base of the errors of this package that are no mistake of the user's."""


class ConfigError(UserError, ValueError):
    """A setting is unknown, out of its range, or does not go together with another."""


class TrainingError(LearnError):
    """The run cannot go on; the last checkpoint is kept."""
