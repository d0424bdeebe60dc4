"""Plays the entries of a suite with one policy, each episode once."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

from rllm_agents.agents.chat import ChatAgent
from rllm_agents.errors import UserError
from rllm_agents.evaluation import OracleEnv, env_tasks
from rllm_agents.execution_engine import AgentExecutionEngine
from rllm_agents.leaderboard.records import EpisodeRecord, RecordFile, record_of
from rllm_agents.leaderboard.scripts import ScriptedAgent, SeedEngine, make_script
from rllm_agents.leaderboard.suites import SuiteEntry
from rllm_agents.limits import RolloutLimits
from rllm_agents.match import MatchSetting, run_match, seats_of
from rllm_agents.match_players import Player
from rllm_agents.match_players import Script as MatchScript
from rllm_agents.model_calls import derive_seed
from rllm_agents.rollout_requests import RolloutRequest, run_requests
from rllm_agents.types import Episode, SamplingParams
from rllm_envs import GymEnv

Result = TypeVar("Result")
SCRIPTED = ("random", "heuristic", "oracle")
"""Policies without a model."""
SEEDS_APART = 1_000_000
"""Tasks of seed ``s`` are looked for from the environment's seed ``s`` times this."""
_PARALLEL = 64


class Entrant(Protocol):
    """A policy that plays a suite. Made by the command line, closed by whoever made it."""

    def engine(self, entry: SuiteEntry, env_args: Mapping[str, Any]) -> AgentExecutionEngine:
        """Return what plays the episodes of an entry, within its budgets."""
        ...

    def player(self, entry: SuiteEntry, seed: int) -> Player | MatchScript:
        """Return who plays a match that has this seed."""
        ...

    def limits(self, entry: SuiteEntry) -> RolloutLimits:
        """Return the budgets of a match."""
        ...

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Do asynchronous work on the event loop that the policy plays on."""
        ...

    def close(self) -> None:
        """Free what the policy holds."""
        ...


@dataclass(frozen=True)
class ScriptedEntrant:
    """A policy without a model."""

    policy: str
    """Of `SCRIPTED`."""

    def engine(self, entry: SuiteEntry, env_args: Mapping[str, Any]) -> AgentExecutionEngine:
        """Return what plays the episodes of an entry."""
        is_oracle = self.policy == "oracle"
        return AgentExecutionEngine(
            agent_class=ChatAgent if is_oracle else ScriptedAgent,
            agent_args={} if is_oracle else {"policy": self.policy, "env_id": entry.id},
            env_class=OracleEnv if is_oracle else GymEnv,
            env_args=env_args,
            rollout_engine=SeedEngine(),
            max_steps=entry.max_turns,
            n_parallel_agents=_PARALLEL,
        )

    def player(self, entry: SuiteEntry, seed: int) -> MatchScript:
        """Return who plays a match: the game's expert, or a script."""
        return "expert" if self.policy == "oracle" else make_script(self.policy, entry.id, seed)

    def limits(self, entry: SuiteEntry) -> RolloutLimits:
        """Return the budgets of a match."""
        return RolloutLimits(max_steps=entry.max_turns)

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Do asynchronous work on an event loop of its own."""
        return asyncio.run(work)

    def close(self) -> None:
        """Nothing is held."""


@dataclass(frozen=True)
class EntryPlayed:
    """What came of one entry. Made by `play_entry`."""

    records: tuple[EpisodeRecord, ...]
    """Of all episodes that have an outcome, in order."""
    failures: tuple[str, ...]
    """Why others have none; they are played again the next time."""
    seconds: float
    """Wall-clock of playing, in all sessions together."""


async def play_entry(
    entry: SuiteEntry,
    entrant: Entrant,
    *,
    seed: int,
    sampling: SamplingParams,
    path: Path,
) -> EntryPlayed:
    """Play what is not recorded yet.

    Args:
        entry: What is played.
        entrant: Who plays.
        seed: Fixes tasks, opponents and sampling.
        sampling: How a model's tokens are drawn.
        path: Where records are kept as they come in.

    Raises:
        UserError: The environment or its data is not there, or has too few tasks.
    """
    file, ids = RecordFile(path), episode_ids(entry)
    if not all(one in file.records for one in ids):
        failures = await _play_missing(entry, entrant, file, seed=seed, sampling=sampling)
    else:
        failures = []  # and the tasks, which take a while to find, are not asked for
    records = [file.records[one] for one in ids if one in file.records]
    return EntryPlayed(tuple(records), tuple(failures), file.seconds)


async def _play_missing(
    entry: SuiteEntry, entrant: Entrant, file: RecordFile, *, seed: int, sampling: SamplingParams
) -> list[str]:
    """Play what is not in the file and keep it there; return why episodes failed."""
    requests, env_args = entry_requests(entry, seed)
    missing = [
        replace(r, sampling=replace(sampling, seed=derive_seed(seed, entry.name, r.id)))
        for r in requests
        if r.id not in file.records
    ]
    failures: list[str] = []
    started = time.perf_counter()
    episodes = (
        _play_matches(entry, entrant, missing)
        if entry.match
        else _play_tasks(entry, entrant, missing, env_args)
    )
    try:
        async with aclosing(episodes):
            async for episode, record in episodes:
                if record is None:
                    failures.append(f"{entry.name} {episode.id}: {episode.error}")
                else:
                    file.add(episode.id, record)
    finally:
        file.add_seconds(round(time.perf_counter() - started, 3))
    return failures


def episode_ids(entry: SuiteEntry) -> list[str]:
    """Return the ids of an entry's episodes, in order."""
    if entry.match:
        return [request.id for request in _match_requests(entry, 0)]
    return [f"{task}-{k}" for task in range(entry.num_tasks) for k in range(entry.attempts)]


