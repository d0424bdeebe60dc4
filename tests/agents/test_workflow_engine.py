from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from agents_fakes import ByteEngine, ByteTokenizer, CountingEnv, EchoAgent, Ledger
from workflow_fakes import TaggedEngine, answer, run_one, run_tasks, user, workflow_of

from rllm_agents import (
    AgentWorkflowEngine,
    ChatAgent,
    Episode,
    RolloutRequest,
    SamplingParams,
    ScriptedEngine,
    Step,
    TerminationReason,
    Trajectory,
    UserError,
    Workflow,
    WorkflowError,
)
from rllm_agents.workflows import MultiTurnWorkflow


def test_a_short_workflow_of_ones_own_gives_an_episode_with_its_calls() -> None:
    episode = run_one(answer, {"question": "right"})
    assert episode.id == "0"
    assert episode.termination_reason is TerminationReason.ENV_DONE
    assert (episode.reward, episode.is_correct, episode.error) == (1.0, True, None)
    trajectory = episode.trajectory
    assert (trajectory.name, trajectory.task) == ("solver", {"question": "right"})
    (step,) = trajectory.steps
    assert step.model_response == "right=1"
    assert step.chat_completions[-1] == {"role": "assistant", "content": "right=1"}
    assert len(step.response_ids) == len(step.logprobs) == len(b"right=1") + 1
    assert step.model_output is not None
    assert step.model_output.weights_version == 1
    assert episode.metrics["num_calls"] == episode.metrics["attempts"] == 1.0
    assert episode.metrics["response_tokens"] == 8.0
    assert episode.metrics["solver_acc"] == 1.0


def test_episodes_come_in_the_order_of_tasks_and_task_ids_number_their_requests() -> None:
    tasks = [{"question": f"q{i % 3}"} for i in range(30)]
    engine = TaggedEngine(longest_seconds=0.01)
    with AgentWorkflowEngine(
        workflow_cls=workflow_of(answer), rollout_engine=engine, n_parallel_tasks=7
    ) as workflows:
        episodes = asyncio.run(workflows.execute_tasks(tasks, [t["question"] for t in tasks]))
    assert [e.task for e in episodes] == tasks
    assert [e.id for e in episodes[:6]] == ["q0:0", "q1:0", "q2:0", "q0:1", "q1:1", "q2:1"]


def test_streamed_episodes_come_as_they_end() -> None:
    async def sleeps(workflow: Any, task: Any) -> None:
        await asyncio.sleep(task["seconds"])

    async def main(engine: AgentWorkflowEngine) -> list[str]:
        tasks = [{"seconds": s} for s in (0.2, 0.0, 0.1)]
        return [episode.id async for episode in engine.stream_tasks(tasks)]

    with AgentWorkflowEngine(
        workflow_cls=workflow_of(sleeps), rollout_engine=TaggedEngine()
    ) as engine:
        assert asyncio.run(main(engine)) == ["1", "2", "0"]


def test_an_instance_is_never_shared_between_tasks_that_run_at_once() -> None:
    made: list[Workflow] = []
    shared: list[Workflow] = []

    class Alone(Workflow):
        def __init__(self, rollout_engine: Any, **kwargs: Any) -> None:
            super().__init__(rollout_engine, **kwargs)
            self.is_running = False
            made.append(self)

        async def run(self, task: Any, uid: str, **kwargs: Any) -> None:
            if self.is_running:
                shared.append(self)
            self.is_running = True
            await self.rollout_engine.get_model_response([user("hi")])
            self.is_running = False

    episodes = run_tasks(Alone, [{}] * 60, n_parallel_tasks=5)
    assert not any(episode.failed for episode in episodes)
    assert shared == []
    assert len(made) == 5


def test_the_same_seed_gives_each_request_and_each_call_a_stream_of_its_own() -> None:
    async def twice(workflow: Any, task: Any) -> None:
        async def ask() -> None:
            own = workflow.new_trajectory("a")
            for _ in range(2):
                await workflow.rollout_engine.get_model_response([user("hi")], trajectory=own)

        await asyncio.gather(ask(), ask(), workflow.rollout_engine.get_model_response([user("x")]))

    def seeds(order_of_time: int) -> list[int | None]:
        engine = TaggedEngine(order_of_time)
        run_tasks(twice, [{}] * 3, rollout_engine=engine, sampling_params={"seed": 3})
        return sorted(request.sampling.seed or 0 for request, _ in engine.sampled.values())

    first = seeds(0)
    assert len(set(first)) == 15
    assert first == seeds(1)


