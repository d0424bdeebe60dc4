"""One episode: an agent, an environment and a rollout engine taking turns."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rllm_agents.agent import BaseAgent
from rllm_agents.agent_calls import (
    call_agent,
    conversation_of,
    credit_steps,
    settle_step,
    trajectory_of,
)
from rllm_agents.call_threads import EnvThreads, Outcome, contain_awaitable
from rllm_agents.env_calls import EnvSession
from rllm_agents.errors import EpisodeFailure, failure_info, in_words
from rllm_agents.limits import RolloutLimits
from rllm_agents.loop_share import LoopShare
from rllm_agents.model_calls import Conversation, ModelSetting, derive_seed
from rllm_agents.renderer import Renderer
from rllm_agents.retries import Attempt, Retries
from rllm_agents.rollout_engines.base import RolloutEngine
from rllm_agents.rollout_requests import RolloutRequest
from rllm_agents.types import (
    Action,
    Episode,
    SamplingParams,
    Step,
    TerminationReason,
    Trajectory,
)

# A stopped run waits no longer than this for one environment's `close`.
_CLOSE_SECONDS_WHEN_CANCELLED = 1.0


@dataclass(frozen=True)
class RolloutSetting:
    """What all episodes of an engine share. Made by AgentExecutionEngine, read by run_episode."""

    make_agent: Callable[[], BaseAgent]
    make_env: Callable[[Mapping[str, Any]], Any]
    engine: RolloutEngine
    threads: EnvThreads = field(default_factory=EnvThreads)
    renderer: Renderer | None = None
    """None where the engine works on text; then no token is counted."""
    limits: RolloutLimits = field(default_factory=RolloutLimits)
    sampling: SamplingParams = field(default_factory=SamplingParams)
    retries: Retries = field(default_factory=Retries)
    """How often faults that may pass are tried again; by default never."""
    gamma: float = 1.0
    """Discount of `Step.mc_return`, in [0, 1]."""
    is_construction_blocking: bool = True
    """Whether `make_env` may block; what comes after, the environment itself says."""

    @functools.cached_property
    def model(self) -> ModelSetting:
        """What is asked, and how much of it."""
        return ModelSetting(self.engine, self.renderer, self.limits)


async def run_episode(request: RolloutRequest, setting: RolloutSetting) -> Episode:
    """Run one episode to its end, whatever happens in it.

    A failure of the environment, the agent or the engine becomes the Episode's typed reason and
    error text; one that may pass is tried again with a fresh agent and a fresh environment, as
    `setting.retries` says. Only cancellation and KeyboardInterrupt are raised.
    """
    return await setting.retries.play(
        request.id,
        lambda attempt: play_attempt(request, setting, attempt),
        num_lost=request.num_lost,
        seconds_spent=request.seconds_spent,
    )


async def play_attempt(
    request: RolloutRequest, setting: RolloutSetting, attempt: Attempt
) -> tuple[Episode, BaseException | None]:
    """Play one attempt at an episode to its end; its environment is closed once on every path.

    Returns:
        The Episode, and what failed if anything did. Only cancellation and KeyboardInterrupt are
        raised.
    """
    limits = setting.limits
    env = EnvSession(
        lambda: setting.make_env(request.task),
        is_blocking=setting.is_construction_blocking,
        threads=setting.threads,
        limits=limits,
    )
    play = _Play(request, setting, env, attempt)
    # What is left of the budget, where there is one for all attempts.
    left = attempt.seconds_left
    seconds = limits.trajectory_timeout_seconds if left is None else left
    try:
        outcome = await contain_awaitable(play.run, seconds)
    except BaseException:
        await env.close(_CLOSE_SECONDS_WHEN_CANCELLED)
        raise
    reason, error = _end_of(outcome)
    close_error = await env.close(limits.close_timeout_seconds)
    return play.to_episode(reason, error, close_error), error


def _end_of(outcome: Outcome | None) -> tuple[TerminationReason, EpisodeFailure | None]:
    """Why an attempt ended, and what failed if anything did."""
    if outcome is None:
        return TerminationReason.TIMEOUT, None
    if outcome.error is None:
        return outcome.value, None
    if isinstance(outcome.error, EpisodeFailure):
        return outcome.error.reason, outcome.error
    # Environments and engines are contained below: this is an agent's own object misbehaving.
    reason = TerminationReason.AGENT_EXCEPTION
    error = EpisodeFailure(reason, in_words(outcome.error))
    error.__cause__ = outcome.error
    return reason, error


def unplayed_episode(request: RolloutRequest, failure: EpisodeFailure) -> Episode:
    """Return the Episode of a request of which nothing is left but why it failed."""
    figures = (
        "num_steps", "prompt_tokens", "response_tokens", "llm_seconds", "env_seconds",
        "total_seconds",
    )  # fmt: skip
    return Episode(
        id=request.id,
        task=request.task,
        termination_reason=failure.reason,
        trajectories=[Trajectory(task=request.task, reward=None)],
        metrics={**dict.fromkeys(figures, 0.0), "attempts": 1.0},
        info=failure_info(failure, None),
        error=str(failure),
    )


class _Play:
    """The loop of one episode and what it has gathered so far."""

    def __init__(
        self,
        request: RolloutRequest,
        setting: RolloutSetting,
        env: EnvSession,
        attempt: Attempt,
    ) -> None:
        self._request = request
        self._setting = setting
        self._env = env
        sampling = request.sampling or setting.sampling
        if request.sampling is None and sampling.seed is not None:
            sampling = replace(sampling, seed=derive_seed(sampling.seed, request.id))
        # Not the request's id: another attempt or run of the same request is another session.
        self._conversation = Conversation(setting.model, sampling, attempt.id)
        self._trajectory: Trajectory | None = None
        self._unfinished: Step | None = None
        self._rewarded: list[tuple[Step, float]] = []
        self._last_info: dict[str, Any] = {}

    async def run(self) -> TerminationReason:
        """Play turns until the environment is done or a limit is reached.

        Raises:
            EpisodeFailure: When the environment, the agent or the engine fails.
        """
        share = LoopShare.of_this_loop()
        # 1. All sides start anew; the agent sees the first observation.
        await self._conversation.prepare()
        agent = call_agent("construction", self._setting.make_agent)
        observation, info = await self._env.reset()
        call_agent("reset", agent.reset)
        call_agent("update_from_env", agent.update_from_env, observation, 0.0, False, info)
        self._trajectory = trajectory_of(agent)
        for turn in range(self._setting.limits.max_steps):
            # 2. The conversation so far becomes the prompt, if there is room for it.
            # All begin before one goes on, so that they ask the engine in the order of requests.
            if turn == 0 or share.is_spent:
                await share.pause()
            messages = conversation_of(agent)
            prompt_ids, room = self._conversation.prompt(messages)
            if room <= 0:
                return self._setting.limits.too_long(is_first=turn == 0)
            # 3. The model answers.
            completion, step = await self._conversation.ask(observation, messages, prompt_ids, room)
            self._unfinished = step
            # 4. A turn that was cut off ends the episode: nobody acts on half a sentence.
            if completion.finish_reason == "length":
                return TerminationReason.MAX_RESPONSE_LENGTH_EXCEEDED
            # 5. The agent makes an action of the answer.
            action = call_agent("update_from_model", agent.update_from_model, completion.text)
            self._trajectory, step = settle_step(step, agent, turn)
            self._unfinished = None
            step.action = action.action if isinstance(action, Action) else action
            # 6. The environment answers, and the agent sees it.
            observation, reward, done, info = await self._env.step(step.action)
            call_agent("update_from_env", agent.update_from_env, observation, reward, done, info)
            self._rewarded.append((step, reward))
            step.done, step.info = done, {**step.info, **info}
            self._last_info = info
            if done:
                return TerminationReason.ENV_DONE
        return TerminationReason.MAX_TURNS_EXCEEDED

    def to_episode(
        self, reason: TerminationReason, error: EpisodeFailure | None, close_error: str | None
    ) -> Episode:
        """Sum up: rewards, returns, token records and figures."""
        trajectory = Trajectory() if self._trajectory is None else self._trajectory
        trajectory.task = self._request.task
        if self._unfinished is not None:
            trajectory.steps.append(self._unfinished)
        total = credit_steps(self._rewarded, self._setting.gamma)
        trajectory.reward = None if reason.is_failure else total
        conversation = self._conversation
        trajectory.token_records = conversation.token_records()
        success = self._last_info.get("success")
        is_success = bool(success) if type(success).__name__ in ("bool", "bool_") else total > 0
        return Episode(
            id=self._request.id,
            task=self._request.task,
            termination_reason=reason,
            is_correct=is_success and not reason.is_failure,
            trajectories=[trajectory],
            metrics={
                "num_steps": float(len(trajectory.steps)),
                "prompt_tokens": float(conversation.num_first_prompt_ids),
                "response_tokens": float(conversation.num_response_ids),
                "llm_seconds": conversation.seconds,
                "env_seconds": self._env.seconds,
            },
            info=failure_info(error, close_error),
            error=None if error is None else str(error),
        )
