"""The public goods game: rules and a conditional cooperator."""

from collections.abc import Mapping

import numpy as np

from rllm_envs.multi_agent.checks import check_integer, task_integer
from rllm_envs.multi_agent.game import SimultaneousGame
from rllm_envs.tasks import Task

ENDOWMENT = 10
"""Coins of each player in each round."""
MAX_PLAYERS = 8


class PublicGoods(SimultaneousGame):
    r"""Give coins to a pot that grows and is shared by all.

    ## Description
    In each round each player has 10 coins and gives some of them to a pot, all at the same time.
    The pot is multiplied by a factor between 1 and the number of players and shared equally, so
    that giving is good for all and bad for oneself. All gifts are shown after the round. The expert
    gives everything at first and then what the others gave on average.

    ## Moves
    The number of coins given, 0 to 10: ``\boxed{4}``. Anything else counts as 10.

    ## Rewards
    In each round the coins that the player keeps and its share of the pot.

    ## Arguments
    ``num_players`` (2 to 8, default 3), ``num_rounds`` (1 to 100, default 8).
    Task: ``{"factor_percent": 160, "seed": 3}``: 100 times the factor, above 100 and below 100
    times the number of players.
    """

    def __init__(self, *, num_players: int = 3, num_rounds: int = 8) -> None:
        super().__init__(check_integer("num_rounds", num_rounds, 1, 100))
        check_integer("num_players", num_players, 2, MAX_PLAYERS)
        self.agents = tuple(f"player_{n}" for n in range(num_players))
        self.factor_percent = 0

    def generate_task(self, rng: np.random.Generator) -> Task:
        """Return a factor in steps of 0.1, at least 0.2 away from the ends of its range."""
        return {"factor_percent": 10 * int(rng.integers(12, 10 * len(self.agents) - 1))}

    def validate_task(self, task: Task) -> Task:
        """Check the factor."""
        highest = 100 * len(self.agents) - 1
        return {"factor_percent": task_integer(task, "factor_percent", 101, highest)}

    def set_up(self, task: Task) -> None:
        """Set the factor."""
        self.factor_percent = task["factor_percent"]

    def rules(self, agent: str) -> str:
        """Return the rules."""
        return (
            f"You are {agent}, one of {len(self.agents)} players, for {self.num_rounds} rounds. In "
            f"each round each player has {ENDOWMENT} coins and gives some of them to a pot, all at "
            f"the same time. The pot is multiplied by {self.factor_percent / 100:g} and shared "
            "equally by all players. You earn the coins that you keep and your share. Write the "
            "number of coins that you give in \\boxed{}, such as \\boxed{4}."
        )

    def view(self, agent: str) -> str:
        """Return the gifts of the rounds so far."""
        lines = []
        for number, moves in enumerate(self.history, start=1):
            gifts = ", ".join(
                f"{'you' if name == agent else name} {gift}" for name, gift in moves.items()
            )
            earned = self.payoffs(moves)[agent]
            lines.append(f"Round {number}: gifts {gifts}; you earn {earned:.4g}")
        return "\n".join(lines)

    def legal_moves(self, agent: str) -> tuple[str, ...]:
        """Return the gifts, "0" to "10"."""
        return () if self.is_over else tuple(str(coins) for coins in range(ENDOWMENT + 1))

    def fallback_move(self, agent: str) -> str:
        """Return the whole endowment: no gift is worse for who gives it."""
        return str(ENDOWMENT)

    def payoffs(self, moves: Mapping[str, str]) -> dict[str, float]:
        """Return what each player keeps and its share of the pot."""
        gifts = {agent: int(gift) for agent, gift in moves.items()}
        share = sum(gifts.values()) * self.factor_percent / 100 / len(gifts)
        return {agent: ENDOWMENT - gift + share for agent, gift in gifts.items()}

    def expert_move(self, agent: str) -> str:
        """Return the mean gift of the others in the last round, rounded; at first everything."""
        if not self.history:
            return str(ENDOWMENT)
        others = [int(gift) for name, gift in self.history[-1].items() if name != agent]
        return str(round(sum(others) / len(others)))
