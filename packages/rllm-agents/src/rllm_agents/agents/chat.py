"""An agent that talks to its environment in plain text."""

from __future__ import annotations

from typing import Any

from rllm_agents.agent import BaseAgent
from rllm_agents.types import Action, Message, Trajectory


class ChatAgent(BaseAgent):
    """Shows every observation as a user message and answers with the model's whole text.

    An observation may be a string, a mapping with `"question"`, of which that text is shown, or
    anything else, of which `str` is shown. None, as after a last step, shows nothing.

    Args:
        system_prompt: First message of every conversation; none by default.
    """

    def __init__(self, system_prompt: str | None = None) -> None:
        self._system_prompt = system_prompt
        self.reset()

    def reset(self) -> None:
        """Begin a new conversation."""
        self._trajectory = Trajectory()
        self._messages: list[Message] = []
        if self._system_prompt:
            self._messages.append({"role": "system", "content": self._system_prompt})

    @property
    def chat_completions(self) -> list[Message]:
        """The conversation so far."""
        return self._messages

    def update_from_env(
        self, observation: Any, reward: float, done: bool, info: dict[str, Any], **kwargs: Any
    ) -> None:
        """Append the observation as a user message."""
        text = observation_text(observation)
        if text is not None:
            self._messages.append({"role": "user", "content": text})

    def update_from_model(self, response: str, **kwargs: Any) -> Action:
        """Append the response and act with its text."""
        self._messages.append({"role": "assistant", "content": response})
        return Action(action=response)


def observation_text(observation: Any) -> str | None:
    """What a model is shown of an observation; None for nothing."""
    if isinstance(observation, dict) and "question" in observation:
        observation = observation["question"]
    return None if observation is None else str(observation)
