"""Policies without a model: random actions, and scripted heuristics that read what a model reads.

A script sees observations and info only, never the inside of an environment, and draws from the
seed of its episode alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, TypeAlias

from rllm_agents.agents.chat import ChatAgent, observation_text
from rllm_agents.errors import EngineError
from rllm_agents.leaderboard.heuristics import HEURISTICS, Scene
from rllm_agents.types import Action, Completion, GenerationRequest

Script: TypeAlias = Callable[[Any, dict[str, Any]], str]
"""Observation and info to an action; one is made for each episode."""

_LARGEST_GUESS = 99


class RandomScript:
    """Takes any legal action where they are listed, and guesses elsewhere.

    A guess is, in a box, a word of the newest observation or a number from 0 to 99, each half of
    the time.

    Args:
        seed: Fixes all actions.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def __call__(self, observation: Any, info: dict[str, Any]) -> str:
        """Return an action."""
        legal = info.get("action_mask")
        if isinstance(legal, tuple | list) and legal:
            return str(self._random.choice(legal))
        words = (observation_text(observation) or "").split()
        if words and self._random.random() < 0.5:
            return f"\\boxed{{{self._random.choice(words).strip('.,:;?!()')}}}"
        return f"\\boxed{{{self._random.randint(0, _LARGEST_GUESS)}}}"


class HeuristicScript:
    """Plays by the heuristic of an environment; at random where it has none or finds no action.

    Args:
        env_id: What is played.
        seed: Fixes all that is drawn.
    """

    def __init__(self, env_id: str, seed: int) -> None:
        self._choose = HEURISTICS.get(env_id)
        self._guess = RandomScript(seed)
        self._scene = Scene(random.Random(seed))

    def __call__(self, observation: Any, info: dict[str, Any]) -> str:
        """Return an action."""
        scene = self._scene
        scene.observations.append(observation_text(observation) or "")
        scene.legal = tuple(map(str, info.get("action_mask") or ()))
        action = self._choose(scene) if self._choose is not None else None
        action = self._guess(observation, info) if action is None else action
        scene.actions.append(action)
        return action


def make_script(policy: str, env_id: str, seed: int) -> Script:
    """Return a script for one episode.

    Args:
        policy: "random" or "heuristic".
        env_id: What is played.
        seed: Of the episode.
    """
    return RandomScript(seed) if policy == "random" else HeuristicScript(env_id, seed)


class ScriptedAgent(ChatAgent):
    """Lets a script act where a model would. Plays with a `SeedEngine`.

    Args:
        policy: "random" or "heuristic".
        env_id: What is played.
    """

    def __init__(self, policy: str, env_id: str) -> None:
        super().__init__()
        self._made_of = policy, env_id
        self._script: Script | None = None
        self._seen: tuple[Any, dict[str, Any]] = "", {}

    def update_from_env(
        self, observation: Any, reward: float, done: bool, info: dict[str, Any], **kwargs: Any
    ) -> None:
        """Keep what the script will see."""
        super().update_from_env(observation, reward, done, info)
        self._seen = observation, info

    def update_from_model(self, response: str, **kwargs: Any) -> Action:
        """Ask the script; the response of the first turn is its seed."""
        if self._script is None:
            self._script = make_script(*self._made_of, int(response))
        return super().update_from_model(self._script(*self._seen))


class SeedEngine:
    """A rollout engine that answers with the seed of its request, for scripts to draw from."""

    @property
    def weights_version(self) -> int:
        """Always 0: there are no weights."""
        return 0

    async def generate(self, request: GenerationRequest) -> Completion:
        """Return the request's seed as text."""
        return Completion(text=str(request.sampling.seed or 0), finish_reason="stop")

    async def load_weights(self, tensors: Any, *, version: int) -> None:
        """Refuse: a script does not learn.

        Raises:
            EngineError: Always.
        """
        raise EngineError(f"scripts have no weights to load version {version} into")

    def close(self) -> None:
        """Nothing is held."""
