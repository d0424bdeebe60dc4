r"""Rules of games for several agents, independent of PettingZoo.

A game is a ``TurnGame`` (one agent moves at a time) or a ``SimultaneousGame`` (all move at once).
``aec.py`` and ``parallel.py`` put PettingZoo's interface over them, ``single_agent_view.py``
Gymnasium's.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from rllm_envs.core import MAX_DRAWS
from rllm_envs.errors import EnvArgumentError, RllmEnvsError, excerpt
from rllm_envs.multi_agent.checks import task_integer
from rllm_envs.parsing import boxed_answer, strip_thoughts
from rllm_envs.tasks import Task, task_split

MAX_SEED = 2**32 - 1
BACKSLASH = "\\"
MAX_ECHO = 40
"""Characters of an illegal move that its author is shown again."""


class IllegalMoveError(RllmEnvsError):
    """A text is no legal move; the message tells its author what to write."""


def boxed(move: str) -> str:
    r"""Return ``\boxed{move}``."""
    return f"\\boxed{{{move}}}"


def normalised(text: str) -> str:
    """Return a move as moves are compared: lower case, commas and spaces as single spaces."""
    return " ".join(text.lower().replace(",", " ").split())


def words_around_box(text: str, limit: int) -> str:
    """Return what an action says outside of thoughts and its last box, on one line.

    Args:
        text: The action.
        limit: The most characters that are kept.
    """
    spoken = strip_thoughts(text)
    answer = boxed_answer(text)
    if answer is not None:
        before, _, after = spoken.rpartition(f"{{{answer}}}")
        spoken = f"{before.rpartition('boxed')[0].removesuffix(BACKSLASH)} {after}"
    return " ".join(spoken.split())[:limit]


class TextGame(ABC):
    """What all games share: fixed agent names, tasks as data, private views, a scripted expert.

    A game is set up from a task, which is JSON and holds all its chance (cards, dice, values), so
    that one task is always the same game. ``task["seed"]`` feeds what an expert draws where the
    best strategy is a mixed one.
    """

    agents: tuple[str, ...]
    """Names of the agents, one per role, such as "player_0"."""
    lists_moves: bool = True
    """Whether ``legal_moves`` lists all moves; False for moves in free words."""

    def __init__(self) -> None:
        self.seed = 0
        self.num_moves = 0

    # What a game writes

    @abstractmethod
    def generate_task(self, rng: np.random.Generator) -> Task:
        """Return the chance of one game, as JSON; ``draw_task`` adds the seed."""

    @abstractmethod
    def validate_task(self, task: Task) -> Task:
        """Return a given task in the form that ``set_up`` expects.

        Raises:
            TaskError: The task cannot be played; the message names the field.
        """

    @abstractmethod
    def set_up(self, task: Task) -> None:
        """Put the game into the starting state of a task."""

    @abstractmethod
    def rules(self, agent: str) -> str:
        """Return the rules as the agent is told them, and how a move is written."""

    @abstractmethod
    def view(self, agent: str) -> str:
        """Return all that the agent may know of the present state, and nothing else."""

    @abstractmethod
    def legal_moves(self, agent: str) -> tuple[str, ...]:
        """Return the moves that the agent has now, as they stand in the box.

        Empty where it is not the agent's turn, or where moves are free words.
        """

    @abstractmethod
    def expert_move(self, agent: str) -> str:
        """Return the move of a strong scripted policy, which knows what the agent's view shows."""

    # What this class does

    def start(self, task: Task) -> None:
        """Start a game of a task that ``validate_task`` or ``draw_task`` has returned."""
        self.seed = task["seed"]
        self.num_moves = 0
        self.set_up(task)

    def split_basis(self, task: Task) -> Task:
        """Return what decides to which split a drawn task belongs: all of it by default."""
        return task

    def with_seed(self, task: Task) -> Task:
        """Return a given task with its seed, 0 by default, once ``validate_task`` accepts it.

        Raises:
            TaskError: The task cannot be played.
        """
        seed = task_integer({"seed": 0} | task, "seed", 0, MAX_SEED)
        return self.validate_task(task) | {"seed": seed}

    def read_move(self, agent: str, text: str) -> str:
        r"""Return the move that a text makes: by default the box, which must be a legal move.

        Raises:
            IllegalMoveError: It makes none.
        """
        answer = boxed_answer(text)
        moves = self.legal_moves(agent)
        if answer is None:
            raise IllegalMoveError(f"Write your move in \\boxed{{}}, such as {boxed(moves[0])}.")
        wanted = normalised(answer)
        for move in moves:
            if normalised(move) == wanted:
                return move
        shown = ", ".join(moves[:12]) + (", ..." if len(moves) > 12 else "")
        raise IllegalMoveError(f"{excerpt(answer, MAX_ECHO)} is not a legal move. Legal: {shown}.")

    def legal_actions(self, agent: str) -> tuple[str, ...]:
        """Return the legal moves as whole actions."""
        return tuple(map(boxed, self.legal_moves(agent)))

    def expert_action(self, agent: str) -> str:
        """Return the expert's move as a whole action."""
        return boxed(self.expert_move(agent))

    def strategy_rng(self, agent: str) -> np.random.Generator:
        """Return the generator of an expert's chance: the same one until the next move is made."""
        return np.random.default_rng([self.seed, self.num_moves, self.agents.index(agent)])

    def other(self, agent: str) -> str:
        """Return the other one of two agents."""
        return self.agents[1 - self.agents.index(agent)]


