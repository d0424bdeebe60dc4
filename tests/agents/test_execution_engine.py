from __future__ import annotations

import asyncio
import copy
import time
from typing import Any

import pytest
from agents_fakes import (
    ByteEngine,
    ByteTokenizer,
    CountingEnv,
    EchoAgent,
    Ledger,
    ThreadedEnv,
    thought_stripping_chatml,
)

from rllm_agents import (
    Action,
    AgentExecutionEngine,
    BaseAgent,
    ChatAgent,
    EngineError,
    Episode,
    RolloutRequest,
    SamplingParams,
    Step,
    TerminationReason,
    Trajectory,
    UserError,
    compute_pass_at_k,
)
from rllm_envs import GymEnv


def make_engine(**arguments: Any) -> AgentExecutionEngine:
    defaults: dict[str, Any] = {"agent_class": EchoAgent, "env_class": CountingEnv}
    if "rollout_engine" not in arguments and "engine_name" not in arguments:
        defaults |= {"engine_name": "scripted", "rollout_engine_args": {"responses": ["yes"]}}
    return AgentExecutionEngine(**(defaults | arguments))


# Running


def test_episodes_come_back_in_the_order_of_their_tasks() -> None:
    async def slow_for_low_numbers(self: Any, request: Any) -> Any:
        await asyncio.sleep(0.05 - 0.01 * int(request.messages[0]["content"]))
        return await ByteEngine("a").generate(request)

    sleepy = type("Sleepy", (ByteEngine,), {"generate": slow_for_low_numbers})("a")
    tasks = [{"question": str(i)} for i in range(5)]
    with make_engine(rollout_engine=sleepy) as engine:
        episodes = asyncio.run(engine.execute_tasks(tasks))
    assert [episode.task for episode in episodes] == tasks
    assert [episode.id for episode in episodes] == ["0", "1", "2", "3", "4"]


def test_a_stream_yields_episodes_as_they_end() -> None:
    async def main() -> list[str]:
        engine = make_engine(rollout_engine=ByteEngine("a", seconds=0.02))
        tasks = [{"rewards": [0.0] * 5}, {"rewards": [1.0]}]
        return [episode.id async for episode in engine.stream_tasks(tasks)]

    assert asyncio.run(main()) == ["1", "0"]


def test_leaving_a_stream_early_ends_what_still_runs() -> None:
    ledger = Ledger()

    async def main() -> int:
        engine = make_engine(rollout_engine=ByteEngine("a", seconds=0.01), n_parallel_agents=4)
        tasks = [{"ledger": ledger, "rewards": [0.0] * (1 + 50 * i)} for i in range(4)]
        stream = engine.stream_tasks(tasks)
        async for _ in stream:
            break
        await stream.aclose()
        return len(asyncio.all_tasks())

    assert asyncio.run(main()) == 1
    assert len(ledger.opened) == 4
    assert ledger.is_balanced


def test_no_tasks_give_no_episodes() -> None:
    with make_engine() as engine:
        assert asyncio.run(engine.execute_tasks([])) == []


def test_requests_keep_their_ids_and_their_own_sampling_parameters() -> None:
    rollout_engine = ByteEngine("a")
    requests = [
        RolloutRequest({}, "x", SamplingParams(temperature=0.0)),
        RolloutRequest({}, "y"),
    ]
    with make_engine(
        rollout_engine=rollout_engine, sampling_params={"temperature": 0.7, "top_p": 0.9}
    ) as engine:
        episodes = asyncio.run(engine.execute_requests(requests))
    assert [episode.id for episode in episodes] == ["x", "y"]
    assert sorted(r.sampling.temperature for r in rollout_engine.requests) == [0.0, 0.7]


def test_repeated_tasks_under_one_seed_are_sampled_from_different_streams() -> None:
    rollout_engine = ByteEngine("a")
    with make_engine(rollout_engine=rollout_engine, sampling_params={"seed": 1}) as engine:
        asyncio.run(engine.execute_tasks([{"q": 1}] * 16))
    assert len({r.sampling.seed for r in rollout_engine.requests}) == 16


