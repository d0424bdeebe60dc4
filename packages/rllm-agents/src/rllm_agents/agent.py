"""The contract of agents: observations to messages, a response to an action."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from rllm_agents.types import Action, Message, Step, Trajectory


class BaseAgent(ABC):
    """One side of a conversation. Holds messages and no weights.

    The engine calls `reset`, then in turn `update_from_env` and `update_from_model`, on one event
    loop: an agent's methods return at once. An agent may append a Step to its trajectory in
    `update_from_model`, at most one for each response; where it does not, the engine does.
    """

    @property
    @abstractmethod
    def chat_completions(self) -> list[Message]:
        """The conversation that the next response answers."""

    @property
    def trajectory(self) -> Trajectory:
        """Steps so far. Agents that keep their own return it here and renew it in `reset`."""
        # Subclasses need not call __init__ of this class, so it cannot be made there.
        if not hasattr(self, "_trajectory"):
            self._trajectory = Trajectory()
        return self._trajectory

    @abstractmethod
    def reset(self) -> None:
        """Forget everything: a new episode begins."""

    @abstractmethod
    def update_from_env(
        self, observation: Any, reward: float, done: bool, info: dict[str, Any], **kwargs: Any
    ) -> None:
        """Take in what the environment shows.

        Args:
            observation: From `env.reset` or `env.step`.
            reward: Of the last step; 0.0 after `reset`.
            done: Whether the episode is over.
            info: From the environment.
            **kwargs: Nothing yet; accepted so that agents outlive additions.
        """

    @abstractmethod
    def update_from_model(self, response: str, **kwargs: Any) -> Action:
        """Take in the model's response and say what to do.

        Args:
            response: Complete text of the model's turn.
            **kwargs: Nothing yet; accepted so that agents outlive additions.
        """

    def get_current_state(self) -> Step | None:
        """The newest step; None before the first response."""
        steps = self.trajectory.steps
        return steps[-1] if steps else None
