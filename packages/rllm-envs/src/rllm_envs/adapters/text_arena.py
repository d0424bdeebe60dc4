"""``rllm/TextArena-v0``: a game of the library textarena, alone or against an opponent."""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from rllm_envs.adapters.text_arena_games import GAME, Game, num_players
from rllm_envs.core import Response, TextEnv
from rllm_envs.errors import EnvArgumentError, EpisodeError, TaskError, excerpt
from rllm_envs.parsing import boxed_answer, strip_thoughts
from rllm_envs.spaces import MAX_SHARED_LENGTH
from rllm_envs.tasks import Task

Opponent = Callable[[str], str]
"""Returns the move of the other player for everything that was said to it."""

MAX_SEED = 2**31 - 1
MAX_ACTION = 20_000
DIGITS = tuple(f"[{digit}]" for digit in range(10))
"""Moves that the random opponent tries where none that a game lists is one."""
MAX_TRIED_MOVES = 40
NUM_TRIALS = 3
"""Games in which the random opponent is tried before it is accepted."""
MAX_OPPONENT_MOVES = 200
"""Moves of an opponent in a row before a game counts as stuck."""
HINT = (
    "Put your move in \\boxed{}: \\boxed{5} is sent to the game as [5]. Text without a box is sent "
    "as it is."
)

_BRACKETS = re.compile(r"\[[^\[\]\n]{1,80}\]")
_LISTS_MOVES = re.compile(r"\b(?:available|valid|legal|possible)\b", re.IGNORECASE)
_SPEAKER = re.compile(r"\[(?:GAME|Player \d+)\]")


