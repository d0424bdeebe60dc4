"""Rock, paper, scissors over several rounds: rules and a player that looks for habits."""

from collections.abc import Mapping

import numpy as np

from rllm_envs.multi_agent.checks import check_integer
from rllm_envs.multi_agent.game import SimultaneousGame
from rllm_envs.tasks import Task

SIGNS = ("rock", "paper", "scissors")
NOTHING = "nothing"


class RockPaperScissors(SimultaneousGame):
    r"""Rock, paper, scissors, again and again.

    ## Description
    Two players show a sign at the same time; paper beats rock, scissors beat paper, rock beats
    scissors. All earlier rounds are known to both. The expert beats what the other showed most
    often after a round like the last one, and draws at random where it has seen none; no player
    can have an advantage over one that always draws at random.

    ## Moves
    ``\boxed{rock}``, ``\boxed{paper}`` or ``\boxed{scissors}``. Anything else counts as nothing,
    which loses to every sign.

    ## Rewards
    In each round 1 for the winner, -1 for the loser, 0 for equal signs.

    ## Arguments
    ``num_rounds`` (1 to 100, default 10).
    Task: ``{"seed": 3}``: the seed of the experts.
    """

    agents = ("player_0", "player_1")

    def __init__(self, *, num_rounds: int = 10) -> None:
        super().__init__(check_integer("num_rounds", num_rounds, 1, 100))

    def generate_task(self, rng: np.random.Generator) -> Task:
        """Return an empty task: all rounds begin alike."""
        return {}

    def validate_task(self, task: Task) -> Task:
        """Return an empty task; there is nothing to check."""
        return {}

    def set_up(self, task: Task) -> None:
        """Begin; there is nothing to set up."""

    def rules(self, agent: str) -> str:
        """Return the rules."""
        return (
            f"You play rock, paper, scissors as {agent}, {self.num_rounds} rounds against "
            f"{self.other(agent)}. Both show a sign at the same time: paper beats rock, scissors "
            "beat paper, rock beats scissors. A round won counts 1, a round lost -1. Write your "
            "sign in \\boxed{}: \\boxed{rock}, \\boxed{paper} or \\boxed{scissors}."
        )

    def view(self, agent: str) -> str:
        """Return the rounds so far."""
        return "\n".join(
            f"Round {n}: you {moves[agent]}, {self.other(agent)} {moves[self.other(agent)]}"
            for n, moves in enumerate(self.history, start=1)
        )

    def legal_moves(self, agent: str) -> tuple[str, ...]:
        """Return the signs."""
        return () if self.is_over else SIGNS

    def fallback_move(self, agent: str) -> str:
        """Return "nothing", which loses to every sign."""
        return NOTHING

    def payoffs(self, moves: Mapping[str, str]) -> dict[str, float]:
        """Return 1 and -1, or 0 for both."""
        first, second = (moves[agent] for agent in self.agents)
        result = float(_beats(first, second)) - float(_beats(second, first))
        return {self.agents[0]: result, self.agents[1]: -result}

    def expert_move(self, agent: str) -> str:
        """Return what beats the other's most frequent sign after a round like the last one."""
        rng = self.strategy_rng(agent)
        shown = [moves[self.other(agent)] for moves in self.history]
        counts = dict.fromkeys(SIGNS, 0)
        for before, after in zip(self.history, shown[1:], strict=False):
            if before == self.history[-1] and after in counts:
                counts[after] += 1
        most = max(counts.values())
        likely = [sign for sign in SIGNS if counts[sign] == most]
        guess = likely[int(rng.integers(len(likely)))]
        return SIGNS[(SIGNS.index(guess) + 1) % 3]


def _beats(sign: str, other: str) -> bool:
    if NOTHING in (sign, other):
        return other == NOTHING and sign != NOTHING
    return (SIGNS.index(sign) - SIGNS.index(other)) % 3 == 1
