"""Throughput of `TextVectorEnv`: beside `SyncVectorEnv`, without a barrier, and its start.

1. Environments that do not wait, steps per CPU second: an empty one (observations of 2,000
   characters, actions of 500, four values of info), and `rllm/Calculator-v0`. Both sides are in
   mode "SameStep"; the best of several laps.
2. Environments that wait, turns per second, with simulated latencies: a completion takes a
   lognormal time of median 30 ms (sigma 0.8), a step one of median 10 ms (sigma 1.0), an episode
   has 1 to 12 turns. "Barrier" waits for all completions and then for all steps; "send/recv" sends
   each action as its completion ends and completes each observation as it is received.
3. Seconds until pools are made and reset for the first time.

Run it with `uv run python benchmarks/performance/vector_envs.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from rllm_envs import UnicodeText
from rllm_envs.vector import TextVectorEnv

TEXT = "x" * 2000
ACTION = "y" * 500
LAPS = 5


class EmptyEnv(gymnasium.Env[str, str]):
    """Does nothing for eight turns."""

    blocking = False

    def __init__(self) -> None:
        self.observation_space = UnicodeText()
        self.action_space = UnicodeText()
        self.turn = 0

    def info(self) -> dict[str, Any]:
        """Return the keys of a text task."""
        left = 8 - self.turn
        return {"success": False, "invalid": False, "turn": self.turn, "turns_left": left}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start over."""
        super().reset(seed=seed)
        self.turn = 0
        return TEXT, self.info()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Count."""
        self.turn += 1
        return TEXT, 0.0, self.turn >= 8, False, self.info()


class WaitingEnv(EmptyEnv):
    """Waits as a tool does, for 1 to 12 turns."""

    blocking = True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Draw a length."""
        answer = super().reset(seed=seed)
        self.length = int(self.np_random.integers(1, 13))
        return answer

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Wait and count."""
        time.sleep(self.np_random.lognormal(np.log(0.010), 1.0))
        observation, reward, _, _, info = super().step(action)
        return observation, reward, self.turn >= self.length, False, info


gymnasium.register("benchmark/Empty-v0", entry_point=EmptyEnv, disable_env_checker=True)
gymnasium.register("benchmark/Waiting-v0", entry_point=WaitingEnv, disable_env_checker=True)


def make_sync(env_id: str, num_envs: int) -> gymnasium.vector.VectorEnv[Any, Any, Any]:
    """Return Gymnasium's pool of the same environments."""
    return gymnasium.make_vec(
        env_id,
        num_envs=num_envs,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP},
    )


def make_ours(env_id: str, num_envs: int) -> TextVectorEnv:
    """Return the pool that is measured."""
    return TextVectorEnv.from_ids([env_id] * num_envs)


def steps_per_cpu_second(
    make: Callable[[str, int], Any], env_id: str, num_envs: int, action: str
) -> float:
    """Return how many environment steps one CPU second pays for."""
    envs = make(env_id, num_envs)
    envs.reset(seed=0)
    actions = (action,) * num_envs
    laps = max(4, 3000 // num_envs)
    start = time.process_time()
    for _ in range(laps):
        envs.step(actions)
    seconds = time.process_time() - start
    envs.close()
    return laps * num_envs / seconds


class Completions:
    """A model that answers each prompt after a random time."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(0)

    async def complete(self) -> str:
        """Wait and return an action."""
        await asyncio.sleep(self._rng.lognormal(np.log(0.030), 0.8))
        return ACTION


async def barrier(num_envs: int, seconds: float) -> float:
    """Return turns per second where each step waits for all."""
    model, envs = Completions(), TextVectorEnv.from_ids(["benchmark/Waiting-v0"] * num_envs)
    envs.reset(seed=0)
    start, num_turns = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        envs.step(await asyncio.gather(*(model.complete() for _ in range(num_envs))))
        num_turns += num_envs
    elapsed = time.perf_counter() - start
    envs.close()
    return num_turns / elapsed


async def send_recv(num_envs: int, seconds: float) -> float:
    """Return turns per second where nobody waits for another one."""
    model, envs = Completions(), TextVectorEnv.from_ids(["benchmark/Waiting-v0"] * num_envs)
    envs.reset(seed=0)
    has_sent = asyncio.Event()

    async def act(place: int) -> None:
        envs.send([await model.complete()], [place])
        has_sent.set()

    tasks = {asyncio.ensure_future(act(place)) for place in range(num_envs)}
    start, num_turns, num_acting = time.perf_counter(), 0, num_envs
    while time.perf_counter() - start < seconds:
        if num_acting == num_envs:
            await has_sent.wait()
        *_, infos = await envs.arecv()
        has_sent.clear()
        places = infos["env_id"].tolist()
        num_turns += len(places)
        tasks = {task for task in tasks if not task.done()}
        tasks |= {asyncio.ensure_future(act(place)) for place in places}
        num_acting = len(tasks)
    elapsed = time.perf_counter() - start
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    envs.close()
    return num_turns / elapsed


def print_inline() -> None:
    """Print the first table."""
    print("| environment | envs | SyncVectorEnv, steps per CPU s | TextVectorEnv | ratio |")
    print("|---|---|---|---|---|")
    cases = (("benchmark/Empty-v0", ACTION), ("rllm/Calculator-v0", "<calc>47 * 83</calc>"))
    for env_id, action in cases:
        for num_envs in (1, 4, 16, 64, 256):
            best = [0.0, 0.0]
            for _ in range(LAPS):
                for side, make in enumerate((make_sync, make_ours)):
                    rate = steps_per_cpu_second(make, env_id, num_envs, action)
                    best[side] = max(best[side], rate)
            theirs, ours = best
            print(f"| {env_id} | {num_envs} | {theirs:,.0f} | {ours:,.0f} | {ours / theirs:.2f} |")


def print_waiting(seconds: float) -> None:
    """Print the second table."""
    print("\n| envs | barrier, turns/s | send/recv, turns/s | ratio |")
    print("|---|---|---|---|")
    for num_envs in (8, 32, 64, 128):
        slow = asyncio.run(barrier(num_envs, seconds))
        fast = asyncio.run(send_recv(num_envs, seconds))
        print(f"| {num_envs} | {slow:,.0f} | {fast:,.0f} | {fast / slow:.1f} |", flush=True)


def print_start() -> None:
    """Print the third table."""
    print("\n| pool | made, s | first reset, s |")
    print("|---|---|---|")
    cases: list[tuple[str, int, dict[str, Any]]] = [
        ("rllm/Calculator-v0", 1000, {}),
        ("rllm/Calculator-v0, threads", 1000, {"deadline": 60.0}),
        ("rllm/Calculator-v0, processes", 8, {"isolation": "process"}),
    ]
    for name, num_envs, arguments in cases:
        start = time.perf_counter()
        envs = TextVectorEnv.from_ids(["rllm/Calculator-v0"] * num_envs, **arguments)
        middle = time.perf_counter()
        envs.reset(seed=0)
        end = time.perf_counter()
        envs.close()
        print(f"| {num_envs} x {name} | {middle - start:.2f} | {end - middle:.2f} |", flush=True)


def main() -> None:
    """Print the tables in Markdown."""
    parser = argparse.ArgumentParser(description="Throughput of TextVectorEnv.")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each latency measurement")
    options = parser.parse_args()
    print_inline()
    print_waiting(options.seconds)
    print_start()


if __name__ == "__main__":
    main()