def entry_requests(entry: SuiteEntry, seed: int) -> tuple[list[RolloutRequest], dict[str, Any]]:
    """Return the episodes of an entry, a function of entry and seed alone, and GymEnv's arguments.

    Of a data set with more rows than the entry has tasks, the seed says which. Of a match there
    is each game from each seat against each opponent.

    Raises:
        UserError: The environment or the data is not there, or has too few tasks.
    """
    if entry.match:
        return _match_requests(entry, seed), {}
    if entry.dataset:
        rows, env_args = env_tasks(entry.env, env_kwargs=entry.kwargs, dataset=entry.dataset)
        if len(rows) < entry.num_tasks:
            raise UserError(
                f"{entry.name} takes {entry.num_tasks} tasks, but {entry.dataset} has {len(rows)}"
            )
        tasks = random.Random(f"{seed}/{entry.name}").sample(rows, entry.num_tasks)
    else:
        tasks, env_args = env_tasks(
            entry.env,
            env_kwargs=entry.kwargs,
            num_tasks=entry.num_tasks,
            first_seed=seed * SEEDS_APART,
        )
    each = [task for task in tasks for _ in range(entry.attempts)]
    ids = episode_ids(entry)
    requests = [RolloutRequest(task=t, id=one) for t, one in zip(each, ids, strict=True)]
    return requests, env_args


def _match_requests(entry: SuiteEntry, seed: int) -> list[RolloutRequest]:
    return [
        RolloutRequest(
            task={"seed": seed * SEEDS_APART + game, "seat": seat, "opponent": opponent},
            id=f"{opponent}-{game}-{seat}-{attempt}",
        )
        for opponent in entry.opponents
        for game in range(entry.num_tasks)
        for seat in seats_of(entry.match, entry.kwargs)
        for attempt in range(entry.attempts)
    ]


def match_setting(entry: SuiteEntry, limits: RolloutLimits) -> MatchSetting:
    """Return what the matches of an entry share; its threads are the caller's to close."""
    return MatchSetting(env_kwargs={"split": "test", **entry.kwargs}, limits=limits)


async def play_match(
    entry: SuiteEntry,
    task: Mapping[str, Any],
    player: Player | MatchScript,
    setting: MatchSetting,
) -> tuple[Episode, EpisodeRecord | None]:
    """Play one match of `entry_requests`; its chance and the opponents' come from its seed.

    Returns:
        The episode, and the player's record; None where the match failed.
    """
    seat = task["seat"]
    episode = await run_match(
        entry.match,
        {s: player if s == seat else task["opponent"] for s in seats_of(entry.match, entry.kwargs)},
        seed=int(task["seed"]),
        setting=setting,
    )
    if episode.failed:
        return episode, None
    own = next(t for t in episode.trajectories if t.info["player"] == seat)
    score = match_score(episode, seat)
    return episode, record_of(episode, own, score, score == 1.0)


def match_score(episode: Episode, seat: str) -> float:
    """Return 1 where a seat earned more than each other, 1/2 where it shared the most, else 0."""
    rewards = {key: value for key, value in episode.metrics.items() if key.startswith("reward/")}
    own = rewards.pop(f"reward/{seat}")
    best_other = max(rewards.values())
    return 1.0 if own > best_other else 0.5 if own == best_other else 0.0


_Stream: TypeAlias = AsyncGenerator[tuple[Episode, EpisodeRecord | None], None]


async def _play_tasks(
    entry: SuiteEntry,
    entrant: Entrant,
    requests: Sequence[RolloutRequest],
    env_args: Mapping[str, Any],
) -> _Stream:
    with entrant.engine(entry, env_args) as engine:
        async with aclosing(engine.stream_requests(requests)) as episodes:
            async for episode in episodes:
                reward, record = episode.reward, None
                if reward is not None:
                    record = record_of(episode, episode.trajectory, reward, episode.is_correct)
                yield episode, record


async def _play_matches(
    entry: SuiteEntry, entrant: Entrant, requests: Sequence[RolloutRequest]
) -> _Stream:
    setting = match_setting(entry, entrant.limits(entry))
    records: dict[str, EpisodeRecord | None] = {}

    async def play(request: RolloutRequest) -> Episode:
        sampled = request.sampling.seed if request.sampling is not None else None
        player = entrant.player(entry, sampled or 0)
        episode, records[request.id] = await play_match(entry, request.task, player, setting)
        episode.id = request.id
        return episode

    try:
        async with aclosing(run_requests(requests, play, _PARALLEL)) as episodes:
            async for episode in episodes:
                yield episode, records.pop(episode.id)
    finally:
        setting.threads.close()
