"""Throughput of `TextVectorEnv`: beside `SyncVectorEnv`, without a barrier, and its start.

1. Environments that do not wait, steps per CPU second: an empty one (observations of 2,000
   characters, actions of 500, four values of info), and `rllm/Calculator-v0`. Both sides are in
   mode "SameStep".
2. Environments that wait, turns per second, with simulated latencies: a completion takes a
   lognormal time of median 30 ms (sigma 0.8), a step one of median 10 ms (sigma 1.0), an episode
   has 1 to 12 turns. "Barrier" waits for all completions and then for all steps; "send/recv" sends
   each action as its completion ends and completes each observation as it is received.
3. Seconds until pools are made and reset for the first time.

Laps of both sides take turns; tables have medians and ranges over laps, those of ratios within a
lap.

Run it with `OMP_NUM_THREADS=1 uv run python benchmarks/performance/vector_envs.py --write`.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from results import Table, installed, with_range, write_result
from rllm_envs import UnicodeText
from rllm_envs.vector import TextVectorEnv

TEXT = "x" * 2000
ACTION = "y" * 500
SIZES = (1, 4, 16, 64, 256)
WAITING_SIZES = (8, 32, 64, 128)
CASES = {
    "empty": ("benchmark/Empty-v0", ACTION),
    "Calculator": ("rllm/Calculator-v0", "<calc>47 * 83</calc>"),
}
POOLS: dict[str, tuple[int, dict[str, Any]]] = {
    "one thread": (1000, {}),
    "threads": (1000, {"deadline": 60.0}),
    "processes": (8, {"isolation": "process"}),
}


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


def measure_inline(laps: int) -> list[dict[str, Any]]:
    """Return steps per CPU second of both sides, by case, size and lap."""
    rows = []
    for case, (env_id, action) in CASES.items():
        for size in SIZES:
            rates: dict[str, list[float]] = {"sync": [], "ours": []}
            for _ in range(laps):
                for side, make in (("sync", make_sync), ("ours", make_ours)):
                    rates[side].append(steps_per_cpu_second(make, env_id, size, action))
            rows.append({"case": case, "size": size, "per_cpu_second": rates})
    return rows


def inline_table(rows: list[dict[str, Any]]) -> Table:
    """Return how many times the steps of `SyncVectorEnv` ours makes in a CPU second."""
    found = {(row["case"], row["size"]): row["per_cpu_second"] for row in rows}
    cells = []
    for size in SIZES:
        rates = [found[case, size] for case in CASES]
        ratios = [with_range(_ratios(rate["ours"], rate["sync"]), ".2f") for rate in rates]
        cells.append((f"{size:,}", *ratios))
    return Table.of(("environments", *CASES), cells)


def measure_waiting(laps: int, seconds: float) -> list[dict[str, Any]]:
    """Return turns per second of both ways, by size and lap."""
    rows = []
    for size in WAITING_SIZES:
        rates: dict[str, list[float]] = {"barrier": [], "send_recv": []}
        for _ in range(laps):
            rates["barrier"].append(asyncio.run(barrier(size, seconds)))
            rates["send_recv"].append(asyncio.run(send_recv(size, seconds)))
        rows.append({"size": size, "per_second": rates})
    return rows


def waiting_table(rows: list[dict[str, Any]]) -> Table:
    """Return turns per second and their ratio."""
    columns = ("environments", "wait for all, turns/s", "`send`/`recv`, turns/s", "ratio")
    cells = []
    for row in rows:
        slow, fast = row["per_second"]["barrier"], row["per_second"]["send_recv"]
        rates = (with_range(slow, ",.0f"), with_range(fast, ",.0f"))
        cells.append((f"{row['size']:,}", *rates, with_range(_ratios(fast, slow), ".1f")))
    return Table.of(columns, cells)


def _ratios(above: list[float], below: list[float]) -> list[float]:
    return [a / b for a, b in zip(above, below, strict=True)]


def measure_start(laps: int) -> list[dict[str, Any]]:
    """Return seconds until pools of Calculator are made and reset, by pool and lap."""
    rows = []
    for name, (size, arguments) in POOLS.items():
        row: dict[str, Any] = {"pool": name, "size": size, "made": [], "reset": []}
        for _ in range(laps):
            start = time.perf_counter()
            envs = TextVectorEnv.from_ids(["rllm/Calculator-v0"] * size, **arguments)
            middle = time.perf_counter()
            envs.reset(seed=0)
            row["made"].append(middle - start)
            row["reset"].append(time.perf_counter() - middle)
            envs.close()
        rows.append(row)
    return rows


def start_table(rows: list[dict[str, Any]]) -> Table:
    """Return seconds by pool."""
    cells = [
        (row["pool"], f"{row['size']:,}", *(with_range(row[k], ".2f") for k in ("made", "reset")))
        for row in rows
    ]
    return Table.of(("pool", "environments", "made, s", "first reset, s"), cells)


def main() -> None:
    """Print Markdown tables, and write the result where it is asked for."""
    parser = argparse.ArgumentParser(description="Throughput of TextVectorEnv.")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each latency measurement")
    parser.add_argument("--laps", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="Write the result file.")
    options = parser.parse_args()
    figures = {
        "inline": measure_inline(options.laps),
        "waiting": measure_waiting(options.laps, options.seconds),
        "start": measure_start(options.laps),
    }
    tables = {
        "inline": inline_table(figures["inline"]),
        "waiting": waiting_table(figures["waiting"]),
        "start": start_table(figures["start"]),
    }
    print(*(table.markdown() for table in tables.values()), sep="\n\n")
    if options.write:
        settings = {"laps": options.laps, "seconds": options.seconds}
        versions = installed("gymnasium", "numpy")
        print(write_result("vector_envs", settings, figures, tables, versions))


if __name__ == "__main__":
    main()
