"""Kuhn poker: rules, an equilibrium, and ``rllm/KuhnPoker-v0``."""

from rllm_envs.multi_agent.betting import BettingGame, BettingRules, Rounds
from rllm_envs.multi_agent.single_agent_view import Opponent, SingleAgentView

KUHN = BettingRules(bet_sizes=(1,), max_bets=1, deck="JQK", has_public_card=False)

BOLDNESS = {
    **{"J:": 1 / 3, "Q:": 0, "K:": 1, "J:k": 1 / 3, "Q:k": 0, "K:k": 1},
    **{"J:b": 0, "Q:b": 1 / 3, "K:b": 1, "J:kb": 0, "Q:kb": 2 / 3, "K:kb": 1},
}
"""Probability of betting, or of calling a bet. An equilibrium of H. W. Kuhn's with alpha = 1/3."""


class KuhnPoker(BettingGame):
    r"""Kuhn poker with three cards.

    ## Description
    The deck is J, Q and K. Both put in one chip and get one card. One bet of one chip is allowed;
    the higher card wins the pot. Who acts first changes from hand to hand, beginning with
    ``player_0``. The cards of a hand are shown after it unless somebody folded. The expert plays an
    equilibrium: -1/18 chips per hand in the first position.

    ## Moves
    ``\boxed{check}``, ``\boxed{bet}``, ``\boxed{call}`` or ``\boxed{fold}``.

    ## Rewards
    Chips won or lost (1 or 2 in a hand), divided by the number of hands. Who makes no legal move
    loses 2 in each hand that is left.

    ## Arguments
    ``num_hands`` (1 to 50, default 1).
    Task: ``{"deals": ["KQ"], "seed": 3}``: the cards of player_0 and player_1 in each hand.
    """

    def __init__(self, *, num_hands: int = 1) -> None:
        super().__init__(KUHN, num_hands)

    def rules(self, agent: str) -> str:
        """Return the rules."""
        hands = len(self.deals)
        return (
            f"You play Kuhn poker as {agent} in {hands} {'hand' if hands == 1 else 'hands'}. The "
            "deck is J, Q and K, K being the highest. Both put in 1 chip and get one card. Who "
            "acts first, player_0 in the first hand and then in turns, may check or bet 1 chip. A "
            "bet can be called or folded; after two checks or a call the higher card wins the pot. "
            "Write your action in \\boxed{}, such as \\boxed{check}, \\boxed{bet}, \\boxed{call} "
            "or \\boxed{fold}."
        )

    def strategy(self, card: str, public: str, rounds: Rounds) -> dict[str, float]:
        """Return an equilibrium strategy."""
        bold = BOLDNESS[self.betting.information(card, public, rounds)]
        passive, active = ("f", "c") if rounds[-1].endswith("b") else ("k", "b")
        return {passive: 1 - bold, active: bold}


class KuhnPokerEnv(SingleAgentView):
    r"""Win chips at Kuhn poker against an opponent.

    ## Description
    The agent plays a match of hands of Kuhn poker, in which the deck is J, Q and K. The same game
    for two agents is ``pettingzoo.make("aec", "rllm/KuhnPoker-v0")``.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the action:
    ``check``, ``bet``, ``call`` or ``fold``. A text without a legal action is answered with a hint,
    ``max_retries`` times in a row; one more loses 2 chips in each hand that is left.

    ## Observation Space
    First the rules, then the results of earlier hands, the agent's card, the betting of the hand
    and the pot. The other's card is shown after a hand that nobody folded.

    ## Starting State
    ``num_hands`` deals of two different cards. Who acts first changes from hand to hand.

    ## Rewards
    At the end the chips won or lost, divided by the number of hands: from -2 to 2. The oracle plays
    an equilibrium. Against the random opponent that earns 1/6 on average in either seat, measured
    0.18 over 500 seeds with a standard deviation of 0.30 per match; the threshold is 0.1.

    ## Episode End
    Terminates after the last hand.

    ## Information
    ``success`` (chips were won), ``invalid``, ``action_mask`` (tuple of the legal actions),
    ``turn``, ``turns_left``.

    ## Arguments
    ``num_hands`` (1 to 50, default 20), ``opponent`` ("random", "expert" or a function of
    observation and info that returns a text; default "random"), ``seat`` ("first", "second" or
    "random", the default), ``max_retries`` (0 to 10, default 2), ``split`` ("train", "test" or
    "all").
    Task: ``{"seat": "player_0", "deals": ["KQ"], "seed": 3}``: the cards of player_0 and player_1
    in each hand; the seed is that of opponent and oracle.

    ## References
    H. W. Kuhn, A simplified two-person poker, Contributions to the Theory of Games 1, 1950.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        num_hands: int = 20,
        opponent: Opponent = "random",
        seat: str = "random",
        max_retries: int = 2,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(
            KuhnPoker(num_hands=num_hands),
            opponent=opponent,
            seat=seat,
            max_retries=max_retries,
            split=split,
            render_mode=render_mode,
        )
