"""Many episodes at once, none lost: what AgentExecutionEngine is."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Self

from rllm_agents.agent import BaseAgent
from rllm_agents.argument_checks import check_count, check_fits
from rllm_agents.call_threads import EnvThreads
from rllm_agents.env_maker import EnvMaker
from rllm_agents.episode_places import EpisodePlaces
from rllm_agents.episode_processes import EpisodeProcesses
from rllm_agents.errors import EngineError, UserError
from rllm_agents.limits import RolloutLimits
from rllm_agents.lockstep import Lockstep
from rllm_agents.model_setup import make_engine_and_renderer, parse_sampling
from rllm_agents.player import EpisodePlayer, PlayEpisode
from rllm_agents.renderer import ChatTokenizer, Renderer
from rllm_agents.retries import Retries
from rllm_agents.rollout import RolloutSetting, run_episode
from rllm_agents.rollout_engines import find_engine
from rllm_agents.rollout_engines.base import RolloutEngine
from rllm_agents.rollout_requests import RolloutRequest, requests_of, run_requests
from rllm_agents.run_progress import RunCounter, RunProgress
from rllm_agents.types import CUT_OFF, Episode, SamplingParams

_NOT_SENT = (
    "rollout_engine", "n_parallel_agents", "overlong_filter", "lockstep", "n_processes",
    "on_episode",
)  # fmt: skip
"""Arguments that are this process' own where others play the episodes."""


