"""Demands on a pile of coins that must fit together: rules and a fair player."""

from collections.abc import Mapping

import numpy as np

from rllm_envs.multi_agent.checks import check_integer, task_integers
from rllm_envs.multi_agent.game import SimultaneousGame
from rllm_envs.tasks import Task

MAX_COINS = 40


class SplitCoins(SimultaneousGame):
    r"""Demand part of a pile without knowing what the other demands.

    ## Description
    In each round two players see a pile of coins and demand some of them at the same time. If the
    demands fit into the pile both get what they demanded, otherwise neither gets anything (Nash's
    demand game). Demands are shown after the round. The expert demands half of an even pile; of an
    odd one the two experts take the greater half in turns.

    ## Moves
    The number of coins demanded, 0 to the size of the pile: ``\boxed{5}``. Anything else counts as
    0.

    ## Rewards
    In each round the coins that the player gets.

    ## Arguments
    ``num_rounds`` (1 to 50, default 5), ``max_coins`` (4 to 40 in a pile, default 20).
    Task: ``{"piles": [12, 7, 20, 9, 16], "seed": 3}``: one pile per round.

    ## References
    J. Nash, Two-person cooperative games, Econometrica 21, 1953.
    """

    agents = ("player_0", "player_1")

    def __init__(self, *, num_rounds: int = 5, max_coins: int = 20) -> None:
        super().__init__(check_integer("num_rounds", num_rounds, 1, 50))
        self.max_coins = check_integer("max_coins", max_coins, 4, MAX_COINS)
        self.piles: list[int] = []

    def generate_task(self, rng: np.random.Generator) -> Task:
        """Return a pile of 2 to ``max_coins`` coins for each round."""
        piles = rng.integers(2, self.max_coins + 1, size=self.num_rounds)
        return {"piles": [int(pile) for pile in piles]}

    def validate_task(self, task: Task) -> Task:
        """Check that there is a pile for each round."""
        lengths = (self.num_rounds, self.num_rounds)
        return {"piles": task_integers(task, "piles", 1, MAX_COINS, lengths)}

    def set_up(self, task: Task) -> None:
        """Lay out the piles."""
        self.piles = task["piles"]

    def rules(self, agent: str) -> str:
        """Return the rules."""
        return (
            f"You are {agent} and play {self.num_rounds} rounds with {self.other(agent)}. In each "
            "round there is a pile of coins, and both of you demand some of them at the same time. "
            "If the demands together are no more than the pile, both get what they demanded; "
            "otherwise neither gets anything. Write your demand in \\boxed{}, such as \\boxed{3}."
        )

    def view(self, agent: str) -> str:
        """Return the rounds so far, and the pile."""
        other = self.other(agent)
        lines = [
            f"Round {n}: pile {self.piles[n - 1]}, you {moves[agent]}, {other} {moves[other]}; you "
            f"get {self._gains(n - 1, moves)[agent]:g}"
            for n, moves in enumerate(self.history, start=1)
        ]
        if not self.is_over:
            lines.append(f"The pile has {self._pile()} coins.")
        return "\n".join(lines)

    def legal_moves(self, agent: str) -> tuple[str, ...]:
        """Return the demands, "0" to the size of the pile."""
        return () if self.is_over else tuple(str(coins) for coins in range(self._pile() + 1))

    def fallback_move(self, agent: str) -> str:
        """Return "0", which gets nothing."""
        return "0"

    def payoffs(self, moves: Mapping[str, str]) -> dict[str, float]:
        """Return the coins of both."""
        return self._gains(len(self.history), moves)

    def expert_move(self, agent: str) -> str:
        """Return half of the pile; of an odd one the greater half in every second round."""
        greater = (len(self.history) + self.agents.index(agent)) % 2 == 0
        return str((self._pile() + greater) // 2)

    def _pile(self) -> int:
        return self.piles[len(self.history)]

    def _gains(self, number: int, moves: Mapping[str, str]) -> dict[str, float]:
        demands = {agent: int(demand) for agent, demand in moves.items()}
        fits = sum(demands.values()) <= self.piles[number]
        return {agent: float(demand if fits else 0) for agent, demand in demands.items()}
