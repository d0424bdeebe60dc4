from __future__ import annotations

import asyncio
from typing import Any

from agents_fakes import ByteTokenizer
from workflow_fakes import TaggedEngine, user

from rllm_agents import AgentExecutionEngine, ChatAgent, Step, TerminationReason, Workflow
from rllm_agents.workflow_player import WorkflowPlayer


class Pair(Workflow):
    """Asks a solver twice at once, then a judge; `forgets` leaves out whose call the judge's is."""

    def __init__(self, forgets: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.forgets = forgets
        self.critic = ChatAgent()

    async def run(self, task: Any, uid: str, **kwargs: Any) -> None:
        async def solve(question: str) -> None:
            solver = self.new_trajectory("solver")
            await self.rollout_engine.get_model_response([user(question)], trajectory=solver)
            solver.reward = float(question == "one")

        await asyncio.gather(solve("one"), solve("two"))
        self.critic.update_from_env("well?", 0.0, False, {})
        await self.ask(self.critic)
        judge = self.new_trajectory("judge")
        own = None if self.forgets else judge
        output = await self.rollout_engine.get_model_response([user("who")], trajectory=own)
        if self.forgets:
            judge.steps.append(Step(model_output=output))
        judge.reward = 2.0


def run(**player: Any) -> Any:
    engine = TaggedEngine()
    args = {"forgets": player.pop("forgets", False)}
    with AgentExecutionEngine(
        agent_class=WorkflowPlayer(Pair, args, **player),
        rollout_engine=engine,
        tokenizer=ByteTokenizer(),
    ) as runner:
        (episode,) = asyncio.run(runner.execute_tasks([{"id": 1}]))
    return episode, engine


def test_every_role_keeps_its_own_reward_and_exactly_its_own_tokens() -> None:
    episode, engine = run()
    assert not episode.failed, episode.error
    assert [(t.name, t.reward) for t in episode.trajectories] == [
        ("solver", 1.0),
        ("solver", 0.0),
        ("judge", 2.0),
        ("critic", 0.0),
    ]
    for trajectory, word in zip(episode.trajectories, ("one", "two", "who", "well?"), strict=True):
        (record,) = trajectory.token_records
        (turn,) = record.turns
        text = next(t for t in engine.sampled if t.startswith(f"{word}="))
        assert record.token_ids[turn.start : turn.stop] == engine.sampled[text][1].token_ids


def test_each_role_is_answered_by_its_own_weights_agents_too() -> None:
    episode, engine = run(adapters={"judge": "base", "critic": "red"})
    assert not episode.failed, episode.error
    asked = {text.split("=")[0]: r.adapter for text, (r, _) in engine.sampled.items()}
    assert asked == {"one": "", "two": "", "well?": "red", "who": "base"}


def test_the_tokens_of_a_frozen_role_are_not_for_training() -> None:
    episode, _ = run(adapters={"judge": "base"}, frozen=("judge",))
    learned = {t.name: bool(t.token_records) for t in episode.trajectories}
    assert learned == {"solver": True, "critic": True, "judge": False}
    judge = next(t for t in episode.trajectories if t.name == "judge")
    assert judge.info["learns"] is False
    assert judge.reward == 2.0


def test_a_call_that_other_weights_answered_than_its_roles_fails_the_episode() -> None:
    episode, _ = run(adapters={"judge": "red"}, forgets=True)
    assert episode.termination_reason is TerminationReason.WORKFLOW_EXCEPTION
    assert "trajectory=" in (episode.error or "")
    assert [t.reward for t in episode.trajectories] == [None] * 4
