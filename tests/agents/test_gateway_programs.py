"""Programs of any framework play episodes: rewards, failures, bounds, and learning from them."""

from __future__ import annotations

import asyncio
import json
import pickle
import threading
import urllib.request
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest
from agents_fakes import ByteEngine, ByteTokenizer
from gateway_fakes import BrokenEngine, HeldEngine, post, user

from rllm_agents import AgentExecutionEngine, ChatAgent, RolloutRequest, SamplingParams
from rllm_agents.errors import TransientError, UserError
from rllm_agents.gateway import AgentProgram
from rllm_agents.types import Completion, Episode, GenerationRequest, TerminationReason
from rllm_envs import GymEnv, RewardOutput
from rllm_envs.errors import GradingError


async def ask(base_url: str, text: str, **more: Any) -> str:
    body = {"model": "whatever", "messages": [user(text)], **more}
    status, _, answer = await post(f"{base_url}/chat/completions", body)
    if status != 200:
        raise RuntimeError(answer["error"]["message"])
    return answer["choices"][0]["message"]["content"]


async def guess(base_url: str, api_key: str, task: dict[str, Any]) -> float:
    said = await ask(base_url, task["question"], temperature=0.1)
    return float(said == task["answer"])


def play(
    program: Callable[..., Any],
    tasks: list[dict[str, Any]],
    *,
    engine: Any = None,
    **settings: Any,
) -> list[Episode]:
    with AgentExecutionEngine(
        agent_class=AgentProgram(program),
        rollout_engine=engine or ByteEngine("yes"),
        tokenizer=ByteTokenizer(),
        **settings,
    ) as players:
        return asyncio.run(players.execute_tasks(tasks))


def test_a_program_is_played_once_for_each_task_in_their_order() -> None:
    tasks = [{"question": f"{i}?", "answer": "yes" if i % 3 else "no"} for i in range(9)]
    engine = ByteEngine("yes", seconds=0.001)
    episodes = play(guess, tasks, engine=engine, sampling_params={"temperature": 0.5, "seed": 1})
    assert [e.reward for e in episodes] == [float(bool(i % 3)) for i in range(9)]
    assert [e.id for e in episodes] == [str(i) for i in range(9)]
    assert [e.task for e in episodes] == tasks
    assert {e.termination_reason for e in episodes} == {TerminationReason.ENV_DONE}
    assert all(len(e.trajectory.token_records[0].turns) == 1 for e in episodes)
    # The temperature is the run's, and every rollout has a random stream of its own.
    assert {r.sampling.temperature for r in engine.requests} == {0.5}
    assert len({r.sampling.seed for r in engine.requests}) == 9