class TextArenaEnv(TextEnv):
    r"""Play a game of the library textarena.

    ## Description
    Games for one player, such as guessing a number or FrozenLake, and games for two, such as
    TicTacToe or KuhnPoker, in which an opponent has the other seat. The library's games share one
    random generator; here each has its own, so that games never disturb each other.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is sent to the
    game in square brackets, which most games want; text without a box is sent as it is.

    ## Observation Space
    First the rules as the game tells them, and how to act; then what the game and the other player
    said since the last move. The last observation is the reason of the end.

    ## Starting State
    That of the game for a seed of 31 bits, uniform. With ``seat=None`` the seat is random.

    ## Rewards
    What the game gives at the end: for one player up to 1, where games of several steps give a part
    for a part; for two 1 for a win, 0 for a draw and -1 for a loss. Most games end with a loss at
    the second wrong move in a row.

    ## Episode End
    Terminates with the game. Truncates after ``max_turns`` actions, and where the game fails.

    ## Information
    ``success`` (reward 1), ``invalid`` (the game refused the move), ``error`` (why the game failed,
    or ""), ``turn``, ``turns_left``.

    ## Arguments
    ``game`` (a name of the library; default "GuessTheNumber-v0"), ``opponent`` ("random": one of
    the moves that the game lists and understands; or a callable from everything said to it to its
    text), ``seat`` (0 or 1 of two; default None), ``max_turns`` (default 100), ``split`` ("train",
    "test" or "all"). Games that download word lists, that need the key of a service, or that are
    for three and more are refused, and so is "random" where what a game lists are no moves. The
    oracle knows GuessTheNumber only.
    Task: ``{"game": "TicTacToe-v0", "seed": 7, "seat": 0}``.
    Needs ``pip install "rllm-envs[textarena]"``.

    ## References
    Guertler et al. 2025, "TextArena".

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        game: str = "GuessTheNumber-v0",
        opponent: str | Opponent = "random",
        seat: int | None = None,
        max_turns: int = 100,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_turns=max_turns, split=split, render_mode=render_mode)
        if not isinstance(game, str):
            raise EnvArgumentError(f"game must be a name, got {game!r:.80}")
        if opponent != "random" and not callable(opponent):
            raise EnvArgumentError(f'opponent must be "random" or a callable, got {opponent!r:.80}')
        self.num_players = num_players(game)
        if self.num_players == 1 and (seat not in (None, 0) or opponent != "random"):
            raise EnvArgumentError(f"{game!r} is for one player: it has no opponent and no seat 1")
        if seat is not None and (isinstance(seat, bool) or seat not in (0, 1)):
            raise EnvArgumentError(f"seat must be 0, 1 or None, got {seat!r:.80}")
        if self.num_players == 2 and opponent == "random":
            _check_random_opponent(game)
        self.game = game
        self.seat = seat
        # Whoever answers for a callable may take its time.
        self.blocking = callable(opponent)
        self._opponent = opponent
        self._running: Game | None = None
        self._seat = 0
        self._rng = np.random.default_rng(0)
        self._heard: list[str] = []

    def generate_task(self) -> Task:
        """Return a random seed and, of two, a seat."""
        task: Task = {"game": self.game, "seed": int(self.np_random.integers(MAX_SEED))}
        if self.num_players == 1:
            return task
        seat = int(self.np_random.integers(2)) if self.seat is None else self.seat
        return task | {"seat": seat}

    def validate_task(self, task: Task) -> Task:
        """Check game, seed and seat.

        Raises:
            TaskError: The game is another, or a number is out of range.
        """
        if task.get("game", self.game) != self.game:
            raise TaskError(f"the task is of {excerpt(task['game'])}, this is {self.game!r}")
        seed, seat = task.get("seed"), task.get("seat", 0)
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= MAX_SEED:
            raise TaskError(f"'seed' must be in 0 to {MAX_SEED}, got {excerpt(seed)}")
        if isinstance(seat, bool) or seat not in range(self.num_players):
            raise TaskError(f"'seat' must be below {self.num_players}, got {excerpt(seat)}")
        checked: Task = {"game": self.game, "seed": seed}
        return checked | ({"seat": seat} if self.num_players == 2 else {})

    def begin(self, task: Task) -> str:
        """Start the game and return its rules.

        Raises:
            TaskError: The game ends before the first move.
        """
        self._seat = task.get("seat", 0)
        self._rng = np.random.default_rng([task["seed"], 1])
        self._heard = []
        self._running = Game(self.game, self.num_players, task["seed"])
        if self._play_opponent(self._running):
            raise TaskError(
                f"{self.game} with seed {task['seed']} is over before the first move: the opponent "
                "has made none that the game understands"
            )
        return f"{self._said(self._running)}\n\n{HINT}"[-MAX_SHARED_LENGTH:]

    def respond(self, action: str) -> Response:
        """Play a move and those of the opponent that follow."""
        game = self._running
        if game is None:
            raise EpisodeError("no game is running: call reset() first")
        boxed = boxed_answer(action)
        move = strip_thoughts(action).strip() if boxed is None else f"[{boxed.strip()}]"
        errors = game.num_errors
        try:
            is_over = game.move(move[:MAX_ACTION])
            is_wrong = not is_over and game.player == self._seat and game.num_errors > errors
            is_over = is_over or self._play_opponent(game)
            if not is_over:
                info = {"invalid": is_wrong, "error": ""}
                return Response(self._said(game)[-MAX_SHARED_LENGTH:], info=info)
            reward, is_wrong, reason = game.result(self._seat)
        except Exception as error:
            # Games are a stranger's code, and some fail at text that they do not expect.
            text = f"{type(error).__name__}: {error}"[:500]
            return Response("", truncated=True, info={"invalid": True, "error": text})
        info = {"invalid": is_wrong, "error": ""}
        return Response(reason[:MAX_SHARED_LENGTH], reward, terminated=True, info=info)

    def oracle_action(self) -> str:
        r"""Return the middle of the numbers that are still possible, in ``\boxed{}``.

        Raises:
            EnvArgumentError: The game is not GuessTheNumber.
        """
        env = self._running.env if self._running is not None else None
        if env is None or type(env).__name__ != "GuessTheNumberEnv":
            raise EnvArgumentError(f"no oracle is known for the game {self.game!r}")
        low, high = env.min_number, env.max_number
        for guess, hint in env.state.game_state["guess_history"]:
            low, high = (guess + 1, high) if hint == "higher" else (low, guess - 1)
        return f"\\boxed{{{(low + high) // 2}}}"

    def _play_opponent(self, game: Game) -> bool:
        """Play until it is our turn; return whether the game is over."""
        for _ in range(MAX_OPPONENT_MOVES):
            if game.player == self._seat:
                return False
            self._heard.append(_told(game.messages(), 1 - self._seat))
            if game.move(self._opponent_move(game)):
                return True
        raise RuntimeError(f"the opponent of {self.game} has moved {MAX_OPPONENT_MOVES} times")

    def _opponent_move(self, game: Game) -> str:
        text = "\n".join(self._heard)
        if not isinstance(self._opponent, str):
            return str(self._opponent(text))[:MAX_ACTION]
        return _random_move(self._rng, game, text) or ""

    def _said(self, game: Game) -> str:
        return _told(game.messages(), self._seat)


@lru_cache(maxsize=256)
def _check_random_opponent(name: str) -> None:
    """Refuse a game in which moves at random are not understood from the first one on."""
    for seed in range(NUM_TRIALS):
        game = Game(name, 2, seed)
        heard = _told(game.messages(), game.player)
        if _random_move(np.random.default_rng(seed), game, heard) is None:
            raise EnvArgumentError(
                f"the random opponent finds no moves in what {name!r} says; give a callable: "
                "opponent=function_of_text"
            )


def _random_move(rng: np.random.Generator, game: Game, heard: str) -> str | None:
    """Return a random one of the listed moves that the game understands; None where it has none.

    What a game lists may be an example of the form only, so each is tried on a copy of the game.
    """
    moves = list(dict.fromkeys([*listed_moves(heard), *DIGITS]))
    order = [int(i) for i in rng.permutation(len(moves))]
    # What the game lists is more often a move than a digit is.
    order.sort(key=lambda i: moves[i] in DIGITS and i >= len(moves) - len(DIGITS))
    return next((moves[i] for i in order[:MAX_TRIED_MOVES] if game.understands(moves[i])), None)


def listed_moves(text: str) -> list[str]:
    """Return the moves that a game lists: what is in square brackets in the last line that does so.

    A line lists moves if it says "available", "valid", "legal" or "possible"; where none does, all
    brackets count, such as those of an example in the rules.
    """
    plain = _SPEAKER.sub("", text)
    for line in reversed(plain.splitlines()):
        found = _BRACKETS.findall(line) if _LISTS_MOVES.search(line) else []
        if found:
            return list(dict.fromkeys(found))
    return list(dict.fromkeys(_BRACKETS.findall(plain)))


def _told(messages: list[tuple[int, str]], listener: int) -> str:
    """Return messages as text, without what the listener said."""
    others: list[Any] = [
        text if speaker == GAME else f"[Player {speaker}] {text}"
        for speaker, text in messages
        if speaker != listener
    ]
    return "\n".join(others)
