"""Negotiation over a pool of goods with private values: rules and a conceding player."""

import itertools

import numpy as np

from rllm_envs.errors import TaskError
from rllm_envs.multi_agent.checks import check_integer, task_hands, task_integers
from rllm_envs.multi_agent.game import TurnGame, words_around_box
from rllm_envs.tasks import Task

GOODS = ("books", "hats", "balls")
TOTAL = 10
"""What the whole pool is worth to each player."""
MAX_COUNT = 4
MAX_MESSAGE = 300
ACCEPT = "accept"


class Negotiation(TurnGame):
    r"""Divide books, hats and balls whose value to the other is unknown.

    ## Description
    Two players divide a pool. Each knows what a book, a hat and a ball are worth to itself; the
    whole pool is worth 10 to each. In turns, beginning with ``player_0``, they propose a division
    or accept the last proposal. After ``max_proposals`` moves without agreement both earn nothing.
    The words around the box reach the other player, up to 300 characters. The expert asks for less
    from turn to turn and knows its own values only.

    ## Moves
    What the author is to get: ``\boxed{1 2 0}`` asks for one book, two hats and no ball and leaves
    the rest to the other. ``\boxed{accept}`` takes what the other leaves.

    ## Rewards
    The value of one's share divided by 10, from 0 to 1 for each player; 0 for both without an
    agreement, as when somebody makes no legal move.

    ## Arguments
    ``max_proposals`` (2 to 20 moves by both together, default 8).
    Task: ``{"pool": [2, 1, 3], "values": {"player_0": [2, 3, 1], "player_1": [1, 5, 1]}, "seed":
    3}``: numbers and values of books, hats and balls.

    ## References
    M. Lewis, D. Yarats, Y. Dauphin, D. Parikh, D. Batra, Deal or no deal? End-to-end learning of
    negotiation dialogues, EMNLP 2017.
    """

    agents = ("player_0", "player_1")

    def __init__(self, *, max_proposals: int = 8) -> None:
        super().__init__()
        self.max_proposals = check_integer("max_proposals", max_proposals, 2, 20)
        self.max_moves = (max_proposals + 1) // 2
        self.pool: list[int] = []
        self.values: dict[str, list[int]] = {}
        self.proposals: list[list[int]] = []
        self.messages: list[str] = []
        self.is_agreed = False
        self._message = ""

    def generate_task(self, rng: np.random.Generator) -> Task:
        """Return a pool of 5 to 8 goods that is worth 10 to both, and not the same to both."""
        while True:
            pool = [int(n) for n in rng.integers(1, MAX_COUNT + 1, size=len(GOODS))]
            if not 5 <= sum(pool) <= 8:
                continue
            valuations = _valuations(pool)
            if len(valuations) < 2:
                continue
            chosen = rng.permutation(len(valuations))[: len(self.agents)]
            values = [valuations[int(index)] for index in chosen]
            return {"pool": pool, "values": dict(zip(self.agents, values, strict=True))}

    def validate_task(self, task: Task) -> Task:
        """Check that the pool is worth 10 to both players."""
        sizes = (len(GOODS), len(GOODS))
        pool = task_integers(task, "pool", 0, MAX_COUNT, sizes)
        values = task_hands(task, "values", self.agents, 0, TOTAL, sizes)
        for agent, own in values.items():
            if _worth(pool, own) != TOTAL:
                raise TaskError(
                    f"the pool {pool} must be worth {TOTAL} to each player; to {agent} it is worth "
                    f"{_worth(pool, own)}"
                )
        return {"pool": pool, "values": values}

    def set_up(self, task: Task) -> None:
        """Lay out the pool."""
        self.pool = task["pool"]
        self.values = task["values"]
        self.proposals = []
        self.messages = []
        self.is_agreed = False
        self.current = self.agents[0]

    def rules(self, agent: str) -> str:
        """Return the rules."""
        return (
            f"You are {agent} and divide {_goods(self.pool)} with {self.other(agent)}. "
            f"The whole pool is worth {TOTAL} to each of you, but one thing need not be worth the "
            "same to both, and neither knows what it is worth to the other. You earn the worth of "
            f"your share. Moves are made in turns; after {self.max_proposals} moves without an "
            "agreement both earn nothing. Write what you want to get in \\boxed{}, as numbers of "
            "books, hats and balls: \\boxed{1 0 2}. The other gets the rest. Or write "
            "\\boxed{accept} to take what the last proposal leaves to you. The words around the "
            f"box, up to {MAX_MESSAGE} characters, are read by the other."
        )

    def view(self, agent: str) -> str:
        """Return the agent's values and all moves."""
        worth = ", ".join(f"a {g[:-1]} {v}" for g, v in zip(GOODS, self.values[agent], strict=True))
        lines = [f"Worth to you: {worth}."]
        for number, (wanted, said) in enumerate(zip(self.proposals, self.messages, strict=True)):
            author = self.agents[number % 2]
            who = "You want" if author == agent else f"{author} wants"
            speaker = "You" if author == agent else author
            words = f' {speaker} said: "{said}"' if said else ""
            lines.append(f"{who} {_goods(wanted)}.{words}")
        if self.is_agreed:
            lines.append(f"The last proposal was accepted; you get {_goods(self._share(agent))}.")
        elif self.scores is None:
            lines.append(f"Moves left, the next one included: {self._moves_left()}.")
        return "\n".join(lines)

    def legal_moves(self, agent: str) -> tuple[str, ...]:
        """Return "accept" after a proposal, and all divisions of the pool."""
        if agent != self.agent_to_move:
            return ()
        divisions = itertools.product(*(range(count + 1) for count in self.pool))
        accept = (ACCEPT,) if self.proposals else ()
        return accept + tuple(" ".join(map(str, division)) for division in divisions)

    def read_move(self, agent: str, text: str) -> str:
        """Return the move, and keep the words around it for the other player."""
        move = super().read_move(agent, text)
        self._message = words_around_box(text, MAX_MESSAGE)
        return move

    def make_move(self, agent: str, move: str) -> None:
        """Propose, or accept and end the game; the last move ends it too."""
        if move == ACCEPT:
            self.is_agreed = True
            self.end(
                {name: _worth(self._share(name), self.values[name]) / TOTAL for name in self.agents}
            )
            return
        self.proposals.append([int(count) for count in move.split()])
        self.messages.append(self._message)
        self.current = self.other(agent)
        if self._moves_left() == 0:
            self.end(dict.fromkeys(self.agents, 0))

    def outcome(self, agent: str) -> str:
        """Return what the agent earns."""
        return f"You earn {(self.scores or {})[agent]:g} of 1."

    def forfeit_scores(self, agent: str) -> dict[str, float]:
        """Return 0 for both: there is no agreement."""
        return dict.fromkeys(self.agents, 0.0)

    def expert_move(self, agent: str) -> str:
        """Return the move of a player that concedes evenly, from the whole pool to half its worth.

        Of the divisions worth as much as it aims at, it asks for the one with the fewest goods,
        each counted once more for every time that the other has asked for its kind.
        """
        own = self.values[agent]
        left = self._moves_left()
        share = (left - 1) / max(1, self.max_proposals - 1)
        aim = TOTAL / 2 + share * (TOTAL / 2 - 1)
        if self.proposals:
            # The last move can only accept: a proposal there would find no answer.
            offered = [n - wanted for n, wanted in zip(self.pool, self.proposals[-1], strict=True)]
            if left == 1 or _worth(offered, own) >= aim:
                return ACCEPT
        options = [
            division
            for division in itertools.product(*(range(count + 1) for count in self.pool))
            if _worth(division, own) >= aim
        ]
        asked = [
            1 + sum(wanted[kind] > 0 for wanted in self._proposals_of(self.other(agent)))
            for kind in range(len(GOODS))
        ]
        best = min(options, key=lambda option: (_worth(option, asked), -_worth(option, own)))
        return " ".join(map(str, best))

    def _proposals_of(self, agent: str) -> list[list[int]]:
        return self.proposals[self.agents.index(agent) :: 2]

    def _moves_left(self) -> int:
        return self.max_proposals - len(self.proposals)

    def _share(self, agent: str) -> list[int]:
        wanted = self.proposals[-1]
        if self.agents[(len(self.proposals) - 1) % 2] == agent:
            return wanted
        return [count - taken for count, taken in zip(self.pool, wanted, strict=True)]


def _valuations(pool: list[int]) -> list[list[int]]:
    """Return all whole values of the kinds of goods at which the pool is worth 10."""
    found = []
    for first in range(TOTAL // pool[0] + 1):
        rest = TOTAL - first * pool[0]
        for second in range(rest // pool[1] + 1):
            third, remainder = divmod(rest - second * pool[1], pool[2])
            if remainder == 0:
                found.append([first, second, third])
    return found


def _worth(goods: list[int] | tuple[int, ...], values: list[int] | tuple[int, ...]) -> int:
    return sum(count * worth for count, worth in zip(goods, values, strict=True))


def _goods(counts: list[int]) -> str:
    return ", ".join(
        f"{count} {good if count != 1 else good[:-1]}"
        for count, good in zip(counts, GOODS, strict=True)
    )
