"""Limit betting between two players, as pure functions, and matches of several hands.

The betting of a hand is a tuple with one string per round and one letter per action: k (check), b
(bet), c (call), r (raise), f (fold). Player 0 acts first in each round.
"""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from rllm_envs.errors import TaskError, excerpt
from rllm_envs.multi_agent.checks import check_integer
from rllm_envs.multi_agent.game import TurnGame
from rllm_envs.tasks import Task

Rounds = tuple[str, ...]
WORDS = {"k": "check", "b": "bet", "c": "call", "r": "raise", "f": "fold"}
LETTERS = {word: letter for letter, word in WORDS.items()}
ANTE = 1
MAX_HANDS = 50


@dataclass(frozen=True, slots=True)
class BettingRules:
    """Sizes of a limit game. Made by each poker game, read by the functions of this class."""

    bet_sizes: tuple[int, ...]
    """Chips of a bet or raise, by round."""
    max_bets: int
    """Bets and raises together that a round allows."""
    deck: str
    """All cards, one letter each, from the lowest rank to the highest."""
    has_public_card: bool
    """Whether a third card is laid open after the first round."""

    @property
    def num_cards(self) -> int:
        """Cards of a hand: one of each player, and the public one."""
        return 3 if self.has_public_card else 2

    @property
    def max_stake(self) -> int:
        """The most chips that a player can lose in a hand."""
        return ANTE + self.max_bets * sum(self.bet_sizes)

    def legal(self, rounds: Rounds) -> str:
        """Return the letters of the legal actions."""
        last = rounds[-1]
        if last[-1:] in ("b", "r"):
            return "cfr" if last.count("b") + last.count("r") < self.max_bets else "cf"
        return "kb"

    def after(self, rounds: Rounds, letter: str) -> Rounds:
        """Return the betting after an action; a round that it closes is followed by the next."""
        last = rounds[-1] + letter
        closed = letter == "c" or last == "kk"
        if closed and len(rounds) < len(self.bet_sizes):
            return (*rounds[:-1], last, "")
        return (*rounds[:-1], last)

    def is_over(self, rounds: Rounds) -> bool:
        """Return whether the hand is over."""
        return rounds[-1][-1:] in ("c", "f") or rounds[-1] == "kk"

    def stakes(self, rounds: Rounds) -> list[int]:
        """Return what each player has put in."""
        stakes = [ANTE, ANTE]
        for size, actions in zip(self.bet_sizes, rounds, strict=False):
            for number, letter in enumerate(actions):
                player = number % 2
                if letter in "cbr":
                    stakes[player] = stakes[1 - player]
                if letter in "br":
                    stakes[player] += size
        return stakes

    def strength(self, card: str, public: str) -> int:
        """Return a number that is greater for the better hand: a pair beats every single card."""
        return self.deck.index(card) + (len(self.deck) if card == public else 0)

    def gain(self, rounds: Rounds, cards: tuple[str, str], public: str) -> int:
        """Return what player 0 wins (or loses, below 0) in a hand that is over."""
        stakes = self.stakes(rounds)
        if rounds[-1].endswith("f"):
            folder = (len(rounds[-1]) - 1) % 2
            return -stakes[0] if folder == 0 else stakes[1]
        mine, others = self.strength(cards[0], public), self.strength(cards[1], public)
        return 0 if mine == others else stakes[1] if mine > others else -stakes[0]

    def information(self, card: str, public: str, rounds: Rounds) -> str:
        """Return what the player to move knows, as the key of a strategy: "KQ:kk/b"."""
        seen = public if len(rounds) > 1 else ""
        return f"{card}{seen}:{'/'.join(rounds)}"