def test_a_plain_function_runs_in_a_thread_and_gets_the_env_args() -> None:
    threads = []

    def program(base_url: str, api_key: str, task: dict[str, Any]) -> RewardOutput:
        threads.append(threading.current_thread())
        body = json.dumps({"model": "m", "messages": [user("?")]}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{base_url}/chat/completions", body, headers)
        with urllib.request.urlopen(request) as response:
            assert json.load(response)["choices"][0]["message"]["content"] == "yes"
        return RewardOutput(task["pay"], is_correct=False, metadata={"why": "half"})

    (episode,) = play(program, [{}], env_args={"pay": 0.5})
    assert threads[0] is not threading.main_thread()
    assert (episode.reward, episode.is_correct) == (0.5, False)
    assert episode.steps[0].info["reward_metadata"] == {"why": "half"}


async def _raise(error: BaseException) -> float:
    raise error


async def _swallow(base_url: str) -> float:
    try:
        await ask(base_url, "x")
    except RuntimeError:
        return 0.0
    raise AssertionError


async def _twice(base_url: str) -> float:
    await ask(base_url, "x")
    await ask(base_url, "x")
    return 1.0


@pytest.mark.parametrize(
    ("run", "engine", "limits", "reason", "reward"),
    [
        pytest.param(
            lambda url: _raise(ValueError("mine")),
            *(None, {}, TerminationReason.AGENT_EXCEPTION, None),
            id="raises",
        ),
        pytest.param(
            lambda url: _raise(SystemExit(3)),
            *(None, {}, TerminationReason.AGENT_EXCEPTION, None),
            id="exits",
        ),
        pytest.param(
            lambda url: _raise(asyncio.CancelledError()),
            *(None, {}, TerminationReason.AGENT_EXCEPTION, None),
            id="leaks a cancellation",
        ),
        pytest.param(
            lambda url: _raise(GradingError("gone")),
            *(None, {}, TerminationReason.GRADER_ERROR, None),
            id="cannot grade",
        ),
        pytest.param(
            lambda url: asyncio.sleep(0, "1.0"),
            *(None, {}, TerminationReason.ENV_BAD_REWARD, None),
            id="returns text",
        ),
        pytest.param(
            lambda url: asyncio.sleep(0),
            *(None, {}, TerminationReason.ENV_BAD_REWARD, None),
            id="returns nothing",
        ),
        pytest.param(
            lambda url: asyncio.sleep(0, float("nan")),
            *(None, {}, TerminationReason.ENV_BAD_REWARD, None),
            id="returns NaN",
        ),
        pytest.param(
            _swallow,
            *(BrokenEngine("x"), {}, TerminationReason.LLM_ERROR, None),
            id="hides that the engine failed",
        ),
        pytest.param(
            _twice,
            *(None, {"max_steps": 1}, TerminationReason.MAX_TURNS_EXCEEDED, 0.0),
            id="calls too often",
        ),
        pytest.param(
            lambda url: ask(url, "x" * 99),
            None,
            {"max_prompt_length": 50},
            TerminationReason.MAX_PROMPT_LENGTH_EXCEEDED,
            0.0,
            id="asks too much",
        ),
        pytest.param(
            lambda url: asyncio.sleep(60, 1.0),
            *(None, {"trajectory_timeout": 0.1}, TerminationReason.TIMEOUT, 0.0),
            id="takes too long",
        ),
    ],
)
def test_whatever_a_program_does_its_episode_alone_ends_and_says_why(
    run: Callable[[str], Any],
    engine: Any,
    limits: dict[str, Any],
    reason: TerminationReason,
    reward: float | None,
) -> None:
    async def program(base_url: str, api_key: str, task: dict[str, Any]) -> Any:
        return 1.0 if task.get("good") else await run(base_url)

    episode, good = play(program, [{}, {"good": True}], engine=engine, **limits)
    assert (episode.termination_reason, episode.reward) == (reason, reward)
    assert (episode.error is not None) is reason.is_failure
    assert good.reward == 1.0


def test_a_thread_that_hangs_is_left_behind() -> None:
    release = threading.Event()

    def program(base_url: str, api_key: str, task: dict[str, Any]) -> float:
        release.wait(30)
        return 1.0

    try:
        (episode,) = play(program, [{}], trajectory_timeout=0.1)
    finally:
        release.set()
    assert episode.termination_reason is TerminationReason.TIMEOUT


class FlakyEngine(ByteEngine):
    """Fails at its first calls, in a way that may pass."""

    def __init__(self, num_failures: int) -> None:
        super().__init__("yes")
        self.failures_left = num_failures

    async def generate(self, request: GenerationRequest) -> Completion:
        if self.failures_left:
            self.failures_left -= 1
            raise TransientError("the line is bad", None, TerminationReason.LLM_CONNECTION)
        return await super().generate(request)


@pytest.mark.parametrize(
    ("num_failures", "retry_limit", "attempts", "reason"),
    [
        (0, 3, 1, TerminationReason.ENV_DONE),
        (2, 3, 3, TerminationReason.ENV_DONE),
        (2, 2, 2, TerminationReason.LLM_CONNECTION),
        (1, 1, 1, TerminationReason.LLM_CONNECTION),
    ],
)
def test_an_episode_is_tried_again_where_the_engine_may_recover(
    num_failures, retry_limit, attempts, reason
) -> None:
    (episode,) = play(
        guess,
        [{"question": "?", "answer": "yes"}],
        engine=FlakyEngine(num_failures),
        retry_limit=retry_limit,
        retry_backoff=0.001,
    )
    assert episode.metrics["attempts"] == attempts
    assert episode.termination_reason is reason
    assert episode.reward == (None if reason.is_failure else 1.0)
    # One attempt's calls alone are learned from.
    assert len(episode.steps) == (0 if reason.is_failure else 1)
    assert len(episode.info.get("earlier_errors", [])) == attempts - 1


def test_what_the_program_itself_raises_is_not_tried_again() -> None:
    async def program(base_url: str, api_key: str, task: dict[str, Any]) -> float:
        raise ValueError("mine")

    (episode,) = play(program, [{}], retry_backoff=0.001)
    assert episode.metrics["attempts"] == 1
    assert episode.termination_reason is TerminationReason.AGENT_EXCEPTION


def test_a_model_call_that_takes_too_long_is_the_engines_failure() -> None:
    (episode,) = play(
        guess,
        [{"question": "?", "answer": "yes"}],
        engine=ByteEngine("yes", seconds=30.0),
        call_timeout=0.05,
        retry_limit=1,
    )
    assert episode.termination_reason is TerminationReason.LLM_TIMEOUT
    assert episode.error == "a call took longer than call_timeout=0.05 s"


def test_a_session_ends_with_its_episode() -> None:
    urls: list[str] = []

    async def program(base_url: str, api_key: str, task: dict[str, Any]) -> float:
        if urls:
            status, _, _ = await post(f"{urls[0]}/chat/completions", {"model": "m", "messages": []})
            return float(status)
        urls.append(base_url)
        return 0.0

    episodes = play(program, [{}, {}], n_parallel_agents=1)
    assert [e.reward for e in episodes] == [0.0, 404.0]

    async def knock() -> None:
        async with aiohttp.ClientSession() as client:
            await client.get(f"{urls[0]}/models")

    with pytest.raises(aiohttp.ClientConnectionError):
        asyncio.run(knock())


def test_cancelling_a_run_cancels_its_programs_and_frees_the_engine() -> None:
    engine = HeldEngine()

    async def run() -> None:
        with AgentExecutionEngine(
            agent_class=AgentProgram(guess), rollout_engine=engine, tokenizer=ByteTokenizer()
        ) as players:
            tasks = [{"question": "?", "answer": "!"}] * 3
            running = asyncio.create_task(players.execute_tasks(tasks))
            while len(engine.requests) < 3:
                await asyncio.sleep(0.01)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.wait_for(asyncio.gather(*others, return_exceptions=True), 5)

    asyncio.run(run())
    assert engine.num_cancelled == 3


def test_what_is_no_program_is_refused_at_once() -> None:
    with pytest.raises(UserError, match="base_url, api_key and task"):
        AgentProgram(lambda url: 1.0)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="agent_args do nothing with AgentProgram"):
        AgentExecutionEngine(
            agent_class=AgentProgram(guess),
            agent_args={"system_prompt": "x"},
            rollout_engine=ByteEngine("x"),
        )


