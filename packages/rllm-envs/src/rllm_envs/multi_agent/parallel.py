"""``TextParallelEnv``: a game of rounds as a PettingZoo parallel environment (extra ``multi``)."""

import copy
from collections.abc import Mapping
from typing import Any

from gymnasium.utils.seeding import np_random

from rllm_envs.errors import EpisodeError, MissingDependencyError
from rllm_envs.multi_agent.game import SimultaneousGame
from rllm_envs.multi_agent.shell import (
    RENDER_MODES,
    TaskOfSeed,
    TextObs,
    Transcript,
    check_split,
    choose_task,
    make_game,
    text_spaces,
)

try:
    from pettingzoo import ParallelEnv
except ImportError as error:
    raise MissingDependencyError(
        "games for several agents need pettingzoo: pip install 'rllm-envs[multi]'"
    ) from error


class TextParallelEnv(TaskOfSeed, ParallelEnv[str, str, str]):
    r"""A ``SimultaneousGame`` behind PettingZoo's parallel interface; all is text.

    Each round all agents write a move in ``\boxed{}``. A text without a legal move counts as the
    game's fallback move, and its author's next observation begins with a hint. Each round has its
    rewards; after the last one all agents terminate.

    ``infos[agent]`` holds ``invalid`` (bool: the agent's last text was no legal move), ``turn``
    (int: rounds played) and, where the game lists its moves, ``action_mask`` (tuple of the legal
    actions).

    ``reset(seed=s)`` fixes the task and so the game. ``reset(options={"task": task})`` plays that
    task; other options are ignored, because PettingZoo's own tests pass some.

    Args:
        game: The rules, or their class as "module:class".
        split: "train" or "test" draws tasks of that side only, "all" of both.
        render_mode: None, "ansi" (``render`` returns the course of the game, all views included) or
            "human" (it is printed).
        arguments: Arguments of the game's class.

    Raises:
        EnvArgumentError: An argument is unknown or has a value that is not allowed.
    """

    metadata: dict[str, Any]

    def __init__(
        self,
        game: SimultaneousGame | str,
        *,
        split: str = "train",
        render_mode: str | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__()
        self.game = make_game(game, SimultaneousGame, arguments)
        self.split = check_split(split)
        self.metadata = {
            "render_modes": list(RENDER_MODES),
            "name": type(self.game).__name__,
            "render_fps": 1,
        }
        self.render_mode = render_mode
        self.possible_agents = list(self.game.agents)
        self.agents = []
        self.observation_spaces = dict(text_spaces(self.game.agents))
        self.action_spaces = dict(text_spaces(self.game.agents))
        self._transcript = Transcript(render_mode)

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
        """Start a game and return the observations and the infos, by agent.

        Args:
            seed: Fixes the task and the tasks of later resets; None continues the present stream.
            options: ``{"task": task}`` plays that task instead of a random one.

        Raises:
            TaskError: The given task cannot be played.
        """
        if seed is not None:
            self._np_random, _ = np_random(seed)
        self._task = choose_task(self.game, self.np_random, self.split, options)
        self.game.start(copy.deepcopy(self._task))
        self.agents = list(self.possible_agents)
        self._transcript.lines.clear()
        observations = self._observations({})
        return observations, {agent: self._info(agent, invalid=False) for agent in self.agents}

    def step(
        self, actions: Mapping[str, str]
    ) -> tuple[
        dict[str, str],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """Play a round.

        Args:
            actions: A text of each agent; a missing one counts as the empty text.

        Returns:
            Observations, rewards, terminations, truncations and infos, each by agent.

        Raises:
            EpisodeError: No game is running.
        """
        if not self.agents:
            raise EpisodeError("no game is running: call reset() before step()")
        rewards, hints = self.game.play_round(actions)
        for agent in self.agents:
            text = actions.get(agent)
            self._transcript.show(f"{agent}> {text if isinstance(text, str) else ''}")
        observations = self._observations(hints)
        is_over = self.game.is_over
        infos = {agent: self._info(agent, invalid=agent in hints) for agent in self.agents}
        terminations = dict.fromkeys(self.agents, is_over)
        truncations = dict.fromkeys(self.agents, False)
        if is_over:
            totals = ", ".join(f"{name} {total:g}" for name, total in self.game.totals.items())
            self._transcript.show(f"[end: {totals}]")
            self.agents = []
        return observations, rewards, terminations, truncations, infos

    def expert_action(self, agent: str) -> str:
        """Return what the game's scripted policy does now in the place of an agent."""
        return self.game.expert_action(agent)

    def render(self) -> str | None:
        """Return the course of the game in mode "ansi"; None in the other modes."""
        return self._transcript.render()

    def close(self) -> None:
        """Release what the environment holds, which is nothing."""

    def _observations(self, hints: Mapping[str, str]) -> dict[str, str]:
        observations: dict[str, str] = {}
        for agent in self.agents:
            view = self.game.observation(agent)
            if agent in hints:
                view = f"{hints[agent]}\n{view}"
            self._transcript.show(f"[{agent}]\n{view}")
            observations[agent] = TextObs(f"{self.game.rules(agent)}\n\n{view}")
        return observations

    def _info(self, agent: str, *, invalid: bool) -> dict[str, Any]:
        info: dict[str, Any] = {"invalid": invalid, "turn": len(self.game.history)}
        if self.game.lists_moves:
            info["action_mask"] = self.game.legal_actions(agent)
        return info
