"""Ratings of players from their matches: a Bradley-Terry model on the Elo scale."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from rllm_agents.leaderboard.figures import Interval

ANCHOR = "random"
"""The player whose rating is 0."""

_Z_95 = 1.959963984540054
_ELO = 400.0 / math.log(10.0)
"""Elo points of one unit of log odds."""
_PRIOR_GAMES = 1.0
_MAX_STEPS = 200


def ratings(results: Mapping[tuple[str, str], tuple[int, int, int]]) -> dict[str, Interval]:
    """Rate players by maximum likelihood.

    P(a beats b) = 1 / (1 + 10^((R_b - R_a) / 400)) (Bradley and Terry 1952, on the scale of Elo);
    a draw counts as half a win. One game that was won and lost by half against the anchor is added
    for each player, so that one who always wins has a rating too. The 95 % intervals are those of
    the normal approximation, from the Fisher information; the anchor's own is empty.

    Args:
        results: Wins, draws and losses of the first player against the second. Games of a player
            with itself say nothing and are left out.

    Returns:
        Ratings by player, with `ANCHOR` at 0.
    """
    pairs = {pair: wdl for pair, wdl in results.items() if pair[0] != pair[1]}
    players = sorted({player for pair in pairs for player in pair} - {ANCHOR})
    place = {player: index for index, player in enumerate(players)}
    games: list[tuple[int | None, int | None, float, float]] = [
        (place.get(first), place.get(second), won + drawn / 2, won + drawn + lost)
        for (first, second), (won, drawn, lost) in pairs.items()
    ]
    games += [(index, None, _PRIOR_GAMES / 2, _PRIOR_GAMES) for index in place.values()]
    strength = np.zeros(len(players))
    information = np.eye(len(players))
    for _ in range(_MAX_STEPS):
        slope, information = _slope_and_information(games, strength)
        step = np.linalg.solve(information, slope)
        # The likelihood is concave; a bounded step cannot leap to where it is flat.
        strength += np.clip(step, -1.0, 1.0)
        if np.abs(step).max(initial=0.0) < 1e-10:
            break
    half = _Z_95 * np.sqrt(np.diag(np.linalg.inv(information)))
    return {ANCHOR: Interval(0.0, 0.0, 0.0)} | {
        player: Interval(
            float(_ELO * strength[index]),
            float(_ELO * (strength[index] - half[index])),
            float(_ELO * (strength[index] + half[index])),
        )
        for player, index in place.items()
    }


def _slope_and_information(
    games: list[tuple[int | None, int | None, float, float]], strength: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradient of the log likelihood and the negative of its Hessian."""
    slope = np.zeros(len(strength))
    information = np.zeros((len(strength), len(strength)))
    for first, second, score, count in games:
        sides = [(i, sign) for i, sign in ((first, 1.0), (second, -1.0)) if i is not None]
        expected = 1.0 / (1.0 + math.exp(-sum(sign * strength[i] for i, sign in sides)))
        for i, sign in sides:
            slope[i] += sign * (score - count * expected)
            for j, other in sides:
                information[i, j] += sign * other * count * expected * (1.0 - expected)
    return slope, information