def test_members_of_a_group_are_episodes_of_their_own() -> None:
    ledger = Ledger()
    requests = [
        RolloutRequest({"ledger": ledger, "rewards": [1.0, 1.0]}, f"t{task}/{member}")
        for task in range(4)
        for member in range(64)
    ]
    with make_engine(n_parallel_agents=32) as engine:
        episodes = asyncio.run(engine.execute_requests(requests))
    assert [episode.id for episode in episodes] == [request.id for request in requests]
    assert len({id(episode.trajectory) for episode in episodes}) == 256
    assert {episode.reward for episode in episodes} == {2.0}
    assert len(ledger.opened) == 256
    assert ledger.is_balanced


def test_no_more_than_n_parallel_agents_run_at_a_time() -> None:
    class Crowd(ByteEngine):
        now = most = 0

        async def generate(self, request: Any) -> Any:
            Crowd.now += 1
            Crowd.most = max(Crowd.most, Crowd.now)
            answer = await super().generate(request)
            Crowd.now -= 1
            return answer

    with make_engine(rollout_engine=Crowd("a", seconds=0.002), n_parallel_agents=7) as engine:
        asyncio.run(engine.execute_tasks([{}] * 40))
    assert Crowd.most == 7


def test_one_engine_serves_several_event_loops_one_after_another() -> None:
    with make_engine(env_class=ThreadedEnv, n_parallel_agents=3) as engine:
        for _ in range(3):
            episodes = asyncio.run(engine.execute_tasks([{}] * 10))
            assert {episode.reward for episode in episodes} == {1.0}


def test_env_args_are_added_to_every_task_and_tasks_stay_as_they_are() -> None:
    class Greedy(CountingEnv):
        @classmethod
        def from_dict(cls, info: dict[str, Any]) -> CountingEnv:
            rewards = info.pop("rewards")
            return cls({"rewards": rewards})

    tasks = [{"question": "q"}]
    with make_engine(env_class=Greedy, env_args={"rewards": [3.0]}) as engine:
        first = asyncio.run(engine.execute_tasks(tasks))
        second = asyncio.run(engine.execute_tasks(tasks))
    assert first[0].reward == second[0].reward == 3.0
    assert tasks == [{"question": "q"}]


def test_progress_is_told_of_every_episode() -> None:
    seen: list[Episode] = []
    with make_engine(on_episode=seen.append) as engine:
        episodes = asyncio.run(engine.execute_tasks([{}] * 5))
    assert sorted(e.id for e in seen) == [e.id for e in episodes]


def test_a_text_engine_beside_a_tokenizer_counts_prompts_but_has_no_records() -> None:
    with make_engine(tokenizer=ByteTokenizer()) as engine:
        (episode,) = asyncio.run(engine.execute_tasks([{"rewards": [0.0, 1.0]}]))
    assert episode.reward == 1.0
    assert episode.metrics["prompt_tokens"] > 0
    assert episode.trajectory.token_records == ()


def test_gymnasium_environments_begin_in_the_order_of_their_requests() -> None:
    rollout_engine = ByteEngine("a")
    with make_engine(
        rollout_engine=rollout_engine,
        env_class=GymEnv,
        env_args={"env_id": "rllm/Calculator-v0", "observation_key": None},
    ) as engine:
        episodes = asyncio.run(engine.execute_tasks([{"seed": i} for i in range(32)]))
    asked = [r.messages[0]["content"] for r in rollout_engine.requests[:32]]
    assert asked == [episode.steps[0].observation for episode in episodes]


def test_gymnasium_environments_run_through_their_bridge() -> None:
    with make_engine(
        agent_class=ChatAgent,
        env_class=GymEnv,
        env_args={"env_id": "rllm/Arithmetic-v0"},
        rollout_engine_args={"responses": ["I do not know"]},
        engine_name="scripted",
    ) as engine:
        episodes = asyncio.run(engine.execute_tasks([{"seed": i} for i in range(8)]))
    assert {e.termination_reason for e in episodes} == {TerminationReason.ENV_DONE}
    assert compute_pass_at_k(episodes).pass_at_1 == 0.0


