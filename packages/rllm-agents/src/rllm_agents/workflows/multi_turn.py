"""An agent and an environment taking turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rllm_agents.agent import BaseAgent
from rllm_agents.agent_calls import call_agent
from rllm_agents.argument_checks import check_count
from rllm_agents.env_maker import may_block_when_made
from rllm_agents.errors import TerminationEvent
from rllm_agents.types import Episode, TerminationReason
from rllm_agents.workflow import Workflow


class MultiTurnWorkflow(Workflow):
    """One agent in one environment, as AgentExecutionEngine runs them.

    Args:
        agent_cls: Called with `agent_args`, once for each instance of the workflow.
        env_cls: Its ``from_dict({**task, **env_args})`` makes the environment of a task.
        agent_args: Keyword arguments of `agent_cls`.
        env_args: Added to every task.
        max_steps: Most turns.
        **kwargs: Of `Workflow`.
    """

    def __init__(
        self,
        *,
        agent_cls: Callable[..., BaseAgent],
        env_cls: Any,
        agent_args: Mapping[str, Any] | None = None,
        env_args: Mapping[str, Any] | None = None,
        max_steps: int = 5,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_count("max_steps", max_steps)
        self.agent = agent_cls(**(agent_args or {}))
        self.max_steps = max_steps
        self._env_cls, self._env_args = env_cls, dict(env_args or {})
        self._info: Mapping[str, Any] = {}

    async def run(self, task: Mapping[str, Any], uid: str, **kwargs: Any) -> Episode | None:
        """Play until the environment is done or `max_steps` are taken."""
        self.reset(task, uid)
        agent, self._info = self.agent, {}
        env = self.open_env(
            lambda: self._env_cls.from_dict({**task, **self._env_args}),
            is_blocking=may_block_when_made(self._env_cls),
        )
        observation, info = await env.reset()
        call_agent("update_from_env", agent.update_from_env, observation, 0.0, False, info)
        for _ in range(self.max_steps):
            step = await self.ask(agent, observation)
            observation, reward, done, info = await env.step(step.action)
            step.reward, step.done, step.info = reward, done, {**step.info, **info}
            call_agent("update_from_env", agent.update_from_env, observation, reward, done, info)
            self._info = info
            if done:
                raise TerminationEvent(TerminationReason.ENV_DONE)
        raise TerminationEvent(TerminationReason.MAX_TURNS_EXCEEDED)

    def assign_episode_correctness(self, episode: Episode) -> None:
        """Take the environment's ``info["success"]`` where it gives one."""
        super().assign_episode_correctness(episode)
        success = self._info.get("success")
        if type(success).__name__ in ("bool", "bool_"):  # bool_ is NumPy's
            episode.is_correct = bool(success)
