"""Who wins: many matches between the same players, with seats exchanged."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from rllm_agents.argument_checks import check_count
from rllm_agents.errors import UserError
from rllm_agents.match import MatchSetting, run_match, seats_of
from rllm_agents.match_players import Player, Script
from rllm_agents.metrics import Estimate, wilson_interval
from rllm_agents.rollout_requests import RolloutRequest, run_requests
from rllm_agents.types import Episode

_Z_95 = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Standing:
    """How one player fared. Made by `evaluate_match`."""

    wins: int
    """Games in which it earned more than every other."""
    draws: int
    """Games in which it shared the highest reward."""
    losses: int
    score: Estimate
    """Wins and half the draws, as a share of the games, with Wilson's 95 % interval."""
    win_rate: Estimate
    """Wins as a share of the games, with Wilson's 95 % interval."""
    mean_reward: float
    reward_half_width: float
    """The mean reward's 95 % interval is it, plus and minus this (normal approximation)."""
    score_by_seat: Mapping[str, float]
    """The score in the games that it played from each seat."""


@dataclass(frozen=True, slots=True)
class MatchResult:
    """What many matches came to. Made by `evaluate_match`, read by users."""

    standings: Mapping[str, Standing]
    """By player."""
    num_games: int
    """Games with an outcome."""
    num_failed: int
    """Games without one; they count for nobody."""
    episodes: tuple[Episode, ...]
    """All of them. ``info["players"]`` says who sat where."""

    def table(self) -> Table:
        """The standings as a table for the terminal."""
        failed = f", {self.num_failed} failed" if self.num_failed else ""
        table = Table(title=f"{self.num_games} games{failed}")
        for heading in ("player", "won", "drawn", "lost", "score", "95 % interval", "reward"):
            table.add_column(heading, justify="left" if heading == "player" else "right")
        for name, one in self.standings.items():
            table.add_row(
                name,
                str(one.wins),
                str(one.draws),
                str(one.losses),
                f"{one.score.value:.3f}",
                f"{one.score.low:.3f} to {one.score.high:.3f}",
                f"{one.mean_reward:.3f} ± {one.reward_half_width:.3f}",
            )
        return table


async def evaluate_match(
    env: Any,
    players: Mapping[str, Player | Script],
    n_games: int = 100,
    *,
    seed: int = 0,
    tasks: Sequence[Mapping[str, Any]] | None = None,
    n_parallel: int = 64,
    setting: MatchSetting | None = None,
) -> MatchResult:
    """Play games between players and say who wins how often.

    Each game's task is played once with every rotation of the seats, so luck of the draw and the
    better seat favour nobody.

    Args:
        env: An id, or a function that makes a PettingZoo environment; see `run_match`.
        players: As many as there are seats, under names of their own.
        n_games: A multiple of the number of seats.
        seed: Fixes the tasks and all chance; game ``k`` of a rotation draws its task from
            ``seed + k``.
        tasks: The games to play instead, one for each rotation, again from the first where
            there are fewer.
        n_parallel: Most games at once.
        setting: Limits and arguments shared by matches.

    Raises:
        UserError: The numbers do not fit, or every game failed.
    """
    setting = setting or MatchSetting()
    seats, names = seats_of(env, setting.env_kwargs), list(players)
    check_count("n_games", n_games)
    check_count("n_parallel", n_parallel)
    if len(names) != len(seats):
        raise UserError(f"{len(names)} players for {len(seats)} seats: {', '.join(seats)}")
    if n_games % len(seats):
        raise UserError(f"n_games must be a multiple of {len(seats)}, the seats; got {n_games}")
    if tasks is not None and not tasks:
        raise UserError("there are no tasks to play")

    async def play(request: RolloutRequest) -> Episode:
        game, rotation = divmod(int(request.id), len(seats))
        seated = {s: names[(i + rotation) % len(names)] for i, s in enumerate(seats)}
        episode = await run_match(
            env,
            {seat: players[name] for seat, name in seated.items()},
            seed=seed + game,
            task=None if tasks is None else tasks[game % len(tasks)],
            match_id=request.id,
            setting=setting,
        )
        episode.info["players"] = seated
        return episode

    requests = [RolloutRequest(task={}, id=str(index)) for index in range(n_games)]
    played = {e.id: e async for e in run_requests(requests, play, n_parallel)}
    episodes = tuple(played[request.id] for request in requests)
    judged = [episode for episode in episodes if not episode.failed]
    if not judged:
        raise UserError(f"all {n_games} games failed; the first: {episodes[0].error}")
    return MatchResult(
        standings={name: _standing(name, judged, seats) for name in names},
        num_games=len(judged),
        num_failed=n_games - len(judged),
        episodes=episodes,
    )


def match_score(episode: Episode, seat: str) -> float:
    """Return 1 where a seat of a match earned more than all others, a half for a draw, else 0.

    Args:
        episode: Of a match that did not fail.
        seat: One of its players.
    """
    rewards = {
        name.removeprefix("reward/"): reward
        for name, reward in episode.metrics.items()
        if name.startswith("reward/")
    }
    own = rewards.pop(seat)
    best_other = max(rewards.values(), default=own)
    return 1.0 if own > best_other else 0.5 if own == best_other else 0.0


def _standing(name: str, episodes: Sequence[Episode], seats: Sequence[str]) -> Standing:
    scores: list[float] = []
    rewards: list[float] = []
    by_seat: dict[str, list[float]] = {seat: [] for seat in seats}
    for episode in episodes:
        seated: Mapping[str, str] = episode.info["players"]
        seat = next(seat for seat, player in seated.items() if player == name)
        score = match_score(episode, seat)
        scores.append(score)
        rewards.append(episode.metrics[f"reward/{seat}"])
        by_seat[seat].append(score)
    n = len(episodes)
    mean = math.fsum(rewards) / n
    variance = math.fsum((r - mean) ** 2 for r in rewards) / max(n - 1, 1)
    wins, draws = scores.count(1.0), scores.count(0.5)
    return Standing(
        wins=wins,
        draws=draws,
        losses=n - wins - draws,
        score=_share(math.fsum(scores) / n, n),
        win_rate=_share(wins / n, n),
        mean_reward=mean,
        reward_half_width=_Z_95 * math.sqrt(variance / n),
        score_by_seat={seat: math.fsum(own) / len(own) for seat, own in by_seat.items() if own},
    )


def _share(value: float, n: int) -> Estimate:
    low, high = wilson_interval(value, n)
    return Estimate(value=value, low=low, high=high, num_tasks=n)
