"""What can go wrong in learning, in few kinds. Raised where the value is first seen."""

from rllm_agents.errors import AgentsError, UserError


class LearnError(AgentsError):
    """Base of the errors of this package that are no mistake of the user's."""


class ConfigError(UserError, ValueError):
    """A setting is unknown, out of its range, or does not go together with another."""


class TrainingError(LearnError):
    """The run cannot go on; the last checkpoint is kept."""


def require(condition: bool, key: str, value: object, allowed: str) -> None:
    """Refuse a value.

    Raises:
        ConfigError: Naming the key, its value and what is allowed, unless `condition` holds.
    """
    if not condition:
        raise ConfigError(f"{key} must be {allowed}, got {value!r}")
