"""Liar's dice: rules, a player that counts chances, and ``rllm/LiarsDice-v0``."""

import math

import numpy as np

from rllm_envs.errors import TaskError
from rllm_envs.multi_agent.checks import check_integer, task_hands
from rllm_envs.multi_agent.game import TurnGame
from rllm_envs.multi_agent.single_agent_view import Opponent, SingleAgentView
from rllm_envs.tasks import Task

FACES = 6
MAX_DICE = 5
LIAR = "liar"


def chance_of_at_least(needed: int, num_dice: int) -> float:
    """Return the chance that at least ``needed`` of ``num_dice`` fair dice show a given face."""
    return (
        sum(
            math.comb(num_dice, hits) * (FACES - 1) ** (num_dice - hits)
            for hits in range(max(0, needed), num_dice + 1)
        )
        / FACES**num_dice
    )


class LiarsDice(TurnGame):
    r"""Bid on dice that are partly hidden.

    ## Description
    Both players roll their dice and see only their own. A bid says how many of all dice show a
    face. The next bid must be higher: a greater number, or the same number of a higher face.
    Instead of bidding a player may call the other a liar; then all dice are shown, and the bidder
    wins iff there are at least as many as bid. ``player_0`` begins. The expert compares the chance
    that the other's bid is false with the chance that its own best bid is true, given its dice.

    ## Moves
    ``\boxed{2 5}`` bids two fives; ``\boxed{liar}`` calls.

    ## Rewards
    1 and -1 for the winner and the loser; -1 for who makes no legal move.

    ## Arguments
    ``num_dice`` (1 to 5 per player, default 3).
    Task: ``{"dice": {"player_0": [2, 5, 5], "player_1": [1, 3, 6]}, "seed": 3}``.
    """

    agents = ("player_0", "player_1")
    max_moves = (2 * MAX_DICE * FACES + 2) // 2

    def __init__(self, *, num_dice: int = 3) -> None:
        super().__init__()
        self.num_dice = check_integer("num_dice", num_dice, 1, MAX_DICE)
        self.dice: dict[str, list[int]] = {}
        self.bids: list[tuple[int, int]] = []
        self.called_by = ""

    def generate_task(self, rng: np.random.Generator) -> Task:
        """Return ``{"dice": {"player_0": [2, 5, 5], "player_1": [1, 3, 6]}}``."""
        return {
            "dice": {
                agent: sorted(int(die) for die in rng.integers(1, FACES + 1, size=self.num_dice))
                for agent in self.agents
            }
        }

    def validate_task(self, task: Task) -> Task:
        """Check that ``dice`` lists equally many dice of both players."""
        dice = task_hands(task, "dice", self.agents, 1, FACES, (1, MAX_DICE))
        if len({len(hand) for hand in dice.values()}) > 1:
            raise TaskError(f"both players need equally many dice, got {dice}")
        return {"dice": {agent: sorted(hand) for agent, hand in dice.items()}}

    def set_up(self, task: Task) -> None:
        """Roll the dice of the task."""
        self.dice = task["dice"]
        self.bids = []
        self.called_by = ""
        self.current = self.agents[0]

    def rules(self, agent: str) -> str:
        """Return the rules."""
        number = len(self.dice[agent])
        return (
            f"You play liar's dice as {agent}; player_0 begins. Each of two players has {number} "
            "dice and sees only their own. A bid says how many of all dice at least show a face. "
            "Each bid must name a greater number than the last one, or the same number of a higher "
            "face. Instead of bidding you may call the last bid a lie: then the caller wins if the "
            "bid is false, and the bidder wins if it is true. Write \\boxed{2 5} to bid two fives, "
            "or \\boxed{liar}."
        )

    def view(self, agent: str) -> str:
        """Return the agent's dice and all bids; all dice once the game is over."""
        lines = [f"Your dice: {_shown(self.dice[agent])}."]
        for number, (count, face) in enumerate(self.bids):
            bidder = self.agents[number % 2]
            lines.append(f"{'You' if bidder == agent else bidder}: {count} {face}")
        if self.called_by:
            lines.append(f"{'You' if self.called_by == agent else self.called_by}: {LIAR}")
            lines.append(f"The other dice: {_shown(self.dice[self.other(agent)])}.")
        return "\n".join(lines)

    def legal_moves(self, agent: str) -> tuple[str, ...]:
        """Return all higher bids as "count face", and "liar" after the first bid."""
        if agent != self.agent_to_move:
            return ()
        call = (LIAR,) if self.bids else ()
        return tuple(f"{count} {face}" for count, face in self._higher_bids()) + call

    def make_move(self, agent: str, move: str) -> None:
        """Bid, or call and end the game."""
        if move != LIAR:
            count, face = map(int, move.split())
            self.bids.append((count, face))
            self.current = self.other(agent)
            return
        self.called_by = agent
        count, face = self.bids[-1]
        is_true = sum(hand.count(face) for hand in self.dice.values()) >= count
        winner = self.other(agent) if is_true else agent
        self.end({winner: 1, self.other(winner): -1})

    def expert_move(self, agent: str) -> str:
        """Return the bid that is most likely true, or the call where that is likelier right."""
        bids = self._higher_bids()
        # Of equally likely bids the highest leaves the other the least room.
        best = max(bids, key=lambda bid: (self._chance(agent, bid), bid), default=None)
        if self.bids:
            chance_of_lie = 1 - self._chance(agent, self.bids[-1])
            if best is None or chance_of_lie >= self._chance(agent, best):
                return LIAR
        assert best is not None  # without a bid all bids are legal
        return f"{best[0]} {best[1]}"

    def _higher_bids(self) -> list[tuple[int, int]]:
        last = self.bids[-1] if self.bids else (0, FACES)
        total = sum(len(hand) for hand in self.dice.values())
        return [
            (count, face)
            for count in range(max(1, last[0]), total + 1)
            for face in range(1, FACES + 1)
            if (count, face) > last
        ]

    def _chance(self, agent: str, bid: tuple[int, int]) -> float:
        count, face = bid
        mine = self.dice[agent]
        return chance_of_at_least(count - mine.count(face), len(mine))


