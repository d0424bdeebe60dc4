from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest
from agents_fakes import CountingEnv, EchoAgent
from process_fakes import AsynchronousEnv, TroubledEnv, seconds_to_stop

from rllm_agents import AgentExecutionEngine, Episode, TerminationReason, UserError
from rllm_agents.isolated_envs import EnvProcesses, IsolatedEnv
from rllm_envs import BaseEnv, GymEnv
from rllm_envs.errors import EnvProcessError
from rllm_envs.vector.env_process import EnvHungError, EnvRaisedError
from rllm_envs.vector.wire import UnsendableError

R = TerminationReason


def make_engine(env_class: Any = TroubledEnv, **arguments: Any) -> AgentExecutionEngine:
    return AgentExecutionEngine(
        agent_class=EchoAgent,
        env_class=env_class,
        engine_name="scripted",
        rollout_engine_args={"responses": ["yes"]},
        **{"isolation": "process", "retry_backoff": 0.001, **arguments},
    )


def play(tasks: list[dict[str, Any]], env_class: Any = TroubledEnv, **given: Any) -> list[Episode]:
    with make_engine(env_class, **given) as engine:
        return asyncio.run(engine.execute_tasks(tasks))


def test_processes_are_used_again_one_environment_after_the_other() -> None:
    first, second = play([{}, {}], n_parallel_agents=1)
    pids = {step.info["pid"] for episode in (first, second) for step in episode.steps}
    assert len(pids) == 1
    assert os.getpid() not in pids
    shown = [episode.steps[0].observation for episode in (first, second)]
    assert shown == [{"question": "made 1"}, {"question": "made 2"}]
    assert first.reward == second.reward == 1.0


def test_environments_that_play_at_the_same_time_have_processes_of_their_own() -> None:
    episodes = play([{}] * 3)
    assert len({episode.steps[0].info["pid"] for episode in episodes}) == 3


@pytest.mark.parametrize(
    ("trouble", "reason", "attempts"),
    [
        ("init:error", R.ENV_EXCEPTION, 1),
        ("step:exit", R.ENV_EXIT, 1),
        ("step:cancel", R.ENV_LEAKED_CANCEL, 1),
        ("reset:sandbox", R.SANDBOX_ERROR, 2),
        ("reset:hang", R.ENV_STEP_TIMEOUT, 1),
        ("step:kill", R.ENV_EXIT, 2),
        ("step:object", R.ENV_PROTOCOL, 1),
    ],
)
def test_trouble_is_its_episodes_own_and_the_next_one_gets_a_process_that_works(
    trouble: str, reason: TerminationReason, attempts: int
) -> None:
    with make_engine(n_parallel_agents=1, step_timeout=2.0, retry_limit=2) as engine:
        troubled, well = asyncio.run(engine.execute_tasks([{"trouble": trouble}, {}]))
        assert engine.progress.hung_calls == 0
    assert troubled.termination_reason is reason, troubled.error
    assert (troubled.reward, troubled.metrics["attempts"]) == (None, float(attempts))
    assert troubled.error
    assert (well.reward, well.error) == (1.0, None)


def test_what_an_environment_raises_is_told_in_its_own_words() -> None:
    (episode,) = play([{"trouble": "step:error"}])
    assert episode.error == "step of the environment raised ValueError: broken"


def test_an_environment_that_cannot_be_closed_costs_its_process_and_not_its_reward() -> None:
    first, second = play([{"trouble": "close:error"}, {}], n_parallel_agents=1)
    assert (first.reward, second.reward) == (1.0, 1.0)
    assert "ValueError: broken" in first.info["close_error"]
    assert first.steps[0].info["pid"] != second.steps[0].info["pid"]


