"""Many workflows at once, none lost: what AgentWorkflowEngine is."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from rllm_agents.argument_checks import check_count, check_fits
from rllm_agents.attempts import AttemptEnd, run_attempt, scoped_tasks
from rllm_agents.call_threads import EnvThreads, contain_on_loop
from rllm_agents.errors import EngineError, UserError, WorkflowError
from rllm_agents.limits import RolloutLimits, check_seconds
from rllm_agents.model_calls import ModelSetting, derive_seed
from rllm_agents.model_setup import make_engine_and_renderer, parse_sampling
from rllm_agents.recorded_engine import CallSetting, RecordedEngine, Run
from rllm_agents.renderer import ChatTokenizer, Renderer
from rllm_agents.retries import Attempt, Retries
from rllm_agents.rollout_engines.base import RolloutEngine
from rllm_agents.rollout_requests import RolloutRequest, requests_of, run_requests
from rllm_agents.types import Episode, SamplingParams
from rllm_agents.workflow import Workflow
from rllm_agents.workflow_episodes import failed_episode, to_episode

_CLOSE_SECONDS_WHEN_CANCELLED = 1.0


class AgentWorkflowEngine:
    """Runs workflows, many at once, each request to exactly one Episode.

    What a workflow does wrong ends its own episode, typed and with the error's text, and no other.
    Faults that may pass (a `TransientError`, a lost connection, a sandbox that failed, a call that
    took too long) are tried again on a fresh instance, under an attempt id of its own. An engine
    may be used from several event loops one after another.

    Args:
        workflow_cls: Called with `rollout_engine` and `workflow_args`.
        workflow_args: Further keyword arguments of `workflow_cls`.
        engine_name: Which rollout engine to make: "transformers", "vllm", "openai" or "scripted".
        rollout_engine: A ready one instead, which stays the caller's to close.
        rollout_engine_args: Keyword arguments of the engine to make.
        tokenizer: Has the chat template; see AgentExecutionEngine.
        renderer_args: More of the Renderer's arguments, `thinking` and `template_arguments`.
        sampling_params: SamplingParams or a mapping of its fields. With a seed, each request and
            each call gets a stream of its own.
        max_prompt_length: Most tokens of the first prompt of a conversation.
        max_response_length: Most tokens after it.
        enforce_max_prompt_length: Whether the first bounds the whole prompt of each call, and the
            second each completion alone.
        n_parallel_tasks: Most workflows in flight in one call.
        retry_limit: Most attempts at a request, at least 1.
        retry_backoff: Seconds up to which the wait before the second attempt is drawn uniformly
            ("full jitter"); twofold for each further one, 30 at most.
        raise_on_error: Raise WorkflowError at the first failed episode, which ends the others.
        workflow_timeout: Seconds of one request, all its attempts and waits included; None: no
            bound.
        call_timeout: Seconds of one model call; None: no bound.
        step_timeout: Seconds of one call of an environment, or by `run_in_executor`.
        on_episode: Called with every Episode as it ends.
        adapters: By role, which set of weights of a `NamedWeightsEngine` answers its calls; of
            calls whose role is known as they are made (see docs/workflows.md).

    Raises:
        UserError: An argument is out of range, a name is unknown, or what the engine needs is not
            installed.
    """

    def __init__(  # noqa: PLR0913  (the keyword arguments that users of the field know)
        self,
        *,
        workflow_cls: Callable[..., Workflow],
        workflow_args: Mapping[str, Any] | None = None,
        engine_name: str = "transformers",
        rollout_engine: RolloutEngine | None = None,
        rollout_engine_args: Mapping[str, Any] | None = None,
        tokenizer: ChatTokenizer | None = None,
        renderer_args: Mapping[str, Any] | None = None,
        sampling_params: SamplingParams | Mapping[str, Any] | None = None,
        max_prompt_length: int = 4096,
        max_response_length: int = 8192,
        enforce_max_prompt_length: bool = False,
        n_parallel_tasks: int = 128,
        retry_limit: int = 3,
        retry_backoff: float = 0.5,
        raise_on_error: bool = False,
        workflow_timeout: float | None = 7200.0,
        call_timeout: float | None = 600.0,
        step_timeout: float | None = 600.0,
        on_episode: Callable[[Episode], None] | None = None,
        adapters: Mapping[str, str] | None = None,
    ) -> None:
        check_count("n_parallel_tasks", n_parallel_tasks)
        if call_timeout is not None:
            check_seconds("call_timeout", call_timeout)
        limits = RolloutLimits(
            max_prompt_length=max_prompt_length,
            max_response_length=max_response_length,
            enforce_max_prompt_length=enforce_max_prompt_length,
            step_timeout_seconds=step_timeout,
            trajectory_timeout_seconds=workflow_timeout,
        )
        self._workflow_cls, self._workflow_args = workflow_cls, dict(workflow_args or {})
        if not callable(workflow_cls):
            raise UserError(f"workflow_cls must be a class of workflows, got {workflow_cls!r}")
        check_fits(workflow_cls, {"rollout_engine": None, **self._workflow_args}, "workflow_args")
        self._sampling, model = parse_sampling(sampling_params)
        if rollout_engine is not None and (rollout_engine_args is not None or model is not None):
            raise UserError(
                "a rollout_engine that is ready takes no rollout_engine_args and no model in "
                "sampling_params"
            )
        engine, renderer = make_engine_and_renderer(
            rollout_engine or engine_name,
            rollout_engine_args,
            model,
            tokenizer,
            limits,
            renderer_args,
        )
        self._owned_engine = engine if rollout_engine is None else None
        self._limits = limits
        self._retries = Retries(retry_limit, retry_backoff, workflow_timeout)
        self._n_parallel_tasks = n_parallel_tasks
        self._raise_on_error = raise_on_error
        self._on_episode = on_episode
        self._calls = CallSetting(
            ModelSetting(engine, renderer, limits), EnvThreads(), call_timeout, adapters or {}
        )
        self._idle: list[Workflow] = []
        self._is_closed = False
        # A mistake in the class or its arguments shows here, before a thousand episodes fail on it.
        self._idle.append(self._take_workflow())

    @property
    def rollout_engine(self) -> RolloutEngine:
        """What samples; new weights are loaded into it."""
        return self._calls.model.engine

    @property
    def renderer(self) -> Renderer | None:
        """Makes prompts of conversations; None where the engine works on text."""
        return self._calls.model.renderer

    @property
    def limits(self) -> RolloutLimits:
        """Bounds of each request."""
        return self._limits

    async def execute_tasks(
        self, tasks: Iterable[Mapping[str, Any]], task_ids: Sequence[str] | None = None
    ) -> list[Episode]:
        """Run one workflow on every task.

        Args:
            tasks: A Dataset or any iterable of mappings; repeated ones are requests of their own.
            task_ids: Names of the tasks. Episode ids are then ``<task id>:<k>``, k counting the
                requests of one id from 0; by default they are the tasks' places, from "0".

        Returns:
            One Episode for each task, in their order.

        Raises:
            UserError: A task is no mapping, or there is not one id for each task.
            WorkflowError: With `raise_on_error`, a request failed.
        """
        return await self.execute_requests(_named(requests_of(tasks), task_ids))

    async def execute_requests(self, requests: Sequence[RolloutRequest]) -> list[Episode]:
        """Run one workflow for every request.

        Returns:
            One Episode for each request, in their order.

        Raises:
            UserError: Two requests have the same id.
            WorkflowError: With `raise_on_error`, a request failed.
        """
        episodes = {episode.id: episode async for episode in self.stream_requests(requests)}
        return [episodes[request.id] for request in requests]

    async def stream_tasks(
        self, tasks: Iterable[Mapping[str, Any]], task_ids: Sequence[str] | None = None
    ) -> AsyncGenerator[Episode, None]:
        """Like `execute_tasks`, but yields each Episode as soon as it has ended."""
        stream = self.stream_requests(_named(requests_of(tasks), task_ids))
        async with contextlib.aclosing(stream) as episodes:
            async for episode in episodes:
                yield episode

    async def stream_requests(
        self, requests: Sequence[RolloutRequest]
    ) -> AsyncGenerator[Episode, None]:
        """Like `execute_requests`, but yields each Episode as soon as it has ended.

        Leaving the loop early cancels the workflows that are still running.
        """
        if self._is_closed:
            raise EngineError("this AgentWorkflowEngine is closed; make a new one")
        stream = run_requests(requests, self._run_request, self._n_parallel_tasks)
        with scoped_tasks():
            async with contextlib.aclosing(stream) as episodes:
                async for episode in episodes:
                    if self._on_episode is not None:
                        self._on_episode(episode)
                    if self._raise_on_error and episode.failed:
                        raise WorkflowError(episode)
                    yield episode

    def close(self) -> None:
        """End the threads, and the rollout engine unless it was given; again does nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        self._idle.clear()
        self._calls.threads.close()
        if self._owned_engine is not None:
            self._owned_engine.close()

    def __enter__(self) -> Self:
        """Return the engine, which is closed at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the engine."""
        self.close()

    async def _run_request(self, request: RolloutRequest) -> Episode:
        """Run attempts until one has an outcome, a fault that stays, or the budget is spent."""
        sampling = request.sampling or replace(
            self._sampling, seed=derive_seed(self._sampling.seed, request.id)
        )

        async def play(attempt: Attempt) -> tuple[Episode, BaseException | None]:
            run = Run(request.id, attempt.number, sampling, self._calls)
            return await self._attempt(request, run, attempt.seconds_left)

        return await self._retries.play(request.id, play)

    async def _attempt(
        self, request: RolloutRequest, run: Run, timeout_seconds: float | None
    ) -> tuple[Episode, BaseException | None]:
        """Run one attempt on an instance of its own; a broken instance is not used again."""
        made = contain_on_loop(self._take_workflow)
        if made.error is not None:
            return failed_episode(request, run, made.error, "construction of"), made.error
        workflow: Workflow = made.value
        engine = workflow.rollout_engine
        engine.begin(run, workflow.find_agent, workflow.role_of)

        async def body() -> Any:
            # Of the base class: a subclass's own may do more, which `run` calls where it wants.
            Workflow.reset(workflow, request.task, request.id)
            return await workflow.run(dict(request.task), request.id)

        close_seconds = _CLOSE_SECONDS_WHEN_CANCELLED
        end: AttemptEnd | None = None
        close_errors: list[str] = []
        try:
            end = await run_attempt(body, timeout_seconds)
            close_seconds = self._limits.close_timeout_seconds
        finally:
            await engine.finish()
            for session in run.env_sessions:
                close_errors += filter(None, [await session.close(close_seconds)])
        episode, error = to_episode(workflow, request, run, end)
        if close_errors:
            episode.info["close_error"] = "; ".join(close_errors)
        if end.is_clean and end.outcome is not None and not episode.failed and not self._is_closed:
            self._idle.append(workflow)
        return episode, error

    def _take_workflow(self) -> Workflow:
        if self._idle:
            return self._idle.pop()
        engine = RecordedEngine(self._calls)
        try:
            workflow = self._workflow_cls(rollout_engine=engine, **self._workflow_args)
        except TypeError as error:
            raise UserError(f"workflow_cls cannot be made with workflow_args: {error}") from error
        if not isinstance(workflow, Workflow):
            raise UserError(f"workflow_cls made {workflow!r:.120}, which is no Workflow")
        if getattr(workflow, "rollout_engine", None) is not engine:
            raise UserError(
                "the workflow's __init__ must call super().__init__(rollout_engine, ...) with the "
                "rollout_engine that it is given"
            )
        return workflow


def _named(
    requests: Sequence[RolloutRequest], task_ids: Sequence[str] | None
) -> Sequence[RolloutRequest]:
    if task_ids is None:
        return requests
    if len(task_ids) != len(requests):
        raise UserError(f"{len(task_ids)} task_ids for {len(requests)} tasks")
    seen: Counter[str] = Counter()
    named = []
    for request, task_id in zip(requests, task_ids, strict=True):
        named.append(replace(request, id=f"{task_id}:{seen[task_id]}"))
        seen[task_id] += 1
    return named