# The self-correcting agent that users of the field write


class MathAgent(BaseAgent):
    def __init__(self, accumulate_thinking: bool = True) -> None:
        self.instruction = "Let's think step by step."
        self._trajectory = Trajectory()
        self.messages: list[dict[str, Any]] = []
        self.accumulate_thinking = accumulate_thinking

    def update_from_env(
        self, observation: Any, reward: float, done: bool, info: dict[str, Any], **kwargs: Any
    ) -> None:
        if not self.trajectory.steps:
            question = observation["question"]
            formatted_observation = f"{question} {self.instruction}"
        else:
            formatted_observation = "Your previous answer may contain a mistake. Please review it."
        self.messages.append({"role": "user", "content": formatted_observation})

    def update_from_model(self, response: str, **kwargs: Any) -> Action:
        self.messages.append({"role": "assistant", "content": response})
        new_step = Step(chat_completions=copy.deepcopy(self.chat_completions))
        self.trajectory.steps.append(new_step)
        return Action(action=response)

    def reset(self) -> None:
        self._trajectory = Trajectory()
        self.messages = []

    @property
    def chat_completions(self) -> list[dict[str, Any]]:
        messages = copy.deepcopy(self.messages)
        if not self.accumulate_thinking:
            for message in messages[:-1]:
                if message["role"] == "assistant":
                    _, separator, after = message["content"].partition("</think>")
                    if separator:
                        message["content"] = after
        return messages

    @property
    def trajectory(self) -> Trajectory:
        return self._trajectory

    def get_current_state(self) -> Step:
        assert self._trajectory.steps
        return self._trajectory.steps[-1]


@pytest.mark.parametrize(("accumulate", "num_records"), [(True, 1), (False, 3)])
def test_an_agent_as_tutorials_show_it_runs_unchanged(accumulate: bool, num_records: int) -> None:
    task = {"question": {"question": "2+2?"}, "rewards": [0.0, 0.0, 1.0]}
    with make_engine(
        agent_class=MathAgent,
        agent_args={"accumulate_thinking": accumulate},
        rollout_engine=ByteEngine("<think>a</think>3", "<think>b</think>5", "4"),
        tokenizer=ByteTokenizer(),
    ) as engine:
        (episode,) = asyncio.run(engine.execute_tasks([task]))
    assert (episode.reward, len(episode.steps)) == (1.0, 3)
    assert episode.trajectory.task == task
    assert len(episode.trajectory.token_records) == num_records
    assert episode.steps[-1].chat_completions[-1]["content"] == "4"


@pytest.mark.parametrize(("thinking", "num_records"), [("template", 2), ("keep", 1)])
def test_the_renderer_keeps_thoughts_on_request(thinking: str, num_records: int) -> None:
    with make_engine(
        rollout_engine=ByteEngine("<think>a</think>3", "4"),
        tokenizer=ByteTokenizer(thought_stripping_chatml),
        renderer_args={"thinking": thinking},
    ) as engine:
        (episode,) = asyncio.run(engine.execute_tasks([{"rewards": [0.0, 1.0]}]))
    assert len(episode.trajectory.token_records) == num_records


