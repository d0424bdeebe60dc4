"""`run_match`: a game for several players, each a model with its agent or a script."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rllm_agents.call_threads import EnvThreads
from rllm_agents.env_calls import EnvSession, broke_contract, checked_info, checked_reward
from rllm_agents.errors import EpisodeFailure, UserError, failure_info, in_words
from rllm_agents.limits import RolloutLimits
from rllm_agents.match_players import ModelSeat, Player, Script, ScriptSeat, Seat
from rllm_agents.model_calls import derive_seed
from rllm_agents.types import Episode, TerminationReason

_CLOSE_SECONDS_WHEN_CANCELLED = 1.0


@dataclass(frozen=True)
class MatchSetting:
    """What matches share. Made by users who play many, read by run_match."""

    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the environment, where it is made from an id."""
    limits: RolloutLimits = field(default_factory=RolloutLimits)
    """Of each player's conversation, each call of the environment, and the whole match;
    `max_steps` bounds the turns of one player."""
    threads: EnvThreads = field(default_factory=EnvThreads)
    """Where environments and scripts run."""
    gamma: float = 1.0
    """Discount of `Step.mc_return`, in [0, 1]."""


async def run_match(
    env: Any,
    players: Mapping[str, Player | Script],
    *,
    seed: int | None = None,
    task: Mapping[str, Any] | None = None,
    match_id: str = "match",
    setting: MatchSetting | None = None,
) -> Episode:
    """Play one match to its end, whatever happens in it.

    Args:
        env: An id such as "rllm/TicTacToe-v0", rules (a TurnGame or SimultaneousGame), a PettingZoo
            AEC or parallel environment, or a function that makes one. What is passed ready made
            stays the caller's to close.
        players: By the environment's names of its players.
        seed: Fixes the task where none is given, and all chance of players.
        task: The game to play, passed to ``reset(options={"task": task})``.
        match_id: Becomes the Episode's id.
        setting: Limits and arguments shared by matches.

    Returns:
        An Episode with one trajectory for each player, in the environment's order. Opponents
        (scripts, and Players that do not learn) have no token records. `is_correct` says whether
        the first player that learns, or the first of all, earned more than 0.
        ``metrics["reward/<player>"]`` is what each earned.

    Raises:
        UserError: There is no such environment, or `players` are not its players.
    """
    own_setting = setting is None
    setting = setting or MatchSetting()
    make_env, is_owned = _env_maker(env, setting.env_kwargs)
    session = EnvSession(make_env, is_blocking=True, threads=setting.threads, limits=setting.limits)
    match = _Match(session, setting, players, (seed, task, match_id))
    error: EpisodeFailure | None = None
    close_seconds = _CLOSE_SECONDS_WHEN_CANCELLED
    close_error: str | None = None
    try:
        async with asyncio.timeout(setting.limits.trajectory_timeout_seconds):
            reason = await match.run()
        close_seconds = setting.limits.close_timeout_seconds
    except TimeoutError:
        reason = TerminationReason.TIMEOUT
    except EpisodeFailure as failure:
        reason, error = failure.reason, failure
    except UserError:
        raise
    except Exception as unexpected:
        reason = TerminationReason.AGENT_EXCEPTION
        error = EpisodeFailure(reason, in_words(unexpected))
        error.__cause__ = unexpected
    finally:
        if is_owned:
            close_error = await session.close(close_seconds)
        if own_setting:
            setting.threads.close()
    return match.to_episode(reason, error, close_error)


def seats_of(env: Any, env_kwargs: Mapping[str, Any] | None = None) -> tuple[str, ...]:
    """Return the names of an environment's players, as `run_match` takes them.

    Args:
        env: As in `run_match`.
        env_kwargs: Arguments of the environment, where it is made from an id.

    Raises:
        UserError: There is no such environment.
    """
    make_env, is_owned = _env_maker(env, env_kwargs or {})
    made = make_env()
    seats = tuple(made.possible_agents)
    if is_owned:
        made.close()
    return seats


