"""The environment's own answers in place of a policy: checks tasks and grading."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rllm_agents.types import Episode
from rllm_envs import BaseEnv, GymEnv


class OracleEnv(BaseEnv):
    """A GymEnv in which the environment's own oracle acts, whatever the policy says.

    The oracle's action stands in the info of each step as ``oracle_action``.

    Args:
        env: What is played.
    """

    def __init__(self, env: GymEnv) -> None:
        self._env = env
        self.blocking = env.blocking

    @staticmethod
    def from_dict(info: dict[str, Any]) -> OracleEnv:
        """Make one as `GymEnv.from_dict` does."""
        return OracleEnv(GymEnv.from_dict(info))

    def reset(self) -> tuple[Any, dict[str, Any]]:
        """Start the episode."""
        return self._env.reset()

    def step(self, action: Any) -> tuple[Any, float, bool, dict[str, Any]]:
        """Ignore the action and take the oracle's."""
        chosen = self._env.oracle_action()
        observation, reward, done, info = self._env.step(chosen)
        return observation, reward, done, {**info, "oracle_action": chosen}

    def close(self) -> None:
        """Close the environment."""
        self._env.close()


def oracle_misses(episodes: Iterable[Episode]) -> list[dict[str, Any]]:
    """List the oracle's episodes without full reward: their references cannot be graded.

    Returns:
        For each: ``id``, ``task`` (with the reference, where it is a row of data), the reward, the
        oracle's last action and the error, if any.
    """
    return [
        {
            "id": episode.id,
            "task": episode.task,
            "reward": episode.reward,
            "oracle_action": next(
                (step.info.get("oracle_action") for step in reversed(episode.steps)), None
            ),
            "error": episode.error,
        }
        for episode in episodes
        if episode.reward != 1.0
    ]
