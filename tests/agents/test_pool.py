"""A pool of engines on real Ray: routing, deaths, hangs, weights. The engines are small fakes."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
import torch
from pool_fakes import FileEngine, ask

from rllm_agents import AgentExecutionEngine, ChatAgent
from rllm_agents.errors import EngineError, UserError
from rllm_agents.rollout_engines.pool import EnginePool
from rllm_agents.types import Completion
from rllm_envs import BaseEnv

HANG_TIMEOUT = 3.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    import pool_fakes

    ray.cloudpickle.register_pickle_by_value(pool_fakes)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture
def make_pool(cluster: None, tmp_path: Path) -> Iterator[Callable[..., EnginePool]]:
    pools = []

    def make(**settings: Any) -> EnginePool:
        settings = {"num_engines": 2, "num_cpus": 0.5, **settings}
        pools.append(EnginePool(FileEngine, engine_args={"place": str(tmp_path)}, **settings))
        return pools[-1]

    yield make
    for pool in pools:
        pool.close()


class ThreeTurns(BaseEnv):
    """Ends after three turns."""

    blocking = False

    def __init__(self) -> None:
        self.turn = 0

    def reset(self) -> tuple[str, dict[str, Any]]:
        return "Begin.", {}

    def step(self, action: str) -> tuple[str, float, bool, dict[str, Any]]:
        self.turn += 1
        return "Go on.", 1.0, self.turn == 3, {}

    @staticmethod
    def from_dict(info: dict[str, Any]) -> ThreeTurns:
        return ThreeTurns()


def process_of(completion: Completion) -> int:
    return int(completion.text.split()[0])


def asked(place: Path) -> Counter[int]:
    """Requests that each process was given."""
    return Counter(int(path.name.split("-")[1]) for path in place.glob("asked-*"))


async def until(condition: Callable[[], Any], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        await asyncio.sleep(0.02)


async def processes_that_serve(pool: EnginePool) -> set[int]:
    """Ask until as many processes have answered at once as the pool has engines."""
    while True:
        answers = await asyncio.gather(*(pool.generate(ask()) for _ in range(8)))
        if len(found := set(map(process_of, answers))) == 2:
            return found
        await asyncio.sleep(0.1)


async def kill_one_while_it_samples(
    pool: EnginePool, place: Path, how: signal.Signals, num_episodes: int
) -> tuple[int, list[Any]]:
    """Play episodes and signal an engine that has been given some of their requests."""
    victim = pool.process_ids()[0]
    hold = place / "hold"
    hold.touch()
    engine = AgentExecutionEngine(agent_class=ChatAgent, env_class=ThreeTurns, rollout_engine=pool)
    playing = asyncio.create_task(engine.execute_tasks([{}] * num_episodes))
    await until(lambda: asked(place).total() == num_episodes)
    assert sorted(asked(place).values()) == [num_episodes // 2] * 2
    os.kill(victim, how)
    hold.unlink()
    return victim, await playing


def test_sessions_are_spread_evenly_and_each_stays_on_its_engine(
    make_pool: Callable[..., EnginePool], tmp_path: Path
) -> None:
    pool = make_pool()
    assert pool.max_model_length == 77 and pool.weights_version == 0

    async def play() -> list[list[Completion]]:
        (tmp_path / "hold").touch()
        first = [asyncio.create_task(pool.generate(ask(f"s{i}"))) for i in range(8)]
        await until(lambda: asked(tmp_path).total() == 8)
        assert sorted(asked(tmp_path).values()) == [4, 4]
        (tmp_path / "hold").unlink()
        turns = [await asyncio.gather(*first)]
        for _ in range(3):
            turns.append(await asyncio.gather(*(pool.generate(ask(f"s{i}")) for i in range(8))))
        return turns

    turns = asyncio.run(play())
    homes = [process_of(completion) for completion in turns[0]]
    assert set(homes) == set(pool.process_ids())
    assert all([process_of(c) for c in turn] == homes for turn in turns)


def test_all_episodes_end_well_when_an_engine_is_killed_in_their_midst(
    make_pool: Callable[..., EnginePool], tmp_path: Path
) -> None:
    pool = make_pool()

    async def play() -> None:
        victim, episodes = await kill_one_while_it_samples(pool, tmp_path, signal.SIGKILL, 32)
        assert [e.id for e in episodes] == [str(i) for i in range(32)]
        assert all(not e.failed and e.reward == 3.0 for e in episodes)
        served = {int(step.model_response.split()[0]) for e in episodes for step in e.steps}
        assert victim not in served

    asyncio.run(play())
    # The one that was killed is back under another number, and serves.
    assert len(asyncio.run(processes_that_serve(pool))) == 2


@pytest.mark.slow
def test_an_engine_that_hangs_is_found_within_the_bound_and_its_requests_are_sampled_elsewhere(
    make_pool: Callable[..., EnginePool], tmp_path: Path
) -> None:
    pool = make_pool(hang_timeout=HANG_TIMEOUT)

    async def play() -> float:
        # Stopped, a process answers nothing and dies of no signal but the last.
        started = time.monotonic()
        victim, episodes = await kill_one_while_it_samples(pool, tmp_path, signal.SIGSTOP, 16)
        assert all(not e.failed and e.reward == 3.0 for e in episodes)
        await until(lambda: not os.path.exists(f"/proc/{victim}"))
        return time.monotonic() - started

    # A ping, a second look, an end that is not answered, and Ray's own patience before SIGKILL.
    assert asyncio.run(play()) < HANG_TIMEOUT + 45


@pytest.mark.slow
def test_an_engine_that_hangs_inside_a_process_that_answers_is_started_again(
    make_pool: Callable[..., EnginePool], tmp_path: Path
) -> None:
    pool = make_pool(num_engines=1, hang_timeout=HANG_TIMEOUT)
    (victim,) = pool.process_ids()

    async def play() -> Completion:
        (tmp_path / "hold").touch()
        waiting = asyncio.create_task(pool.generate(ask("s")))
        await until(lambda: asked(tmp_path))
        (tmp_path / f"stuck-{victim}").touch()
        await until(lambda: not os.path.exists(f"/proc/{victim}"))
        (tmp_path / "hold").unlink()
        return await waiting

    assert process_of(asyncio.run(play())) not in (victim, 0)


def test_an_engine_that_is_started_again_has_all_weights_before_it_serves(
    make_pool: Callable[..., EnginePool], tmp_path: Path
) -> None:
    pool = make_pool()

    async def play() -> list[Completion]:
        await pool.load_weights({"a": torch.tensor(1.0), "b": torch.tensor(10.0)}, version=4)
        await pool.load_weights({"b": torch.tensor(20.0)}, version=5)
        for process in pool.process_ids():
            os.kill(process, signal.SIGKILL)
        # Loaded while nobody is there: it is not waited for, and reaches both.
        await pool.load_weights({"c": torch.tensor(100.0)}, version=6)
        return await asyncio.gather(*(pool.generate(ask(f"s{i}")) for i in range(8)))

    completions = asyncio.run(play())
    assert pool.weights_version == 6
    assert {c.weights_version for c in completions} == {6}
    assert {c.text.split()[1] for c in completions} == {"121"}  # a + newest b + c


def test_weights_that_engines_refuse_leave_them_with_what_they_had(
    make_pool: Callable[..., EnginePool], tmp_path: Path
) -> None:
    pool = make_pool(num_engines=1)
    load = pool.load_weights
    asyncio.run(load({"a": torch.tensor(1.0)}, version=1))
    (tmp_path / "refuse").touch()
    with pytest.raises(EngineError, match="engines refuse the weights: no such weights"):
        asyncio.run(load({"a": torch.tensor(2.0)}, version=2))
    (tmp_path / "refuse").unlink()
    os.kill(pool.process_ids()[0], signal.SIGKILL)
    completion = asyncio.run(pool.generate(ask()))  # of the process that Ray starts again
    assert completion.text.split()[1] == "1" and completion.weights_version == 1
    assert pool.weights_version == 1
    asyncio.run(load({"a": torch.tensor(3.0)}, version=3))
    assert asyncio.run(pool.generate(ask())).text.split()[1] == "3"


def test_a_client_in_another_process_samples_from_the_same_engines(
    make_pool: Callable[..., EnginePool],
) -> None:
    pool = make_pool(num_engines=1)
    client = pickle.loads(ray.cloudpickle.dumps(pool.client))
    assert client.max_model_length == 77
    assert process_of(asyncio.run(client.generate(ask()))) == pool.process_ids()[0]
    with pytest.raises(EngineError, match="through its EnginePool"):
        asyncio.run(client.load_weights({}, version=1))
    client.close()
    assert process_of(asyncio.run(pool.generate(ask()))) == pool.process_ids()[0]


def test_refusals_and_cancellations_concern_their_caller_alone(
    make_pool: Callable[..., EnginePool], tmp_path: Path
) -> None:
    pool = make_pool(num_engines=1)

    async def play() -> None:
        with pytest.raises(EngineError, match=r"^id 0 is not in the vocabulary$"):
            await pool.generate(ask(prompt_ids=(0,)))
        (tmp_path / "hold").touch()
        given_up = asyncio.create_task(pool.generate(ask()))
        await until(lambda: asked(tmp_path))
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        await until(lambda: list(tmp_path.glob("cancelled-*")))
        (tmp_path / "hold").unlink()
        await pool.generate(ask())

    asyncio.run(play())
    pool.close()
    with pytest.raises(EngineError, match="closed"):
        asyncio.run(pool.generate(ask()))
    assert list(tmp_path.glob("closed-*"))


@pytest.mark.slow
def test_a_request_that_ends_every_engine_does_not_have_them_all(
    make_pool: Callable[..., EnginePool],
) -> None:
    pool = make_pool(num_engines=1)

    async def play() -> Completion:
        with pytest.raises(EngineError, match="3 rollout engines were lost over a request"):
            await pool.generate(ask(prompt_ids=(9,)))
        return await pool.generate(ask())

    assert process_of(asyncio.run(play())) > 0


def test_what_cannot_start_says_why(make_pool: Callable[..., EnginePool], tmp_path: Path) -> None:
    (tmp_path / "broken").touch()
    with pytest.raises(UserError, match="first must not be broken"):
        make_pool()
    (tmp_path / "broken").unlink()
    with pytest.raises(UserError, match="2 engines need 6 CPU together, Ray has 2: ask for fewer"):
        make_pool(num_cpus=3, start_timeout=1.0)
    with pytest.raises(UserError, match="engine of a pool must be transformers or vllm"):
        EnginePool("scripted")
    with pytest.raises(UserError, match="num_engines must be at least 1, got 0"):
        make_pool(num_engines=0)
    with pytest.raises(UserError, match="hang_timeout must be above 0"):
        make_pool(hang_timeout=0)


def test_all_engines_are_told_to_sleep_and_one_that_cannot_is_told_of(
    make_pool: Callable[..., EnginePool], tmp_path: Path
) -> None:
    pool = make_pool()
    asyncio.run(pool.sleep())
    slept = {int(path.name.split("-")[1]) for path in tmp_path.glob("slept-*")}
    assert slept == set(pool.process_ids()) and len(slept) == 2
    (tmp_path / "refuse").touch()
    with pytest.raises(EngineError, match="does not sleep: not tired"):
        asyncio.run(pool.sleep())
