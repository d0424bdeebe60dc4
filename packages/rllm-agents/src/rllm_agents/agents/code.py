"""An agent that writes programs and mends them."""

from __future__ import annotations

from typing import Any

from rllm_agents.agent import BaseAgent
from rllm_agents.agents.chat import observation_text
from rllm_agents.types import Action, Message, Step, Trajectory
from rllm_envs.parsing import code_block

SYSTEM_PROMPT = (
    "You are a careful Python programmer. Think about the problem and its special cases first, "
    "then write the whole program in one ```python block."
)
MEND = "Find the mistake, and write the whole program again in one ```python block."


class CodeAgent(BaseAgent):
    """Asks for a program and acts with the program alone; asks to mend it as long as it fails.

    Its action is the last fenced block of Python of a response, outside of thoughts, in a fence of
    its own; or the whole response where it holds no program, so that the environment says so. What
    the environment says of an attempt (a failing test, an error) is shown with the request to mend
    it. Made for ``rllm/PythonCode-v0``, ``rllm/CodeRepair-v0`` and ``rllm/Code-v0``.

    Args:
        system_prompt: First message of every conversation; None for none.
    """

    def __init__(self, system_prompt: str | None = SYSTEM_PROMPT) -> None:
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
        """The conversation so far, with all attempts."""
        return self._messages

    def update_from_env(
        self, observation: Any, reward: float, done: bool, info: dict[str, Any], **kwargs: Any
    ) -> None:
        """Append the problem, or what became of the last attempt; after the end, nothing."""
        text = observation_text(observation)
        if done or text is None:
            return
        if self._trajectory.steps:
            text = f"{text}\n{MEND}" if text else MEND
        self._messages.append({"role": "user", "content": text})

    def update_from_model(self, response: str, **kwargs: Any) -> Action:
        """Append the response and a step, and act with its program."""
        self._messages.append({"role": "assistant", "content": response})
        program = code_block(response)
        self._trajectory.steps.append(Step(chat_completions=list(self._messages)))
        if program is None:
            return Action(action=response)
        return Action(action=f"```python\n{program.rstrip()}\n```")
