"""Agents of any framework as players: a function that talks to an OpenAI address plays episodes."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import math
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from rllm_agents.call_threads import Outcome, contain
from rllm_agents.errors import EngineError, EpisodeFailure, UserError, in_words
from rllm_agents.gateway.endings import Ending
from rllm_agents.gateway.server import Gateway
from rllm_agents.gateway.sessions import GatewaySession
from rllm_agents.gateway.settings import GatewaySettings
from rllm_agents.model_calls import derive_seed
from rllm_agents.player import PlayEpisode
from rllm_agents.retries import Attempt
from rllm_agents.rollout import RolloutSetting
from rllm_agents.rollout_requests import RolloutRequest
from rllm_agents.types import Episode, SamplingParams, TerminationReason
from rllm_envs import RewardOutput
from rllm_envs.errors import GradingError, ReferenceAnswerError

RunAgent = Callable[[str, str, dict[str, Any]], Any]
"""``run(base_url, api_key, task)``, a coroutine function or one that may block."""

# How long a cancelled program may still run before it is left to itself.
_GRACE_SECONDS = 2.0
# The execution engine bounds how many play at a time.
_UNBOUNDED = 1_000_000


class AgentProgram:
    """Plays episodes with a program that talks to an OpenAI-compatible address.

    It takes the place of an agent class: ``AgentExecutionEngine(agent_class=AgentProgram(run))``,
    ``AgentTrainer(agent_class=AgentProgram(run), train_dataset=...)``. For each episode `run` gets
    an address of its own, under which everything it samples is recorded, and the task with the
    `env_args`; it returns the reward, a number or a RewardOutput. What it samples is drawn by the
    sampling parameters of the episode, whatever its requests say of temperature, top-p, top-k and
    seed; the limits on steps and tokens hold for its calls.

    Args:
        run: A coroutine function, which must not block, or a plain function, which runs in a
            thread. It may use any framework, any number of models' roles and calls at once.
        settings: Of the gateway. Its limits, its sampling, and who opens sessions are replaced.

    Raises:
        UserError: `run` cannot be called with an address, a key and a task.

    Example:
        ```python
        async def run(base_url, api_key, task):
            client = AsyncOpenAI(base_url=base_url, api_key=api_key)
            messages = [{"role": "user", "content": task["question"]}]
            reply = await client.chat.completions.create(model="any", messages=messages)
            return math_reward_fn(task, reply.choices[0].message.content)
        ```
    """

    def __init__(self, run: RunAgent, settings: GatewaySettings | None = None) -> None:
        try:
            inspect.signature(run).bind("base_url", "api_key", {})
        except (TypeError, ValueError) as error:
            raise UserError(f"run must take base_url, api_key and task: {error}") from error
        self._run = run
        self._is_async = any(map(inspect.iscoroutinefunction, (run, type(run).__call__)))
        self._settings = settings or GatewaySettings()

    @contextlib.asynccontextmanager
    async def playing(
        self, setting: RolloutSetting, env_args: Mapping[str, Any]
    ) -> AsyncGenerator[PlayEpisode, None]:
        """Serve the engine of a setting while episodes are played.

        Args:
            setting: What all episodes share; its agent and environment are not made.
            env_args: Added to every task.

        Yields:
            What plays one request to its Episode.
        """
        settings = replace(
            self._settings,
            limits=setting.limits,
            sampling=setting.sampling,
            takes_any_model=True,
            opens_sessions=False,
            max_sessions=_UNBOUNDED,
            max_requests=_UNBOUNDED,
        )
        async with Gateway(setting.engine, setting.renderer, settings) as gateway:

            async def play(request: RolloutRequest) -> Episode:
                return await setting.retries.play(
                    request.id,
                    lambda attempt: self._play(gateway, request, setting, env_args, attempt),
                )

            yield play

    async def _play(
        self,
        gateway: Gateway,
        request: RolloutRequest,
        setting: RolloutSetting,
        env_args: Mapping[str, Any],
        attempt: Attempt,
    ) -> tuple[Episode, BaseException | None]:
        """Play one attempt to its end, whatever happens in it; only cancellation is raised.

        Returns:
            The Episode, and what failed if anything did.
        """
        session = gateway.open_session(
            task=request.task, sampling=_sampling(request, setting), gamma=setting.gamma
        )
        task = {**request.task, **env_args}
        try:
            outcome = await self._outcome(session, task, setting, attempt)
        finally:
            gateway.drop_session(session)
        episode = session.end(_ending(outcome, session))
        error = outcome.error if outcome is not None and episode.failed else None
        if error is not None:
            episode.info["traceback"] = "".join(traceback.format_exception(error))[-4000:]
        episode.id = request.id
        # Whether another attempt may help, the engine's own error says, not the client's of it.
        return episode, session.engine_error or error

    async def _outcome(
        self,
        session: GatewaySession,
        task: dict[str, Any],
        setting: RolloutSetting,
        attempt: Attempt,
    ) -> Outcome | None:
        """Run the program; None where it takes longer than the episode may."""
        left = attempt.seconds_left
        seconds = setting.limits.trajectory_timeout_seconds if left is None else left
        arguments = (session.base_url, session.api_key, task)
        if self._is_async:
            return await _run_on_loop(lambda: self._run(*arguments), seconds)
        try:
            setting.threads.refuse_if_hung()
        except EpisodeFailure as failure:
            return Outcome(error=failure)
        call = setting.threads.start(lambda: self._run(*arguments))
        try:
            outcome = await call.wait(seconds)
        except BaseException:
            call.give_up()
            raise
        if outcome is None:
            call.give_up()
        return outcome


async def _run_on_loop(
    start: Callable[[], Awaitable[Any]], seconds: float | None
) -> Outcome | None:
    """Await a program within its time; all that it raises is kept, save ctrl-C."""

    async def contained() -> Outcome:
        try:
            return Outcome(value=await start())
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return Outcome(error=error)

    program = asyncio.create_task(contained())
    try:
        done, _ = await asyncio.wait({program}, timeout=seconds)
    except BaseException:
        program.cancel()
        raise
    if done:
        return program.result()
    program.cancel()
    await asyncio.wait({program}, timeout=_GRACE_SECONDS)
    return None


def _sampling(request: RolloutRequest, setting: RolloutSetting) -> SamplingParams:
    if request.sampling is not None:
        return request.sampling
    return replace(setting.sampling, seed=derive_seed(setting.sampling.seed, request.id))


def _ending(outcome: Outcome | None, session: GatewaySession) -> Ending:
    """Say how an episode ended: what the engine or a bound did comes before what it led to."""
    if outcome is None:
        return Ending(0.0, reason=TerminationReason.TIMEOUT)
    if session.engine_problem is not None:
        error = session.engine_error
        reason = error.reason if isinstance(error, EngineError) else TerminationReason.LLM_ERROR
        return Ending(None, reason=reason, error=session.engine_problem)
    if outcome.error is None:
        return _rewarded(outcome.value)
    if isinstance(outcome.error, EpisodeFailure):
        return Ending(None, reason=outcome.error.reason, error=str(outcome.error))
    if session.limit_reached is not None:
        return Ending(0.0, reason=session.limit_reached)
    is_grading = isinstance(outcome.error, GradingError | ReferenceAnswerError)
    reason = TerminationReason.GRADER_ERROR if is_grading else TerminationReason.AGENT_EXCEPTION
    return Ending(None, reason=reason, error=f"the program raised {in_words(outcome.error)}")


def _rewarded(value: Any) -> Ending:
    """Read what a program returned."""
    output = value if isinstance(value, RewardOutput) else None
    given: Any = value if output is None else output.reward
    is_text = isinstance(given, str | bytes)
    read = Outcome() if is_text else contain(lambda: float(given))
    if read.value is None or not math.isfinite(read.value):
        return Ending(
            None,
            reason=TerminationReason.ENV_BAD_REWARD,
            error=f"the program must return a finite number or a RewardOutput, got {given!r:.120}",
        )
    if output is None:
        return Ending(read.value)
    return Ending(read.value, output.is_correct, info={"reward_metadata": output.metadata})
