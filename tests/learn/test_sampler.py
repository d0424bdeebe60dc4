from __future__ import annotations

import asyncio

import pytest

from rllm_agents import AgentExecutionEngine, ChatAgent, ScriptedEngine
from rllm_envs import BaseEnv, GymEnv
from rllm_learn.algorithms import PlannedRollout
from rllm_learn.errors import TrainingError
from rllm_learn.sampler import PlanSampler, rollout_seed


class UnluckyEnv(BaseEnv):
    """Rewards every answer, save on tasks marked broken, where it raises."""

    blocking = False

    def __init__(self, task):
        self.task = task

    def reset(self):
        return {"question": "?"}, {}

    def step(self, action):
        if self.task["broken"]:
            raise OSError("out of order")
        return {}, 1.0, True, {}

    @staticmethod
    def from_dict(info):
        return UnluckyEnv(info)


def sample(tasks, *, max_failure_share, env_class=UnluckyEnv, env_args=None):
    engine = AgentExecutionEngine(
        agent_class=ChatAgent,
        env_class=env_class,
        env_args=env_args,
        rollout_engine=ScriptedEngine(responses=["x"]),
    )
    with asyncio.Runner() as runner:
        sampler = PlanSampler(
            play=lambda requests: runner.run(engine.execute_requests(requests)),
            push=lambda weights, version: None,
            temperature=1.0,
            seed=0,
            max_failure_share=max_failure_share,
        )
        plan = [PlannedRollout(i, i) for i in range(len(tasks))]
        return sampler.sample(plan, tasks, step=3)


def test_more_failures_than_allowed_stop_the_run_with_their_reasons():
    tasks = [{"broken": i < 3} for i in range(10)]
    with pytest.raises(TrainingError, match=r"3 of 10 episodes of step 3 .*3 x env_exception.*out"):
        sample(tasks, max_failure_share=0.2)


def test_the_engine_may_rest_when_all_episodes_of_a_plan_have_been_played():
    notes = []

    def play(requests):
        notes.append(len(requests))
        return []

    sampler = PlanSampler(
        play=play,
        push=lambda weights, version: None,
        temperature=1.0,
        seed=0,
        max_failure_share=0.0,
        rest=lambda: notes.append("rest"),
    )
    sampler.requests([PlannedRollout(0, 0)], [{}], 0)
    assert notes == []
    sampler.sample([], [], 0)
    assert notes == [0, "rest"]


def test_text_from_an_engine_without_tokens_is_refused():
    with pytest.raises(TrainingError, match="text only"):
        sample([{"broken": False}], max_failure_share=0.2)


def test_members_of_a_group_see_the_same_question():
    seen = []

    class WatchedEnv(GymEnv):
        def reset(self):
            observation, info = super().reset()
            seen.append((self.seed, observation["question"]))
            return observation, info

        @staticmethod
        def from_dict(info):
            return WatchedEnv(info["env_id"], seed=info["seed"])

    engine = AgentExecutionEngine(
        agent_class=ChatAgent,
        env_class=WatchedEnv,
        env_args={"env_id": "rllm/Calculator-v0"},
        rollout_engine=ScriptedEngine(responses=["\\boxed{1}"]),
    )
    tasks = [{"seed": seed} for seed in (11, 12, 13) for _ in range(8)]
    asyncio.run(engine.execute_tasks(tasks))
    assert len(seen) == 24
    assert len(set(seen)) == 3  # one question a seed, whichever member asks
    assert len({question for _, question in seen}) == 3


def test_no_two_rollouts_of_nearby_runs_and_steps_share_a_seed():
    seeds = {
        rollout_seed(run, step, index)
        for run in range(3)
        for step in range(20)
        for index in range(256)
    }
    assert len(seeds) == 3 * 20 * 256
    assert max(seeds) < 2**63
