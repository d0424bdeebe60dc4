"""One episode: an agent, an environment and a rollout engine taking turns."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import math
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from rllm_agents.agent import BaseAgent
from rllm_agents.env_calls import EnvSession, EnvThreads, in_words
from rllm_agents.errors import EpisodeFailure, PromptTooLongError, RendererError
from rllm_agents.limits import RolloutLimits
from rllm_agents.renderer import Renderer, check_messages
from rllm_agents.rollout_engines.base import RolloutEngine
from rllm_agents.types import (
    Action,
    Completion,
    Episode,
    GenerationRequest,
    Message,
    SamplingParams,
    Step,
    TerminationReason,
    Trajectory,
)

_T = TypeVar("_T")
_TOO_LONG = TerminationReason.MAX_RESPONSE_LENGTH_EXCEEDED
# An episode that could run on lets others in after this time, and before its first turn.
_MAX_SECONDS_ON_LOOP = 0.005
_session_numbers = itertools.count()
# A stopped run waits no longer than this for one environment's `close`.
_CLOSE_SECONDS_WHEN_CANCELLED = 1.0


@dataclass(frozen=True, slots=True)
class RolloutRequest:
    """One episode to be run. Made by users and sampling plans, read by run_episode."""

    task: Mapping[str, Any]
    """The problem; the environment is made from it."""
    id: str
    """Becomes the Episode's id."""
    sampling: SamplingParams | None = None
    """None takes the engine's; its seed is then mixed with `id`."""


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
    gamma: float = 1.0
    """Discount of `Step.mc_return`, in [0, 1]."""
    is_construction_blocking: bool = True
    """Whether `make_env` may block; what comes after, the environment itself says."""


async def run_episode(request: RolloutRequest, setting: RolloutSetting) -> Episode:
    """Run one episode to its end, whatever happens in it.

    A failure of the environment, the agent or the engine becomes the Episode's typed reason and
    error text. Only cancellation and KeyboardInterrupt are raised. The environment is closed once
    on every path.
    """
    limits = setting.limits
    env = EnvSession(
        lambda: setting.make_env(request.task),
        is_blocking=setting.is_construction_blocking,
        threads=setting.threads,
        limits=limits,
    )
    play = _Play(request, setting, env)
    error: EpisodeFailure | None = None
    try:
        async with asyncio.timeout(limits.trajectory_timeout_seconds):
            reason = await play.run()
    except TimeoutError:
        reason = TerminationReason.TIMEOUT
    except EpisodeFailure as failure:
        reason, error = failure.reason, failure
    except Exception as unexpected:
        # Environments and engines are contained below: this is an agent's own object misbehaving.
        reason = TerminationReason.AGENT_EXCEPTION
        error = EpisodeFailure(reason, in_words(unexpected))
        error.__cause__ = unexpected
    except BaseException:
        await env.close(_CLOSE_SECONDS_WHEN_CANCELLED)
        raise
    close_error = await env.close(limits.close_timeout_seconds)
    return play.to_episode(reason, error, close_error)


