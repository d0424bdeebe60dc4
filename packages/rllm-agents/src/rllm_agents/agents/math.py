"""An agent that answers mathematical questions and corrects itself."""

from __future__ import annotations

import copy
from typing import Any

from rllm_agents.agent import BaseAgent
from rllm_agents.agents.chat import observation_text
from rllm_agents.errors import UserError
from rllm_agents.types import Action, Message, Step, Trajectory

INSTRUCTION = "Let's think step by step, and put your final answer within \\boxed{}."
REVIEW = "Your previous answer may contain a mistake. Please review it."


class MathAgent(BaseAgent):
    """Asks for a boxed answer, and asks to review it each time the environment goes on.

    The first observation is shown with an instruction. Any later one, whatever it says, is shown as
    the request to review; what an environment says of the last action is shown by `ChatAgent`.

    Args:
        accumulate_thinking: Whether the model sees its earlier thoughts; with False, what it wrote
            up to ``</think>`` is left out of all its messages but the last of the conversation.
            Where there were thoughts, the next turn starts a token record, since history changes.

    Raises:
        UserError: `accumulate_thinking` is neither True nor False.
    """

    def __init__(self, accumulate_thinking: bool = True) -> None:
        if not isinstance(accumulate_thinking, bool):
            raise UserError(
                f"accumulate_thinking of MathAgent must be True or False, got "
                f"{accumulate_thinking!r:.80}"
            )
        self.accumulate_thinking = accumulate_thinking
        self.reset()

    def reset(self) -> None:
        """Begin a new conversation."""
        self._trajectory = Trajectory()
        self._messages: list[Message] = []

    @property
    def chat_completions(self) -> list[Message]:
        """The conversation, without earlier thoughts where they are not accumulated."""
        messages = copy.deepcopy(self._messages)
        if not self.accumulate_thinking:
            for message in messages[:-1]:
                if message["role"] == "assistant":
                    _, found, after = message["content"].partition("</think>")
                    message["content"] = after if found else message["content"]
        return messages

    def update_from_env(
        self, observation: Any, reward: float, done: bool, info: dict[str, Any], **kwargs: Any
    ) -> None:
        """Append the question, or the request to review; after the end, nothing."""
        if done:
            return
        if self._trajectory.steps:
            text = REVIEW
        else:
            text = f"{observation_text(observation)} {INSTRUCTION}"
        self._messages.append({"role": "user", "content": text})

    def update_from_model(self, response: str, **kwargs: Any) -> Action:
        """Append the response and a step, and act with the text."""
        self._messages.append({"role": "assistant", "content": response})
        self._trajectory.steps.append(Step(chat_completions=self.chat_completions))
        return Action(action=response)