# Mistakes of users


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"engine_name": "nope"}, r"one of openai, pool, scripted, transformers.*; got 'nope'"),
        ({"engine_name": "vllm"}, "the engine needs a model path"),
        ({"engine_name": "scripted"}, "missing a required argument: 'responses'"),
        ({"engine_name": "scripted", "rollout_engine_args": {"answers": []}}, "it takes responses"),
        ({"engine_name": "transformers"}, "needs a model path"),
        (
            {"engine_name": "transformers", "rollout_engine_args": {"model": "/no/such/model"}},
            "does not exist",
        ),
        (
            {"rollout_engine": ByteEngine("a"), "rollout_engine_args": {"responses": []}},
            "takes no rollout_engine_args",
        ),
        ({"sampling_params": {"temprature": 1}}, "no 'temprature'; did you mean 'temperature'"),
        ({"sampling_params": {"temperature": -1}}, "temperature must be in"),
        ({"sampling_params": {"temperature": "hot"}}, "sampling_params"),
        ({"agent_args": {"sytem": 1}}, "do not fit EchoAgent"),
        ({"agent_class": None}, "agent_class must be"),
        ({"env_class": dict}, "from_dict"),
        ({"n_parallel_agents": 0}, "n_parallel_agents must be at least 1, got 0"),
        ({"max_steps": 0}, "max_steps"),
        ({"gamma": 1.5}, r"gamma must be in \[0, 1\]"),
        ({"step_timeout": -1}, "step_timeout"),
        ({"call_timeout": 0}, "call_timeout"),
        ({"retry_limit": 0}, "retry_limit must be at least 1, got 0"),
        ({"isolation": "sandbox"}, "isolation must be one of thread, process"),
        ({"rollout_engine": ByteEngine("a"), "tokenizer": object()}, "tokenizer"),
        ({"renderer_args": {"thinking": "keep"}}, "no effect without a tokenizer"),
        (
            {"tokenizer": ByteTokenizer(), "renderer_args": {"thinking": "hard"}},
            "template, keep, drop; got 'hard'",
        ),
        (
            {"tokenizer": ByteTokenizer(), "renderer_args": {"template_arguments": "x"}},
            "template_arguments must be a mapping",
        ),
        (
            {"tokenizer": ByteTokenizer(), "renderer_args": {"thought": "keep"}},
            "thinking and template_arguments; got 'thought'",
        ),
    ],
)
def test_a_wrong_argument_is_one_clear_error(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        make_engine(**arguments)


def test_a_task_that_is_no_mapping_is_named_by_its_place() -> None:
    with make_engine() as engine, pytest.raises(UserError, match="task 1 must be a mapping"):
        asyncio.run(engine.execute_tasks([{}, "what is 2+2?"]))  # type: ignore[list-item]


def test_requests_with_equal_ids_are_refused() -> None:
    requests = [RolloutRequest({}, "a"), RolloutRequest({}, "a")]
    with make_engine() as engine, pytest.raises(UserError, match="'a' occurs twice"):
        asyncio.run(engine.execute_requests(requests))


def test_a_closed_engine_says_so() -> None:
    engine = make_engine()
    engine.close()
    engine.close()
    with pytest.raises(EngineError, match="closed"):
        asyncio.run(engine.execute_tasks([{}]))


def test_only_an_engine_that_was_made_here_is_closed() -> None:
    class Closable(ByteEngine):
        closed = False

        def close(self) -> None:
            self.closed = True

    given = Closable("a")
    with make_engine(rollout_engine=given):
        pass
    assert not given.closed


def test_the_model_may_be_named_among_the_sampling_parameters() -> None:
    with pytest.raises(UserError, match="/no/such/model"):
        make_engine(engine_name="transformers", sampling_params={"model": "/no/such/model"})
    with make_engine(sampling_params={"temperature": 0.6, "top_p": 0.95, "model": "x"}) as engine:
        (episode,) = asyncio.run(engine.execute_tasks([{}]))
    assert episode.reward == 1.0


# Speed


def test_the_engine_itself_costs_little() -> None:
    tasks = [{"rewards": [0.0, 0.0, 0.0, 0.0, 1.0]}] * 500
    best = 0.0
    with make_engine(n_parallel_agents=128) as engine:
        for _ in range(3):
            start = time.process_time()
            asyncio.run(engine.execute_tasks(tasks))
            best = max(best, len(tasks) / (time.process_time() - start))
    assert best > 700  # episodes of five turns a second; an idle core does several thousand
