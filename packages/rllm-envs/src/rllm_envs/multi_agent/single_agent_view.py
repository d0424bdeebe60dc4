"""``SingleAgentView``: one seat of a game of turns as a Gymnasium environment."""

from collections.abc import Callable
from typing import Any

import numpy as np

from rllm_envs.core import Response, TextEnv
from rllm_envs.errors import EnvArgumentError, TaskError, excerpt
from rllm_envs.multi_agent.checks import check_choice, check_integer
from rllm_envs.multi_agent.game import Referee, TurnGame, draw_task
from rllm_envs.tasks import Task

SEATS = ("first", "second", "random")
OPPONENTS = ("random", "expert")
MAX_RETRIES = 10

Opponent = str | Callable[[str, dict[str, Any]], str]
"""Who plays the other seats: "random" (a legal move, uniformly), "expert" (the scripted policy of
the game), or a function of observation and info that returns a text."""


class SingleAgentView(TextEnv):
    """A game of turns as one agent sees it; the other seats are played by an opponent.

    The chance of game and opponent comes from the task alone, so all episodes of one task in which
    the agent plays alike are alike.

    Args:
        game: The rules; moves must be listed unless the opponent is the expert or a function.
        opponent: Who plays the other seats. The function's info holds ``action_mask`` (tuple of the
            legal actions) and ``invalid`` (bool); what it writes obeys the rules of retries too.
        seat: "first" or "second" of ``game.agents``, or "random".
        max_retries: How often in a row a text without a legal move may be tried again (0 to 10);
            one more loses the game.
        split: See ``TextEnv``.
        render_mode: See ``TextEnv``.

    Raises:
        EnvArgumentError: An argument has a value that is not allowed.
    """

    def __init__(
        self,
        game: TurnGame,
        *,
        opponent: Opponent = "random",
        seat: str = "random",
        max_retries: int = 2,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        check_integer("max_retries", max_retries, 0, MAX_RETRIES)
        super().__init__(
            max_turns=game.max_moves * (1 + max_retries), split=split, render_mode=render_mode
        )
        if not callable(opponent) and opponent not in OPPONENTS:
            raise EnvArgumentError(
                f"opponent must be one of {', '.join(OPPONENTS)} or a function, got "
                f"{opponent!r:.80}"
            )
        if opponent == "random" and not game.lists_moves:
            raise EnvArgumentError(
                f"{type(game).__name__} does not list its moves, so no opponent can choose at "
                "random; use opponent='expert' or a function"
            )
        self.game = game
        self.opponent = opponent
        self.seat = check_choice("seat", seat, SEATS)
        # A function may ask a model.
        self.blocking = callable(opponent)
        self._referee = Referee(game, max_retries)
        self._agent = game.agents[0]
        self._opponent_rng = np.random.default_rng(0)

    def generate_task(self) -> Task:
        """Return the chance of one game with ``seat`` and ``seed``."""
        return self._seated(draw_task(self.game, self.np_random, "all"))

    def validate_task(self, task: Task) -> Task:
        """Check ``seat`` (the first agent by default), ``seed`` (0 by default) and the game."""
        seat = task.get("seat", self.game.agents[0])
        if seat not in self.game.agents:
            raise TaskError(
                f"'seat' must be one of {', '.join(self.game.agents)}, got {excerpt(seat)}"
            )
        return self.game.with_seed(task) | {"seat": seat}

    def begin(self, task: Task) -> str:
        """Start the game, let the others move, and return rules and view."""
        self._agent = task["seat"]
        # Experts draw from [seed, moves, index]; no agent has this index.
        self._opponent_rng = np.random.default_rng([task["seed"], 0, len(self.game.agents)])
        self._referee.start(task)
        self._play_others()
        return f"{self.game.rules(self._agent)}\n\n{self._referee.observation(self._agent)}"

    def respond(self, action: str) -> Response:
        """Play the agent's move and those of the others, or answer with a hint."""
        is_legal = True
        # An opponent that forfeits may have ended the game before the agent's first move.
        if self.game.scores is None:
            is_legal = self._referee.submit(action)
            self._play_others()
        observation = self._referee.observation(self._agent)
        info: dict[str, Any] = {"invalid": not is_legal}
        if self.game.scores is None:
            return Response(observation, info=info)
        score = self.game.scores[self._agent]
        info["success"] = score > 0
        return Response(observation, score, terminated=True, info=info)

    def oracle_action(self) -> str:
        """Return the action of the game's expert, who knows no more than the agent."""
        return self.game.expert_action(self._agent)

    def _info(self, *, success: bool, invalid: bool) -> dict[str, Any]:
        info = super()._info(success=success, invalid=invalid)
        if self.game.lists_moves:
            info["action_mask"] = self.game.legal_actions(self._agent)
        return info

    def _draw_task(self) -> Task:
        # The game decides what of a task makes it another instance: not the seat, for one.
        return self._seated(draw_task(self.game, self.np_random, self.split))

    def _seated(self, task: Task) -> Task:
        index = SEATS.index(self.seat)
        if self.seat == "random":
            index = int(self.np_random.integers(len(self.game.agents)))
        return task | {"seat": self.game.agents[index]}

    def _play_others(self) -> None:
        while (agent := self.game.agent_to_move) not in (None, self._agent):
            self._referee.submit(self._opponent_text(str(agent)))

    def _opponent_text(self, agent: str) -> str:
        if self.opponent == "expert":
            return self.game.expert_action(agent)
        actions = self.game.legal_actions(agent)
        if self.opponent == "random":
            return actions[int(self._opponent_rng.integers(len(actions)))]
        observation = f"{self.game.rules(agent)}\n\n{self._referee.observation(agent)}"
        info = {"action_mask": actions, "invalid": bool(self._referee.hint)}
        return self.opponent(observation, info)  # type: ignore[operator]  # checked: a function
