"""Sealed-bid auctions with private values: rules and equilibrium bids."""

from collections.abc import Mapping

import numpy as np

from rllm_envs.multi_agent.checks import check_choice, check_integer, task_hands
from rllm_envs.multi_agent.game import SimultaneousGame
from rllm_envs.tasks import Task

MAX_VALUE = 100
MAX_PLAYERS = 8


class SealedBidAuction(SimultaneousGame):
    r"""Bid for goods of which each player knows its own value only.

    ## Description
    In each round one thing is sold. Each player knows what it is worth to itself, uniform from 1 to
    100, and all bid at the same time. The highest bid wins; of equal ones the player that is first
    in an order that moves on by one each round. The winner pays the second highest bid
    (``price="second"``) or its own (``price="first"``). The winner and all bids are shown after the
    round, values never. The expert bids an equilibrium: its value at the second price, and (n - 1)
    / n of it among n players at the first.

    ## Moves
    A bid from 0 to 100: ``\boxed{35}``. Anything else counts as 0.

    ## Rewards
    In each round the winner's value less the price, which may be negative; 0 for all others.

    ## Arguments
    ``num_players`` (2 to 8, default 3), ``num_rounds`` (1 to 50, default 5), ``price`` ("second",
    the default, or "first").
    Task: ``{"values": {"player_0": [70, ...], ...}, "seed": 3}``: one value per round and player.

    ## References
    W. Vickrey, Counterspeculation, auctions, and competitive sealed tenders, Journal of Finance 16,
    1961.
    """

    def __init__(self, *, num_players: int = 3, num_rounds: int = 5, price: str = "second") -> None:
        super().__init__(check_integer("num_rounds", num_rounds, 1, 50))
        check_integer("num_players", num_players, 2, MAX_PLAYERS)
        self.agents = tuple(f"player_{n}" for n in range(num_players))
        self.price = check_choice("price", price, ("second", "first"))
        self.values: dict[str, list[int]] = {}

    def generate_task(self, rng: np.random.Generator) -> Task:
        """Return a value of 1 to 100 for each player and round."""
        return {
            "values": {
                agent: [int(n) for n in rng.integers(1, MAX_VALUE + 1, size=self.num_rounds)]
                for agent in self.agents
            }
        }

    def validate_task(self, task: Task) -> Task:
        """Check that there is a value for each player and round."""
        lengths = (self.num_rounds, self.num_rounds)
        return {"values": task_hands(task, "values", self.agents, 1, MAX_VALUE, lengths)}

    def set_up(self, task: Task) -> None:
        """Set the values."""
        self.values = task["values"]

    def rules(self, agent: str) -> str:
        """Return the rules."""
        pays = "the second highest bid" if self.price == "second" else "its own bid"
        return (
            f"You are {agent}, one of {len(self.agents)} bidders, for {self.num_rounds} rounds. In "
            "each round one thing is sold that is worth a whole number from 1 to 100 to each "
            "bidder, uniformly at random; you know your own value only. All bid at the same time. "
            f"The highest bid wins and pays {pays}; you earn your value less the price if you win, "
            "else nothing. Write a bid from 0 to 100 in \\boxed{}, such as \\boxed{35}."
        )

    def view(self, agent: str) -> str:
        """Return the rounds so far, and the agent's value in this one."""
        lines = []
        for number, moves in enumerate(self.history, start=1):
            bids = ", ".join(
                f"{'you' if name == agent else name} {bid}" for name, bid in moves.items()
            )
            winner, price = self._sale(number - 1, moves)
            lines.append(
                f"Round {number}: your value {self.values[agent][number - 1]}; bids {bids}; "
                f"{'you win' if winner == agent else f'{winner} wins'} and pay"
                f"{'' if winner == agent else 's'} {price}"
            )
        if not self.is_over:
            lines.append(f"It is worth {self.values[agent][len(self.history)]} to you.")
        return "\n".join(lines)

    def legal_moves(self, agent: str) -> tuple[str, ...]:
        """Return the bids, "0" to "100"."""
        return () if self.is_over else tuple(str(bid) for bid in range(MAX_VALUE + 1))

    def fallback_move(self, agent: str) -> str:
        """Return "0", which wins only where nobody bids more."""
        return "0"

    def payoffs(self, moves: Mapping[str, str]) -> dict[str, float]:
        """Return the winner's value less the price, and 0 for all others."""
        number = len(self.history)
        winner, price = self._sale(number, moves)
        return dict.fromkeys(moves, 0.0) | {winner: float(self.values[winner][number] - price)}

    def expert_move(self, agent: str) -> str:
        """Return the bid of an equilibrium."""
        value = self.values[agent][len(self.history)]
        if self.price == "second":
            return str(value)
        return str(value * (len(self.agents) - 1) // len(self.agents))

    def _sale(self, number: int, moves: Mapping[str, str]) -> tuple[str, int]:
        start = number % len(self.agents)
        order = self.agents[start:] + self.agents[:start]
        ranked = sorted(order, key=lambda agent: -int(moves[agent]))
        payer = ranked[1] if self.price == "second" else ranked[0]
        return ranked[0], int(moves[payer])
