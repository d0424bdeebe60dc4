"""`WorkflowPlayer`: workflows where an AgentExecutionEngine takes agents and environments."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from rllm_agents.player import PlayEpisode
from rllm_agents.rollout import RolloutSetting
from rllm_agents.rollout_requests import RolloutRequest
from rllm_agents.types import Episode, TerminationReason
from rllm_agents.workflow import Workflow
from rllm_agents.workflow_engine import AgentWorkflowEngine


class WorkflowPlayer:
    """Plays each task as one run of a workflow. An `EpisodePlayer`.

    Args:
        workflow_class: Called with `rollout_engine` and `workflow_args`.
        workflow_args: Its further keyword arguments.
        adapters: By role, which of the engine's sets of weights answers its calls; see
            `GenerationRequest.adapter`.
        frozen: Roles whose tokens are nobody's to learn from.
    """

    def __init__(
        self,
        workflow_class: Callable[..., Workflow],
        workflow_args: Mapping[str, Any] | None = None,
        *,
        adapters: Mapping[str, str] | None = None,
        frozen: Collection[str] = (),
    ) -> None:
        self._class, self._args = workflow_class, dict(workflow_args or {})
        self._adapters = {role: name for role, name in (adapters or {}).items() if name}
        self._frozen = frozenset(frozen)

    @contextlib.asynccontextmanager
    async def playing(
        self, setting: RolloutSetting, env_args: Mapping[str, Any]
    ) -> AsyncGenerator[PlayEpisode, None]:
        """Run workflows on the engine of a setting.

        Args:
            setting: What all runs share; its agent and environment are not made.
            env_args: Added to every task.

        Yields:
            What plays one request to its Episode.
        """
        limits = setting.limits
        engine = AgentWorkflowEngine(
            workflow_cls=self._class,
            workflow_args=self._args,
            rollout_engine=setting.engine,
            tokenizer=setting.renderer.tokenizer if setting.renderer else None,
            sampling_params=setting.sampling,
            max_prompt_length=limits.max_prompt_length,
            max_response_length=limits.max_response_length,
            enforce_max_prompt_length=limits.enforce_max_prompt_length,
            workflow_timeout=limits.trajectory_timeout_seconds,
            step_timeout=limits.step_timeout_seconds,
            call_timeout=limits.call_timeout_seconds,
            retry_limit=setting.retries.max_attempts,
            retry_backoff=setting.retries.backoff_seconds,
            adapters=self._adapters,
        )

        async def play(request: RolloutRequest) -> Episode:
            task = {**request.task, **env_args}
            (episode,) = await engine.execute_requests([replace(request, task=task)])
            return self._sealed(episode)

        with engine:
            yield play

    def _sealed(self, episode: Episode) -> Episode:
        """Keep what is not to be learned from out of it.

        An episode in which a role was answered by other weights than its own fails: its tokens
        would be learned by the wrong ones.
        """
        for trajectory in episode.trajectories:
            if trajectory.name in self._frozen:
                trajectory.token_records = ()
                trajectory.info["learns"] = False
            own = self._adapters.get(trajectory.name, "")
            outputs = [s.model_output for s in trajectory.steps if s.model_output is not None]
            if not episode.failed and any(output.adapter != own for output in outputs):
                if trajectory.reward is None:
                    continue  # it is not learned from
                episode.termination_reason = TerminationReason.WORKFLOW_EXCEPTION
                episode.error = (
                    f"role {trajectory.name!r} plays with the adapter {own or 'policy'!r}, but a "
                    "call of it was made without saying whose it is: "
                    "get_model_response(messages, trajectory=...)"
                )
        if episode.failed:
            episode.is_correct = False
            for trajectory in episode.trajectories:
                trajectory.reward = None
        return episode
