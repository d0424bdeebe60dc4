"""The table of games for several agents, and their entry into PettingZoo's registry."""

from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class GameEntry:
    """One game. Written in ``GAMES``, read by registration and by ``make_aec``."""

    id: str
    """PettingZoo id; a game with a single-agent view has the same id in Gymnasium's registry."""
    kind: Literal["aec", "parallel"]
    """"aec": agents move in turns; "parallel": all move at once."""
    game: str
    """Class of the rules as "module:name", so that nothing is imported before it is made."""
    summary: str
    """What the agents do, in a few words."""
    num_players: int
    """Agents of a game with the default arguments."""
    kwargs: dict[str, Any] = field(default_factory=dict)
    """Registered arguments: names and numbers."""

    @property
    def category(self) -> str:
        """The folder that the game is in."""
        return self.game.split(".")[1]

    @property
    def extra(self) -> str:
        """The extra of rllm-envs that the PettingZoo environment needs."""
        return "multi"

    @property
    def offline(self) -> bool:
        """Whether it runs without a network; each game does."""
        return True


GAMES = (
    GameEntry(
        "rllm/TicTacToe-v0",
        "aec",
        "rllm_envs.multi_agent.tictactoe:TicTacToe",
        "noughts and crosses",
        2,
    ),
    GameEntry(
        "rllm/ConnectFour-v0",
        "aec",
        "rllm_envs.multi_agent.connect_four:ConnectFour",
        "four in a row on seven columns",
        2,
    ),
    GameEntry(
        "rllm/Nim-v0",
        "aec",
        "rllm_envs.multi_agent.nim:Nim",
        "take the last object from piles",
        2,
    ),
    GameEntry(
        "rllm/KuhnPoker-v0",
        "aec",
        "rllm_envs.multi_agent.kuhn_poker:KuhnPoker",
        "poker with three cards",
        2,
    ),
    GameEntry(
        "rllm/LeducPoker-v0",
        "aec",
        "rllm_envs.multi_agent.leduc_poker:LeducPoker",
        "poker with six cards and a public card",
        2,
    ),
    GameEntry(
        "rllm/LiarsDice-v0",
        "aec",
        "rllm_envs.multi_agent.liars_dice:LiarsDice",
        "bid on dice that are partly hidden, or call the bluff",
        2,
    ),
    GameEntry(
        "rllm/Negotiation-v0",
        "aec",
        "rllm_envs.multi_agent.negotiation:Negotiation",
        "divide goods with private values, by proposals and words",
        2,
    ),
    GameEntry(
        "rllm/Debate-v0",
        "aec",
        "rllm_envs.multi_agent.debate:Debate",
        "argue about a fact of which the judge sees only what is cited",
        2,
    ),
    GameEntry(
        "rllm/SolverJudge-v0",
        "aec",
        "rllm_envs.multi_agent.solver_judge:SolverJudge",
        "solvers answer a problem, a judge picks an answer",
        3,
    ),
    GameEntry(
        "rllm/ProposerSolver-v0",
        "aec",
        "rllm_envs.multi_agent.proposer_solver:ProposerSolver",
        "propose problems of the right difficulty, and solve them",
        2,
    ),
    GameEntry(
        "rllm/TwentyQuestionsDuo-v0",
        "aec",
        "rllm_envs.multi_agent.twenty_questions_duo:TwentyQuestionsDuo",
        "find a thing by questions that another agent answers",
        2,
    ),
    GameEntry(
        "rllm/RockPaperScissors-v0",
        "parallel",
        "rllm_envs.multi_agent.rock_paper_scissors:RockPaperScissors",
        "rock, paper, scissors over ten rounds",
        2,
    ),
    GameEntry(
        "rllm/PrisonersDilemma-v0",
        "parallel",
        "rllm_envs.multi_agent.prisoners_dilemma:PrisonersDilemma",
        "cooperate or defect over ten rounds",
        2,
    ),
    GameEntry(
        "rllm/PublicGoods-v0",
        "parallel",
        "rllm_envs.multi_agent.public_goods:PublicGoods",
        "give coins to a pot that grows and is shared",
        3,
    ),
    GameEntry(
        "rllm/SplitCoins-v0",
        "parallel",
        "rllm_envs.multi_agent.split_coins:SplitCoins",
        "demand coins of a pile; demands must fit together",
        2,
    ),
    GameEntry(
        "rllm/SealedBidAuction-v0",
        "parallel",
        "rllm_envs.multi_agent.sealed_bid_auction:SealedBidAuction",
        "bid for goods with private values",
        3,
    ),
)
"""All games for several agents."""

SHELLS = {
    "aec": "rllm_envs.multi_agent.aec:TextAECEnv",
    "parallel": "rllm_envs.multi_agent.parallel:TextParallelEnv",
}
"""The PettingZoo class of each kind."""


def register_games() -> bool:
    """Register each game in PettingZoo's registry, unless its id is taken.

    Returns:
        Whether there is a registry: False where PettingZoo is not installed, or is of a version
        before 1.27, which has none.
    """
    try:
        import pettingzoo  # an optional library
    except ImportError:
        return False
    if not hasattr(pettingzoo, "register"):
        return False
    registries = {"aec": pettingzoo.aec_registry, "parallel": pettingzoo.parallel_registry}
    for entry in GAMES:
        if entry.id not in registries[entry.kind]:
            pettingzoo.register(
                entry.kind,
                entry.id,
                SHELLS[entry.kind],
                kwargs={"game": entry.game, **entry.kwargs},
            )
    return True


def find_game(env_id: str, kind: str) -> GameEntry | None:
    """Return the game of an id and a kind, or None where there is none."""
    return next((entry for entry in GAMES if (entry.id, entry.kind) == (env_id, kind)), None)
