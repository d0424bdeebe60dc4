from __future__ import annotations

import asyncio
import dataclasses
import os
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from agents_fakes import EchoAgent
from process_fakes import PlacedEnv, UnwillingText

from rllm_agents import AgentExecutionEngine, ChatAgent, Episode, TerminationReason, UserError
from rllm_agents.episode_processes import EpisodeProcesses
from rllm_agents.errors import EngineError
from rllm_agents.gateway import AgentProgram
from rllm_agents.limits import RolloutLimits
from rllm_agents.rollout_engines import ScriptedEngine
from rllm_agents.rollout_requests import RolloutRequest
from rllm_envs import GymEnv

R = TerminationReason
LAKE = {"env_id": "rllm/FrozenLake-v0"}


def make_engine(env_class: Any = PlacedEnv, **given: Any) -> AgentExecutionEngine:
    arguments: dict[str, Any] = {
        "agent_class": EchoAgent,
        "env_class": env_class,
        "engine_name": "scripted",
        "rollout_engine_args": {"responses": ["1"]},
        "n_processes": 1,
    }
    return AgentExecutionEngine(**{**arguments, **given})


def children() -> list[psutil.Process]:
    return [
        process
        for process in psutil.Process().children()
        if "rllm_agents.episode_worker" in process.cmdline()
    ]


def without_times(episode: Episode) -> dict[str, Any]:
    record = dataclasses.asdict(episode)
    record["metrics"] = {k: v for k, v in record["metrics"].items() if "seconds" not in k}
    for trajectory in record["trajectories"]:
        trajectory.pop("uid")
    return record


def test_episodes_are_those_of_one_process_and_two_share_them() -> None:
    tasks = [{"seed": n} for n in range(40)]
    lake: dict[str, Any] = {
        "agent_class": ChatAgent,
        "env_class": GymEnv,
        "env_args": LAKE,
        "rollout_engine_args": {"responses": ["\\boxed{down}", "\\boxed{right}"]},
        "max_steps": 5,
    }
    ended: list[Episode] = []
    with make_engine(**lake, n_processes=0) as engine:
        here = asyncio.run(engine.execute_tasks(tasks))
    with make_engine(**lake, n_processes=2, on_episode=ended.append) as engine:
        there = asyncio.run(engine.execute_tasks(tasks))
        again = asyncio.run(engine.execute_tasks(tasks[:4]))  # on another event loop
        assert len(children()) == 2
        progress = engine.progress
    assert [without_times(e) for e in there] == [without_times(e) for e in here]
    assert [without_times(e) for e in again] == [without_times(e) for e in here[:4]]
    assert [e.task for e in there] == tasks
    assert all(e.trajectories[0].task is e.task for e in there)
    assert sorted(e.id for e in ended[:40]) == sorted(e.id for e in there)
    assert (progress.submitted, progress.completed, progress.in_flight) == (44, 44, 0)
    assert children() == []


def test_what_a_process_takes_with_it_is_played_again(tmp_path: Path) -> None:
    mark = tmp_path / "killed"
    tasks = [{"kill_once": str(mark)}, *[{"seconds": 0.2}] * 5]
    with make_engine() as engine:
        episodes = asyncio.run(engine.execute_tasks(tasks))
        assert engine.progress.completed == 6
        assert engine.progress.retried == 6
    assert [e.reward for e in episodes] == [1.0] * 6
    for episode in episodes:
        assert episode.metrics["attempts"] == 2.0
        lost = "a process that plays episodes was ended by SIGKILL"
        assert episode.info["earlier_errors"] == [lost]


def test_an_episode_that_kills_every_process_fails_and_the_next_one_plays(tmp_path: Path) -> None:
    never = str(tmp_path / "no" / "such" / "place")  # it cannot be touched, so touching raises
    kills = [{"kill_once": str(tmp_path / f"{n}")} for n in range(2)]
    with make_engine(n_parallel_agents=1, retry_limit=1) as engine:
        first, second, raised, well = asyncio.run(
            engine.execute_tasks([*kills, {"kill_once": never}, {}])
        )
    for episode in (first, second):
        assert episode.termination_reason is R.ENV_EXIT
        assert episode.error == "a process that plays episodes was ended by SIGKILL"
        assert (episode.reward, episode.metrics["attempts"]) == (None, 1.0)
    assert raised.termination_reason is R.ENV_EXCEPTION
    assert (well.reward, well.error) == (1.0, None)


def test_what_cannot_be_sent_fails_its_own_episode() -> None:
    tasks: list[dict[str, Any]] = [{"lock": True}, {"call": lambda: 0}, {"seconds": 0.01}]
    with make_engine() as engine:
        locked, calls, well = asyncio.run(engine.execute_tasks(tasks))
    assert locked.termination_reason is calls.termination_reason is R.ENV_PROTOCOL
    assert "what the episode holds cannot be sent between processes" in str(locked.error)
    assert "the task cannot be sent between processes" in str(calls.error)
    assert (locked.task, calls.task) == (tasks[0], tasks[1])
    assert well.reward == 1.0