class _Play:
    """The loop of one episode and what it has gathered so far."""

    def __init__(self, request: RolloutRequest, setting: RolloutSetting, env: EnvSession) -> None:
        self._request = request
        self._setting = setting
        self._env = env
        self._transcript = setting.renderer.transcript() if setting.renderer else None
        self._sampling = request.sampling or replace(
            setting.sampling, seed=derive_seed(setting.sampling.seed, request.id)
        )
        self._trajectory = Trajectory()
        self._unfinished: Step | None = None
        self._rewarded: list[tuple[Step, float]] = []
        self._num_first_prompt_ids = 0
        self._num_response_ids = 0
        self._engine_seconds = 0.0
        self._last_info: dict[str, Any] = {}
        # Not the request's id: another run of the same request is another session.
        self._session_id = f"{request.id}#{next(_session_numbers)}"
        self._started_at = time.perf_counter()
        self._shared_at = 0.0

    async def run(self) -> TerminationReason:
        """Play turns until the environment is done or a limit is reached.

        Raises:
            EpisodeFailure: When the environment, the agent or the engine fails.
        """
        # 1. All sides start anew; the agent sees the first observation.
        await self._ask_engine(getattr(self._setting.engine, "prepare", _do_nothing))
        agent = _call_agent("construction", self._setting.make_agent)
        observation, info = await self._env.reset()
        _call_agent("reset", agent.reset)
        _call_agent("update_from_env", agent.update_from_env, observation, 0.0, False, info)
        self._trajectory = _trajectory_of(agent)
        for turn in range(self._setting.limits.max_steps):
            # 2. The conversation so far becomes the prompt, if there is room for it.
            await self._share_loop()
            messages = _conversation(agent)
            prompt_ids, room = self._prompt(messages)
            if room <= 0:
                return _TOO_LONG if turn else TerminationReason.MAX_PROMPT_LENGTH_EXCEEDED
            # 3. The model answers.
            completion = await self._generate(messages, prompt_ids, room, turn)
            step = self._record(observation, messages, prompt_ids, completion)
            # 4. A turn that was cut off ends the episode: nobody acts on half a sentence.
            if completion.finish_reason == "length":
                return _TOO_LONG
            # 5. The agent makes an action of the answer.
            action = _call_agent("update_from_model", agent.update_from_model, completion.text)
            step = self._settle(step, agent, turn)
            step.action = action.action if isinstance(action, Action) else action
            # 6. The environment answers, and the agent sees it.
            observation, reward, done, info = await self._env.step(step.action)
            _call_agent("update_from_env", agent.update_from_env, observation, reward, done, info)
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
        trajectory = self._trajectory
        trajectory.task = self._request.task
        if self._unfinished is not None:
            trajectory.steps.append(self._unfinished)
        # Rewards are the environment's: what an agent writes over its steps does not count.
        mc_return = total = 0.0
        for step, reward in reversed(self._rewarded):
            step.reward = reward
            step.mc_return = mc_return = reward + self._setting.gamma * mc_return
            total += reward
        trajectory.reward = None if reason.is_failure else total
        if self._transcript is not None:
            trajectory.token_records = self._transcript.token_records()
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
                "prompt_tokens": float(self._num_first_prompt_ids),
                "response_tokens": float(self._num_response_ids),
                "llm_seconds": self._engine_seconds,
                "env_seconds": self._env.seconds,
                "total_seconds": time.perf_counter() - self._started_at,
            },
            info=_failure_info(error, close_error),
            error=None if error is None else str(error),
        )

    async def _share_loop(self) -> None:
        """Let deadlines and other episodes in, where neither engine nor environment ever waits."""
        now = time.perf_counter()
        if now - self._shared_at > _MAX_SECONDS_ON_LOOP:
            await asyncio.sleep(0)
            self._shared_at = time.perf_counter()

    def _prompt(self, messages: tuple[Message, ...]) -> tuple[tuple[int, ...] | None, int]:
        """Exact prompt ids, and how many tokens may follow; none where it is too long."""
        limits = self._setting.limits
        if self._transcript is None:
            return None, limits.max_response_length
        try:
            ids = self._transcript.prompt_ids(messages)
        except PromptTooLongError:
            return None, 0
        except RendererError as error:
            raise EpisodeFailure(TerminationReason.AGENT_EXCEPTION, str(error)) from error
        if self._num_first_prompt_ids == 0:
            self._num_first_prompt_ids = len(ids)
            if len(ids) > limits.max_prompt_length:
                return ids, 0
        num_since = max(0, len(ids) - self._num_first_prompt_ids)
        room = limits.max_response_length - num_since
        max_model_length = getattr(self._setting.engine, "max_model_length", None)
        return ids, room if max_model_length is None else min(room, max_model_length - len(ids))

    async def _generate(
        self,
        messages: tuple[Message, ...],
        prompt_ids: tuple[int, ...] | None,
        room: int,
        turn: int,
    ) -> Completion:
        sampling = self._sampling
        request = GenerationRequest(
            messages=messages,
            prompt_ids=prompt_ids,
            sampling=SamplingParams(
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                top_k=sampling.top_k,
                max_tokens=min(room, sampling.max_tokens or room),
                seed=derive_seed(sampling.seed, turn),
            ),
            session_id=self._session_id,
        )

        async def sample() -> Completion:
            completion = await self._setting.engine.generate(request)
            _check_completion(completion)
            return completion

        return await self._ask_engine(sample)

    async def _ask_engine(self, call: Callable[[], Awaitable[_T]]) -> _T:
        """Call the engine: all it raises is its failure, save what ends this episode's task."""
        start = time.perf_counter()
        try:
            return await call()
        except (KeyboardInterrupt, GeneratorExit, EpisodeFailure):
            raise
        except BaseException as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task and task.cancelling():
                raise
            raise EpisodeFailure(
                TerminationReason.LLM_ERROR,
                f"the rollout engine raised {type(error).__name__}: {error}"[:2000],
            ) from error
        finally:
            self._engine_seconds += time.perf_counter() - start

    def _record(
        self,
        observation: Any,
        messages: tuple[Message, ...],
        prompt_ids: tuple[int, ...] | None,
        completion: Completion,
    ) -> Step:
        """Keep what was sampled, in the transcript and as a Step that no one acted on yet."""
        if self._transcript is not None:
            self._transcript.add(completion)
        self._num_response_ids += len(completion.token_ids)
        self._unfinished = Step(
            prompt_ids=list(prompt_ids or ()),
            response_ids=list(completion.token_ids),
            logprobs=list(completion.logprobs),
            chat_completions=[*messages, {"role": "assistant", "content": completion.text}],
            observation=observation,
            model_response=completion.text,
        )
        return self._unfinished

    def _settle(self, step: Step, agent: BaseAgent, turn: int) -> Step:
        """Put the step into the trajectory, or its facts into the one that the agent appended."""
        trajectory = self._trajectory = _trajectory_of(agent)
        self._unfinished = None
        if len(trajectory.steps) == turn:
            trajectory.steps.append(step)
            return step
        if len(trajectory.steps) != turn + 1:
            raise EpisodeFailure(
                TerminationReason.AGENT_EXCEPTION,
                f"after {turn + 1} responses the agent's trajectory has {len(trajectory.steps)} "
                "steps; update_from_model appends one Step or none",
            )
        own = trajectory.steps[-1]
        own.prompt_ids, own.response_ids = step.prompt_ids, step.response_ids
        own.logprobs, own.model_response = step.logprobs, step.model_response
        own.observation, own.reward, own.done = step.observation, 0.0, False
        own.chat_completions = own.chat_completions or step.chat_completions
        return own


