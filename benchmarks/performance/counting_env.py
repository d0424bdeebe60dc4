"""An environment that costs nothing; in a module, so that other processes find it."""

from __future__ import annotations

from rllm_envs import BaseEnv

NUM_TURNS = 5


class CountingEnv(BaseEnv):
    """Ends after `NUM_TURNS` steps with reward 1."""

    blocking = False

    def __init__(self) -> None:
        """Start at no turn."""
        self.turn = 0

    def reset(self) -> tuple[str, dict]:
        """Ask."""
        return "How many?", {}

    def step(self, action: str) -> tuple[str, float, bool, dict]:
        """Count the turn."""
        self.turn += 1
        done = self.turn == NUM_TURNS
        return f"turn {self.turn}", float(done), done, {}

    @staticmethod
    def from_dict(info: dict) -> CountingEnv:
        """Make one; the task says nothing."""
        return CountingEnv()