class BettingGame(TurnGame):
    """A match of hands with limit betting; who acts first changes from hand to hand.

    Args:
        betting: The sizes.
        num_hands: Hands of a match (1 to 50).
    """

    agents = ("player_0", "player_1")

    def __init__(self, betting: BettingRules, num_hands: int) -> None:
        super().__init__()
        self.betting = betting
        self.num_hands = check_integer("num_hands", num_hands, 1, MAX_HANDS)
        per_round = betting.max_bets // 2 + 1
        self.max_moves = MAX_HANDS * per_round * len(betting.bet_sizes)
        self.deals: list[str] = []
        self.hand = 0
        self.rounds: Rounds = ("",)
        self.net = dict.fromkeys(self.agents, 0)
        self.results: list[str] = []

    @abstractmethod
    def strategy(self, card: str, public: str, rounds: Rounds) -> dict[str, float]:
        """Return the probability of each legal letter for the player to move."""

    def generate_task(self, rng: np.random.Generator) -> Task:
        """Return ``{"deals": ["KQ", ...]}``: cards of player_0, player_1 and the public one."""
        deck = self.betting.deck
        number = self.betting.num_cards
        return {
            "deals": [
                "".join(deck[card] for card in rng.permutation(len(deck))[:number])
                for _ in range(self.num_hands)
            ]
        }

    def validate_task(self, task: Task) -> Task:
        """Check that ``deals`` lists 1 to 50 hands that the deck allows."""
        deals = task.get("deals")
        if not isinstance(deals, list) or not 1 <= len(deals) <= MAX_HANDS:
            raise TaskError(
                f"the task needs 'deals', a list of 1 to {MAX_HANDS} hands; got {excerpt(deals)}"
            )
        deck, number = self.betting.deck, self.betting.num_cards
        for deal in deals:
            if (
                not isinstance(deal, str)
                or len(deal) != number
                or any(deal.count(card) > deck.count(card) for card in deal)
            ):
                raise TaskError(
                    f"a deal is {number} cards of the deck {deck} in one text, got {excerpt(deal)}"
                )
        return {"deals": list(deals)}

    def set_up(self, task: Task) -> None:
        """Deal the first hand."""
        self.deals = task["deals"]
        self.hand = 0
        self.rounds = ("",)
        self.net = dict.fromkeys(self.agents, 0)
        self.results = []
        self.current = self._player(0)

    def card(self, agent: str) -> str:
        """Return the private card of an agent in the present hand."""
        return self.deals[self.hand][self.agents.index(agent)]

    def public_card(self) -> str:
        """Return the public card, or the empty text where none is open."""
        return self.deals[self.hand][2:] if len(self.rounds) > 1 else ""

    def legal_moves(self, agent: str) -> tuple[str, ...]:
        """Return the legal actions as words."""
        if agent != self.agent_to_move:
            return ()
        return tuple(WORDS[letter] for letter in self.betting.legal(self.rounds))

    def make_move(self, agent: str, move: str) -> None:
        """Act; a hand that is over is followed by the next."""
        self.rounds = self.betting.after(self.rounds, LETTERS[move])
        if self.betting.is_over(self.rounds):
            self._settle()
        if self.scores is None:
            self.current = self._player(len(self.rounds[-1]) % 2)

    def view(self, agent: str) -> str:
        """Return the results of earlier hands, the agent's card, and the betting so far."""
        lines = list(self.results)
        if self.hand == len(self.deals):
            return "\n".join(lines)
        lines.append(f"Hand {self.hand + 1} of {len(self.deals)}. Your card: {self.card(agent)}.")
        for number, actions in enumerate(self.rounds):
            if number == 1:
                lines[-1] += f" Public card: {self.public_card()}."
            for turn, letter in enumerate(actions):
                actor = self._player(turn % 2)
                lines.append(f"{'You' if actor == agent else actor}: {WORDS[letter]}")
        stakes = self.betting.stakes(self.rounds)
        mine = stakes[self._position(agent)]
        lines.append(f"Chips in the pot: {mine} of yours, {sum(stakes) - mine} of the other's.")
        return "\n".join(lines)

    def outcome(self, agent: str) -> str:
        """Return what the agent has won or lost."""
        return f"You {'won' if self.net[agent] >= 0 else 'lost'} {abs(self.net[agent])} chips."

    def forfeit_scores(self, agent: str) -> dict[str, float]:
        """Return the scores where an agent loses the greatest stake in each hand that is left."""
        lost = self.betting.max_stake * (len(self.deals) - self.hand)
        self.net[agent] -= lost
        self.net[self.other(agent)] += lost
        return self._scores()

    def expert_move(self, agent: str) -> str:
        """Return an action drawn from ``strategy``."""
        chances = self.strategy(self.card(agent), self.public_card(), self.rounds)
        letters = list(chances)
        weights = np.array([chances[letter] for letter in letters])
        draw = self.strategy_rng(agent).choice(len(letters), p=weights / weights.sum())
        return WORDS[letters[int(draw)]]

    def _player(self, position: int) -> str:
        return self.agents[(position + self.hand) % 2]

    def _position(self, agent: str) -> int:
        return (self.agents.index(agent) + self.hand) % 2

    def _scores(self) -> dict[str, float]:
        return {agent: chips / len(self.deals) for agent, chips in self.net.items()}

    def _settle(self) -> None:
        """Pay out the hand and deal the next one, or end the match."""
        first, second = self._player(0), self._player(1)
        gain = self.betting.gain(
            self.rounds, (self.card(first), self.card(second)), self.deals[self.hand][2:]
        )
        self.net[first] += gain
        self.net[second] -= gain
        how = f"{first if len(self.rounds[-1]) % 2 else second} folded"
        if not self.rounds[-1].endswith("f"):
            how = ", ".join(f"{agent} had {self.card(agent)}" for agent in self.agents)
            how += f", public {self.public_card()}" if self.public_card() else ""
        who = first if gain > 0 else second
        result = f"{who} won {abs(gain)}" if gain else "nobody won"
        self.results.append(f"Hand {self.hand + 1}: {result} ({how}).")
        self.hand += 1
        self.rounds = ("",)
        if self.hand == len(self.deals):
            self.end(self._scores())
