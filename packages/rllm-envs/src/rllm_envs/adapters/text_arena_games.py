"""The library textarena: its games by name, and its random numbers kept apart from everyone's.

The games draw from the process-global ``random``. Here each game has a state of its own: while one
of its methods runs, under a lock, that state is in place, and afterwards the one that was there
before.
"""

import contextlib
import copy
import difflib
import importlib
import random
import threading
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from rllm_envs.errors import EnvArgumentError, MissingDependencyError

GAME = -1
"""Who speaks in a message of the game itself."""

_DOWNLOADS = frozenset(
    {"Codenames", "DontSayIt", "Hangman", "LetterAuction", "SpellingBee", "WordChains"}
    | {"WordLadder", "WordSearch", "Wordle"}
)
_KEYS = frozenset({"Debate", "GuessWho", "ScenarioPlanning", "TwentyQuestions"})
_NUM_PLAYERS = {
    "QuantumTicTacToe": 2, "SpiteAndMalice": 2, "MarketEntryGame": 4, "PublicGoodsGame": 4,
}  # fmt: skip
"""Players of the games that start with fewer without complaint."""
_lock = threading.RLock()


def textarena() -> Any:
    """Return the library.

    Raises:
        MissingDependencyError: It is not installed.
    """
    try:
        # By its name, because type checkers look for what is imported by a statement.
        return importlib.import_module("textarena")
    except ImportError as error:
        raise MissingDependencyError(
            "rllm/TextArena-v0 needs textarena: pip install 'rllm-envs[textarena]'"
        ) from error


@lru_cache(maxsize=256)
def num_players(name: str) -> int:
    """Return how many play a game, 1 or 2.

    Raises:
        EnvArgumentError: There is no such game, or it cannot be played here; the message says why.
        MissingDependencyError: The library is not installed.
    """
    family = _family(name)
    if family in _DOWNLOADS:
        raise EnvArgumentError(f"the game {name!r} downloads a word list when it is made")
    if family in _KEYS:
        raise EnvArgumentError(f"the game {name!r} asks a language model and needs a key for it")
    reason = "it is for three players or more"
    counts = (1, 2) if family not in _NUM_PLAYERS else (_NUM_PLAYERS[family],)
    for count in (count for count in counts if count <= 2):
        try:
            Game(name, count, seed=0)
        except (AssertionError, ValueError) as error:
            # This is how a game refuses a number of players.
            reason = str(error) or reason
        except Exception as error:
            # A stranger's code, some of which cannot even be parsed: nothing of it can be played.
            raise EnvArgumentError(
                f"the game {name!r} cannot be made: {type(error).__name__}: {str(error)[:200]}"
            ) from error
        else:
            return count
    raise EnvArgumentError(f"the game {name!r} cannot be played by one or two: {reason}")


class Game:
    """One running game, without the wrappers of the library.

    Args:
        name: A name of the library, such as "TicTacToe-v0".
        players: How many play.
        seed: Fixes the game and all chance in it.
    """

    def __init__(self, name: str, players: int, seed: int) -> None:
        library = textarena()
        self._random = random.Random(seed).getstate()
        self._numpy: Any = np.random.RandomState(seed).get_state()
        with self._own_random():
            env = library.make(name)
            while isinstance(env, library.Wrapper):
                env = env.env
            self.env = env
            env.reset(num_players=players, seed=seed)

    @property
    def player(self) -> int:
        """Whose turn it is."""
        return int(self.env.state.current_player_id)

    @property
    def num_errors(self) -> int:
        """How many moves in a row were not understood."""
        return int(getattr(self.env.state, "error_count", 0))

    def messages(self) -> list[tuple[int, str]]:
        """Return who said what since the player whose turn it is was last asked."""
        with self._own_random():
            _, found = self.env.get_observation()
        if isinstance(found, str):
            return [(GAME, found)]
        # Some games mix up the arguments of the library when they repeat a player's own action.
        return [
            (who if isinstance(who, int) else GAME, text)
            for who, text, _ in found
            if isinstance(text, str)
        ]

    def move(self, action: str) -> bool:
        """Play an action of the player whose turn it is; return whether the game is over."""
        with self._own_random():
            done, _ = self.env.step(action)
        return bool(done)

    def understands(self, action: str) -> bool:
        """Return whether an action is a move; it is tried on a copy."""
        other = copy.copy(self)
        other.env = copy.deepcopy(self.env)
        player, errors = self.player, self.num_errors
        try:
            if other.move(action):
                return not other.result(player)[1]
        except Exception:
            # A stranger's code: an action at which it fails is no move.
            return False
        return other.player != player or other.num_errors <= errors

    def result(self, player: int) -> tuple[float, bool, str]:
        """Return a player's reward, whether a wrong move of its ended the game, and the reason."""
        with self._own_random():
            rewards, infos = self.env.close()
        info = (infos or {}).get(player, {})
        given = (rewards or {}).get(player, 0.0)
        # Some games mix up reason and reward when they refuse a move, which costs one elsewhere.
        reward = float(given) if isinstance(given, int | float) else -1.0
        return reward, bool(info.get("invalid_move")), str(info.get("reason") or "")

    @contextlib.contextmanager
    def _own_random(self) -> Iterator[None]:
        with _lock:
            kept, kept_numpy = random.getstate(), np.random.get_state()
            random.setstate(self._random)
            np.random.set_state(self._numpy)
            try:
                yield
            finally:
                self._random, self._numpy = random.getstate(), np.random.get_state()
                random.setstate(kept)
                np.random.set_state(kept_numpy)


def _family(name: str) -> str:
    """Return the folder of a game in the library, which all its variants share."""
    registry = textarena().envs.registration.ENV_REGISTRY
    if name not in registry:
        near = difflib.get_close_matches(name, registry, n=3) or ["GuessTheNumber-v0"]
        raise EnvArgumentError(f"no game is named {name!r:.80}; near: {', '.join(near)}")
    entry = registry[name].entry_point
    module = entry if isinstance(entry, str) else f"{entry.__module__}:"
    return module.partition(":")[0].split(".")[-2]
