"""The rollout engine as a workflow sees it: each call is recorded and is somebody's."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rllm_agents.agent import BaseAgent
from rllm_agents.agent_calls import trajectory_of
from rllm_agents.attempts import cancel_tasks, start_outside
from rllm_agents.call_log import CallLog, CallPrompt
from rllm_agents.call_threads import EnvThreads, Outcome
from rllm_agents.env_calls import EnvSession
from rllm_agents.errors import EngineError, EpisodeFailure, UserError
from rllm_agents.model_calls import ModelSetting, turn_sampling
from rllm_agents.types import (
    Completion,
    GenerationRequest,
    Message,
    ModelOutput,
    SamplingParams,
    Step,
    TerminationReason,
    Trajectory,
)

_run_numbers = itertools.count()


@dataclass(frozen=True)
class CallSetting:
    """What all calls of a workflow engine share. Made by AgentWorkflowEngine."""

    model: ModelSetting
    threads: EnvThreads
    call_timeout_seconds: float | None = 600.0
    """Longest model call; None: no bound."""
    adapters: Mapping[str, str] = field(default_factory=dict)
    """By role, which of the engine's sets of weights answers its calls."""


class Run:
    """One attempt at one request: its calls, its trajectories and its environments.

    Args:
        uid: Of the request.
        attempt: Which attempt it is, from 1.
        sampling: How tokens are drawn; every call has a stream of its own.
        setting: Who is asked.
    """

    def __init__(
        self, uid: str, attempt: int, sampling: SamplingParams, setting: CallSetting
    ) -> None:
        self.id = f"{uid}/{attempt}"
        self.sampling = sampling
        self.log = CallLog(setting.model)
        self.trajectories: list[Trajectory] = []
        self.owners: dict[str, int] = {}
        self.num_calls = 0
        self.num_failed_calls = 0
        self.llm_seconds = 0.0
        self.env_sessions: list[EnvSession] = []
        self.in_flight: set[asyncio.Task[Any]] = set()
        self.is_over = False
        self._calls_of: Counter[str | None] = Counter()
        # Another run of the same request is another session.
        self._session = f"{self.id}#{next(_run_numbers)}"

    def check_running(self) -> None:
        """Keep late calls out.

        Raises:
            EngineError: The run is over.
        """
        if self.is_over:
            raise EngineError(f"run {self.id} of the workflow is over; its calls are given up")

    def own(self, trajectory: Trajectory) -> None:
        """Note a trajectory that calls are made for."""
        self.owners.setdefault(trajectory.uid, len(self.owners))

    def start_call(self, owner: str | None, session: str | None) -> _Call:
        """Number a call; done at once when it is asked for, so that order does not hang on time."""
        number, self.num_calls = self.num_calls, self.num_calls + 1
        turn = self._calls_of[owner]
        self._calls_of[owner] += 1
        place = "" if owner is None else str(self.owners[owner])
        return _Call(
            number=number,
            id=f"{self.id}#{number}",
            owner=owner,
            session=f"{self._session}/{place if session is None else session}",
            stream=(place, turn),
        )


@dataclass(frozen=True, slots=True)
class _Call:
    number: int
    id: str
    owner: str | None
    session: str
    stream: tuple[str, int]
    """What its random stream is for."""