def test_stopping_a_run_closes_its_environments(tmp_path: Path) -> None:
    tasks = [{"name": n, "marks": str(tmp_path), "seconds": 60.0} for n in range(4)]

    async def main(engine: AgentExecutionEngine) -> float:
        run = asyncio.create_task(engine.execute_tasks(tasks))
        while len(list(tmp_path.glob("begun-*"))) < 4:
            await asyncio.sleep(0.01)
        start = time.perf_counter()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        return time.perf_counter() - start

    with make_engine() as engine:
        assert asyncio.run(main(engine)) < 2.0
        assert len(list(tmp_path.glob("closed-*"))) == 4
        assert engine.progress.cancelled == 4
        (episode,) = asyncio.run(engine.execute_tasks([{}]))
        assert episode.reward == 1.0


def test_closing_an_engine_closes_what_still_plays(tmp_path: Path) -> None:
    tasks = [{"name": 0, "marks": str(tmp_path), "seconds": 60.0}]

    async def main(engine: AgentExecutionEngine) -> None:
        run = asyncio.create_task(engine.execute_tasks(tasks))
        while not (tmp_path / "begun-0").exists():
            await asyncio.sleep(0.01)
        await asyncio.to_thread(engine.close)
        with pytest.raises(EngineError, match="closed"):
            await run

    asyncio.run(main(make_engine()))
    assert (tmp_path / "closed-0").exists()
    assert children() == []


def test_a_process_that_hangs_is_ended_in_time() -> None:
    limits = RolloutLimits(trajectory_timeout_seconds=0.2, close_timeout_seconds=0.1)
    arguments = {
        "agent_class": EchoAgent,
        "env_class": PlacedEnv,
        "engine_name": "scripted",
        "rollout_engine_args": {"responses": ["1"]},
    }
    processes = EpisodeProcesses(arguments, 1, 1, limits, margin_seconds=0.3)

    async def main() -> list[Episode]:
        async with processes.playing() as play:
            hangs = await play(RolloutRequest({"hang": True}, "hangs"))
            return [hangs, await play(RolloutRequest({}, "well"))]

    hung, well = asyncio.run(main())
    processes.close()
    assert hung.termination_reason is R.ENV_EXIT
    assert hung.error == "a process that plays episodes gave no answer for 0.6 s"
    assert well.reward == 1.0
    assert children() == []


def test_an_engine_that_no_process_can_make_ends_the_run() -> None:
    with (
        make_engine(rollout_engine_args={"responses": [UnwillingText("1")]}) as engine,
        pytest.raises(EngineError, match="ValueError: not here"),
    ):
        asyncio.run(engine.execute_tasks([{}] * 3))


def local_agent() -> Any:
    class Local(EchoAgent):
        pass

    return Local


async def program(base_url: str, api_key: str, task: Any) -> None:
    """Does nothing."""


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_processes": -1}, "n_processes must be at least 1, got -1"),
        ({"n_processes": 1.5}, "n_processes must be at least 1, got 1.5"),
        ({"agent_class": local_agent()}, "n_processes needs agent_class at the top of a module"),
        (
            {"rollout_engine_args": {"responses": lambda messages: "1"}},
            "the engine's arguments cannot be sent to other processes",
        ),
        (
            {"rollout_engine": ScriptedEngine(["1"]), "rollout_engine_args": None},
            "each process makes its own rollout engine",
        ),
        (
            {"engine_name": "transformers", "rollout_engine_args": {"model": "tiny"}},
            'use engine_name="openai"',
        ),
        ({"lockstep": True}, "lockstep needs all episodes in one process"),
        (
            {"agent_class": AgentProgram(program), "env_class": None},
            "n_processes does nothing for AgentProgram",
        ),
    ],
)
def test_what_cannot_be_in_several_processes_is_refused(given: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        make_engine(**given)


def test_processes_end_with_the_one_that_started_them(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # dies as by kill -9, with an episode under way
        os.close(reader)
        engine = make_engine()
        tasks = [{"name": 0, "marks": str(tmp_path), "seconds": 60.0}]

        async def main() -> None:
            run = asyncio.create_task(engine.execute_tasks(tasks))
            while not (tmp_path / "begun-0").exists():
                await asyncio.sleep(0.01)
            os.write(writer, str(children()[0].pid).encode())
            os._exit(9)
            await run

        asyncio.run(main())
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        pid = int(answer.read())
    os.waitpid(child, 0)
    deadline = time.monotonic() + 10.0
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.05)
