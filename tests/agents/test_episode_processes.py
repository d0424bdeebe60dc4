from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from agents_fakes import EchoAgent
from process_fakes import KillingEnv, PlacedEnv, UnwillingText, seconds_to_stop

from rllm_agents import AgentExecutionEngine, ChatAgent, Episode, TerminationReason, UserError
from rllm_agents.episode_processes import EpisodeProcesses
from rllm_agents.errors import EngineError
from rllm_agents.gateway import AgentProgram
from rllm_agents.limits import RolloutLimits
from rllm_agents.rollout_engines import ScriptedEngine
from rllm_agents.rollout_requests import RolloutRequest
from rllm_envs import GymEnv

R = TerminationReason
ARGUMENTS: dict[str, Any] = {
    "agent_class": EchoAgent,
    "env_class": PlacedEnv,
    "engine_name": "scripted",
    "rollout_engine_args": {"responses": ["1"]},
}
LAKE = {"env_id": "rllm/FrozenLake-v0"}


def make_engine(env_class: Any = PlacedEnv, **given: Any) -> AgentExecutionEngine:
    return AgentExecutionEngine(**{**ARGUMENTS, "env_class": env_class, "n_processes": 1, **given})


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


def test_episodes_are_those_of_one_process() -> None:
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


def test_two_processes_share_the_episodes_and_leave_nothing_behind() -> None:
    asyncio.run(asyncio.sleep(0))
    threads, files = threading.active_count(), len(os.listdir("/proc/self/fd"))
    left: set[asyncio.Task[Any]] = set()

    async def main(engine: AgentExecutionEngine) -> list[Episode]:
        episodes = await engine.execute_tasks([{"seconds": 0.1}] * 8)
        left.update(asyncio.all_tasks() - {asyncio.current_task()})
        return episodes

    with make_engine(n_processes=2) as engine:
        episodes = asyncio.run(main(engine))
        pids = [episode.steps[0].info["pid"] for episode in episodes]
        assert {pid: pids.count(pid) for pid in pids} == {c.pid: 4 for c in children()}
    assert left == set()
    assert threading.active_count() == threads
    assert len(os.listdir("/proc/self/fd")) == files
    engine.close()  # again does nothing


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
        assert episode.info["attempt_id"] == f"{episode.id}/2"
        lost = "a process that plays episodes was ended by SIGKILL"
        assert episode.info["earlier_errors"] == [lost]


def test_an_episode_that_kills_every_process_fails_and_the_next_one_plays() -> None:
    kills = {"kill_once": ""}
    with make_engine(n_parallel_agents=1, retry_limit=2, env_class=KillingEnv) as engine:
        killed, well = asyncio.run(engine.execute_tasks([kills, {}]))
    assert killed.termination_reason is R.ENV_EXIT
    assert killed.error == "a process that plays episodes was ended by SIGKILL"
    assert (killed.reward, killed.metrics["attempts"]) == (None, 2.0)
    assert killed.info["earlier_errors"] == [killed.error]
    assert (well.reward, well.error, well.metrics["attempts"]) == (1.0, None, 1.0)


def test_who_always_kills_its_process_fails_alone_in_the_end() -> None:
    tasks: list[dict[str, Any]] = [{"kill_once": ""}, *[{"seconds": 0.2}] * 3]
    with make_engine(retry_limit=3, env_class=KillingEnv) as engine:
        killed, *others = asyncio.run(engine.execute_tasks(tasks))
    assert (killed.termination_reason, killed.metrics["attempts"]) == (R.ENV_EXIT, 3.0)
    assert [(e.reward, e.metrics["attempts"]) for e in others] == [(1.0, 3.0)] * 3


def test_a_replay_that_only_runs_out_of_the_rest_of_the_time_is_no_outcome(tmp_path: Path) -> None:
    task = {"seconds": 1.0, "kill_once": str(tmp_path / "killed")}
    with make_engine(trajectory_timeout=1.5) as engine:
        (episode,) = asyncio.run(engine.execute_tasks([task]))
    assert (episode.termination_reason, episode.reward) == (R.ENV_EXIT, None)
    assert episode.error == "a process that plays episodes was ended by SIGKILL"


def test_what_cannot_be_sent_or_ends_a_process_fails_its_own_episode() -> None:
    expected: list[tuple[dict[str, Any], R | None, str]] = [
        ({"seconds": 0.1}, R.ENV_DONE, "None"),
        ({"info": "lock"}, R.ENV_PROTOCOL, "what the episode holds cannot be sent: TypeError"),
        ({"info": "unwilling"}, R.ENV_PROTOCOL, "cannot be read in another process: ValueError"),
        ({"call": lambda: 0}, R.ENV_PROTOCOL, "the task cannot be sent to another process"),
        (
            {"text": UnwillingText("not here")},
            R.ENV_PROTOCOL,
            "the task cannot be read in another process: ValueError: not here",
        ),
        ({"raises": KeyboardInterrupt()}, R.ENV_EXIT, "KeyboardInterrupt"),
        ({"raises": SystemExit(3)}, R.ENV_EXIT, "SystemExit: 3"),
        ({"cancel": True}, R.ENV_LEAKED_CANCEL, "CancelledError"),
        ({"seconds": 0.1}, R.ENV_DONE, "None"),
    ]
    with make_engine() as engine:
        episodes = asyncio.run(engine.execute_tasks([task for task, _, _ in expected]))
    for number, (episode, (task, reason, said)) in enumerate(zip(episodes, expected, strict=True)):
        assert (episode.id, episode.task) == (str(number), task)
        assert episode.termination_reason is reason
        assert said in str(episode.error)
        assert episode.reward == (1.0 if reason is R.ENV_DONE else None)
        assert episode.metrics["attempts"] == 1.0


