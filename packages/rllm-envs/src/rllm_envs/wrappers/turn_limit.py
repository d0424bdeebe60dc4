"""``TurnLimit``: fewer turns than the environment itself allows."""

from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from rllm_envs.errors import EnvArgumentError


class TurnLimit(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Truncate episodes after some actions, and say so in ``turns_left``.

    Unlike ``gymnasium.wrappers.TimeLimit`` it keeps ``info["turns_left"]`` right. With one turn the
    episode is terminated, as in ``TextEnv``: that is then the task's rule.

    Args:
        env: Any environment.
        max_turns: Actions per episode, at least 1.

    Raises:
        EnvArgumentError: ``max_turns`` is no such number.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], max_turns: int) -> None:
        RecordConstructorArgs.__init__(self, max_turns=max_turns)
        super().__init__(env)
        if type(max_turns) is not int or max_turns < 1:
            raise EnvArgumentError(f"max_turns must be an integer of at least 1, got {max_turns!r}")
        self.max_turns = max_turns
        self._turn = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset the environment and the count."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._turn = 0
        return observation, self._with_turns_left(info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step the environment; the last turn ends the episode."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._turn += 1
        if self._turn >= self.max_turns and not (terminated or truncated):
            terminated, truncated = self.max_turns == 1, self.max_turns > 1
        return observation, reward, terminated, truncated, self._with_turns_left(info)

    def _with_turns_left(self, info: dict[str, Any]) -> dict[str, Any]:
        left = self.max_turns - self._turn
        return {**info, "turns_left": min(left, info.get("turns_left", left))}