class TurnGame(TextGame):
    """A game in which one agent moves at a time and the scores are known at the end.

    ``set_up`` and ``make_move`` set ``current``, the agent to move next, and ``make_move`` calls
    ``end`` when the game is over.
    """

    max_moves: int
    """The most moves that one agent can make in a game, whatever the task."""

    def __init__(self) -> None:
        super().__init__()
        self.current = ""
        self.scores: dict[str, float] | None = None
        self.forfeited_by = ""

    @abstractmethod
    def make_move(self, agent: str, move: str) -> None:
        """Change the state by a move that ``read_move`` has returned."""

    def start(self, task: Task) -> None:
        """Start a game of a task."""
        self.scores = None
        self.forfeited_by = ""
        super().start(task)

    @property
    def agent_to_move(self) -> str | None:
        """The agent that moves now; None when the game is over."""
        return self.current if self.scores is None else None

    def end(self, scores: Mapping[str, float]) -> None:
        """End the game with these scores, one per agent."""
        self.scores = {agent: float(scores[agent]) for agent in self.agents}

    def play(self, agent: str, text: str) -> None:
        """Make the move that a text writes.

        Raises:
            IllegalMoveError: It writes none; the state is as before.
        """
        move = self.read_move(agent, text)
        self.num_moves += 1
        self.make_move(agent, move)

    def forfeit(self, agent: str) -> None:
        """End the game for want of a legal move; of two players the other one wins by 1."""
        self.forfeited_by = agent
        self.end(self.forfeit_scores(agent))

    def forfeit_scores(self, agent: str) -> dict[str, float]:
        """Return the scores after an agent has made no legal move: -1, and 1 for all others."""
        return {name: -1.0 if name == agent else 1.0 for name in self.agents}

    def outcome(self, agent: str) -> str:
        """Return how the game has ended for an agent, in one sentence."""
        score = (self.scores or {})[agent]
        return "You win." if score > 0 else "You lose." if score < 0 else "It is a draw."

    def observation(self, agent: str) -> str:
        """Return the agent's view, and whose turn it is or how the game has ended."""
        parts = [self.view(agent)]
        if self.scores is None:
            mine = self.current == agent
            parts.append("It is your turn." if mine else f"{self.current} is to move.")
        else:
            if self.forfeited_by:
                who = "You" if self.forfeited_by == agent else self.forfeited_by
                parts.append(f"{who} made no legal move.")
            parts.append(self.outcome(agent))
        return "\n".join(filter(None, parts))


