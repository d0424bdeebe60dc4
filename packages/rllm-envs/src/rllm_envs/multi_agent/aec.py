"""``TextAECEnv``: a game of turns as a PettingZoo AEC environment (extra ``multi``)."""

import copy
from typing import Any

from gymnasium.utils.seeding import np_random

from rllm_envs.errors import EpisodeError, MissingDependencyError
from rllm_envs.multi_agent.checks import check_integer
from rllm_envs.multi_agent.game import Referee, TurnGame
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
from rllm_envs.multi_agent.single_agent_view import MAX_RETRIES

try:
    from pettingzoo import AECEnv
except ImportError as error:
    raise MissingDependencyError(
        "games for several agents need pettingzoo: pip install 'rllm-envs[multi]'"
    ) from error


class TextAECEnv(TaskOfSeed, AECEnv[str, str, str]):
    r"""A ``TurnGame`` behind PettingZoo's AEC interface; observations and actions are text.

    The observation of an agent holds the rules and all that this agent may know, and nothing that
    only others know. It is a ``str`` and complete by itself. A move stands in ``\boxed{}``. A text
    without a legal move leaves the turn with its author, whose next observation begins with a
    hint; after ``max_retries`` such texts in a row one more forfeits, which ends most games.

    ``infos[agent]`` holds ``invalid`` (bool: the agent's last text was no legal move), ``turn``
    (int: moves made so far by all) and, where the game lists its moves, ``action_mask`` (tuple of
    the legal actions; empty unless it is the agent's turn). Rewards come with the last move.

    ``reset(seed=s)`` fixes the task and so the game. ``reset(options={"task": task})`` plays that
    task; other options are ignored, because PettingZoo's own tests pass some.

    Args:
        game: The rules, or their class as "module:class".
        max_retries: How often in a row a text without a legal move may be tried again (0 to 10).
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
        game: TurnGame | str,
        *,
        max_retries: int = 2,
        split: str = "train",
        render_mode: str | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__()
        check_integer("max_retries", max_retries, 0, MAX_RETRIES)
        self.game = make_game(game, TurnGame, arguments)
        self.split = check_split(split)
        self.metadata = {
            "render_modes": list(RENDER_MODES),
            "name": type(self.game).__name__,
            "is_parallelizable": False,
            "render_fps": 1,
        }
        self.render_mode = render_mode
        self.possible_agents = list(self.game.agents)
        self.agents = []
        self.observation_spaces = dict(text_spaces(self.game.agents))
        self.action_spaces = dict(text_spaces(self.game.agents))
        self._transcript = Transcript(render_mode)
        self._referee = Referee(self.game, max_retries)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start a game.

        Args:
            seed: Fixes the task and the tasks of later resets; None continues the present stream.
            options: ``{"task": task}`` plays that task instead of a random one.

        Raises:
            TaskError: The given task cannot be played.
        """
        if seed is not None:
            self._np_random, _ = np_random(seed)
        self._task = choose_task(self.game, self.np_random, self.split, options)
        self._referee.start(copy.deepcopy(self._task))
        self.agents = list(self.possible_agents)
        self.agent_selection = self.game.current
        # What PettingZoo keeps while ended agents take their last step must not outlive the game.
        self._skip_agent_selection = None
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: self._info(agent, invalid=False) for agent in self.agents}
        self._transcript.lines.clear()
        self._show_view()

    def observe(self, agent: str) -> TextObs:
        """Return the rules and what the agent may know now."""
        return TextObs(f"{self.game.rules(agent)}\n\n{self._referee.observation(agent)}")

    def step(self, action: str | None) -> None:
        """Play a text of the selected agent, or None where its game is over.

        Raises:
            EpisodeError: No agent is left.
        """
        if not self.agents:
            raise EpisodeError("no game is running: call reset() before step()")
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)  # type: ignore[arg-type]  # None is what it asks for
            return
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        is_legal = self._referee.submit(action)
        for name in self.agents:
            invalid = not is_legal if name == agent else self.infos[name]["invalid"]
            self.infos[name] = self._info(name, invalid=invalid)
        self._transcript.show(f"{agent}> {action if isinstance(action, str) else ''}")
        if self.game.scores is None:
            self.agent_selection = self.game.current
            self._show_view()
        else:
            self.rewards = dict(self.game.scores)
            self.terminations = dict.fromkeys(self.agents, True)
            self._show_view()
            scores = ", ".join(f"{name} {score:g}" for name, score in self.rewards.items())
            self._transcript.show(f"[end: {scores}]")
            self.agent_selection = self.agents[0]
        self._accumulate_rewards()

    def expert_action(self, agent: str) -> str:
        """Return what the game's scripted policy does now in the place of the agent to move."""
        return self.game.expert_action(agent)

    def render(self) -> str | None:
        """Return the course of the game in mode "ansi"; None in the other modes."""
        return self._transcript.render()

    def close(self) -> None:
        """Release what the environment holds, which is nothing."""

    def _info(self, agent: str, *, invalid: bool) -> dict[str, Any]:
        info: dict[str, Any] = {"invalid": invalid, "turn": self.game.num_moves}
        if self.game.lists_moves:
            is_moving = agent == self.game.agent_to_move
            info["action_mask"] = self.game.legal_actions(agent) if is_moving else ()
        return info

    def _show_view(self) -> None:
        agent = self.agent_selection
        if self._transcript.render_mode is not None:
            self._transcript.show(f"[{agent}]\n{self._referee.observation(agent)}")
