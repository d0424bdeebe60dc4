"""MathAgent: asks, asks to review, and may forget its thoughts."""

from __future__ import annotations

import asyncio

from rllm_agents import AgentExecutionEngine, MathAgent, ScriptedEngine
from rllm_envs import GymEnv

INSTRUCTION = "Let's think step by step, and put your final answer within \\boxed{}."


def test_the_first_observation_is_a_question_and_later_ones_ask_to_review() -> None:
    agent = MathAgent()
    agent.update_from_env({"question": "1 + 1?"}, 0.0, False, {})
    action = agent.update_from_model("<think>hm</think>\\boxed{3}")
    agent.update_from_env("whatever it says", 0.0, False, {})
    assert action.action == "<think>hm</think>\\boxed{3}"
    assert agent.chat_completions == [
        {"role": "user", "content": f"1 + 1? {INSTRUCTION}"},
        {"role": "assistant", "content": "<think>hm</think>\\boxed{3}"},
        {
            "role": "user",
            "content": "Your previous answer may contain a mistake. Please review it.",
        },
    ]
    assert [step.model_response for step in agent.trajectory.steps] == [""]
    agent.reset()
    assert agent.chat_completions == [] and agent.trajectory.steps == []


def test_without_accumulation_only_the_newest_message_keeps_its_thoughts() -> None:
    agent = MathAgent(accumulate_thinking=False)
    agent.update_from_env("1 + 1?", 0.0, False, {})
    agent.update_from_model("<think>a</think>3")
    assert agent.chat_completions[-1]["content"] == "<think>a</think>3"
    agent.update_from_env("", 0.0, False, {})
    agent.update_from_model("no thought, 2")
    contents = [m["content"] for m in agent.chat_completions if m["role"] == "assistant"]
    assert contents == ["3", "no thought, 2"]


def test_after_the_end_nothing_is_said() -> None:
    agent = MathAgent()
    agent.update_from_env("1 + 1?", 0.0, False, {})
    agent.update_from_model("2")
    agent.update_from_env("", 1.0, True, {})
    assert [m["role"] for m in agent.chat_completions] == ["user", "assistant"]


def test_it_corrects_itself_in_an_environment() -> None:
    task = {"question": "What is 1 + 1?", "answer": "2", "family": "arithmetic"}
    engine = AgentExecutionEngine(
        agent_class=MathAgent,
        agent_args={"accumulate_thinking": False},
        env_class=GymEnv,
        env_args={"env_id": "rllm/MathRetry-v0"},
        rollout_engine=ScriptedEngine(["\\boxed{3}", "\\boxed{2}"]),
    )
    (episode,) = asyncio.run(engine.execute_tasks([task]))
    assert episode.reward == 1.0 and episode.is_correct
    assert [step.reward for step in episode.steps] == [0.0, 1.0]
    assert len(episode.steps[1].chat_completions) == 4
