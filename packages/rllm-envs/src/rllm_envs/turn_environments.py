"""``MultiTurnEnvironment`` and ``SingleTurnEnvironment``: a task and its reward, as ``BaseEnv``."""

import inspect
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Self

from rllm_envs.core import BaseEnv
from rllm_envs.errors import EnvArgumentError, EpisodeError, excerpt
from rllm_envs.rewards import HIDDEN_FIELDS, RewardOutput, as_reward_output
from rllm_envs.tasks import Task


class MultiTurnEnvironment(BaseEnv):
    """A task of several turns, each of which earns a reward and gives an observation.

    A subclass writes ``get_reward_and_next_obs``. ``reset`` returns the task, without its answer
    and its tests, as the observation. The episode ends after ``max_turns`` actions, or when the
    subclass sets ``self.done = True``; the last observation is ``{}``.

    Info of ``step`` holds ``response`` (the action), ``metadata`` and ``is_correct`` of the reward,
    as ``ToolEnvironment`` has them.

    Args:
        task: The task; a dict.
        max_turns: Actions per episode, at least 1.

    Raises:
        EnvArgumentError: An argument has a value that is not allowed.
    """

    def __init__(self, task: Task | None = None, max_turns: int = 3) -> None:
        if isinstance(max_turns, bool) or not isinstance(max_turns, int) or max_turns < 1:
            raise EnvArgumentError(f"max_turns must be an integer of at least 1, got {max_turns!r}")
        if task is not None and not isinstance(task, Mapping):
            raise EnvArgumentError(f"task must be a dict, got {excerpt(task)}")
        self.task: Task = dict(task or {})
        self.max_turns = max_turns
        self.current_turn = 0
        self.done = True
        self.history: list[Any] = []
        """Actions of the episode."""

    @abstractmethod
    def get_reward_and_next_obs(
        self, task: Task, action: Any
    ) -> tuple[RewardOutput | float, dict[str, Any] | str]:
        """Return the reward of an action and what the agent reads next.

        Args:
            task: The task, answer included.
            action: What the agent did; usually text.
        """

    def reset(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start the episode; the observation is the task without its answer and its tests."""
        self.current_turn = 0
        self.done = False
        self.history = []
        shown = {name: v for name, v in self.task.items() if name not in HIDDEN_FIELDS}
        return shown, {}

    def step(self, action: Any) -> tuple[dict[str, Any] | str, float, bool, dict[str, Any]]:
        """Answer an action; return observation, reward, done and info.

        Raises:
            EpisodeError: No episode is running.
        """
        if self.done:
            raise EpisodeError("no episode is running: call reset() before step()")
        self.history.append(action)
        given, observation = self.get_reward_and_next_obs(self.task, action)
        output = as_reward_output(given)
        self.current_turn += 1
        self.done = self.done or self.current_turn >= self.max_turns
        info = {
            "response": action,
            "metadata": dict(output.metadata),
            "is_correct": output.is_correct,
        }
        return {} if self.done else observation, output.reward, self.done, info

    @classmethod
    def from_dict(cls, info: Mapping[str, Any]) -> Self:  # type: ignore[override]
        """Make an environment from the constructor's arguments; what else there is is the task."""
        fields = dict(info)
        names = [name for name in inspect.signature(cls).parameters if name != "task"]
        named = {name: fields.pop(name) for name in names if name in fields}
        return cls(task=fields, **named)


class SingleTurnEnvironment(MultiTurnEnvironment):
    """A task that is answered once, and a reward for the answer.

    Args:
        task: The task; a dict.
        reward_fn: Called as ``reward_fn(task_info=task, action=action)``; returns a
            ``RewardOutput`` or a number. Without one every reward is 0.
    """

    def __init__(
        self,
        task: Task | None = None,
        reward_fn: Callable[..., RewardOutput | float] | None = None,
    ) -> None:
        super().__init__(task, max_turns=1)
        if reward_fn is None:
            warnings.warn(f"{type(self).__name__} without reward_fn gives reward 0", stacklevel=2)
        self.reward_fn = reward_fn

    def get_reward_and_next_obs(
        self, task: Task, action: Any
    ) -> tuple[RewardOutput | float, dict[str, Any] | str]:
        """Return the reward of the answer."""
        if self.reward_fn is None:
            return 0.0, {}
        return self.reward_fn(task_info=dict(task), action=action), {}
