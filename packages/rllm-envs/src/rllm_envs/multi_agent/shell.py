"""What the PettingZoo classes of turns and of rounds share; PettingZoo itself is not needed."""

import copy
import importlib
import inspect
import sys
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from gymnasium.utils.seeding import np_random

from rllm_envs.core import SPLITS
from rllm_envs.errors import EnvArgumentError, EpisodeError, TaskError, excerpt
from rllm_envs.multi_agent.checks import check_choice
from rllm_envs.multi_agent.game import TextGame, draw_task
from rllm_envs.spaces import MAX_SHARED_LENGTH, UnicodeText
from rllm_envs.tasks import Task, canonical_json

RENDER_MODES = ("ansi", "human")

GameT = TypeVar("GameT", bound=TextGame)


class TextObs(str):
    """A text observation with the ``dtype`` that PettingZoo's ``api_test`` asks of observations."""

    __slots__ = ()
    dtype = np.dtype(str)


class Transcript:
    """The course of an episode for who watches: kept in mode "ansi", printed in mode "human".

    Args:
        render_mode: None, "ansi" or "human".

    Raises:
        EnvArgumentError: The mode is another one.
    """

    def __init__(self, render_mode: str | None) -> None:
        if render_mode is not None:
            check_choice("render_mode", render_mode, RENDER_MODES)
        self.render_mode = render_mode
        self.lines: list[str] = []

    def show(self, text: str) -> None:
        """Add a piece of text."""
        if self.render_mode == "ansi":
            self.lines.append(text)
        elif self.render_mode == "human":
            # What an agent writes need not be encodable in the terminal's encoding.
            encoding = sys.stdout.encoding or "utf-8"
            sys.stdout.write(text.encode(encoding, "replace").decode(encoding) + "\n")
            sys.stdout.flush()

    def render(self) -> str | None:
        """Return the text so far in mode "ansi"; None in the other modes."""
        return "\n".join(self.lines) if self.render_mode == "ansi" else None


class TaskOfSeed:
    """What the PettingZoo environments share: the current task, its generator, and the spaces."""

    observation_spaces: dict[str, Any]
    action_spaces: dict[str, Any]
    _task: Task | None = None
    _np_random: np.random.Generator | None = None

    @property
    def np_random(self) -> np.random.Generator:
        """The generator that tasks are drawn from, seeded by ``reset``."""
        if self._np_random is None:
            self._np_random, _ = np_random()
        return self._np_random

    @property
    def task(self) -> Task:
        """A copy of the current task, which holds all that is hidden.

        Raises:
            EpisodeError: ``reset`` has not been called.
        """
        if self._task is None:
            raise EpisodeError("there is no task before the first reset(); call reset() first")
        return copy.deepcopy(self._task)

    def observation_space(self, agent: str) -> UnicodeText:
        """Return the space of the agent's observations."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> UnicodeText:
        """Return the space of the agent's actions."""
        return self.action_spaces[agent]


def make_game(game: GameT | str, kind: type[GameT], arguments: Mapping[str, Any]) -> GameT:
    """Return a game that is given as an object, or as "module:class" with its arguments.

    Raises:
        EnvArgumentError: The game is not of the kind, or does not take one of the arguments.
    """
    if isinstance(game, str):
        module, _, name = game.partition(":")
        creator = getattr(importlib.import_module(module), name)
        known = inspect.signature(creator).parameters
        for argument in arguments:
            if argument not in known:
                raise EnvArgumentError(
                    f"{name} has no argument {argument!r}; it takes "
                    f"{', '.join(known) or 'none'}, split and render_mode"
                )
        game = creator(**arguments)
    elif arguments:
        raise EnvArgumentError(
            f"arguments of a game that is made already: {', '.join(arguments)}; make it with them"
        )
    if not isinstance(game, kind):
        raise EnvArgumentError(f"the game must be a {kind.__name__}, got {excerpt(game)}")
    return game


def check_split(split: str) -> str:
    """Return the name of a split.

    Raises:
        EnvArgumentError: No split has this name.
    """
    return check_choice("split", split, SPLITS)


def text_spaces(agents: tuple[str, ...]) -> dict[str, UnicodeText]:
    """Return a space of texts for each agent."""
    return {agent: UnicodeText(MAX_SHARED_LENGTH) for agent in agents}


def choose_task(
    game: TextGame, rng: np.random.Generator, split: str, options: Mapping[str, Any] | None
) -> Task:
    """Return the task that ``options`` gives, or a drawn one.

    Raises:
        TaskError: The given task cannot be played.
    """
    given = (options or {}).get("task")
    if given is None:
        return draw_task(game, rng, split)
    if not isinstance(given, dict):
        raise TaskError(f"options['task'] must be a dict, got {excerpt(given)}")
    canonical_json(given)
    return game.with_seed(given)
