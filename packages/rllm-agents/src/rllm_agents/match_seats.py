"""`MatchSeats`: games between policies that learn and opponents that do not, as episodes."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from rllm_agents.agent import BaseAgent
from rllm_agents.agents.chat import ChatAgent
from rllm_agents.errors import UserError
from rllm_agents.match import MatchSetting, run_match, seats_of
from rllm_agents.match_players import Player, Script
from rllm_agents.model_calls import derive_seed
from rllm_agents.player import PlayEpisode
from rllm_agents.rollout import RolloutSetting
from rllm_agents.rollout_requests import RolloutRequest
from rllm_agents.types import Episode, SamplingParams

_HELD_OUT = {"game", "seat", "opponent"}


@dataclass(frozen=True)
class FrozenPolicy:
    """An opponent that samples from one of the engine's sets of weights and learns nothing."""

    adapter: str = ""
    """See `GenerationRequest.adapter`."""


Opponent: TypeAlias = Script | FrozenPolicy
"""Who plays in place of a policy that learns."""


@dataclass(frozen=True)
class SeatPolicy:
    """Who takes a seat. Made by trainers, read by MatchSeats."""

    agent_class: Callable[..., BaseAgent] = ChatAgent
    """Made anew for each match as `agent_class(**agent_args)`."""
    agent_args: Mapping[str, Any] = field(default_factory=dict)
    adapter: str = ""
    """Which of the engine's sets of weights plays; see `GenerationRequest.adapter`."""
    opponents: tuple[Opponent, ...] = ()
    """Who plays in the policy's place; each task draws one of them. None: the policy, and it
    learns."""


class MatchSeats:
    """Plays each task as one match. An `EpisodePlayer` for an AgentExecutionEngine.

    A task is ``{"seed": 3}``, from which the environment draws the game, or the game itself as
    ``reset(options={"task": ...})`` takes it; a seed in it fixes the chance of scripts too. All
    matches of one task have the same opponents. A
    held-out task is ``{"game": <such a task>, "seat": "player_0", "opponent": "random"}``: the
    policy of that seat plays against one of `named_opponents` in all other seats.

    Args:
        env: See `run_match`; an id, or a function that makes the environment.
        seats: Who takes which seat; seats that are not named are `SeatPolicy()`.
        env_kwargs: Arguments of the environment, where it is made from an id.
        named_opponents: Of held-out tasks.
        opponent_temperature: At which opponents that are models sample, also where the policy is
            played greedily.

    Raises:
        UserError: There is no such environment, no such seat, or no seat learns.
    """

    def __init__(
        self,
        env: str | Callable[[], Any],
        seats: Mapping[str, SeatPolicy],
        *,
        env_kwargs: Mapping[str, Any] | None = None,
        named_opponents: Mapping[str, Opponent] | None = None,
        opponent_temperature: float = 1.0,
    ) -> None:
        names = seats_of(env, env_kwargs)
        unknown = [name for name in seats if name not in names]
        if unknown:
            raise UserError(f"the game has the seats {', '.join(names)}, not {', '.join(unknown)}")
        self._env, self._env_kwargs = env, dict(env_kwargs or {})
        self._seats = {name: seats.get(name, SeatPolicy()) for name in names}
        if all(seat.opponents for seat in self._seats.values()):
            raise UserError(f"opponents take all seats ({', '.join(names)}), so that nobody learns")
        self._named = dict(named_opponents or {})
        self._temperature = opponent_temperature

    @property
    def is_registered(self) -> bool:
        """Whether the environment is made from an id."""
        return isinstance(self._env, str)

    @property
    def learning_seats(self) -> tuple[str, ...]:
        """Seats whose policies learn, in the game's order."""
        return tuple(name for name, seat in self._seats.items() if not seat.opponents)

    @contextlib.asynccontextmanager
    async def playing(
        self, setting: RolloutSetting, env_args: Mapping[str, Any]
    ) -> AsyncGenerator[PlayEpisode, None]:
        """Play matches with the engine of a setting.

        Args:
            setting: What all matches share; its agent and environment are not made.
            env_args: More of the environment's arguments, over `env_kwargs`.

        Yields:
            What plays one request to its Episode.
        """
        match = MatchSetting(
            env_kwargs={**self._env_kwargs, **env_args},
            limits=setting.limits,
            threads=setting.threads,
            gamma=setting.gamma,
        )

        async def play(request: RolloutRequest) -> Episode:
            return await self._play(request, setting, match)

        yield play

    async def _play(
        self, request: RolloutRequest, setting: RolloutSetting, match: MatchSetting
    ) -> Episode:
        sampling = request.sampling or replace(
            setting.sampling, seed=derive_seed(setting.sampling.seed, request.id)
        )
        task = dict(request.task)
        is_held_out = set(task) == _HELD_OUT
        seated = self._held_out(task) if is_held_out else self._drawn(task)
        game = dict(task["game"]) if is_held_out else task
        is_seed = set(game) == {"seed"}
        episode = await run_match(
            self._env,
            {name: self._player(name, who, sampling, setting) for name, who in seated.items()},
            seed=_seed_of(game),
            task=None if is_seed or not game else game,
            match_id=request.id,
            setting=match,
        )
        episode.task = request.task
        if is_held_out:
            episode.info |= {"seat": task["seat"], "opponent": task["opponent"]}
        return episode

    def _held_out(self, task: Mapping[str, Any]) -> dict[str, Opponent | None]:
        seat, opponent = task["seat"], task["opponent"]
        if seat not in self._seats or opponent not in self._named:
            raise UserError(
                f"a held-out task needs a seat of {', '.join(self._seats)} and an opponent of "
                f"{', '.join(self._named) or 'none'}, got {seat!r:.80} and {opponent!r:.80}"
            )
        return {name: None if name == seat else self._named[opponent] for name in self._seats}

    def _drawn(self, task: Mapping[str, Any]) -> dict[str, Opponent | None]:
        """Draw each seat's opponent from the task alone: a group's matches are then alike."""
        text = json.dumps(task, sort_keys=True, default=repr)
        return {
            name: seat.opponents[(derive_seed(0, "opponent", name, text) or 0) % count]
            if (count := len(seat.opponents))
            else None
            for name, seat in self._seats.items()
        }

    def _player(
        self,
        name: str,
        opponent: Opponent | None,
        sampling: SamplingParams,
        setting: RolloutSetting,
    ) -> Player | Script:
        if opponent is not None and not isinstance(opponent, FrozenPolicy):
            return opponent
        seat = self._seats[name]
        return Player(
            agent=seat.agent_class,
            engine=setting.engine,
            agent_args=seat.agent_args,
            renderer=setting.renderer,
            sampling=sampling
            if opponent is None
            else replace(sampling, temperature=self._temperature),
            learns=opponent is None,
            adapter=seat.adapter if opponent is None else opponent.adapter,
        )


def _seed_of(game: Mapping[str, Any]) -> int | None:
    seed = game.get("seed")
    return seed if isinstance(seed, int) and not isinstance(seed, bool) else None
