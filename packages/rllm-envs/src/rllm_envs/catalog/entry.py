"""``EnvEntry``: one registered environment."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class EnvEntry:
    """One registered environment. Written in ``CATALOG``, read by registration and the listing."""

    id: str
    """Gymnasium id."""
    entry_point: str
    """Class as "module:name", so that nothing is imported before it is made."""
    summary: str
    """What the agent does, in a few words."""
    kwargs: dict[str, Any] = field(default_factory=dict)
    """Registered arguments: names and numbers, never data, because Gymnasium copies them."""
    reward_threshold: float | None = 1.0
    """Mean reward at which the task counts as solved."""
    nondeterministic: bool = False
    """Whether equal seeds may differ: only for tasks that ask a live service."""
    extra: str = ""
    """The extra of rllm-envs that it needs, such as "data"; empty where it needs none."""

    @property
    def offline(self) -> bool:
        """Whether it runs without a network."""
        return not self.nondeterministic

    @property
    def category(self) -> str:
        """The folder that the environment is in: "reasoning", "puzzles", "tool_use", ..."""
        return self.entry_point.split(".")[1]
