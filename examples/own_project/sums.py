"""An environment and an agent of one's own, written to the two contracts and nothing else."""

from __future__ import annotations

import copy
from typing import Any

from rllm_agents import Action, BaseAgent, Step, Trajectory
from rllm_envs import BaseEnv


class SumEnv(BaseEnv):
    """Asks for a sum; a wrong answer may be corrected once."""

    blocking = False  # `step` returns at once, so it needs no thread

    def __init__(self, left: int, right: int, max_attempts: int = 2):
        self.left, self.right = left, right
        self.max_attempts = max_attempts
        self.num_attempts = 0

    def reset(self) -> tuple[dict, dict]:
        """Ask."""
        self.num_attempts = 0
        return {"question": f"What is {self.left} + {self.right}?"}, {}

    def step(self, action: Any) -> tuple[Any, float, bool, dict]:
        """Judge an answer."""
        self.num_attempts += 1
        answer = str(action).rpartition("\\boxed{")[2].partition("}")[0]
        is_right = answer == str(self.left + self.right)
        done = is_right or self.num_attempts == self.max_attempts
        return {}, float(is_right), done, {"success": is_right}

    @staticmethod
    def from_dict(info: dict) -> SumEnv:
        """Make the environment of a task."""
        return SumEnv(info["left"], info["right"], info.get("max_attempts", 2))


class SelfCorrectingAgent(BaseAgent):
    """Asks for a boxed answer, and asks again where the environment goes on."""

    def __init__(self, instruction: str = "Give the answer in \\boxed{}."):
        self.instruction = instruction
        self._trajectory = Trajectory()
        self.messages: list[dict] = []

    def update_from_env(self, observation, reward, done, info, **kwargs):
        """Show the question, or ask to review the answer."""
        if done:
            return
        if not self.trajectory.steps:
            text = f"{observation['question']} {self.instruction}"
        else:
            text = "Your previous answer may contain a mistake. Please review it."
        self.messages.append({"role": "user", "content": text})

    def update_from_model(self, response, **kwargs):
        """Keep the response and act with it."""
        self.messages.append({"role": "assistant", "content": response})
        self.trajectory.steps.append(Step(chat_completions=copy.deepcopy(self.messages)))
        return Action(action=response)

    def reset(self):
        """Begin a new conversation."""
        self._trajectory = Trajectory()
        self.messages = []

    @property
    def chat_completions(self) -> list[dict]:
        """The conversation so far."""
        return self.messages

    @property
    def trajectory(self) -> Trajectory:
        """The steps so far."""
        return self._trajectory