def test_a_program_can_be_sent_to_another_process() -> None:
    program = pickle.loads(pickle.dumps(AgentProgram(guess)))
    with AgentExecutionEngine(
        agent_class=program, rollout_engine=ByteEngine("yes"), tokenizer=ByteTokenizer()
    ) as players:
        task = {"question": "?", "answer": "yes"}
        for _ in range(2):  # on two event loops
            (episode,) = asyncio.run(players.execute_tasks([task]))
            assert episode.reward == 1.0


async def play_calculator(base_url: str, api_key: str, task: dict[str, Any]) -> float:
    """What ChatAgent does with a GymEnv, written against the protocol."""
    env = GymEnv.from_dict({**task, "observation_key": None})
    observation, _ = env.reset()
    messages = [user(observation)]
    total, done = 0.0, False
    while not done:
        body = {"model": "tiny", "messages": messages}
        _, _, answer = await post(f"{base_url}/chat/completions", body)
        (choice,) = answer["choices"]
        if choice["finish_reason"] == "length":
            break
        observation, reward, done, _ = env.step(choice["message"]["content"])
        total += reward
        messages += [choice["message"], user(observation)]
    env.close()
    return total


def test_a_program_samples_what_the_same_agent_samples_without_the_gateway() -> None:
    requests = [
        RolloutRequest({"seed": i}, str(i), SamplingParams(temperature=0.8, seed=i))
        for i in range(6)
    ]
    played = []
    for agent_class in (ChatAgent, AgentProgram(play_calculator)):
        with AgentExecutionEngine(
            agent_class=agent_class,
            env_class=GymEnv,
            env_args={"env_id": "rllm/Calculator-v0"},
            rollout_engine_args={"model": "tiny"},
            max_response_length=200,
        ) as players:
            played.append(asyncio.run(players.execute_requests(requests)))
    directly, over_http = played
    assert [e.reward for e in over_http] == [e.reward for e in directly]
    for one, other in zip(directly, over_http, strict=True):
        (expected,), (found,) = one.trajectory.token_records, other.trajectory.token_records
        assert found.token_ids == expected.token_ids
        assert found.turns == expected.turns
        assert found.logprobs == pytest.approx(expected.logprobs, abs=1e-5)
        assert other.steps[-1].mc_return == one.steps[-1].mc_return
