"""Nim: rules, the strategy of the nim-sum, and ``rllm/Nim-v0``."""

import functools
import operator

import numpy as np

from rllm_envs.errors import EnvArgumentError
from rllm_envs.multi_agent.checks import check_integer, task_integers
from rllm_envs.multi_agent.game import TurnGame
from rllm_envs.multi_agent.single_agent_view import Opponent, SingleAgentView
from rllm_envs.tasks import Task

MAX_PILES = 6
MAX_OBJECTS = 20


def nim_sum(piles: list[int]) -> int:
    """Return the exclusive or of the pile sizes."""
    return functools.reduce(operator.xor, piles, 0)


def is_won(piles: list[int], misere: bool) -> bool:
    """Return whether the player to move can win: C. L. Bouton, Nim, a game with a complete theory.

    That is so iff the nim-sum is not 0; in the misere form, once no pile is greater than 1, iff it
    is 0.
    """
    if misere and max(piles, default=0) <= 1:
        return nim_sum(piles) == 0
    return nim_sum(piles) != 0


def best_take(piles: list[int], misere: bool) -> tuple[int, int]:
    """Return pile and number of a winning move; one object of the greatest pile where none wins."""
    for index, size in enumerate(piles):
        for number in range(1, size + 1):
            after = [*piles[:index], size - number, *piles[index + 1 :]]
            if not is_won(after, misere):
                return index, number
    # The longer the game, the more an opponent can go wrong.
    return piles.index(max(piles)), 1


class Nim(TurnGame):
    r"""Take objects from piles.

    ## Description
    Each move takes one or more objects from one pile. Who takes the last object wins, or loses if
    ``misere``. The player who begins, ``player_0``, can always force the win: the piles are drawn
    so. The expert is perfect.

    ## Moves
    Number of the pile and how many to take: ``\boxed{2 3}`` takes 3 from pile 2.

    ## Rewards
    1 and -1 for the winner and the loser; -1 for who makes no legal move.

    ## Arguments
    ``num_piles`` (2 to 6, default 3), ``max_objects`` (2 to 20 in a pile at first, default 7),
    ``misere`` (default False).
    Task: ``{"piles": [3, 4, 5], "seed": 3}``.
    """

    agents = ("player_0", "player_1")

    def __init__(self, *, num_piles: int = 3, max_objects: int = 7, misere: bool = False) -> None:
        super().__init__()
        if not isinstance(misere, bool):
            raise EnvArgumentError(f"misere must be True or False, got {misere!r:.80}")
        self.num_piles = check_integer("num_piles", num_piles, 2, MAX_PILES)
        self.max_objects = check_integer("max_objects", max_objects, 2, MAX_OBJECTS)
        self.misere = misere
        # A given task may have more piles than drawn ones.
        self.max_moves = (MAX_PILES * MAX_OBJECTS + 1) // 2
        self.piles: list[int] = []

    def generate_task(self, rng: np.random.Generator) -> Task:
        """Return ``{"piles": [3, 4, 5]}``, a position that the player who begins can win."""
        while True:
            piles = [int(n) for n in rng.integers(1, self.max_objects + 1, size=self.num_piles)]
            if is_won(piles, self.misere):
                return {"piles": piles}

    def split_basis(self, task: Task) -> Task:
        """Return the piles alone, so that no split meets a position of the other."""
        return {"piles": task["piles"]}

    def validate_task(self, task: Task) -> Task:
        """Check that ``piles`` lists 1 to 6 piles of 1 to 20 objects."""
        return {"piles": task_integers(task, "piles", 1, MAX_OBJECTS, (1, MAX_PILES))}

    def set_up(self, task: Task) -> None:
        """Lay out the piles."""
        self.piles = list(task["piles"])
        self.current = self.agents[0]

    def rules(self, agent: str) -> str:
        """Return the rules."""
        return (
            f"You play Nim as {agent}; player_0 begins. A move takes one or more objects from one "
            f"pile. Who takes the last object {'loses' if self.misere else 'wins'}. Write the "
            "number of the pile and how many you take in \\boxed{}: \\boxed{2 3} takes 3 objects "
            "from pile 2."
        )

    def view(self, agent: str) -> str:
        """Return the sizes of the piles."""
        return "\n".join(f"Pile {n}: {size}" for n, size in enumerate(self.piles, start=1))

    def legal_moves(self, agent: str) -> tuple[str, ...]:
        """Return the moves as "pile number"."""
        if agent != self.agent_to_move:
            return ()
        return tuple(
            f"{pile} {number}"
            for pile, size in enumerate(self.piles, start=1)
            for number in range(1, size + 1)
        )

    def make_move(self, agent: str, move: str) -> None:
        """Take objects."""
        pile, number = map(int, move.split())
        self.piles[pile - 1] -= number
        self.current = self.other(agent)
        if not any(self.piles):
            winner = self.current if self.misere else agent
            self.end({winner: 1, self.other(winner): -1})

    def expert_move(self, agent: str) -> str:
        """Return a winning move where there is one."""
        index, number = best_take(self.piles, self.misere)
        return f"{index + 1} {number}"


class NimEnv(SingleAgentView):
    r"""Win Nim against an opponent.

    ## Description
    The agent takes objects from piles, in turns with an opponent. In the first seat, the default,
    it can always win. The same game for two agents is ``pettingzoo.make("aec", "rllm/Nim-v0")``.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` holds the number
    of the pile and how many to take: ``\boxed{2 3}``. A text without a legal move is answered with
    a hint, ``max_retries`` times in a row; one more loses the game.

    ## Observation Space
    First the rules, then the piles after the opponent's move: lines such as ``Pile 1: 3``.

    ## Starting State
    ``num_piles`` piles, each uniform from 1 to ``max_objects``, drawn again until the player who
    begins can win.

    ## Rewards
    At the end 1 for a win, -1 for a loss.

    ## Episode End
    Terminates with the game.

    ## Information
    ``success`` (the game is won), ``invalid``, ``action_mask`` (tuple of the legal actions),
    ``turn``, ``turns_left``.

    ## Arguments
    ``num_piles`` (2 to 6, default 3), ``max_objects`` (2 to 20, default 7), ``misere`` (default
    False: who takes the last object wins), ``opponent`` ("random", "expert" or a function of
    observation and info that returns a text; default "random"), ``seat`` ("first", the default,
    "second" or "random"), ``max_retries`` (0 to 10, default 2), ``split`` ("train", "test" or
    "all").
    Task: ``{"seat": "player_0", "piles": [3, 4, 5], "seed": 3}``; the seed is that of the opponent.

    ## References
    C. L. Bouton, Nim, a game with a complete mathematical theory, Annals of Mathematics 3, 1901.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        num_piles: int = 3,
        max_objects: int = 7,
        misere: bool = False,
        opponent: Opponent = "random",
        seat: str = "first",
        max_retries: int = 2,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(
            Nim(num_piles=num_piles, max_objects=max_objects, misere=misere),
            opponent=opponent,
            seat=seat,
            max_retries=max_retries,
            split=split,
            render_mode=render_mode,
        )
