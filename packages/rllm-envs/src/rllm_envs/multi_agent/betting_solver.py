"""Equilibria of small betting games by regret minimisation, and how far a strategy is from one.

Reference: M. Zinkevich, M. Johanson, M. Bowling, C. Piccione, Regret minimization in games with
incomplete information, NeurIPS 2007; O. Tammelin, Solving large imperfect information games using
CFR+, arXiv:1407.5042.

The table of ``leduc_poker.py`` is the output of ``solve(LEDUC, 1500)``, half a minute.
"""

import itertools
from collections import defaultdict
from collections.abc import Mapping

from rllm_envs.multi_agent.betting import BettingRules, Rounds

Strategy = Mapping[str, Mapping[str, float]]
"""Probability of each legal letter, by ``BettingRules.information``."""
Deal = tuple[str, str, str]


def deals(betting: BettingRules) -> dict[Deal, float]:
    """Return the probability of each deal: cards of players 0 and 1, and the public card."""
    counts: dict[Deal, int] = defaultdict(int)
    for cards in itertools.permutations(betting.deck, betting.num_cards):
        counts[(cards[0], cards[1], "".join(cards[2:]))] += 1
    total = sum(counts.values())
    return {deal: count / total for deal, count in counts.items()}


def solve(betting: BettingRules, iterations: int) -> dict[str, dict[str, float]]:
    """Return an approximate equilibrium: the linearly weighted mean strategy of CFR+."""
    learning = _Learning(betting)
    for iteration in range(1, iterations + 1):
        for learner in (0, 1):
            learning.iterate(learner, float(iteration))
    return {key: _normalised(total) for key, total in learning.sums.items()}


class _Learning:
    """Regrets and summed strategies of all information sets."""

    def __init__(self, betting: BettingRules) -> None:
        self.betting = betting
        self.chances = deals(betting)
        self.regrets: dict[str, dict[str, float]] = {}
        self.sums: dict[str, dict[str, float]] = {}
        self.deltas: dict[str, dict[str, float]] = {}

    def iterate(self, learner: int, weight: float) -> None:
        """Walk all deals once for one player; negative regrets are forgotten (the + of CFR+)."""
        self.deltas = defaultdict(lambda: defaultdict(float))
        for deal, chance in self.chances.items():
            reach = [1.0, 1.0]
            reach[1 - learner] = chance
            self._walk(deal, ("",), reach, learner, weight)
        for key, delta in self.deltas.items():
            for letter, change in delta.items():
                self.regrets[key][letter] = max(0.0, self.regrets[key][letter] + change)

    def _policy(self, key: str, letters: str) -> dict[str, float]:
        return _normalised(self.regrets.setdefault(key, dict.fromkeys(letters, 0.0)))

    def _walk(
        self, deal: Deal, rounds: Rounds, reach: list[float], learner: int, weight: float
    ) -> float:
        """Return the value for the learner; collect regrets, or the other's mean strategy."""
        if self.betting.is_over(rounds):
            gain = self.betting.gain(rounds, deal[:2], deal[2])
            return gain if learner == 0 else -gain
        player = len(rounds[-1]) % 2
        key = self.betting.information(deal[player], deal[2], rounds)
        policy = self._policy(key, self.betting.legal(rounds))
        values: dict[str, float] = {}
        for letter, chance in policy.items():
            lower = list(reach)
            lower[player] *= chance
            after = self.betting.after(rounds, letter)
            values[letter] = self._walk(deal, after, lower, learner, weight)
        mean = sum(policy[letter] * value for letter, value in values.items())
        if player == learner:
            for letter, value in values.items():
                self.deltas[key][letter] += reach[1 - player] * (value - mean)
        else:
            total = self.sums.setdefault(key, dict.fromkeys(policy, 0.0))
            for letter, chance in policy.items():
                total[letter] += weight * reach[player] * chance
        return mean


def value(betting: BettingRules, first: Strategy, second: Strategy) -> float:
    """Return the mean chips per hand that ``first`` wins in position 0 against ``second``."""

    def walk(deal: Deal, rounds: Rounds) -> float:
        if betting.is_over(rounds):
            return betting.gain(rounds, deal[:2], deal[2])
        player = len(rounds[-1]) % 2
        policy = (first, second)[player][betting.information(deal[player], deal[2], rounds)]
        return sum(
            chance * walk(deal, betting.after(rounds, letter))
            for letter, chance in policy.items()
            if chance > 0
        )

    return sum(chance * walk(deal, ("",)) for deal, chance in deals(betting).items())


def best_response_value(betting: BettingRules, strategy: Strategy, position: int) -> float:
    """Return the mean chips per hand of the best reply, in a position, to a strategy."""

    def walk(group: dict[Deal, float], rounds: Rounds) -> float:
        """Return the value of deals that the replier cannot tell apart, weighed by their reach."""
        if betting.is_over(rounds):
            gains = {deal: betting.gain(rounds, deal[:2], deal[2]) for deal in group}
            total = sum(reach * gains[deal] for deal, reach in group.items())
            return total if position == 0 else -total
        letters = betting.legal(rounds)
        if len(rounds[-1]) % 2 == position:
            parts: dict[str, dict[Deal, float]] = defaultdict(dict)
            for deal, reach in group.items():
                parts[betting.information(deal[position], deal[2], rounds)][deal] = reach
            return sum(
                max(walk(part, betting.after(rounds, letter)) for letter in letters)
                for part in parts.values()
            )
        total = 0.0
        for letter in letters:
            lower = {
                deal: reach
                * strategy[betting.information(deal[1 - position], deal[2], rounds)][letter]
                for deal, reach in group.items()
            }
            total += walk(lower, betting.after(rounds, letter))
        return total

    return walk(deals(betting), ("",))


def exploitability(betting: BettingRules, strategy: Strategy) -> float:
    """Return what a best reply wins per hand on average over both positions; 0 in equilibrium."""
    return sum(best_response_value(betting, strategy, position) for position in (0, 1)) / 2


def _normalised(weights: Mapping[str, float]) -> dict[str, float]:
    total = sum(weights.values())
    return {key: w / total if total > 0 else 1 / len(weights) for key, w in weights.items()}
