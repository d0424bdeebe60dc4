"""Training records of episodes with several roles: workflows and matches."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rllm_agents import AgentWorkflowEngine, ChatAgent, Player, Renderer, run_match
from rllm_agents.models import TINY
from rllm_agents.types import Completion, GenerationRequest
from rllm_agents.workflows import MatchWorkflow, SolverJudgeWorkflow
from rllm_learn.algorithms import PlannedRollout
from rllm_learn.records import to_rollouts


class Speaker:
    """Says, in ids of the tiny model's tokenizer, what `say` makes of the conversation."""

    weights_version = 0

    def __init__(self, tokenizer: Any, say: Any) -> None:
        self._tokenizer, self._say = tokenizer, say
        self.sampled: list[tuple[int, ...]] = []

    async def generate(self, request: GenerationRequest) -> Completion:
        text = self._say(request.messages)
        ids = [*self._tokenizer(text, add_special_tokens=False)["input_ids"]]
        ids.append(self._tokenizer.eos_token_id)
        self.sampled.append(tuple(ids))
        return Completion(text, "stop", tuple(ids), tuple(-1.0 - i for i in range(len(ids))))

    async def load_weights(self, tensors: Any, *, version: int) -> None:
        raise NotImplementedError

    def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(TINY)


def sampled_ids(rollout: Any) -> list[int]:
    return [
        token
        for sequence in rollout.sequences
        for token, is_sampled in zip(sequence.token_ids, sequence.action_mask, strict=True)
        if is_sampled
    ]


def test_each_role_of_a_workflow_is_rewarded_and_compared_by_itself(tokenizer: Any) -> None:
    words = iter(["\\boxed{41}", "\\boxed{42} is it", "the answer: \\boxed{2}"] * 2)
    engine = Speaker(tokenizer, lambda messages: next(words))
    with AgentWorkflowEngine(
        workflow_cls=SolverJudgeWorkflow,
        workflow_args={"reward_function": lambda task, text: 0.5 * ("42" in text)},
        rollout_engine=engine,
        tokenizer=tokenizer,
        n_parallel_tasks=1,
    ) as workflows:
        episodes = asyncio.run(workflows.execute_tasks([{"question": "6 * 7?"}] * 2))
    rollouts = to_rollouts(episodes, [PlannedRollout(0, group=4), PlannedRollout(0, group=4)])
    assert [(r.group, r.role, r.reward) for r in rollouts] == [
        (4, "solver", 0.0),
        (4, "solver", 0.5),
        (4, "judge", 0.5),
    ] * 2
    assert [tuple(sampled_ids(rollout)) for rollout in rollouts] == engine.sampled


def test_only_players_that_learn_are_learned_from(tokenizer: Any) -> None:
    mine = Speaker(tokenizer, lambda messages: "\\boxed{rock}")
    frozen = Speaker(tokenizer, lambda messages: "\\boxed{scissors}")
    renderer = Renderer(tokenizer)
    players = {
        "player_0": Player(ChatAgent, frozen, renderer=renderer, learns=False),
        "player_1": Player(ChatAgent, mine, renderer=renderer),
    }
    episode = asyncio.run(run_match("rllm/RockPaperScissors-v0", players, seed=0))
    (rollout,) = to_rollouts([episode], [PlannedRollout(0, group=0)])
    assert (rollout.role, rollout.reward) == ("player_1", 10.0)
    assert sampled_ids(rollout) == [token for ids in mine.sampled for token in ids]
    assert rollout.step_rewards == (1.0,) * 10


def test_a_match_as_a_workflow_gives_the_models_seat_alone(tokenizer: Any) -> None:
    engine = Speaker(tokenizer, lambda messages: "\\boxed{paper}")
    with AgentWorkflowEngine(
        workflow_cls=MatchWorkflow,
        workflow_args={
            "env": "rllm/RockPaperScissors-v0",
            "opponents": {"player_1": lambda observation, info: "\\boxed{rock}"},
        },
        rollout_engine=engine,
        tokenizer=tokenizer,
    ) as workflows:
        episodes = asyncio.run(workflows.execute_tasks([{"seed": 0}]))
    (rollout,) = to_rollouts(episodes, [PlannedRollout(0, group=0)])
    assert (rollout.role, rollout.reward) == ("player_0", 10.0)
    assert sampled_ids(rollout) == [token for ids in engine.sampled for token in ids]