class LiarsDiceEnv(SingleAgentView):
    r"""Win liar's dice against an opponent.

    ## Description
    The agent bids on dice of which it sees only its own. The same game for two agents is
    ``pettingzoo.make("aec", "rllm/LiarsDice-v0")``.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the move:
    ``\boxed{2 5}`` bids two fives, ``\boxed{liar}`` calls the last bid a lie. A text without a
    legal move is answered with a hint, ``max_retries`` times in a row; one more loses the game.

    ## Observation Space
    First the rules, then the agent's dice and all bids. The other's dice are shown at the end.

    ## Starting State
    ``num_dice`` fair dice of each player. ``player_0`` begins.

    ## Rewards
    At the end 1 for a win, -1 for a loss. The oracle bids and calls by the chances that its own
    dice leave. Against the random opponent it earns 0.91 on average over 500 seeds; the
    threshold is 0.7.

    ## Episode End
    Terminates with the call.

    ## Information
    ``success`` (the game is won), ``invalid``, ``action_mask`` (tuple of the legal actions),
    ``turn``, ``turns_left``.

    ## Arguments
    ``num_dice`` (1 to 5 per player, default 3), ``opponent`` ("random", "expert" or a function of
    observation and info that returns a text; default "random"), ``seat`` ("first", "second" or
    "random", the default), ``max_retries`` (0 to 10, default 2), ``split`` ("train", "test" or
    "all").
    Task: ``{"seat": "player_0", "dice": {"player_0": [2, 5, 5], "player_1": [1, 3, 6]}, "seed":
    3}``; the seed is that of the opponent.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        num_dice: int = 3,
        opponent: Opponent = "random",
        seat: str = "random",
        max_retries: int = 2,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(
            LiarsDice(num_dice=num_dice),
            opponent=opponent,
            seat=seat,
            max_retries=max_retries,
            split=split,
            render_mode=render_mode,
        )


def _shown(dice: list[int]) -> str:
    return " ".join(map(str, dice))
