from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from agents_fakes import (
    FAULTS,
    IM_END,
    ByteEngine,
    EchoAgent,
    Ledger,
    ThreadedEnv,
    bytes_renderer,
    play_episode,
)

from rllm_agents import (
    Action,
    ChatAgent,
    Completion,
    GenerationRequest,
    RolloutRequest,
    RolloutSetting,
    Step,
    TerminationReason,
    Trajectory,
)
from rllm_agents.call_threads import EnvThreads
from rllm_agents.rollout import run_episode


class BrokenEngine(ByteEngine):
    def __init__(self, fault: Callable[[], Any]) -> None:
        super().__init__("a")
        self._fault = fault

    async def generate(self, request: GenerationRequest) -> Completion:
        answer = self._fault()
        if isinstance(answer, BaseException):
            raise answer
        return answer


GOOD = Completion("a", "stop", token_ids=(97, IM_END), logprobs=(-0.1, -0.2))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (ValueError("no such model"), "raised ValueError: no such model"),
        (TimeoutError("slow"), "raised TimeoutError"),
        (SystemExit(1), "raised SystemExit"),
        (asyncio.CancelledError(), "raised CancelledError"),
        (None, "instead of a Completion"),
        ("text", "instead of a Completion"),
        (replace(GOOD, text=None), "instead of a Completion"),  # type: ignore[arg-type]
        (replace(GOOD, finish_reason="eos"), "finish_reason 'eos'"),  # type: ignore[arg-type]
        (replace(GOOD, logprobs=(-0.1,)), "1 logprobs for 2 token ids"),
        (replace(GOOD, logprobs=(-0.1, float("nan"))), "not finite"),
        (replace(GOOD, logprobs=(-0.1, float("-inf"))), "not finite"),
    ],
)
def test_an_engine_that_fails_or_answers_no_completion_is_an_llm_error(
    answer: Any, message: str
) -> None:
    ledger = Ledger()
    episode = play_episode(
        {"ledger": ledger}, engine=BrokenEngine(lambda: answer), renderer=bytes_renderer()
    )
    is_answer = not isinstance(answer, BaseException)
    expected = TerminationReason.LLM_BAD_RESPONSE if is_answer else TerminationReason.LLM_ERROR
    assert episode.termination_reason is expected
    assert message in (episode.error or "")
    assert (episode.reward, episode.trajectory.reward) == (None, None)
    assert not episode.is_correct
    assert ledger.is_balanced


AGENT_METHODS = ["__init__", "reset", "update_from_env", "update_from_model", "chat_completions"]


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("method", AGENT_METHODS)
def test_whatever_an_agent_raises_is_an_agent_exception(method: str, kind: str) -> None:
    def fail(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise FAULTS[kind]()

    attribute = property(fail) if method == "chat_completions" else fail
    broken = type("Broken", (EchoAgent,), {method: attribute})
    ledger = Ledger()
    episode = play_episode({"ledger": ledger}, agent=broken)
    assert episode.termination_reason is TerminationReason.AGENT_EXCEPTION
    assert episode.reward is None
    assert "of the agent raised" in (episode.error or "")
    assert "agents_fakes" in episode.info["traceback"] or "fail" in episode.info["traceback"]
    assert ledger.is_balanced


def test_what_the_model_said_before_the_agent_failed_is_kept_to_be_read() -> None:
    class Choking(EchoAgent):
        def update_from_model(self, response: str, **kwargs: Any) -> Action:
            raise ValueError("cannot parse")

    episode = play_episode(agent=Choking)
    assert [step.model_response for step in episode.steps] == ["yes"]


@pytest.mark.parametrize(
    ("attribute", "value", "message"),
    [
        ("chat_completions", [], "non-empty list"),
        ("chat_completions", ["hello"], "message 0 must be a dict"),
        ("chat_completions", "hello", "non-empty list"),
        ("trajectory", None, "must be a Trajectory with a list of steps, got None"),
        ("trajectory", Trajectory(steps=[Step(), Step()]), "one Step or none"),
    ],
)
def test_an_agent_that_breaks_its_contract_is_told_how(
    attribute: str, value: Any, message: str
) -> None:
    broken = type("Broken", (EchoAgent,), {attribute: property(lambda self: value)})
    episode = play_episode(agent=broken)
    assert episode.termination_reason is TerminationReason.AGENT_EXCEPTION
    assert message in (episode.error or "")


def test_objects_of_the_agent_that_misbehave_later_are_its_failure_too() -> None:
    class Careless(EchoAgent):
        def update_from_model(self, response: str, **kwargs: Any) -> Action:
            self.trajectory.steps.append(Step(info=None))  # type: ignore[arg-type]
            return super().update_from_model(response)

    episode = play_episode(agent=Careless)
    assert episode.termination_reason is TerminationReason.AGENT_EXCEPTION
    assert "TypeError" in (episode.error or "")


def test_rewards_are_those_of_the_environment_whatever_an_agent_writes() -> None:
    class Generous(EchoAgent):
        def update_from_model(self, response: str, **kwargs: Any) -> Action:
            self.trajectory.steps.append(Step(reward=float("nan")))
            return super().update_from_model(response)

        def update_from_env(self, *args: Any, **kwargs: Any) -> None:
            super().update_from_env(*args, **kwargs)
            for step in self.trajectory.steps:
                step.reward = 100.0

    episode = play_episode({"rewards": [0.25, 0.5]}, agent=Generous)
    assert [step.reward for step in episode.steps] == [0.25, 0.5]
    assert episode.reward == 0.75


def test_messages_that_the_template_refuses_are_the_agents_failure() -> None:
    class Numbers(EchoAgent):
        def update_from_env(self, observation: Any, *args: Any, **kwargs: Any) -> None:
            self.messages.append({"role": "user", "text": "content is missing"})

    episode = play_episode(agent=Numbers, engine=ByteEngine("a"), renderer=bytes_renderer())
    assert episode.termination_reason is TerminationReason.AGENT_EXCEPTION
    assert "the chat template refused" in (episode.error or "")


@pytest.mark.parametrize("reward", [float("nan"), None, "1"])
def test_a_bad_reward_fails_the_episode_and_is_never_a_number(reward: Any) -> None:
    episode = play_episode({"rewards": [0.5, reward]})
    assert episode.termination_reason is TerminationReason.ENV_BAD_REWARD
    assert (episode.reward, episode.trajectory.reward) == (None, None)
    assert [step.reward for step in episode.steps] == [0.5, 0.0]


def test_an_environment_that_raises_in_close_keeps_its_outcome_and_says_so() -> None:
    episode = play_episode({"fault": "close:error"})
    assert (episode.termination_reason, episode.reward) == (TerminationReason.ENV_DONE, 1.0)
    assert episode.info["close_error"] == "close raised ValueError: broken environment"


def test_cancelling_an_episode_closes_its_environment_and_propagates() -> None:
    ledger = Ledger()

    async def main() -> float:
        setting = RolloutSetting(
            make_agent=ChatAgent,
            make_env=lambda task: ThreadedEnv(task),
            engine=ByteEngine("a", seconds=60.0),
            threads=EnvThreads(),
        )
        episode = asyncio.create_task(run_episode(RolloutRequest({"ledger": ledger}, "a"), setting))
        while not ledger.opened:
            await asyncio.sleep(0.01)
        start = time.perf_counter()
        episode.cancel()
        with pytest.raises(asyncio.CancelledError):
            await episode
        setting.threads.close()
        return time.perf_counter() - start

    assert asyncio.run(main()) < 2.0
    assert ledger.is_balanced