def test_stopping_a_run_closes_its_environments(tmp_path: Path) -> None:
    tasks = [{"name": n, "marks": str(tmp_path), "seconds": 60.0} for n in range(4)]

    async def main(engine: AgentExecutionEngine) -> float:
        run = asyncio.create_task(engine.execute_tasks(tasks))
        while len(list(tmp_path.glob("begun-*"))) < 4:
            await asyncio.sleep(0.01)
        return await seconds_to_stop(run)

    with make_engine() as engine:
        assert asyncio.run(main(engine)) < 2.0
        closed = [path.read_text().count("\n") for path in tmp_path.glob("closed-*")]
        assert closed == [1] * 4
        assert engine.progress.cancelled == 4
        (episode,) = asyncio.run(engine.execute_tasks([{}]))
        assert episode.reward == 1.0


def test_a_run_that_is_stopped_while_processes_start_owes_nothing() -> None:
    processes = EpisodeProcesses(ARGUMENTS, 1, 3, RolloutLimits())

    async def main() -> list[Episode]:
        async with processes.playing() as play:
            tasks = [asyncio.ensure_future(play(RolloutRequest({}, f"{n}"))) for n in range(3)]
            await asyncio.sleep(0.0)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            await play(RolloutRequest({}, "then"))
            (process,) = processes._processes
            assert process is not None
            assert process.load == (False, 0)
            return [await play(RolloutRequest({}, "last"))]

    (episode,) = asyncio.run(main())
    processes.close()
    assert (episode.reward, episode.metrics["attempts"]) == (1.0, 1.0)


def test_a_process_that_is_killed_while_it_starts_costs_an_attempt() -> None:
    async def main(engine: AgentExecutionEngine) -> Episode:
        run = asyncio.create_task(engine.execute_tasks([{}]))
        while not children():
            await asyncio.sleep(0.01)
        children()[0].kill()
        return (await run)[0]

    with make_engine() as engine:
        episode = asyncio.run(main(engine))
    assert (episode.reward, episode.metrics["attempts"]) == (1.0, 2.0)


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
    assert (tmp_path / "closed-0").read_text().count("\n") == 1
    assert children() == []


def test_a_process_that_hangs_is_ended_in_time() -> None:
    limits = RolloutLimits(trajectory_timeout_seconds=0.2, close_timeout_seconds=0.1)
    processes = EpisodeProcesses(ARGUMENTS, 1, 3, limits, margin_seconds=0.3)

    async def main() -> list[Episode]:
        async with processes.playing() as play:
            hangs = await play(RolloutRequest({"hang": True}, "hangs"))
            return [hangs, await play(RolloutRequest({}, "well"))]

    hung, well = asyncio.run(main())
    processes.close()
    assert hung.termination_reason is R.ENV_EXIT
    assert hung.error == "a process that plays episodes gave no answer for 0.6 s"
    assert hung.metrics["attempts"] == 1.0  # no time is left for another one
    assert well.reward == 1.0
    assert children() == []


def test_a_process_that_hangs_in_a_run_that_is_stopped_keeps_the_next_one_no_longer_than_5_s(
    tmp_path: Path,
) -> None:
    async def stopped(engine: AgentExecutionEngine) -> None:
        hangs = {"hang": True, "name": 0, "marks": str(tmp_path)}
        run = asyncio.create_task(engine.execute_tasks([hangs]))
        while not (tmp_path / "begun-0").exists():
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    with make_engine() as engine:
        asyncio.run(stopped(engine))
        start = time.monotonic()
        (episode,) = asyncio.run(engine.execute_tasks([{}]))
        assert time.monotonic() - start < 10.0
    assert episode.reward == 1.0
    lost = "a process that plays episodes did not stop an episode in 5 s"
    assert episode.info["earlier_errors"] == [lost]


def test_what_an_environment_forks_does_not_hide_the_end_of_its_process(tmp_path: Path) -> None:
    tasks = [{"fork": 30.0}, {"kill_once": str(tmp_path / "killed"), "seconds": 0.2}]
    start = time.monotonic()
    with make_engine() as engine:
        forked, killed = asyncio.run(engine.execute_tasks(tasks))
    assert time.monotonic() - start < 20.0
    assert (forked.reward, killed.reward, killed.metrics["attempts"]) == (1.0, 1.0, 2.0)


def test_a_forked_copy_that_closes_the_engine_leaves_the_processes_alone() -> None:
    async def main(engine: AgentExecutionEngine) -> list[Episode]:
        run = asyncio.create_task(engine.execute_tasks([{"seconds": 1.5}] * 2))
        while engine.progress.in_flight < 2:
            await asyncio.sleep(0.01)
        await asyncio.sleep(1.0)
        copy = os.fork()
        if copy == 0:
            engine.close()
            os._exit(0)
        os.waitpid(copy, 0)
        return await run

    with make_engine() as engine:
        episodes = asyncio.run(main(engine))
    assert [(e.reward, e.metrics["attempts"]) for e in episodes] == [(1.0, 1.0)] * 2


def test_an_engine_that_no_process_can_make_ends_the_run() -> None:
    with (
        make_engine(rollout_engine_args={"responses": [UnwillingText("1")]}) as engine,
        pytest.raises(EngineError, match="cannot make the engine: ValueError: not here"),
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
        ({"n_processes": None}, "n_processes must be at least 1, got None"),
        ({"n_processes": 1.5}, "n_processes must be at least 1, got 1.5"),
        ({"agent_class": local_agent()}, "n_processes needs agent_class at the top of a module"),
        (
            {"rollout_engine_args": {"responses": lambda messages: "1"}},
            "rollout_engine_args cannot be sent to another process",
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
    while psutil.pid_exists(pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                break
        assert time.monotonic() < deadline
        time.sleep(0.05)