def derive_seed(seed: int | None, *parts: object) -> int | None:
    """Mix a seed with what it is for, so that no two uses share a random stream.

    Returns:
        A whole number in [0, 2**63), the same in every process; None where `seed` is None.
    """
    if seed is None:
        return None
    text = "/".join(str(part) for part in (seed, *parts))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


async def _do_nothing() -> None:
    """Stand in for `prepare` of engines that have none."""


def _call_agent(name: str, function: Callable[..., _T], *arguments: Any) -> _T:
    """Call an agent's code: all it raises is its failure, exits and cancellations included."""
    try:
        return function(*arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise EpisodeFailure(
            TerminationReason.AGENT_EXCEPTION, f"{name} of the agent raised {in_words(error)}"
        ) from error


def _conversation(agent: BaseAgent) -> tuple[Message, ...]:
    messages = _call_agent("chat_completions", getattr, agent, "chat_completions")
    try:
        check_messages(messages)
    except RendererError as error:
        raise EpisodeFailure(TerminationReason.AGENT_EXCEPTION, str(error)) from error
    return tuple(dict(message) for message in messages)


def _trajectory_of(agent: BaseAgent) -> Trajectory:
    trajectory = _call_agent("trajectory", getattr, agent, "trajectory")
    if not isinstance(trajectory, Trajectory) or not isinstance(trajectory.steps, list):
        raise EpisodeFailure(
            TerminationReason.AGENT_EXCEPTION,
            "the agent's trajectory must be a Trajectory with a list of steps, got "
            f"{trajectory!r:.120}",
        )
    return trajectory


def _check_completion(completion: Completion) -> None:
    """Refuse what a broken engine answers: nothing of it may reach an agent or a learner."""
    if not isinstance(completion, Completion) or not isinstance(completion.text, str):
        problem = f"answered {completion!r:.120} instead of a Completion"
    elif completion.finish_reason not in ("stop", "length"):
        problem = f"gave finish_reason {completion.finish_reason!r}; it is 'stop' or 'length'"
    elif len(completion.logprobs) != len(completion.token_ids):
        problem = (
            f"gave {len(completion.logprobs)} logprobs for {len(completion.token_ids)} token ids"
        )
    elif not all(map(math.isfinite, completion.logprobs)):
        problem = "gave a logprob that is not finite"
    else:
        return
    raise EpisodeFailure(TerminationReason.LLM_ERROR, f"the rollout engine {problem}")


def _failure_info(error: EpisodeFailure | None, close_error: str | None) -> dict[str, Any]:
    info: dict[str, Any] = {}
    if error is not None and error.__cause__ is not None:
        info["traceback"] = "".join(traceback.format_exception(error.__cause__))[-4000:]
    if close_error is not None:
        info["close_error"] = close_error
    return info
