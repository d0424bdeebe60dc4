"""A role's conversation inside a workflow, and what several workflows read of tasks and answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rllm_agents.errors import EpisodeFailure
from rllm_agents.types import Message, TerminationReason
from rllm_agents.workflow import Workflow
from rllm_envs.parsing import boxed_answer, strip_thoughts

ANSWER_IN_BOX = "Put your final answer in \\boxed{}."
_QUESTION_FIELDS = ("question", "problem", "prompt")


class Chat:
    """A conversation of one role; its calls are a trajectory of their own.

    Args:
        workflow: The running workflow.
        role: Name of the trajectory.
        system_prompt: First message; none by default.
    """

    def __init__(self, workflow: Workflow, role: str, system_prompt: str | None = None) -> None:
        self._engine = workflow.rollout_engine
        self.trajectory = workflow.new_trajectory(role)
        self.messages: list[Message] = []
        if system_prompt:
            self.messages.append({"role": "system", "content": system_prompt})

    async def ask(self, text: str) -> str:
        """Say something and return the model's whole response, which may be cut off."""
        self.messages.append({"role": "user", "content": text})
        output = await self._engine.get_model_response(self.messages, trajectory=self.trajectory)
        self.messages.append(output.message)
        return output.text


def question_of(task: Mapping[str, Any]) -> str:
    """Return a task's text: its ``question``, ``problem`` or ``prompt``.

    Raises:
        EpisodeFailure: It has none of them.
    """
    for name in _QUESTION_FIELDS:
        if isinstance(task.get(name), str):
            return task[name]
    raise EpisodeFailure(
        TerminationReason.WORKFLOW_EXCEPTION,
        f"the task has no text under {', '.join(_QUESTION_FIELDS)}; it has {', '.join(task)}",
    )


def said(response: str) -> str:
    """What a response says to others: its text without thoughts."""
    return strip_thoughts(response).strip()


def chosen_number(response: str, highest: int) -> int | None:
    r"""Return the number in the last ``\boxed{}`` if it is in [1, highest]; else None."""
    answer = (boxed_answer(response) or "").strip()
    if not (answer.isascii() and answer.isdigit() and len(answer) <= len(str(highest))):
        return None
    return int(answer) if 1 <= int(answer) <= highest else None
