from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from agents_fakes import IM_END, ByteTokenizer, thought_stripping_chatml
from workflow_fakes import TaggedEngine, run_one, run_tasks, user

from rllm_agents import Episode, Step, TerminationReason, Trajectory


def sampled_texts(trajectory: Trajectory) -> list[str]:
    """Texts of the sampled spans, by the steps they are of."""
    spans = [
        (turn.step_index, bytes(i for i in r.token_ids[turn.start : turn.stop] if i < 256).decode())
        for r in trajectory.token_records
        for turn in r.turns
    ]
    return [text for _, text in sorted(spans)]


def check_tokens(episode: Episode, engine: TaggedEngine) -> None:
    """Every call of the run is one span of one record, and with exactly what was sampled."""
    seen: list[str] = []
    for trajectory in episode.trajectories:
        texts = sampled_texts(trajectory)
        assert texts == [step.model_response for step in trajectory.steps]
        seen += texts
        for record in trajectory.token_records:
            is_sampled = [False] * len(record.token_ids)
            for turn in record.turns:
                text = trajectory.steps[turn.step_index].model_response
                request, completion = engine.sampled[text]
                span = slice(turn.start, turn.stop)
                assert record.token_ids[: turn.start] == request.prompt_ids
                assert record.token_ids[span] == completion.token_ids
                assert record.logprobs[span] == completion.logprobs
                assert turn.weights_version == completion.weights_version
                assert turn.version_spans == completion.version_spans
                is_sampled[span] = [True] * (turn.stop - turn.start)
            assert all(
                logprob == 0.0
                for logprob, mine in zip(record.logprobs, is_sampled, strict=True)
                if not mine
            )
    assert sorted(seen) == sorted(engine.sampled)


@pytest.mark.parametrize("seed", range(12))
def test_no_token_is_attributed_to_another_call_however_many_run_at_once(seed: int) -> None:
    chance = random.Random(seed)

    async def run(workflow: Any, task: Any) -> Episode | None:
        ask = workflow.rollout_engine.get_model_response
        by_hand: list[Trajectory] = []

        async def converse(role: str) -> None:
            own = workflow.new_trajectory(role)
            messages = [user(f"all alike {role}" if chance.random() < 0.5 else "the same same")]
            for _ in range(chance.randrange(1, 5)):
                if chance.random() < 0.3:  # several go on from here; one of them is followed
                    forks = [ask(messages, trajectory=own) for _ in range(3)]
                    output = (await asyncio.gather(*forks))[chance.randrange(3)]
                else:
                    output = await ask(messages, trajectory=own)
                messages = [*messages, output.message, user(f"and {role}")]

        async def claim(role: str) -> None:
            outputs = await asyncio.gather(*(ask([user("the same same")]) for _ in range(3)))
            steps = [Step(model_output=output) for output in reversed(outputs)]
            by_hand.append(Trajectory(name=role, steps=steps))

        works = [converse, converse, claim] * 3
        chance.shuffle(works)
        await asyncio.gather(*(work(f"role{i}") for i, work in enumerate(works)))
        for trajectory in by_hand:
            workflow.commit(trajectory=trajectory)
        return None

    engine = TaggedEngine(seed)
    episode = run_one(run, rollout_engine=engine)
    assert episode.error is None
    assert len(episode.trajectories) == 9
    check_tokens(episode, engine)
    # Who converses is told its own role's words after the first turn.
    for trajectory in episode.trajectories:
        for step in trajectory.steps[1:]:
            last = step.chat_completions[-2]["content"]
            assert last in (f"and {trajectory.name}", f"all alike {trajectory.name}") or (
                last == "the same same"
            )


def test_a_conversation_is_one_record_and_branches_share_their_beginning_as_context() -> None:
    async def run(workflow: Any, task: Any) -> None:
        ask, own = workflow.rollout_engine.get_model_response, workflow.new_trajectory("a")
        first = await ask([user("hi")], trajectory=own)
        history = [user("hi"), first.message]
        for word in ("left", "right"):
            await ask([*history, user(word)], trajectory=own)

    engine = TaggedEngine(longest_seconds=0.0)
    (trajectory,) = run_one(run, rollout_engine=engine).trajectories
    one, other = trajectory.token_records
    assert [turn.step_index for turn in one.turns] == [0, 1]
    assert [turn.step_index for turn in other.turns] == [2]
    # "hi=1" and its end are context in the second: there, with logprob 0.
    shared = one.turns[0].stop
    assert other.token_ids[:shared] == one.token_ids[:shared]
    assert set(other.logprobs[:shared]) == {0.0}
    assert one.token_ids[shared - 1] == IM_END


def test_another_roles_words_are_context_of_a_conversation_that_goes_on_from_them() -> None:
    async def run(workflow: Any, task: Any) -> None:
        ask = workflow.rollout_engine.get_model_response
        one, other = workflow.new_trajectory("one"), workflow.new_trajectory("other")
        first = await ask([user("hi")], trajectory=one)
        second = await ask([user("hi"), first.message, user("you")], trajectory=other)
        await ask(
            [user("hi"), first.message, user("you"), second.message, user("me")], trajectory=one
        )

    engine = TaggedEngine(longest_seconds=0.0)
    episode = run_one(run, rollout_engine=engine)
    check_tokens(episode, engine)
    one, other = episode.trajectories
    (record,) = one.token_records
    assert [turn.step_index for turn in record.turns] == [0, 1]
    (record,) = other.token_records
    assert len(record.turns) == 1


def test_a_template_that_rewrites_history_starts_another_record() -> None:
    class Thinking(TaggedEngine):
        async def generate(self, request: Any) -> Any:
            from agents_fakes import byte_completion

            completion = byte_completion(f"<think>hm</think>{len(self.sampled)}")
            self.sampled[completion.text] = request, completion
            return completion

    async def run(workflow: Any, task: Any) -> None:
        own = workflow.new_trajectory("a")
        messages = [user("one")]
        for _ in range(2):
            output = await workflow.rollout_engine.get_model_response(messages, trajectory=own)
            messages = [*messages, output.message, user("more")]

    engine = Thinking()
    tokenizer = ByteTokenizer(thought_stripping_chatml)
    episode = run_one(run, rollout_engine=engine, tokenizer=tokenizer)
    check_tokens(episode, engine)
    assert [len(r.turns) for r in episode.trajectory.token_records] == [1, 1]


def test_limits_count_the_first_prompt_and_what_follows_it() -> None:
    async def run(workflow: Any, task: Any) -> None:
        own, messages = workflow.new_trajectory("a"), [user(task["question"])]
        while True:
            output = await workflow.rollout_engine.get_model_response(messages, trajectory=own)
            messages = [*messages, output.message, user("go on")]

    long, endless = run_tasks(
        run,
        [{"question": "x" * 100}, {"question": "x"}],
        max_prompt_length=64,
        max_response_length=200,
    )
    assert long.termination_reason is TerminationReason.MAX_PROMPT_LENGTH_EXCEEDED
    assert (long.reward, long.trajectories) == (0.0, [])
    assert endless.termination_reason is TerminationReason.MAX_RESPONSE_LENGTH_EXCEEDED
    (record,) = endless.trajectory.token_records
    first = record.turns[0].start
    assert len(record.token_ids) - first <= 200
    assert endless.error is None