class _Match:
    """The loop of one match and what it has gathered so far."""

    def __init__(
        self,
        session: EnvSession,
        setting: MatchSetting,
        players: Mapping[str, Player | Script],
        start: tuple[int | None, Mapping[str, Any] | None, str],
    ) -> None:
        self._session = session
        self._setting = setting
        self._players = dict(players)
        self._seed, self._task, self._id = start
        self._env: Any = None
        self._seats: dict[str, Seat] = {}
        self._started_at = time.perf_counter()

    async def run(self) -> TerminationReason:
        """Play until nobody is left or a limit is reached.

        Raises:
            EpisodeFailure: The environment or a player fails.
            UserError: The players are not the environment's.
        """
        env = self._env = await self._session.open()
        names = list(env.possible_agents)
        if set(names) != set(self._players):
            raise UserError(
                f"players must be {', '.join(names)}, got {', '.join(self._players) or 'none'}"
            )
        self._seats = {name: self._seat(name, self._players[name]) for name in names}
        for seat in self._seats.values():
            await seat.start()
        return await (self._play_turns() if hasattr(env, "last") else self._play_rounds())

    def to_episode(
        self, reason: TerminationReason, error: EpisodeFailure | None, close_error: str | None
    ) -> Episode:
        """Sum up: trajectories, rewards and figures."""
        failed, seats = reason.is_failure, self._seats
        trajectories = [
            seat.finish(gamma=self._setting.gamma, failed=failed) for seat in seats.values()
        ]
        for (name, seat), trajectory in zip(seats.items(), trajectories, strict=True):
            trajectory.task = self._task
            trajectory.info |= {"player": name, "learns": seat.learns}
        judged = next((s for s in seats.values() if s.learns), next(iter(seats.values()), None))
        models = [seat for seat in seats.values() if isinstance(seat, ModelSeat)]
        conversations = [seat.conversation for seat in models]
        rewards = {} if failed else {f"reward/{name}": s.total for name, s in seats.items()}
        task = self._task if self._task is not None else {"seed": self._seed}
        return Episode(
            id=self._id,
            task=task,
            termination_reason=reason,
            is_correct=not failed and judged is not None and judged.total > 0.0,
            trajectories=trajectories,
            metrics={
                **rewards,
                "num_steps": float(sum(len(t.steps) for t in trajectories)),
                "cut_off": float(sum(seat.num_cut_off for seat in models)),
                "prompt_tokens": math.fsum(c.num_first_prompt_ids for c in conversations),
                "response_tokens": math.fsum(c.num_response_ids for c in conversations),
                "llm_seconds": math.fsum(c.seconds for c in conversations),
                "env_seconds": self._session.seconds,
                "total_seconds": time.perf_counter() - self._started_at,
            },
            info=failure_info(error, close_error),
            error=None if error is None else str(error),
        )

    def _seat(self, name: str, player: Player | Script) -> Seat:
        if isinstance(player, Player):
            return ModelSeat(
                name,
                player,
                match_id=self._id,
                limits=self._setting.limits,
                seed=derive_seed(self._seed, "player"),
            )
        seat = ScriptSeat(name, player, self._session, derive_seed(self._seed or 0, name) or 0)
        seat.watch(self._env)
        return seat

    @property
    def _options(self) -> dict[str, Any] | None:
        return None if self._task is None else {"task": dict(self._task)}

    # In turns: PettingZoo's AEC

    async def _play_turns(self) -> TerminationReason:
        env = self._env

        def start() -> list[_View]:
            env.reset(seed=self._seed, options=self._options)
            return _next_views(env)

        views = await self._session.call("reset", start)
        while True:
            for view in views:
                view.check()
                if view.is_over:
                    self._end(view)
            if not views or views[-1].is_over:
                return TerminationReason.ENV_DONE
            view = views[-1]
            seat = self._seats[view.player]
            seat.credit(view.reward, view.info)
            if seat.num_turns >= self._setting.limits.max_steps:
                return TerminationReason.MAX_TURNS_EXCEEDED
            action = await seat.act(view.observation, view.reward, view.info)

            def step(action: Any = action) -> list[_View]:
                env.step(action)
                return _next_views(env)

            views = await self._session.call("step", step)

    def _end(self, view: _View) -> None:
        seat = self._seats[view.player]
        seat.credit(view.reward, view.info, is_over=True)
        seat.end(view.observation, view.reward, view.info)

    # All at once: PettingZoo's parallel interface

    async def _play_rounds(self) -> TerminationReason:
        env = self._env
        answer = await self._session.call(
            "reset", lambda: env.reset(seed=self._seed, options=self._options)
        )
        if not isinstance(answer, tuple | list) or len(answer) != 2:
            raise broke_contract("reset", "(observations, infos)", answer)
        observations, infos = answer
        rewards: Mapping[str, Any] = {}
        while True:
            playing = [name for name in self._seats if name in env.agents]
            views = [
                _View(name, observations.get(name), rewards.get(name, 0.0), infos.get(name, {}))
                for name in playing
            ]
            if not views:
                return TerminationReason.ENV_DONE
            if self._seats[playing[0]].num_turns >= self._setting.limits.max_steps:
                return TerminationReason.MAX_TURNS_EXCEEDED
            actions = await self._act_at_once(views)
            answer = await self._session.call("step", lambda given=actions: env.step(given))
            if not isinstance(answer, tuple | list) or len(answer) != 5:
                raise broke_contract(
                    "step", "(observations, rewards, terminations, truncations, infos)", answer
                )
            observations, rewards, terminations, truncations, infos = answer
            for name in playing:
                over = bool(terminations.get(name)) or bool(truncations.get(name))
                view = _View(
                    name, observations.get(name), rewards.get(name, 0.0), infos.get(name, {}), over
                )
                view.check()
                if over:
                    self._end(view)
                else:
                    self._seats[name].credit(view.reward, view.info)

    async def _act_at_once(self, views: list[_View]) -> dict[str, Any]:
        """Scripts one after another, where the environment runs; models at once."""
        for view in views:
            view.check()
        actions: dict[str, Any] = {}
        asked = []
        for view in views:
            seat = self._seats[view.player]
            if isinstance(seat, ModelSeat):
                asked.append(view)
            else:
                actions[view.player] = await seat.act(view.observation, view.reward, view.info)
        answers = await asyncio.gather(
            *(self._seats[v.player].act(v.observation, v.reward, v.info) for v in asked),
            return_exceptions=True,
        )
        for view, answer in zip(asked, answers, strict=True):
            if isinstance(answer, BaseException):
                raise answer
            actions[view.player] = answer
        return actions