def test_stopping_a_run_kills_what_hangs_in_it() -> None:
    async def main(engine: AgentExecutionEngine) -> float:
        run = asyncio.create_task(engine.execute_tasks([{"trouble": "step:hang"}] * 3))
        while engine.progress.in_flight < 3:
            await asyncio.sleep(0.01)
        await asyncio.sleep(1.0)
        return await seconds_to_stop(run)

    with make_engine() as engine:
        assert asyncio.run(main(engine)) < 2.0
        assert engine.progress.cancelled == 3
        assert engine.progress.hung_calls == 0


def test_gymnasium_environments_run_through_their_bridge() -> None:
    task = {"env_id": "rllm/Arithmetic-v0", "seed": 1, "observation_key": None}
    here, there = (
        asyncio.run(engine.execute_tasks([task]))[0]
        for engine in (make_engine(GymEnv, isolation="thread"), make_engine(GymEnv))
    )
    assert here.steps[0].observation == there.steps[0].observation
    assert here.reward == there.reward == 0.0


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_methods_may_be_coroutines(isolation: str) -> None:
    episodes = play([{}, {"seconds": 60.0}], AsynchronousEnv, isolation=isolation, step_timeout=1.0)
    assert [episode.termination_reason for episode in episodes] == [R.ENV_DONE, R.ENV_STEP_TIMEOUT]
    assert [episode.reward for episode in episodes] == [1.0, None]
    assert all("close_error" not in episode.info for episode in episodes)


def test_a_task_that_is_no_data_is_a_broken_contract() -> None:
    (episode,) = play([{"callback": print}])
    assert episode.termination_reason is R.ENV_PROTOCOL
    assert "only texts, numbers" in str(episode.error)


@pytest.mark.parametrize("place", ["main", "local", "none"])
def test_a_class_that_no_process_finds_is_refused_at_once(place: str) -> None:
    class Local(BaseEnv):
        reset = step = from_dict = None  # type: ignore[assignment]

    script = type("Script", (CountingEnv,), {"__module__": "__main__"})
    env_class: Any = {"main": script, "local": Local, "none": object()}[place]
    with pytest.raises(UserError, match="at the top of a module"):
        EnvProcesses(env_class)


def test_an_unknown_isolation_is_refused() -> None:
    with pytest.raises(UserError, match="isolation must be one of thread, process, got 'fiber'"):
        make_engine(isolation="fiber")


# IsolatedEnv by itself


def made(processes: EnvProcesses, task: dict[str, Any], seconds: float | None = None) -> Any:
    env = IsolatedEnv(processes, task, seconds, 2.0)
    env.make()
    return env


def test_a_killed_environment_fails_its_calls_and_leaves_no_process() -> None:
    processes = EnvProcesses(TroubledEnv)
    env = made(processes, {})
    assert processes.num_living == 1
    env.kill()
    with pytest.raises(EnvProcessError):
        env.reset()
    env.close()
    env.close()
    assert processes.num_living == 0


def test_one_that_is_killed_before_it_is_made_gives_its_process_back() -> None:
    processes = EnvProcesses(TroubledEnv)
    env = IsolatedEnv(processes, {}, None, 2.0)
    env.kill()
    with pytest.raises(EnvProcessError, match="given up"):
        env.make()
    env.close()
    assert processes.num_living == 1
    processes.close()
    assert processes.num_living == 0
    with pytest.raises(EnvProcessError, match="closed"):
        processes.take()


def test_errors_say_what_happened() -> None:
    processes = EnvProcesses(TroubledEnv)
    with pytest.raises(EnvRaisedError) as raised:
        made(processes, {"trouble": "init:exit"})
    assert raised.value.kinds[:2] == ("SystemExit", "BaseException")
    assert raised.value.message == "3"
    with pytest.raises(UnsendableError):
        made(processes, {"x": object()})
    with pytest.raises(EnvHungError, match="took longer than"):
        made(processes, {"trouble": "init:hang"}, 0.5)
    with pytest.raises(EnvProcessError, match="SIGKILL"):
        made(processes, {"trouble": "init:kill"})
    processes.close()