class SimultaneousGame(TextGame):
    """A game of rounds in which all agents move at once and each round has its rewards.

    Args:
        num_rounds: Rounds of a game.
    """

    def __init__(self, num_rounds: int) -> None:
        super().__init__()
        self.num_rounds = num_rounds
        self.history: list[dict[str, str]] = []
        self.totals: dict[str, float] = {}

    @abstractmethod
    def payoffs(self, moves: Mapping[str, str]) -> dict[str, float]:
        """Return the rewards of a round in which each agent made its move."""

    @abstractmethod
    def fallback_move(self, agent: str) -> str:
        """Return what a text without a legal move counts as; its author never gains by it."""

    @property
    def is_over(self) -> bool:
        """Whether all rounds are played."""
        return len(self.history) >= self.num_rounds

    def start(self, task: Task) -> None:
        """Start a game of a task."""
        self.history = []
        self.totals = dict.fromkeys(self.agents, 0.0)
        super().start(task)

    def play_round(self, texts: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, str]]:
        """Play a round.

        Args:
            texts: What each agent wrote; anything that is no text counts as the empty one.

        Returns:
            The reward of each agent, and for each agent that made no legal move what it is told.
        """
        moves: dict[str, str] = {}
        hints: dict[str, str] = {}
        for agent in self.agents:
            text = texts.get(agent)
            try:
                moves[agent] = self.read_move(agent, text if isinstance(text, str) else "")
            except IllegalMoveError as error:
                moves[agent] = self.fallback_move(agent)
                hints[agent] = f"{error} It counted as {moves[agent]}."
        rewards = {agent: float(value) for agent, value in self.payoffs(moves).items()}
        self.history.append(moves)
        self.num_moves += 1
        for agent, reward in rewards.items():
            self.totals[agent] += reward
        return rewards, hints

    def observation(self, agent: str) -> str:
        """Return the agent's view, and which round is next or what the agent has earned."""
        last = f"Round {len(self.history) + 1} of {self.num_rounds}: your move."
        if self.is_over:
            last = f"The game is over. You earned {self.totals[agent]:g}."
        return "\n".join(filter(None, (self.view(agent), last)))


class Referee:
    """Plays a ``TurnGame`` by texts: an illegal one is answered with a hint and may be tried again.

    Args:
        game: The game; it is started by ``start``.
        max_retries: How often in a row an agent may write something illegal and try again; one more
            and it forfeits.
    """

    def __init__(self, game: TurnGame, max_retries: int) -> None:
        self.game = game
        self.max_retries = max_retries
        self.num_illegal = 0
        self.hint = ""

    def start(self, task: Task) -> None:
        """Start a game of a task."""
        self.num_illegal = 0
        self.hint = ""
        self.game.start(task)

    def submit(self, text: Any) -> bool:
        """Play a text of the agent to move and return whether it was a legal move.

        Anything that is no text counts as the empty one.
        """
        agent = self.game.current
        try:
            self.game.play(agent, text if isinstance(text, str) else "")
        except IllegalMoveError as error:
            self.num_illegal += 1
            self.hint = str(error)
            if self.num_illegal > self.max_retries:
                self.num_illegal = 0
                self.hint = ""
                self.game.forfeit(agent)
            return False
        self.num_illegal = 0
        self.hint = ""
        return True

    def observation(self, agent: str) -> str:
        """Return what an agent reads now; the author of an illegal text reads the hint first."""
        view = self.game.observation(agent)
        return f"{self.hint}\n{view}" if self.hint and agent == self.game.current else view


def draw_task(game: TextGame, rng: np.random.Generator, split: str) -> Task:
    """Return a task of the game, seed included, that belongs to a split.

    Args:
        game: The game.
        rng: Where chance comes from.
        split: "train", "test" (see ``tasks.task_split`` and ``split_basis``) or "all".

    Raises:
        EnvArgumentError: No task of the split is found.
    """
    for _ in range(MAX_DRAWS):
        task = game.generate_task(rng) | {"seed": int(rng.integers(MAX_SEED + 1))}
        if split == "all" or task_split(game.split_basis(task)) == split:
            return task
    raise EnvArgumentError(f'{type(game).__name__}: no task of split "{split}" is found')