def test_sampling_of_a_request_and_of_a_call_wins_over_the_engines() -> None:
    async def ask(workflow: Any, task: Any) -> None:
        await workflow.rollout_engine.get_model_response([user("a")])
        await workflow.rollout_engine.get_model_response([user("b")], temperature=0.0, max_tokens=5)

    rollout_engine = TaggedEngine(longest_seconds=0.0)
    with AgentWorkflowEngine(
        workflow_cls=workflow_of(ask), rollout_engine=rollout_engine
    ) as engine:
        request = RolloutRequest({}, "r", SamplingParams(temperature=0.7))
        asyncio.run(engine.execute_requests([request]))
    first, second = [request.sampling for request, _ in rollout_engine.sampled.values()]
    assert (first.temperature, second.temperature, second.max_tokens) == (0.7, 0.0, 5)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"n_parallel_tasks": 0}, "n_parallel_tasks must be at least 1"),
        ({"retry_limit": 0}, "retry_limit must be at least 1"),
        ({"workflow_args": {"colour": 1}}, "colour"),
        ({"call_timeout": 0.0}, "call_timeout"),
        ({"workflow_timeout": -1.0}, "trajectory_timeout"),
        ({"workflow_cls": 3}, "workflow_cls must be a class"),
        ({"workflow_cls": lambda rollout_engine: 3}, "no Workflow"),
    ],
)
def test_mistakes_are_found_before_anything_runs(arguments: dict[str, Any], problem: str) -> None:
    given = {"workflow_cls": workflow_of(answer), "rollout_engine": TaggedEngine()} | arguments
    with pytest.raises(UserError, match=problem):
        AgentWorkflowEngine(**given)


def test_a_workflow_that_forgets_its_base_class_is_told_so() -> None:
    class Forgets(Workflow):
        def __init__(self, rollout_engine: Any) -> None:
            pass

        async def run(self, task: Any, uid: str, **kwargs: Any) -> None:
            pass

    with pytest.raises(UserError, match="super"):
        AgentWorkflowEngine(workflow_cls=Forgets, rollout_engine=TaggedEngine())


def test_raise_on_error_raises_the_first_failure() -> None:
    async def fails(workflow: Any, task: Any) -> None:
        raise ValueError("broken")

    with pytest.raises(WorkflowError, match="broken") as caught:
        run_tasks(fails, [{}] * 5, raise_on_error=True)
    assert caught.value.episode.termination_reason is TerminationReason.WORKFLOW_EXCEPTION


# Environments and agents


def test_the_original_style_with_agent_and_environment_as_attributes() -> None:
    class Original(Workflow):
        def __init__(self, rollout_engine: Any, agent_cls: Any, env_cls: Any, **kwargs: Any):
            super().__init__(rollout_engine, **kwargs)
            self.agent, self.env_cls = agent_cls(), env_cls

        async def run(self, task: Any, uid: str, **kwargs: Any) -> None:
            self.reset(task, uid)
            env = await self.run_in_executor(self.env_cls.from_dict, task)
            observation, info = await self.run_in_executor(env.reset)
            self.agent.update_from_env(observation, 0.0, False, info)
            total = 0.0
            for _ in range(5):
                output = await self.rollout_engine.get_model_response(
                    self.agent.chat_completions, application_id=uid
                )
                action = self.agent.update_from_model(output.text)
                observation, reward, done, info = await self.run_in_executor(
                    env.step, action.action
                )
                self.agent.update_from_env(observation, reward, done, info)
                total += reward
                if done:
                    break
            self.agent.trajectory.reward = total
            env.close()

    ledger = Ledger()
    episode = run_one(
        Original,
        {"rewards": [0.5, 1.0], "ledger": ledger},
        workflow_args={"agent_cls": EchoAgent, "env_cls": CountingEnv},
    )
    assert (episode.error, episode.reward, episode.trajectory.name) == (None, 1.5, "agent")
    (record,) = episode.trajectory.token_records
    assert [turn.step_index for turn in record.turns] == [0, 1]
    assert ledger.actions == ["start=1", "1=2"]


def test_two_agents_with_one_conversation_must_say_whose_call_it_is() -> None:
    class Alike(Workflow):
        def __init__(self, rollout_engine: Any, explicit: bool):
            super().__init__(rollout_engine)
            self.agents, self.explicit = [EchoAgent(), EchoAgent()], explicit

        async def run(self, task: Any, uid: str, **kwargs: Any) -> None:
            self.reset(task, uid)
            for agent in self.agents:
                agent.update_from_env("hi", 0.0, False, {})
            if self.explicit:
                await asyncio.gather(*(self.ask(agent) for agent in self.agents))
            else:
                await self.rollout_engine.get_model_response([user("hi")])

    unclear = run_one(Alike, workflow_args={"explicit": False})
    assert "trajectory=agent.trajectory" in (unclear.error or "")
    clear = run_one(Alike, workflow_args={"explicit": True})
    assert clear.error is None
    assert [len(t.token_records) for t in clear.trajectories] == [1, 1]
    texts = Counter(s.model_response for t in clear.trajectories for s in t.steps)
    assert texts == {"hi=1": 1, "hi=2": 1}


