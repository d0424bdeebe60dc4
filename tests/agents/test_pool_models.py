"""Pools of real engines: exact before and after one is lost, and the command that makes one."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import ray
from click.testing import CliRunner
from tiny_models import largest_error
from transformers import PreTrainedModel
from vllm_models import perturb, requests_of, save_model

from rllm_agents.cli import main
from rllm_agents.rollout_engines.pool import EnginePool
from rllm_agents.types import Completion, GenerationRequest

pytestmark = pytest.mark.slow
FLOAT32_GAP = 1e-4
needs_vllm = pytest.mark.skipif(
    importlib.util.find_spec("vllm") is None, reason="vLLM is not installed"
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


async def sample_while(
    pool: EnginePool, requests: Sequence[GenerationRequest], process: int, how: signal.Signals
) -> list[Completion]:
    """Sample, and signal a process as soon as the first completion is there."""
    tasks = [asyncio.create_task(pool.generate(request)) for request in requests]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    os.kill(process, how)
    return await asyncio.gather(*tasks)


async def until_all_serve(pool: EnginePool, request: GenerationRequest) -> None:
    deadline = time.monotonic() + 300
    while True:
        await asyncio.gather(*(pool.generate(request) for _ in range(4)))
        if not pool.client._routing.lost:
            return
        assert time.monotonic() < deadline, "an engine did not come back"
        await asyncio.sleep(0.5)


@pytest.mark.parametrize(
    ("engine", "engine_args"),
    [
        ("transformers", {}),
        pytest.param("vllm", {"kv_cache_gib": 0.05, "max_batch_size": 16}, marks=needs_vllm),
    ],
)
def test_every_completion_is_exact_though_engines_are_killed_and_hang(
    cluster: None, tmp_path: Path, engine: str, engine_args: dict[str, Any]
) -> None:
    model: PreTrainedModel = save_model(tmp_path)
    pool = EnginePool(
        engine,
        num_engines=2,
        model=str(tmp_path),
        engine_args=engine_args,
        num_cpus=0.5,
        torch_threads=1,
        hang_timeout=20.0,
    )
    requests = [replace(r, session_id=f"s{i}") for i, r in enumerate(requests_of(24, 60))]

    async def play() -> list[list[Completion]]:
        await pool.load_weights(perturb(model, "mlp"), version=3)
        first = pool.process_ids()
        killed = await sample_while(pool, requests, first[0], signal.SIGKILL)
        await until_all_serve(pool, requests[0])
        # Half of these are sampled by the process that was started for the killed one.
        after = await asyncio.gather(*(pool.generate(r) for r in requests))
        second = pool.process_ids()
        assert first[0] not in second and first[1] == second[1]
        # What does the work stops: with vLLM a process that the actor has started.
        processes = psutil.Process(second[1]).children(recursive=True)
        largest = max(processes, key=lambda p: p.memory_info().rss, default=None)
        victim = second[1] if largest is None else largest.pid
        stopped = await sample_while(pool, requests, victim, signal.SIGSTOP)
        assert not psutil.pid_exists(victim)
        return [killed, after, stopped]

    try:
        rounds = asyncio.run(play())
    finally:
        pool.close()
    for answers in rounds:
        assert [a.weights_version for a in answers] == [3] * 24
        assert largest_error(model, requests, answers) < FLOAT32_GAP
        # Requests carry their seeds: it does not matter which engine sampled them.
        assert [a.token_ids for a in answers] == [a.token_ids for a in rounds[1]]


def test_an_evaluation_over_two_engines_is_that_of_one(tmp_path: Path) -> None:
    was_running = ray.is_initialized()
    common = ["eval", "env=rllm/Calculator-v0", "num_tasks=16", "samples_per_task=2"]
    results = []
    for name, more in (("one", []), ("two", ["engine.num_engines=2"])):
        directory = tmp_path / name
        done = CliRunner().invoke(main, [*common, *more, f"run_dir={directory}"])
        assert done.exit_code == 0, done.output
        lines = (directory / "episodes.jsonl").read_text().splitlines()
        rows = sorted((json.loads(line) for line in lines), key=lambda row: row["id"])
        results.append([(row["id"], row["reward"]) for row in rows])
    assert len(results[0]) == 32 and results[0] == results[1]
    assert ray.is_initialized() == was_running
