from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from workflow_fakes import FaultyEngine, TaggedEngine, answer, run_one, user

from rllm_agents import TerminationReason, TransientError


def test_a_transient_fault_is_tried_again_on_a_fresh_instance_with_the_same_seed() -> None:
    instances: list[int] = []

    async def ask(workflow: Any, task: Any) -> None:
        instances.append(id(workflow))
        own = workflow.new_trajectory("a")
        await workflow.rollout_engine.get_model_response([user("one")], trajectory=own)
        await workflow.rollout_engine.get_model_response([user("two")], trajectory=own)

    engine = FaultyEngine(lambda n: TransientError("busy") if n in (2, 3) else None)
    episode = run_one(ask, rollout_engine=engine, sampling_params={"seed": 0})
    assert episode.error is None
    assert episode.metrics["attempts"] == 3.0
    assert episode.info["attempt_id"] == "0/3"
    assert [e.partition(":")[0] for e in episode.info["earlier_errors"]] == ["0/1", "0/2"]
    assert len(set(instances)) == 3
    # Only the last attempt's calls are in the episode.
    assert [s.model_response for s in episode.trajectory.steps] == ["one=2", "two=3"]
    ids = [s.model_output.call_id for s in episode.trajectory.steps if s.model_output]
    assert ids == ["0/3#0", "0/3#1"]
    seeds = [r.sampling.seed for r, _ in engine.sampled.values() if r.messages == (user("one"),)]
    assert len(set(seeds)) == 1


@pytest.mark.parametrize(
    ("error", "num_calls"),
    [(TransientError("busy"), 4), (ConnectionResetError("gone"), 4), (ValueError("wrong"), 1)],
)
def test_only_faults_that_may_pass_are_tried_again_and_not_for_ever(
    error: Exception, num_calls: int
) -> None:
    engine = FaultyEngine(lambda n: error)
    episode = run_one(answer, rollout_engine=engine, retry_limit=4)
    assert episode.termination_reason is TerminationReason.LLM_ERROR
    assert str(error) in (episode.error or "")
    assert (engine.num_calls, episode.metrics["attempts"]) == (num_calls, float(num_calls))
    assert episode.reward is None


def test_a_transient_fault_of_a_tool_is_tried_again() -> None:
    fails = [True, True, False]

    async def uses_tool(workflow: Any, task: Any) -> None:
        def tool() -> None:
            if fails.pop(0):
                raise ConnectionError("tool server is away")

        async with asyncio.TaskGroup() as group:  # raises a group of errors
            group.create_task(workflow.run_in_executor(tool))

    assert run_one(uses_tool).metrics["attempts"] == 3.0


def test_the_time_of_a_request_bounds_all_its_attempts() -> None:
    engine = FaultyEngine(lambda n: TransientError("busy", retry_after=0.2))
    start = time.perf_counter()
    episode = run_one(answer, rollout_engine=engine, retry_limit=1000, workflow_timeout=0.7)
    assert time.perf_counter() - start < 1.5
    assert 2 <= engine.num_calls <= 4
    assert episode.termination_reason is TerminationReason.LLM_ERROR


def test_a_call_that_takes_too_long_is_given_up_and_tried_again() -> None:
    class Slow(TaggedEngine):
        async def generate(self, request: Any) -> Any:
            if not self.sampled:
                self.sampled["slow"] = (request, None)  # type: ignore[assignment]
                await asyncio.sleep(60.0)
            return await super().generate(request)

    episode = run_one(answer, rollout_engine=Slow(), call_timeout=0.1)
    assert (episode.metrics["attempts"], episode.error) == (2.0, None)
    assert "call_timeout=0.1" in episode.info["earlier_errors"][0]
