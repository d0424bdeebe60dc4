"""Leduc poker: rules, a near-equilibrium, and ``rllm/LeducPoker-v0``."""

from functools import cache
from importlib import resources

from rllm_envs.multi_agent.betting import BettingGame, BettingRules, Rounds
from rllm_envs.multi_agent.single_agent_view import Opponent, SingleAgentView

LEDUC = BettingRules(bet_sizes=(2, 4), max_bets=2, deck="JJQQKK", has_public_card=True)


@cache
def leduc_strategy() -> dict[str, dict[str, float]]:
    """Return the probability of each legal letter, by what a player knows.

    The table is the output of ``betting_solver.solve(LEDUC, 1500)`` in whole per mille. A best
    reply wins 0.001 chips per hand against it; against play at random, 2.37.
    """
    table = (
        resources.files("rllm_envs.multi_agent").joinpath("leduc_strategy.txt").read_text("ascii")
    )
    strategy = {}
    for line in table.splitlines():
        key, *chances = line.split()
        strategy[key] = {chance[0]: int(chance[1:]) / 1000 for chance in chances}
    return strategy


class LeducPoker(BettingGame):
    r"""Leduc poker with six cards.

    ## Description
    The deck holds J, Q and K twice. Both put in one chip and get one card. After a first round of
    betting a public card is laid open and a second round follows; a pair with the public card beats
    all else, then the higher card wins; equal cards share the pot. Bets and raises are 2 chips in
    the first round and 4 in the second, one bet and one raise per round. Who acts first changes
    from hand to hand, beginning with ``player_0``. The cards of a hand are shown after it unless
    somebody folded. The expert plays a near-equilibrium (see ``leduc_strategy``).

    ## Moves
    ``\boxed{check}``, ``\boxed{bet}``, ``\boxed{call}``, ``\boxed{raise}`` or ``\boxed{fold}``.

    ## Rewards
    Chips won or lost (1 to 13 in a hand), divided by the number of hands. Who makes no legal move
    loses 13 in each hand that is left.

    ## Arguments
    ``num_hands`` (1 to 50, default 1).
    Task: ``{"deals": ["KQJ"], "seed": 3}``: the card of player_0, that of player_1 and the public
    one of each hand.
    """

    def __init__(self, *, num_hands: int = 1) -> None:
        super().__init__(LEDUC, num_hands)

    def rules(self, agent: str) -> str:
        """Return the rules."""
        hands = len(self.deals)
        return (
            f"You play Leduc poker as {agent} in {hands} {'hand' if hands == 1 else 'hands'}. The "
            "deck holds J, Q and K twice, K being the highest. Both put in 1 chip and get one "
            "card. player_0 acts first in the first hand, and then players take turns to. After a "
            "round of betting a public card is laid open and a second round follows. A card equal "
            "to the public one wins, else the higher card; equal cards share the pot. You may "
            "check or bet; a bet can be called, folded or raised once. Bets and raises are 2 chips "
            "in the first round and 4 in the second. Write your action in \\boxed{}, such as "
            "\\boxed{check}, \\boxed{bet}, \\boxed{call}, \\boxed{raise} or \\boxed{fold}."
        )

    def strategy(self, card: str, public: str, rounds: Rounds) -> dict[str, float]:
        """Return the near-equilibrium of the table."""
        return leduc_strategy()[self.betting.information(card, public, rounds)]


class LeducPokerEnv(SingleAgentView):
    r"""Win chips at Leduc poker against an opponent.

    ## Description
    The agent plays a match of hands of Leduc poker: six cards, two rounds of betting, one public
    card. The same game for two agents is ``pettingzoo.make("aec", "rllm/LeducPoker-v0")``.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the action:
    ``check``, ``bet``, ``call``, ``raise`` or ``fold``. A text without a legal action is answered
    with a hint, ``max_retries`` times in a row; one more loses 13 chips in each hand that is left.

    ## Observation Space
    First the rules, then the results of earlier hands, the agent's card, the betting of the hand
    and the pot. The other's card is shown after a hand that nobody folded.

    ## Starting State
    ``num_hands`` deals of three cards. Who acts first changes from hand to hand.

    ## Rewards
    At the end the chips won or lost, divided by the number of hands: from -13 to 13. The oracle
    plays a near-equilibrium. Against the random opponent that earns 0.7 on average (0.59 in the
    first position of a hand, 0.82 in the second), measured 0.79 over 500 seeds with a standard
    deviation of 1.4 per match; the threshold is 0.3.

    ## Episode End
    Terminates after the last hand.

    ## Information
    ``success`` (chips were won), ``invalid``, ``action_mask`` (tuple of the legal actions),
    ``turn``, ``turns_left``.

    ## Arguments
    ``num_hands`` (1 to 50, default 10), ``opponent`` ("random", "expert" or a function of
    observation and info that returns a text; default "random"), ``seat`` ("first", "second" or
    "random", the default), ``max_retries`` (0 to 10, default 2), ``split`` ("train", "test" or
    "all").
    Task: ``{"seat": "player_0", "deals": ["KQJ"], "seed": 3}``: the card of player_0, that of
    player_1 and the public one of each hand; the seed is that of opponent and oracle.

    ## References
    F. Southey et al., Bayes' bluff: opponent modelling in poker, UAI 2005.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        num_hands: int = 10,
        opponent: Opponent = "random",
        seat: str = "random",
        max_retries: int = 2,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(
            LeducPoker(num_hands=num_hands),
            opponent=opponent,
            seat=seat,
            max_retries=max_retries,
            split=split,
            render_mode=render_mode,
        )