@dataclass(slots=True)
class _View:
    """What one player is shown, and what it has earned since it acted."""

    player: str
    observation: Any
    reward: float
    info: dict[str, Any]
    is_over: bool = False

    def check(self) -> None:
        self.reward = checked_reward(self.reward)
        self.info = checked_info("step", self.info)


def _next_views(env: Any) -> list[_View]:
    """Step ended players out of the game; the last view is that of who is to act, if anyone is."""
    views = []
    while env.agents:
        observation, reward, terminated, truncated, info = env.last()
        view = _View(env.agent_selection, observation, reward, info, terminated or truncated)
        views.append(view)
        if not view.is_over:
            break
        env.step(None)
    return views


def _env_maker(env: Any, env_kwargs: Mapping[str, Any]) -> tuple[Callable[[], Any], bool]:
    """Return what makes the environment, and whether it is then ours to close."""
    # Registers games with PettingZoo, which takes a moment to load.
    from rllm_envs.multi_agent import (
        GAMES,
        SimultaneousGame,
        TurnGame,
        make_aec,
        make_parallel,
    )

    if isinstance(env, str):
        kinds = {game.id: game.kind for game in GAMES}
        if env not in kinds:
            raise UserError(f"env must be one of {', '.join(kinds)}; got {env!r:.120}")
        make = make_aec if kinds[env] == "aec" else make_parallel
        return lambda: make(env, **env_kwargs), True
    if env_kwargs:
        raise UserError("env_kwargs are for environments that are made from an id")
    if isinstance(env, TurnGame):
        from rllm_envs.multi_agent import TextAECEnv

        return lambda: TextAECEnv(env), True
    if isinstance(env, SimultaneousGame):
        from rllm_envs.multi_agent import TextParallelEnv

        return lambda: TextParallelEnv(env), True
    if hasattr(env, "possible_agents"):
        return lambda: env, False
    if callable(env):
        return env, True
    raise UserError(
        "env must be an id, rules, a PettingZoo environment or a function that makes one, got "
        f"{env!r:.120}"
    )
