"""Games for several agents at one table, played by texts; PettingZoo is not needed."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.utils.seeding import np_random

from rllm_envs.errors import UnknownEnvError, excerpt
from rllm_envs.multi_agent.catalog import find_game
from rllm_envs.multi_agent.checks import check_integer
from rllm_envs.multi_agent.game import Referee, SimultaneousGame, TextGame, TurnGame, draw_task
from rllm_envs.multi_agent.shell import check_split, make_game
from rllm_envs.multi_agent.single_agent_view import MAX_RETRIES
from rllm_envs.tasks import Task


class GameTable(ABC):
    """A game that is played by texts. Equal seeds give the game of the PettingZoo environment.

    Args:
        game: The rules.
        split: "train", "test" or "all".
    """

    def __init__(self, game: TextGame, split: str) -> None:
        self.game = game
        self.split = check_split(split)
        self.agents = game.agents

    def start(self, seed: int) -> None:
        """Start the game of a seed."""
        rng: np.random.Generator = np_random(seed)[0]
        self._begin(draw_task(self.game, rng, self.split))

    def expert_action(self, agent: str) -> str:
        """Return what the game's scripted policy writes now in the place of an agent."""
        return self.game.expert_action(agent)

    @property
    @abstractmethod
    def movers(self) -> tuple[str, ...]:
        """The agents that write now; empty when the game is over."""

    @property
    @abstractmethod
    def scores(self) -> Mapping[str, float]:
        """What each agent has earned when the game is over."""

    @abstractmethod
    def view(self, agent: str) -> str:
        """Return what an agent reads now, without the rules."""

    @abstractmethod
    def play(self, texts: Mapping[str, str]) -> None:
        """Play the texts of the agents that move."""

    @abstractmethod
    def _begin(self, task: Task) -> None:
        """Start the game of a task."""


class TurnTable(GameTable):
    """A ``TurnGame`` at a table.

    Args:
        game: The rules.
        split: See ``GameTable``.
        max_retries: How often in a row a text without a legal move may be tried again.
    """

    def __init__(self, game: TurnGame, split: str = "train", *, max_retries: int = 2) -> None:
        super().__init__(game, split)
        self._turns = game
        self._referee = Referee(game, check_integer("max_retries", max_retries, 0, MAX_RETRIES))

    @property
    def movers(self) -> tuple[str, ...]:
        """The agent to move."""
        agent = self._turns.agent_to_move
        return () if agent is None else (agent,)

    @property
    def scores(self) -> Mapping[str, float]:
        """The scores of the end."""
        return self._turns.scores or {}

    def view(self, agent: str) -> str:
        """Return what an agent reads now, after a hint where its last text was illegal."""
        return self._referee.observation(agent)

    def play(self, texts: Mapping[str, str]) -> None:
        """Play the text of the agent to move."""
        self._referee.submit(texts[self._turns.current])

    def _begin(self, task: Task) -> None:
        self._referee.start(task)


class RoundTable(GameTable):
    """A ``SimultaneousGame`` at a table.

    Args:
        game: The rules.
        split: See ``GameTable``.
    """

    def __init__(self, game: SimultaneousGame, split: str = "train") -> None:
        super().__init__(game, split)
        self._rounds = game
        self._hints: dict[str, str] = {}

    @property
    def movers(self) -> tuple[str, ...]:
        """All agents, until the last round is played."""
        return () if self._rounds.is_over else self.agents

    @property
    def scores(self) -> Mapping[str, float]:
        """The sums of the rounds."""
        return self._rounds.totals

    def view(self, agent: str) -> str:
        """Return what an agent reads now, after a hint where its last text was illegal."""
        return "\n".join(filter(None, (self._hints.get(agent), self._rounds.observation(agent))))

    def play(self, texts: Mapping[str, str]) -> None:
        """Play a round."""
        _, self._hints = self._rounds.play_round(texts)

    def _begin(self, task: Task) -> None:
        self._hints = {}
        self._rounds.start(task)


def make_table(env_id: str, kind: str, arguments: Mapping[str, Any]) -> GameTable:
    """Return a game of the catalog with the arguments of its PettingZoo environment.

    Raises:
        UnknownEnvError: No game has this id and kind.
        EnvArgumentError: An argument is unknown or has a value that is not allowed.
    """
    entry = find_game(env_id, kind)
    if entry is None:
        raise UnknownEnvError(f"no {kind} game has the id {excerpt(env_id)}")
    rest = {**entry.kwargs, **arguments}
    split = rest.pop("split", "train")
    if kind == "parallel":
        return RoundTable(make_game(entry.game, SimultaneousGame, rest), split)
    retries = {"max_retries": rest.pop("max_retries")} if "max_retries" in rest else {}
    return TurnTable(make_game(entry.game, TurnGame, rest), split, **retries)