class AgentExecutionEngine:
    """Runs agents in environments, many at once, each request to exactly one Episode.

    One failed environment, agent or completion ends its own episode, typed and with the error's
    text, and no other. Faults that may pass (a `TransientError`, a lost connection, a sandbox or a
    process that died, a model call that took too long) are tried again in a fresh attempt, under an
    attempt id of its own. An engine may be used from several event loops one after another.

    Args:
        agent_class: Called with `agent_args` for every episode; or an EpisodePlayer, such as
            `rllm_agents.gateway.AgentProgram`, which needs neither `agent_args` nor `env_class`.
        agent_args: Keyword arguments of `agent_class`.
        env_class: Its ``from_dict({**task, **env_args})`` makes the environment of an episode.
            Instances with ``blocking = False`` run on the event loop, others in threads; methods
            may be coroutines.
        env_args: Added to every task.
        engine_name: Which rollout engine to make, a key of `ROLLOUT_ENGINES`: "transformers",
            "vllm", "pool", "openai" or "scripted".
        rollout_engine: A ready one instead, which stays the caller's to close.
        rollout_engine_args: Keyword arguments of the engine to make, ``{"model": "tiny"}`` or
            ``{"base_url": "http://localhost:30000/v1"}`` for example.
        tokenizer: Has the chat template. The transformers engine loads the model's own by default;
            without any, the engine gets messages and no token is counted.
        renderer_args: More of the Renderer's arguments, `thinking` ("template", "keep" or "drop")
            and `template_arguments`: ``{"template_arguments": {"enable_thinking": False}}``.
        sampling_params: SamplingParams or a mapping of its fields; ``"model"`` in a mapping names
            the model as in `rollout_engine_args`. With a seed, each request and each turn gets a
            stream of its own.
        max_response_length: Most tokens after the first prompt.
        max_prompt_length: Most tokens of the first prompt.
        max_steps: Most completions of an episode.
        enforce_max_prompt_length: Whether `max_prompt_length` bounds the whole prompt of each turn,
            and `max_response_length` each completion alone, for agents that rewrite history.
        overlong_filter: Whether episodes that were cut off, by length, turns or time, are marked as
            not to be learned from: their trajectories have ``info["learns"] = False``.
        n_parallel_agents: Most episodes in flight, over all calls on one event loop; those of
            earlier calls, and earlier requests of a call, begin first.
        isolation: "thread", or "process" for environments that may hang or crash: each plays in a
            process that is killed and replaced when a call takes longer than `step_timeout`.
            `env_class` must then lie in a module, and tasks, observations and infos be data.
        trajectory_timeout: Seconds that one episode may take, all its attempts and the waits
            between them included; None: no bound.
        step_timeout: Seconds that one call of an environment may take that does not run on the
            event loop; None: no bound.
        call_timeout: Seconds of one model call; None: no bound.
        retry_limit: Most attempts at an episode, at least 1.
        retry_backoff: Seconds up to which the wait before the second attempt is drawn uniformly
            ("full jitter"); twofold for each further one, 30 at most.
        gamma: Discount of `Step.mc_return`, in [0, 1].
        lockstep: Sample in rounds, for which all episodes in flight wait at each turn, so that
            batches and sampled tokens do not depend on how long environments take; see `Lockstep`.
        n_processes: How many further processes play the episodes, each with agents, environments
            and a rollout engine of its own; 0: this one does. For environments that cost time, and
            an engine that is a server or a script. Classes must then lie in modules, and what
            arguments, tasks and infos hold must be such as `pickle` can send.
        on_episode: Called with every Episode as it ends, for progress displays.

    Raises:
        UserError: When an argument is out of range, a name is unknown, or what the engine needs is
            not installed.
    """

    def __init__(  # noqa: PLR0913  (the keyword arguments that users of the field know)
        self,
        *,
        agent_class: Callable[..., BaseAgent] | EpisodePlayer,
        env_class: Any = None,
        agent_args: Mapping[str, Any] | None = None,
        env_args: Mapping[str, Any] | None = None,
        engine_name: str = "transformers",
        rollout_engine: RolloutEngine | None = None,
        rollout_engine_args: Mapping[str, Any] | None = None,
        tokenizer: ChatTokenizer | None = None,
        renderer_args: Mapping[str, Any] | None = None,
        sampling_params: SamplingParams | Mapping[str, Any] | None = None,
        max_response_length: int = 8192,
        max_prompt_length: int = 4096,
        max_steps: int = 64,
        enforce_max_prompt_length: bool = False,
        overlong_filter: bool = False,
        n_parallel_agents: int = 128,
        isolation: str = "thread",
        trajectory_timeout: float | None = 7200.0,
        step_timeout: float | None = 600.0,
        call_timeout: float | None = 1800.0,
        retry_limit: int = 3,
        retry_backoff: float = 0.5,
        gamma: float = 1.0,
        lockstep: bool = False,
        n_processes: int = 0,
        on_episode: Callable[[Episode], None] | None = None,
    ) -> None:
        given = {k: v for k, v in locals().items() if k != "self"}  # before there are others
        check_count("n_parallel_agents", n_parallel_agents)
        if not 0.0 <= gamma <= 1.0:
            raise UserError(f"gamma must be in [0, 1], got {gamma!r}")
        limits = RolloutLimits(
            max_steps=max_steps,
            max_prompt_length=max_prompt_length,
            max_response_length=max_response_length,
            enforce_max_prompt_length=enforce_max_prompt_length,
            step_timeout_seconds=step_timeout,
            trajectory_timeout_seconds=trajectory_timeout,
            call_timeout_seconds=call_timeout,
        )
        self._processes = _processes_of(given, limits)
        agent_args, env_args = dict(agent_args or {}), dict(env_args or {})
        _check_classes(agent_class, agent_args, env_class)
        self._env_maker = EnvMaker(env_class, env_args, isolation, limits)
        sampling, model = parse_sampling(sampling_params)
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
        if renderer is None and enforce_max_prompt_length:
            raise UserError("enforce_max_prompt_length does nothing without a tokenizer; give one")
        self._owned_engine = engine if rollout_engine is None else None
        self._engine = engine
        self._lockstep = Lockstep(engine) if lockstep else None
        self._n_parallel_agents = n_parallel_agents
        self._places = EpisodePlaces(n_parallel_agents)
        self._on_episode = on_episode
        self._overlong_filter = overlong_filter
        self._counter = RunCounter()
        self._is_closed = False
        self._player = agent_class if isinstance(agent_class, EpisodePlayer) else None
        self._env_args = env_args
        make_agent: Any = agent_class
        self._setting = RolloutSetting(
            make_agent=lambda: make_agent(**agent_args),
            make_env=self._env_maker.make,
            engine=self._lockstep or engine,
            threads=EnvThreads(),
            renderer=renderer,
            limits=limits,
            sampling=sampling,
            gamma=gamma,
            retries=Retries(retry_limit, retry_backoff, trajectory_timeout),
            is_construction_blocking=self._env_maker.may_block,
        )

    @property
    def rollout_engine(self) -> RolloutEngine:
        """What samples; new weights are loaded into it."""
        return self._engine

    @property
    def renderer(self) -> Renderer | None:
        """Makes prompts of conversations; None where the engine works on text."""
        return self._setting.renderer

    @property
    def limits(self) -> RolloutLimits:
        """Bounds of each episode."""
        return self._setting.limits

    @property
    def progress(self) -> RunProgress:
        """Requests so far, over all runs: waiting, in flight, ended how; may be read any time."""
        return self._counter.progress(self._setting.threads.num_hung)

    async def execute_tasks(self, tasks: Iterable[Mapping[str, Any]]) -> list[Episode]:
        """Run one episode of every task.

        Args:
            tasks: A Dataset or any iterable of mappings; repeated ones are episodes of their own.

        Returns:
            One Episode for each task, in their order; its `id` is the task's place, from "0".

        Raises:
            UserError: When a task is no mapping.
        """
        return await self.execute_requests(requests_of(tasks))

    async def execute_requests(self, requests: Sequence[RolloutRequest]) -> list[Episode]:
        """Run one episode of every request.

        Returns:
            One Episode for each request, in their order.

        Raises:
            UserError: When two requests have the same id.
        """
        episodes = {episode.id: episode async for episode in self.stream_requests(requests)}
        return [episodes[request.id] for request in requests]

    async def stream_tasks(
        self, tasks: Iterable[Mapping[str, Any]]
    ) -> AsyncGenerator[Episode, None]:
        """Like `execute_tasks`, but yields each Episode as soon as it has ended."""
        async with contextlib.aclosing(self.stream_requests(requests_of(tasks))) as episodes:
            async for episode in episodes:
                yield episode

    async def stream_requests(
        self, requests: Sequence[RolloutRequest]
    ) -> AsyncGenerator[Episode, None]:
        """Like `execute_requests`, but yields each Episode as soon as it has ended.

        Leaving the loop early cancels the episodes that are still running.
        """
        if self._is_closed:
            raise EngineError("this AgentExecutionEngine is closed; make a new one")
        async with self.playing() as plain:
            with self._counter.counting(len(requests), plain) as play:
                in_turn = self._places.in_turn(requests, self._in_rounds(play))
                stream = run_requests(requests, in_turn, self._n_parallel_agents)
                async with contextlib.aclosing(stream) as episodes:
                    async for episode in episodes:
                        self._note(episode)
                        yield episode

    def _note(self, episode: Episode) -> None:
        """Mark an episode that has ended, and tell of it."""
        if self._overlong_filter and episode.termination_reason in CUT_OFF:
            for trajectory in episode.trajectories:
                trajectory.info["learns"] = False
        if self._on_episode is not None:
            self._on_episode(episode)

    def playing(self) -> AbstractAsyncContextManager[PlayEpisode]:
        """What plays one request, uncounted and at once, for as long as the block lasts."""
        if self._processes is not None:
            return self._processes.playing()
        if self._player is not None:
            return self._player.playing(self._setting, self._env_args)
        return contextlib.nullcontext(lambda request: run_episode(request, self._setting))

    def _in_rounds(self, play: PlayEpisode) -> PlayEpisode:
        return play if self._lockstep is None else self._lockstep.in_rounds(play)

    def close(self) -> None:
        """End threads, processes, and the rollout engine unless it was given; may be repeated."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._processes is not None:
            self._processes.close()
        self._env_maker.close()
        self._setting.threads.close()
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


def _processes_of(given: Mapping[str, Any], limits: RolloutLimits) -> EpisodeProcesses | None:
    """Return the processes that `n_processes` of the engine's arguments asks for, if any."""
    if given["n_processes"] == 0 and not isinstance(given["n_processes"], bool):
        return None
    if given["rollout_engine"] is not None:
        raise UserError(
            "n_processes: each process makes its own rollout engine; give engine_name= and "
            "rollout_engine_args= in place of rollout_engine="
        )
    entry = find_engine(given["engine_name"])
    if entry.takes_model and not entry.is_remote:
        raise UserError(
            "n_processes: each process would load the model of "
            f"engine_name={given['engine_name']!r}; let `rllm serve` or `vllm serve` have it, and "
            'use engine_name="openai"'
        )
    if isinstance(given["agent_class"], EpisodePlayer):
        raise UserError(
            f"n_processes does nothing for {type(given['agent_class']).__name__}, which plays "
            "episodes itself; leave it out"
        )
    if given["lockstep"]:
        raise UserError("lockstep needs all episodes in one process; leave n_processes out")
    sent = {name: value for name, value in given.items() if name not in _NOT_SENT}
    return EpisodeProcesses(sent, given["n_processes"], given["retry_limit"], limits)


def _check_classes(agent_class: Any, agent_args: Mapping[str, Any], env_class: Any) -> None:
    """Find a mistake in the classes before a thousand episodes fail on it."""
    if isinstance(agent_class, EpisodePlayer):
        if agent_args:
            raise UserError(
                f"agent_args do nothing with {type(agent_class).__name__}, which is made already: "
                f"{', '.join(agent_args)}"
            )
        return
    if not callable(agent_class):
        raise UserError(f"agent_class must be a class of agents, got {agent_class!r}")
    if not callable(getattr(env_class, "from_dict", None)):
        raise UserError(
            f"env_class must have a static method from_dict(task) that makes an environment; "
            f"{env_class!r} has none"
        )
    check_fits(agent_class, agent_args, "agent_args")