def test_multi_turn_equals_what_the_execution_engine_runs() -> None:
    ledger = Ledger()
    tasks: list[dict[str, Any]] = [
        {"rewards": [0.5, 1.0], "ledger": ledger},
        {"rewards": [0.0] * 9, "ledger": ledger},
        {"fault": "step:error", "ledger": ledger},
    ]
    episodes = run_tasks(
        MultiTurnWorkflow,
        tasks,
        workflow_args={"agent_cls": EchoAgent, "env_cls": CountingEnv, "max_steps": 3},
        rollout_engine=ByteEngine("a", "b"),
    )
    assert [e.termination_reason for e in episodes] == [
        TerminationReason.ENV_DONE,
        TerminationReason.MAX_TURNS_EXCEEDED,
        TerminationReason.ENV_EXCEPTION,
    ]
    assert [e.reward for e in episodes] == [1.5, 0.0, None]
    assert [s.mc_return for s in episodes[0].steps] == [1.5, 1.0]
    assert [len(e.trajectory.token_records) for e in episodes] == [1, 1, 1]
    assert ledger.is_balanced


class ClearsInPlace(EchoAgent):
    """Empties the trajectory that it has, which an earlier episode may hold."""

    def reset(self) -> None:
        super().reset()
        self.trajectory.steps.clear()


@pytest.mark.parametrize("agent_cls", [EchoAgent, ChatAgent, ClearsInPlace])
def test_an_instance_plays_task_after_task_with_the_same_agent(agent_cls: Any) -> None:
    episodes = run_tasks(
        MultiTurnWorkflow,
        [{"rewards": [0.0] * i + [1.0]} for i in range(4)],
        workflow_args={"agent_cls": agent_cls, "env_cls": CountingEnv},
        n_parallel_tasks=1,
    )
    assert [e.error for e in episodes] == [None] * 4
    assert [len(e.steps) for e in episodes] == [1, 2, 3, 4]
    assert [len(e.trajectory.token_records[0].turns) for e in episodes] == [1, 2, 3, 4]
    assert len({e.trajectory.uid for e in episodes}) == 4 or agent_cls is ClearsInPlace


def test_an_agent_that_keeps_its_steps_is_told_so() -> None:
    class Keeps(EchoAgent):
        def __init__(self) -> None:
            super().__init__()
            self.mine = Trajectory(steps=[Step()])

        @property
        def trajectory(self) -> Trajectory:
            return self.mine

    episode = run_one(MultiTurnWorkflow, workflow_args={"agent_cls": Keeps, "env_cls": CountingEnv})
    assert episode.termination_reason is TerminationReason.AGENT_EXCEPTION
    assert "renew it" in (episode.error or "")


def test_rewards_of_steps_are_shaped_and_discounted_as_asked() -> None:
    async def walk(workflow: Any, task: Any) -> None:
        own = workflow.new_trajectory("a")
        for reward in (1.0, 0.0, 4.0):
            await workflow.rollout_engine.get_model_response([user("x")], trajectory=own)
            own.steps[-1].reward = reward

    shaped = run_one(walk, workflow_args={"reward_bonus_coeff": 0.5})
    assert [s.reward for s in shaped.trajectory.steps] == [1.0, -0.5, 6.0]
    discounted = run_one(walk, workflow_args={"gamma": 0.5})
    # 4; 0 + 0.5 * 4; 1 + 0.5 * 2
    assert [s.reward for s in discounted.trajectory.steps] == [2.0, 2.0, 4.0]
    assert [shaped.reward, discounted.reward] == [5.0, 5.0]


def test_an_episode_that_run_returns_keeps_its_judgement() -> None:
    async def judged(workflow: Any, task: Any) -> Episode:
        own = workflow.new_trajectory("a")
        await workflow.rollout_engine.get_model_response([user("x")], trajectory=own)
        own.reward = 0.25
        return Episode(is_correct=False, metrics={"mine": 3.0})

    episode = run_one(judged)
    assert (episode.is_correct, episode.reward, episode.metrics["mine"]) == (False, 0.25, 3.0)
    assert [t.name for t in episode.trajectories] == ["a"]


def test_calls_that_are_nobodys_are_shown_and_not_rewarded() -> None:
    async def careless(workflow: Any, task: Any) -> None:
        await workflow.rollout_engine.get_model_response([user("x")])

    (trajectory,) = run_one(careless).trajectories
    assert (trajectory.name, trajectory.reward, len(trajectory.token_records)) == (
        "unassigned",
        None,
        1,
    )


def test_text_engines_work_without_a_tokenizer() -> None:
    async def chat(workflow: Any, task: Any) -> None:
        own = workflow.new_trajectory("a")
        for _ in range(3):
            await workflow.rollout_engine.get_model_response([user("x")], trajectory=own)
        own.reward = 1.0

    engine = ScriptedEngine(["one", "two"])
    episode = run_one(chat, rollout_engine=engine, tokenizer=None)
    assert [s.model_response for s in episode.trajectory.steps] == ["one", "two", "one"]
    assert episode.trajectory.token_records == ()


def test_an_engine_serves_several_event_loops_and_is_closed_once() -> None:
    engine = AgentWorkflowEngine(
        workflow_cls=workflow_of(answer), rollout_engine=TaggedEngine(), tokenizer=ByteTokenizer()
    )
    for _ in range(2):
        (episode,) = asyncio.run(engine.execute_tasks([{"question": "right"}]))
        assert episode.reward == 1.0
    engine.close()
    engine.close()
    with pytest.raises(Exception, match="closed"):
        asyncio.run(engine.execute_tasks([{}]))
