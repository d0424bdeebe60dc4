"""Arguments of the engine that say when an episode is too long, and what becomes of it then."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agents_fakes import ByteEngine, ByteTokenizer, CountingEnv, EchoAgent

from rllm_agents import AgentExecutionEngine, Episode, TerminationReason, UserError


def play(**arguments: Any) -> tuple[Episode, ByteEngine]:
    rollout_engine = ByteEngine("abcd")
    with AgentExecutionEngine(
        agent_class=EchoAgent,
        env_class=CountingEnv,
        rollout_engine=rollout_engine,
        tokenizer=ByteTokenizer(),
        **arguments,
    ) as engine:
        (episode,) = asyncio.run(engine.execute_tasks([{"rewards": [0.0] * 9}]))
    return episode, rollout_engine


def test_one_bound_is_of_all_turns_and_the_other_of_each() -> None:
    whole, _ = play()
    prompts = [len(step.prompt_ids) for step in whole.steps]
    assert len(prompts) == 9 and prompts == sorted(set(prompts)), "each prompt is longer"

    # Room for what follows the first prompt up to the third, and for the answer to it: 5 ids.
    together, engine = play(
        max_prompt_length=prompts[0], max_response_length=prompts[2] - prompts[0] + 5
    )
    assert together.termination_reason is TerminationReason.MAX_RESPONSE_LENGTH_EXCEEDED
    assert [r.sampling.max_tokens for r in engine.requests] == [
        prompts[2] - prompts[n] + 5 for n in range(3)
    ]

    each, engine = play(
        max_prompt_length=prompts[2], max_response_length=5, enforce_max_prompt_length=True
    )
    assert each.termination_reason is TerminationReason.MAX_PROMPT_LENGTH_EXCEEDED
    assert [r.sampling.max_tokens for r in engine.requests] == [5, 5, 5]
    assert [len(step.response_ids) for step in each.steps] == [5, 5, 5]


def test_a_bound_on_prompts_needs_a_tokenizer() -> None:
    with pytest.raises(UserError, match="enforce_max_prompt_length does nothing without"):
        AgentExecutionEngine(
            agent_class=EchoAgent,
            env_class=CountingEnv,
            rollout_engine=ByteEngine("a"),
            enforce_max_prompt_length=True,
        )


@pytest.mark.parametrize(
    ("bounds", "reason", "learns"),
    [
        ({}, TerminationReason.ENV_DONE, True),
        ({"max_steps": 3}, TerminationReason.MAX_TURNS_EXCEEDED, False),
        ({"max_response_length": 4}, TerminationReason.MAX_RESPONSE_LENGTH_EXCEEDED, False),
        ({"max_prompt_length": 1}, TerminationReason.MAX_PROMPT_LENGTH_EXCEEDED, False),
    ],
)
def test_what_was_cut_off_is_not_learned_from_where_it_is_filtered(
    bounds: dict[str, int], reason: TerminationReason, learns: bool
) -> None:
    kept, _ = play(**bounds)
    filtered, _ = play(**bounds, overlong_filter=True)
    assert kept.termination_reason is filtered.termination_reason is reason
    assert kept.trajectory.info.get("learns", True)
    assert filtered.trajectory.info.get("learns", True) is learns


@pytest.mark.parametrize("name", ["step_timeout", "call_timeout", "trajectory_timeout"])
def test_a_time_that_is_none_is_refused_under_the_name_it_was_given(name: str) -> None:
    with pytest.raises(UserError, match=f"^{name} must be a finite number of seconds above 0"):
        play(**{name: 0.0})
