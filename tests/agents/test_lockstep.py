from __future__ import annotations

import asyncio
import random
import time

import pytest

from rllm_agents.agents import ChatAgent
from rllm_agents.errors import EngineError
from rllm_agents.execution_engine import AgentExecutionEngine
from rllm_agents.lockstep import Lockstep
from rllm_agents.rollout_requests import RolloutRequest
from rllm_agents.types import Completion, SamplingParams, TerminationReason


class Batches:
    """Samples whatever has been asked for every few rounds of the event loop, as one batch."""

    weights_version = 0
    max_model_length = None

    def __init__(self):
        self.batches = []
        self._waiting = []

    async def generate(self, request):
        answer = asyncio.get_running_loop().create_future()
        self._waiting.append((request.sampling.seed, answer))
        if len(self._waiting) == 1:
            asyncio.get_running_loop().call_later(0.001, self._sample)
        return await answer

    def _sample(self):
        self.batches.append([seed for seed, _ in self._waiting])
        waiting, self._waiting = self._waiting, []
        for seed, answer in waiting:
            if not answer.done():
                answer.set_result(Completion(str(seed % 3), "stop"))

    def close(self):
        pass


class SlowEnv:
    """Takes its time, never the same; ends sooner or later by what the model says."""

    delays = random.Random()

    def __init__(self, number):
        self.number = number
        self.turns = 0

    @staticmethod
    def from_dict(task):
        return SlowEnv(task["number"])

    def reset(self):
        time.sleep(self.delays.choice((0.0, 0.002, 0.005)))
        return "go", {}

    def step(self, action):
        time.sleep(self.delays.choice((0.0, 0.002, 0.005)))
        self.turns += 1
        return "on", 1.0, action == "0" or self.turns == 4, {}

    def close(self):
        pass


def requests(count):
    return [RolloutRequest({"number": i}, str(i), SamplingParams(seed=i)) for i in range(count)]


def play(*, lockstep, chance):
    SlowEnv.delays = random.Random(chance)
    engine = Batches()
    with AgentExecutionEngine(
        agent_class=ChatAgent,
        env_class=SlowEnv,
        rollout_engine=engine,
        n_parallel_agents=5,
        lockstep=lockstep,
    ) as episodes:
        played = asyncio.run(episodes.execute_requests(requests(12)))
    return engine.batches, [(e.id, e.reward) for e in played]


def test_batches_are_the_same_however_long_environments_take():
    batches, played = play(lockstep=True, chance=0)
    assert len({reward for _, reward in played}) > 1  # of different lengths
    for chance in (1, 2, 3):
        assert play(lockstep=True, chance=chance) == (batches, played)
    # All five in flight are sampled together, until fewer are left.
    assert [len(batch) for batch in batches][:2] == [5, 5]
    assert batches[0] == sorted(batches[0])


def test_without_rounds_batches_follow_the_environments():
    found = {str(play(lockstep=False, chance=chance)[0]) for chance in range(4)}
    assert len(found) > 1


def test_an_episode_that_fails_keeps_nobody_waiting():
    class Breaking(SlowEnv):
        @staticmethod
        def from_dict(task):
            return Breaking(task["number"])

        def step(self, action):
            if self.number == 1:
                raise RuntimeError("broken")
            return super().step(action)

    engine = Batches()
    with AgentExecutionEngine(
        agent_class=ChatAgent,
        env_class=Breaking,
        rollout_engine=engine,
        n_parallel_agents=3,
        lockstep=True,
    ) as episodes:
        played = asyncio.run(episodes.execute_requests(requests(4)))
    assert [e.termination_reason for e in played] == [
        TerminationReason.ENV_EXCEPTION if i == 1 else TerminationReason.ENV_DONE for i in range(4)
    ]


def test_a_caller_of_no_episode_is_refused():
    with pytest.raises(EngineError, match="came from elsewhere"):
        asyncio.run(Lockstep(Batches()).generate(None))  # type: ignore[arg-type]
