"""Episodes per second of AgentExecutionEngine, with nothing slow around it.

Scripted responses, an environment of five turns that answers at once, several degrees of
parallelism; the same loop without the engine, one episode after the other, stands beside it.

Run it with `uv run python benchmarks/performance/execution_engine.py`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from rllm_agents import AgentExecutionEngine, ChatAgent
from rllm_envs import BaseEnv

NUM_TURNS = 5
NUM_EPISODES = 3000


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


def plain_loop() -> None:
    """Play the episodes one after the other, without engine, deadlines or containment."""
    for _ in range(NUM_EPISODES):
        env, agent = CountingEnv(), ChatAgent()
        observation, info = env.reset()
        agent.reset()
        agent.update_from_env(observation, 0.0, False, info)
        done = False
        while not done:
            action = agent.update_from_model("x").action
            observation, reward, done, info = env.step(action)
            agent.update_from_env(observation, reward, done, info)
        env.close()


def with_engine(parallel: int) -> None:
    """Play the same episodes through the engine."""
    with AgentExecutionEngine(
        agent_class=ChatAgent,
        env_class=CountingEnv,
        engine_name="scripted",
        rollout_engine_args={"responses": ["x"]},
        n_parallel_agents=parallel,
    ) as engine:
        episodes = asyncio.run(engine.execute_tasks([{"n": i} for i in range(NUM_EPISODES)]))
    assert all(episode.reward == 1.0 for episode in episodes)


def measure(run: Callable[[], None]) -> tuple[float, float]:
    """Return episodes per second of wall clock and per CPU second, the best of three laps."""
    laps = []
    for _ in range(3):
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        laps.append((time.perf_counter() - wall, time.process_time() - cpu))
    return NUM_EPISODES / min(w for w, _ in laps), NUM_EPISODES / min(c for _, c in laps)


def main() -> None:
    """Print a Markdown table."""
    print("| episodes per second | wall clock | CPU |\n|---|---|---|")
    wall, cpu = measure(plain_loop)
    print(f"| plain loop, nothing contained | {wall:.0f} | {cpu:.0f} |")
    for parallel in (16, 128, 1024):
        wall, cpu = measure(lambda parallel=parallel: with_engine(parallel))
        print(f"| engine, {parallel} parallel | {wall:.0f} | {cpu:.0f} |")


if __name__ == "__main__":
    main()
