"""Games for several agents, in turns or in rounds, over text.

Importing this package enters the games into PettingZoo's registry, where PettingZoo 1.27 or newer
is installed (extra ``multi``)::

    import pettingzoo
    import rllm_envs.multi_agent

    env = pettingzoo.make("aec", "rllm/TicTacToe-v0")
    env = pettingzoo.make("parallel", "rllm/PrisonersDilemma-v0")

``make_aec`` and ``make_parallel`` make the same environments without the registry. The rules
(``TurnGame``, ``SimultaneousGame``) and the Gymnasium environments over them
(``gymnasium.make("rllm/TicTacToe-v0")``, ``SingleAgentView``) work without PettingZoo.
"""

from typing import TYPE_CHECKING, Any

from rllm_envs.errors import UnknownEnvError
from rllm_envs.multi_agent.catalog import GAMES, GameEntry, find_game, register_games
from rllm_envs.multi_agent.game import IllegalMoveError, SimultaneousGame, TextGame, TurnGame
from rllm_envs.multi_agent.shell import TextObs
from rllm_envs.multi_agent.single_agent_view import SingleAgentView

if TYPE_CHECKING:
    from rllm_envs.multi_agent.aec import TextAECEnv
    from rllm_envs.multi_agent.parallel import TextParallelEnv

__all__ = [
    "GAMES",
    "GameEntry",
    "IllegalMoveError",
    "SimultaneousGame",
    "SingleAgentView",
    "TextAECEnv",
    "TextGame",
    "TextObs",
    "TextParallelEnv",
    "TurnGame",
    "make_aec",
    "make_parallel",
    "register_games",
]


def make_aec(env_id: str, **arguments: Any) -> "TextAECEnv":
    """Return a game of turns, such as "rllm/TicTacToe-v0", as a PettingZoo AEC environment.

    Args:
        env_id: An id of ``GAMES``.
        arguments: Arguments of ``TextAECEnv`` and of the game.

    Raises:
        UnknownEnvError: No game of turns has this id.
        EnvArgumentError: An argument is unknown or has a value that is not allowed.
        MissingDependencyError: PettingZoo is not installed.
    """
    from rllm_envs.multi_agent.aec import TextAECEnv  # loads PettingZoo

    entry = _entry(env_id, "aec")
    return TextAECEnv(entry.game, **{**entry.kwargs, **arguments})


def make_parallel(env_id: str, **arguments: Any) -> "TextParallelEnv":
    """Return a game of rounds as a PettingZoo parallel environment.

    Args:
        env_id: An id of ``GAMES``.
        arguments: Arguments of ``TextParallelEnv`` and of the game.

    Raises:
        UnknownEnvError: No game of rounds has this id.
        EnvArgumentError: An argument is unknown or has a value that is not allowed.
        MissingDependencyError: PettingZoo is not installed.
    """
    from rllm_envs.multi_agent.parallel import TextParallelEnv  # loads PettingZoo

    entry = _entry(env_id, "parallel")
    return TextParallelEnv(entry.game, **{**entry.kwargs, **arguments})


def _entry(env_id: str, kind: str) -> GameEntry:
    entry = find_game(env_id, kind)
    if entry is None:
        known = ", ".join(game.id for game in GAMES if game.kind == kind)
        raise UnknownEnvError(f"no {kind} game has the id {env_id!r:.80}; there are {known}")
    return entry


def __getattr__(name: str) -> Any:
    # Loaded on first use, because these two need PettingZoo.
    if name == "TextAECEnv":
        from rllm_envs.multi_agent.aec import TextAECEnv

        return TextAECEnv
    if name == "TextParallelEnv":
        from rllm_envs.multi_agent.parallel import TextParallelEnv

        return TextParallelEnv
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


register_games()
