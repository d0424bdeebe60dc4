"""Episodes per second of AgentExecutionEngine, with nothing slow around it.

Scripted responses, several degrees of parallelism, in this process and in two further ones. Two
environments: one of five turns that answers at once, and `rllm/FrozenLake-v0`, a lake of its own
for each episode, at most five turns. The same loop without the engine, one episode after the other,
stands beside each. Laps of all of them take turns; the table has medians over laps, and of the
ratios within a lap, with their quartiles. Engines and their processes are made before.

Run it with `OMP_NUM_THREADS=1 uv run python benchmarks/performance/execution_engine.py --write`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import psutil
from counting_env import NUM_TURNS, CountingEnv

from results import Table, with_quartiles, write_result
from rllm_agents import AgentExecutionEngine, ChatAgent
from rllm_envs import GymEnv

PARALLEL = (16, 128, 1024)
NUM_PROCESSES = 2


@dataclass(frozen=True)
class Case:
    """What is played."""

    name: str
    env_class: Any
    env_args: dict[str, Any]
    responses: tuple[str, ...]

    def plain_loop(self, num: int) -> None:
        """Play episodes one after the other, without engine, deadlines or containment."""
        for n in range(num):
            env, agent = self.env_class.from_dict({"seed": n, **self.env_args}), ChatAgent()
            observation, info = env.reset()
            agent.reset()
            agent.update_from_env(observation, 0.0, False, info)
            for turn in range(NUM_TURNS):
                response = self.responses[turn % len(self.responses)]
                action = agent.update_from_model(response).action
                observation, reward, done, info = env.step(action)
                agent.update_from_env(observation, reward, done, info)
                if done:
                    break
            env.close()

    def engine(self, parallel: int, processes: int) -> AgentExecutionEngine:
        """Make an engine that plays the same episodes."""
        return AgentExecutionEngine(
            agent_class=ChatAgent,
            env_class=self.env_class,
            env_args=self.env_args,
            engine_name="scripted",
            rollout_engine_args={"responses": list(self.responses)},
            n_parallel_agents=parallel,
            n_processes=processes,
            max_steps=NUM_TURNS,
        )


def play(engine: AgentExecutionEngine, num: int) -> None:
    """Play episodes of an engine, which keeps them all."""
    episodes = asyncio.run(engine.execute_tasks([{"seed": n} for n in range(num)]))
    assert not any(episode.failed for episode in episodes)


def cpu_seconds() -> float:
    """Return the CPU time of this process and of those that it has started and that live."""
    times = [child.cpu_times() for child in psutil.Process().children(recursive=True)]
    return time.process_time() + sum(t.user + t.system for t in times)


CASES = (
    Case("five turns", CountingEnv, {}, ("x",)),
    Case(
        "FrozenLake", GymEnv, {"env_id": "rllm/FrozenLake-v0"}, ("\\boxed{down}", "\\boxed{right}")
    ),
)


def measure(case: Case, num: int, laps: int) -> dict[str, list[dict[str, float]]]:
    """Return episodes per second of wall clock and per CPU second, by way and lap."""
    ways: dict[str, Callable[[], None]] = {"plain loop": lambda: case.plain_loop(num)}
    with contextlib.ExitStack() as engines:
        for processes in (0, NUM_PROCESSES):
            for parallel in PARALLEL:
                engine = engines.enter_context(case.engine(parallel, processes))
                play(engine, parallel)  # processes start
                where = f", {processes} processes" if processes else ""
                ways[f"{parallel} parallel{where}"] = functools.partial(play, engine, num)
        rates: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
        for _ in range(laps):
            for name, run in ways.items():
                gc.collect()
                wall, cpu = time.perf_counter(), cpu_seconds()
                run()
                wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
                rates[name].append({"per_second": num / wall, "per_cpu_second": num / cpu})
    return rates


Laps = dict[str, list[dict[str, float]]]


def table(figures: dict[str, Laps]) -> Table:
    """Return medians over laps, and of the ratios within laps, with their quartiles."""
    least = f"{PARALLEL[0]} parallel"
    columns = ("", "way", "episodes per second", "best lap", "per CPU second", f"of {least}")
    rows = []
    for case, rates in figures.items():
        base = [lap["per_second"] for lap in rates[least]]
        for way, laps in rates.items():
            mine = [lap["per_second"] for lap in laps]
            ratios = [a / b for a, b in zip(mine, base, strict=True)]
            per_cpu = median(lap["per_cpu_second"] for lap in laps)
            rates_shown = (with_quartiles(mine, ",.0f"), f"{max(mine):,.0f}", f"{per_cpu:,.0f}")
            share = "1.00" if way == least else with_quartiles(ratios, ".2f")
            rows.append((case, way, *rates_shown, share))
    return Table.of(columns, rows)


def main() -> None:
    """Print a Markdown table, and write the result where it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--episodes", type=int, default=1500)
    parser.add_argument("--laps", type=int, default=10)
    parser.add_argument("--write", action="store_true", help="Write the result file.")
    arguments = parser.parse_args()
    figures = {c.name: measure(c, arguments.episodes, arguments.laps) for c in CASES}
    shown = table(figures)
    print(shown.markdown())
    if arguments.write:
        settings = {"episodes": arguments.episodes, "laps": arguments.laps, "turns": NUM_TURNS}
        print(write_result("execution_engine", settings, figures, {"episodes": shown}))


if __name__ == "__main__":
    main()