class RecordedEngine:
    """What a workflow asks. Made by AgentWorkflowEngine, one for each workflow instance.

    Every call is recorded with ids, logprobs and version under an id of its own. It belongs to the
    trajectory that it is made for, or whose Step holds its output, whatever runs at the same time.
    """

    def __init__(self, setting: CallSetting) -> None:
        self._setting = setting
        self._run: Run | None = None
        self._find_agent: Callable[[Sequence[Message]], BaseAgent | None] | None = None
        self._role_of: Callable[[Trajectory], str] = lambda trajectory: trajectory.name

    @property
    def weights_version(self) -> int:
        """Version of the weights that the next call is sampled from."""
        return self._setting.model.engine.weights_version

    @property
    def setting(self) -> CallSetting:
        """Who is asked."""
        return self._setting

    @property
    def run(self) -> Run:
        """What is recorded into.

        Raises:
            EngineError: No workflow has run yet.
        """
        if self._run is None:
            raise EngineError("no workflow runs: calls are made inside of Workflow.run")
        return self._run

    def begin(
        self,
        run: Run,
        find_agent: Callable[[Sequence[Message]], BaseAgent | None],
        role_of: Callable[[Trajectory], str],
    ) -> None:
        """Record into a run from now on.

        Args:
            run: Takes what is sampled.
            find_agent: Says whose conversation some messages are, if it is an agent's.
            role_of: Names a trajectory's role.
        """
        self._run, self._find_agent, self._role_of = run, find_agent, role_of

    async def finish(self) -> None:
        """End the run: calls in flight are given up, later ones refused."""
        self.run.is_over = True
        await cancel_tasks(self.run.in_flight)

    async def get_model_response(
        self,
        messages: Sequence[Message],
        *,
        trajectory: Trajectory | None = None,
        application_id: str | None = None,
        **sampling: Any,
    ) -> ModelOutput:
        """Ask the model to go on with a conversation.

        Args:
            messages: The conversation.
            trajectory: Whose call it is. One of `Workflow.new_trajectory` gets a Step of it at
                once. By default the agent's whose conversation it is, or that of the Step that is
                given the output as `model_output`.
            application_id: Calls of one name are one session, which scripted engines count turns
                in and others keep caches for; by default those of one trajectory are.
            **sampling: Fields of SamplingParams for this call alone. A learner scores at the
                temperature of the run, so calls at another one are not for training.

        Returns:
            What was sampled, exactly.

        Raises:
            TerminationEvent: The prompt is too long, or no token is left for a response.
            EpisodeFailure: The engine failed or took longer than the call may.
            UserError: A field of sampling is unknown or out of range.
        """
        run = self.run
        run.check_running()
        trajectory = trajectory or self._trajectory_of_agent(messages)
        if trajectory is not None:
            run.own(trajectory)
        call = run.start_call(None if trajectory is None else trajectory.uid, application_id)
        params = _changed(run.sampling, sampling)
        role = "" if trajectory is None else self._role_of(trajectory)
        adapter = self._setting.adapters.get(role, "")
        try:
            work = self._sample(run, call, messages, (params, adapter))
            prompt, completion = await self._in_time(run, work)
        except BaseException:
            run.num_failed_calls += 1
            raise
        output = run.log.add(call.number, call.id, prompt, completion, call.owner, adapter)
        if trajectory is not None and any(trajectory is made for made in run.trajectories):
            trajectory.steps.append(step_of(output))
        return output

    def _trajectory_of_agent(self, messages: Sequence[Message]) -> Trajectory | None:
        agent = self._find_agent(messages) if self._find_agent is not None else None
        return None if agent is None else trajectory_of(agent)

    async def _sample(
        self, run: Run, call: _Call, messages: Sequence[Message], how: tuple[SamplingParams, str]
    ) -> tuple[CallPrompt, Completion]:
        params, adapter = how
        model = self._setting.model
        await model.prepare()
        prompt = run.log.prompt(messages, call.owner)
        request = GenerationRequest(
            messages=prompt.messages,
            prompt_ids=prompt.token_ids,
            sampling=turn_sampling(params, prompt.room, *call.stream),
            session_id=call.session,
            adapter=adapter,
        )
        return prompt, await model.sample(request)

    async def _in_time(self, run: Run, work: Any) -> Any:
        """Do work in a task of its own: it may neither hang its caller nor outlive the run."""
        task = start_outside(_kept(work))
        run.in_flight.add(task)
        task.add_done_callback(run.in_flight.discard)
        start = time.perf_counter()
        seconds = self._setting.call_timeout_seconds
        try:
            await asyncio.wait({task}, timeout=seconds)
        finally:
            run.llm_seconds += time.perf_counter() - start
            task.cancel()  # does nothing to one that is done
        run.check_running()
        if not task.done():
            raise EpisodeFailure(
                TerminationReason.LLM_TIMEOUT,
                f"a call of the rollout engine took longer than call_timeout={seconds} s",
                is_transient=True,
            )
        if task.cancelled():
            raise EpisodeFailure(
                TerminationReason.LLM_ERROR, "the rollout engine cancelled the call by itself"
            )
        outcome = task.result()
        if outcome.error is not None:
            raise outcome.error
        return outcome.value


def step_of(output: ModelOutput) -> Step:
    """Return a Step of a call that nobody has acted on yet."""
    return fill_step(Step(), output)


def fill_step(step: Step, output: ModelOutput) -> Step:
    """Write the facts of a call into a Step; texts that are there already stay."""
    step.model_output = output
    step.prompt_ids, step.response_ids = list(output.prompt_ids), list(output.completion_ids)
    step.logprobs = list(output.logprobs)
    step.model_response = step.model_response or output.text
    step.chat_completions = step.chat_completions or [*output.messages, output.message]
    return step


async def _kept(work: Any) -> Outcome:
    """Return what work returns or raises; a leaked cancellation never looks like ours."""
    try:
        return Outcome(value=await work)
    except Exception as error:
        return Outcome(error=error)


def _changed(sampling: SamplingParams, changes: Mapping[str, Any]) -> SamplingParams:
    try:
        return replace(sampling, **changes)
    except (TypeError, ValueError) as error:
        raise UserError(f"get_model_response: {error}") from error
