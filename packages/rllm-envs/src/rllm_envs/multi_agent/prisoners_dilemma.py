"""The prisoner's dilemma over several rounds: rules and tit for tat."""

from collections.abc import Mapping

import numpy as np

from rllm_envs.errors import TaskError
from rllm_envs.multi_agent.checks import check_integer, task_integers
from rllm_envs.multi_agent.game import SimultaneousGame
from rllm_envs.tasks import Task

COOPERATE, DEFECT = "cooperate", "defect"
MAX_PAYOFF = 20


class PrisonersDilemma(SimultaneousGame):
    r"""The prisoner's dilemma, again and again.

    ## Description
    Two players choose at the same time whether to cooperate or to defect. Defecting is better for
    oneself whatever the other does, but both cooperating is better for both than both defecting.
    The payoffs differ from task to task. The expert plays tit for tat.

    ## Moves
    ``\boxed{cooperate}`` or ``\boxed{defect}``. Anything else counts as cooperating.

    ## Rewards
    In each round, in points: the temptation T for defecting alone, R for both who cooperate, P for
    both who defect, S for cooperating alone, where T > R > P > S >= 0 and 2 R > T + S.

    ## Arguments
    ``num_rounds`` (1 to 100, default 10).
    Task: ``{"payoffs": [5, 3, 1, 0], "seed": 3}``: T, R, P and S.

    ## References
    R. Axelrod, W. D. Hamilton, The evolution of cooperation, Science 211, 1981.
    """

    agents = ("player_0", "player_1")

    def __init__(self, *, num_rounds: int = 10) -> None:
        super().__init__(check_integer("num_rounds", num_rounds, 1, 100))
        self.temptation = self.reward = self.punishment = self.loss = 0

    def generate_task(self, rng: np.random.Generator) -> Task:
        """Return payoffs up to 12 that make a dilemma."""
        while True:
            values = sorted((int(n) for n in rng.integers(0, 13, size=4)), reverse=True)
            if _is_dilemma(values):
                return {"payoffs": values}

    def validate_task(self, task: Task) -> Task:
        """Check that the payoffs make a dilemma."""
        payoffs = task_integers(task, "payoffs", 0, MAX_PAYOFF, (4, 4))
        if not _is_dilemma(payoffs):
            raise TaskError(f"'payoffs' T, R, P, S need T > R > P > S, 2R > T + S; got {payoffs}")
        return {"payoffs": payoffs}

    def set_up(self, task: Task) -> None:
        """Set the payoffs."""
        self.temptation, self.reward, self.punishment, self.loss = task["payoffs"]

    def rules(self, agent: str) -> str:
        """Return the rules."""
        return (
            f"You are {agent} and play {self.num_rounds} rounds with {self.other(agent)}. In each "
            f"round both choose at the same time. If both cooperate, each gets {self.reward} "
            f"points; if both defect, each gets {self.punishment}; who defects alone gets "
            f"{self.temptation} and the other one {self.loss}. Write \\boxed{{cooperate}} or "
            "\\boxed{defect}."
        )

    def view(self, agent: str) -> str:
        """Return the rounds so far."""
        other = self.other(agent)
        return "\n".join(
            f"Round {n}: you {moves[agent]}, {other} {moves[other]}; you get "
            f"{self.payoffs(moves)[agent]:g}"
            for n, moves in enumerate(self.history, start=1)
        )

    def legal_moves(self, agent: str) -> tuple[str, ...]:
        """Return the two choices."""
        return () if self.is_over else (COOPERATE, DEFECT)

    def fallback_move(self, agent: str) -> str:
        """Return "cooperate": no round is better for who cooperates in it."""
        return COOPERATE

    def payoffs(self, moves: Mapping[str, str]) -> dict[str, float]:
        """Return the points of both."""
        points = {
            (COOPERATE, COOPERATE): self.reward,
            (COOPERATE, DEFECT): self.loss,
            (DEFECT, COOPERATE): self.temptation,
            (DEFECT, DEFECT): self.punishment,
        }
        return {agent: float(points[moves[agent], moves[self.other(agent)]]) for agent in moves}

    def expert_move(self, agent: str) -> str:
        """Return what the other did last; at first, cooperate."""
        return self.history[-1][self.other(agent)] if self.history else COOPERATE


def _is_dilemma(payoffs: list[int]) -> bool:
    temptation, reward, punishment, loss = payoffs
    return temptation > reward > punishment > loss and 2 * reward > temptation + loss
