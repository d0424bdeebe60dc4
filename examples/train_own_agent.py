"""Train an agent of one's own on tasks of one's own: a few lines each, a minute on two cores.

uv run python examples/train_own_agent.py
"""

from __future__ import annotations

from typing import Any

from rllm_agents import ChatAgent
from rllm_envs import BaseEnv
from rllm_learn import AgentTrainer


class SumEnv(BaseEnv):
    """Asks for a sum and rewards the right one; half a point for the right last digit."""

    blocking = False  # `step` returns at once, so it needs no thread

    def __init__(self, left: int, right: int):
        """Take the two numbers."""
        self.left, self.right = left, right

    def reset(self) -> tuple[Any, dict]:
        """Ask."""
        text = f"What is {self.left} + {self.right}? Give the answer in \\boxed{{}}."
        return {"question": text}, {}

    def step(self, action: Any) -> tuple[Any, float, bool, dict]:
        """Judge, and end."""
        answer = str(action).rpartition("\\boxed{")[2].partition("}")[0]
        right = str(self.left + self.right)
        reward = 1.0 if answer == right else 0.5 if answer[-1:] == right[-1] else 0.0
        return {}, reward, True, {"success": reward == 1.0}

    @staticmethod
    def from_dict(info: dict) -> SumEnv:
        """Make the environment of a task."""
        return SumEnv(info["left"], info["right"])


def main() -> None:
    """Train on three-digit sums and print what came of it."""
    tasks = [{"left": a, "right": b} for a in range(100, 1000, 23) for b in range(100, 1000, 17)]
    trainer = AgentTrainer(
        agent_class=ChatAgent,
        env_class=SumEnv,
        config={"num_steps": 20, "eval": {"num_tasks": 256}},
        train_dataset=tasks,
    )
    summary = trainer.train()
    print(f"{summary['pass_at_1_before']:.3f} -> {summary['pass_at_1_after']:.3f}")


if __name__ == "__main__":
    main()
