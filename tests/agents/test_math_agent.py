"""MathAgent: asks, asks to review, and may forget its thoughts."""

from __future__ import annotations

import asyncio

import pytest
from agents_fakes import ByteEngine, ByteTokenizer

from rllm_agents import AgentExecutionEngine, MathAgent, ScriptedEngine
from rllm_agents.errors import UserError
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


@pytest.mark.parametrize(("accumulate", "num_records"), [(True, 1), (False, 3)])
def test_every_sampled_token_is_kept_whether_or_not_thoughts_are(
    accumulate: bool, num_records: int
) -> None:
    responses = ["<think>a</think>\\boxed{3}", "<think>b</think>\\boxed{4}", "\\boxed{2}"]
    task = {"question": "What is 1 + 1?", "answer": "2", "family": "arithmetic"}
    with AgentExecutionEngine(
        agent_class=MathAgent,
        agent_args={"accumulate_thinking": accumulate},
        env_class=GymEnv,
        env_args={"env_id": "rllm/MathRetry-v0"},
        rollout_engine=ByteEngine(*responses),
        tokenizer=ByteTokenizer(),
    ) as engine:
        (episode,) = asyncio.run(engine.execute_tasks([task]))
    records = episode.trajectory.token_records
    assert (episode.reward, len(records)) == (1.0, num_records)
    spans = [(record, span) for record in records for span in record.turns]
    assert [span.step_index for _, span in spans] == [0, 1, 2]
    for (record, span), response in zip(spans, responses, strict=True):
        # The last id of a turn is the one that ends it.
        sampled = record.token_ids[span.start : span.stop - 1]
        assert bytes(sampled).decode() == response


@pytest.mark.parametrize("value", ["False", 0, None])
def test_a_switch_that_is_neither_on_nor_off_is_refused(value: object) -> None:
    with pytest.raises(UserError, match="accumulate_thinking of MathAgent must be True or False"):
        MathAgent(accumulate_thinking=value)  # type: ignore[arg-type]
