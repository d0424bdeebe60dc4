"""What the OpenAI engine costs over a bare aiohttp loop, against a server that answers in 20 ms.

A server in a process of its own answers every completion after 20 ms with 16 token ids and their
logprobs, over real HTTP on loopback. 512 requests are in flight all the time:

- "bare": `aiohttp` posts the same body and decodes the JSON, and looks at nothing of it;
- "generate": `OpenAIEngine.generate`, with its bounds, checks and decoding of ids to text;
- "bare, 4 turns": four such posts one after another, each with a longer prompt;
- "rollouts": whole episodes of four turns of an `AgentExecutionEngine`: agent, environment,
  renderer, token records.

Short laps of all of them take turns, so that a busy machine is busy for each. The table has medians
over laps, and of the ratios to "bare" within a lap, with their quartiles.

    uv run python benchmarks/performance/openai_client.py --write
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
from transformers import PreTrainedTokenizerFast

from results import Table, installed, with_quartiles, write_result
from rllm_agents import AgentExecutionEngine, ChatAgent, GenerationRequest, SamplingParams
from rllm_agents.models import TINY
from rllm_agents.rollout_engines.openai import OpenAIEngine
from rllm_envs import BaseEnv

LATENCY_SECONDS = 0.02
PARALLEL = 512
NUM_TURNS = 4
QUESTION = "How many are there? Think about it, and say a number between one and ten."
ANSWER = "I think there are seven of them, so seven."


class CountingEnv(BaseEnv):
    """Asks the same four times."""

    blocking = False

    def __init__(self) -> None:
        """Start at no turn."""
        self.turn = 0

    def reset(self) -> tuple[str, dict]:
        """Ask."""
        return QUESTION, {}

    def step(self, action: str) -> tuple[str, float, bool, dict]:
        """Count the turn."""
        self.turn += 1
        return QUESTION, 0.0, self.turn == NUM_TURNS, {}

    @staticmethod
    def from_dict(info: dict) -> CountingEnv:
        """Make one; the task says nothing."""
        return CountingEnv()


async def in_flight(num: int, work: Callable[[], Awaitable[Any]]) -> None:
    """Do something `num` times, `PARALLEL` at a time."""
    left = iter(range(num))

    async def worker() -> None:
        for _ in left:
            await work()

    await asyncio.gather(*(worker() for _ in range(PARALLEL)))


class Ways:
    """The ways of asking that are compared; each is called with how many requests it makes."""

    def __init__(self, base_url: str, tokenizer: Any) -> None:
        """Prepare prompts as long as those of each turn."""
        self._base_url = base_url
        self._tokenizer = tokenizer
        question = tokenizer(QUESTION)["input_ids"]
        turn = [*question, *tokenizer(ANSWER)["input_ids"]]
        self._prompts = [tuple(turn * n + question) for n in range(NUM_TURNS)]

    async def bare(self, num: int, turns: int = 1) -> None:
        """Post and decode, and nothing else."""
        bodies = [
            {
                "model": "served", "prompt": prompt, "max_tokens": 64, "temperature": 1.0,
                "top_p": 1.0, "top_k": -1, "logprobs": 0, "return_token_ids": True,
            }
            for prompt in self._prompts[:turns]
        ]  # fmt: skip
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def work() -> None:
                for body in bodies:
                    async with session.post(f"{self._base_url}/completions", json=body) as reply:
                        await reply.json()

            await in_flight(num // turns, work)

    async def generate(self, num: int) -> None:
        """Ask the engine."""
        engine = OpenAIEngine(self._base_url, tokenizer=self._tokenizer, max_connections=PARALLEL)
        request = GenerationRequest((), self._prompts[0], SamplingParams(max_tokens=64))
        try:
            await in_flight(num, lambda: engine.generate(request))
        finally:
            engine.close()

    async def rollouts(self, num: int) -> None:
        """Play whole episodes."""
        with AgentExecutionEngine(
            agent_class=ChatAgent,
            env_class=CountingEnv,
            engine_name="openai",
            rollout_engine_args={"base_url": self._base_url, "max_connections": PARALLEL},
            tokenizer=self._tokenizer,
            n_parallel_agents=PARALLEL,
        ) as engine:
            tasks = [{"n": n} for n in range(num // NUM_TURNS)]
            episodes = await engine.execute_tasks(tasks)
        assert all(len(episode.trajectory.token_records) == 1 for episode in episodes)


def compare(ways: Ways, num: int, laps: int) -> dict[str, list[dict[str, float]]]:
    """Return requests per second of wall clock and per CPU second, by way and lap."""
    named: dict[str, Callable[[], Any]] = {
        "bare": lambda: ways.bare(num),
        "generate": lambda: ways.generate(num),
        "bare, 4 turns": lambda: ways.bare(num, NUM_TURNS),
        "rollouts": lambda: ways.rollouts(num),
    }
    rates: dict[str, list[dict[str, float]]] = {name: [] for name in named}
    for lap in range(laps + 1):
        for name, work in named.items():
            wall, cpu = time.perf_counter(), time.process_time()
            asyncio.run(work())
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            if lap:  # the first one warms up
                rates[name].append({"per_second": num / wall, "per_cpu_second": num / cpu})
    return rates


def table(rates: dict[str, list[dict[str, float]]]) -> Table:
    """Return medians over laps, and of the ratios within laps, with their quartiles."""
    columns = ("way", "requests per second", "of bare", "requests per CPU second", "of bare")
    rows = []
    for name, laps in rates.items():
        base = rates["bare, 4 turns" if name in ("bare, 4 turns", "rollouts") else "bare"]
        cells = [name]
        for key in ("per_second", "per_cpu_second"):
            mine = [lap[key] for lap in laps]
            ratios = [own / other[key] for own, other in zip(mine, base, strict=True)]
            cells.append(with_quartiles(mine, ",.0f"))
            cells.append("1.00" if laps is base else with_quartiles(ratios, ".2f"))
        rows.append(cells)
    return Table.of(columns, rows)


def main() -> None:
    """Print a Markdown table, and write the result where it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--requests", type=int, default=8192)
    parser.add_argument("--laps", type=int, default=10)
    parser.add_argument("--write", action="store_true", help="Write the result file.")
    arguments = parser.parse_args()
    # Not AutoTokenizer, which loads torch.
    tokenizer = PreTrainedTokenizerFast.from_pretrained(TINY)
    ids = [*tokenizer(ANSWER)["input_ids"], tokenizer.eos_token_id]
    script = Path(__file__).with_name("loopback_server.py")
    server = subprocess.Popen(
        [sys.executable, str(script), ANSWER, json.dumps(ids), str(LATENCY_SECONDS)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        ways = Ways(f"http://127.0.0.1:{int(server.stdout.readline())}/v1", tokenizer)
        rates = compare(ways, arguments.requests, arguments.laps)
    finally:
        server.kill()
        server.wait()
    shown = table(rates)
    print(shown.markdown())
    if arguments.write:
        settings = {
            "parallel": PARALLEL, "latency_seconds": LATENCY_SECONDS, "turns": NUM_TURNS,
            "requests": arguments.requests, "laps": arguments.laps,
        }  # fmt: skip
        versions = installed("aiohttp", "orjson")
        print(write_result("openai_client", settings, rates, {"requests": shown}, versions))


if __name__ == "__main__":
    main()
