"""Rows: kept, moved, grown and forgotten, and always exact."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from tiny_models import (
    POSITIONS,
    VOCABULARY,
    largest_error,
    make_model,
    random_prompts,
    request,
    sample_all,
)
from transformers import (
    Qwen3ForCausalLM,
)

from rllm_agents.rollout_engines.slot_batch import SlotBatch
from rllm_agents.rollout_engines.slot_records import SlotRequest
from rllm_agents.rollout_engines.transformers import TransformersEngine
from rllm_agents.types import Completion, GenerationRequest, SamplingParams


@pytest.fixture(scope="module")
def model() -> Qwen3ForCausalLM:
    return make_model()


@pytest.fixture
def engine(model: Qwen3ForCausalLM):
    engine = TransformersEngine(model)
    yield engine
    engine.close()


def test_next_turns_prefill_only_what_is_new(model: Qwen3ForCausalLM) -> None:
    engine = TransformersEngine(model)
    lengths: list[int] = []
    hook = model.model.register_forward_pre_hook(
        lambda module, args, kwargs: lengths.append(kwargs["input_ids"].shape[1]), with_kwargs=True
    )
    prompt = random_prompts(1, 40, 40)[0]

    async def run() -> tuple[GenerationRequest, Completion]:
        first = await engine.generate(request(prompt, 6, session_id="a", seed=0))
        lengths.clear()
        asked = request([*prompt, *first.token_ids, 8, 9, 10], 6, session_id="a", seed=1)
        return asked, await engine.generate(asked)

    asked, answer = asyncio.run(run())
    hook.remove()
    # 40 + 5 of the first turn are stored; its last id and two of the three new ones are not.
    assert lengths == [3, 1, 1, 1, 1, 1, 1]
    assert largest_error(model, [asked], [answer]) < 1e-5


def test_dialogues_are_exact_however_rows_are_kept_moved_and_forgotten() -> None:
    model = make_model()
    rng = np.random.default_rng(3)
    for slots in (1, 5, 16):
        engine = TransformersEngine(model, max_batch_size=slots)
        asked: list[GenerationRequest] = []
        answers: list[Completion] = []

        async def talk(number: int, engine: TransformersEngine = engine) -> None:
            ids = [number, 2, *range(number)]
            for turn in range(4):
                if turn == 2 and number % 3 == 0:
                    ids = ids[: len(ids) // 2]  # an agent that rewrites history
                one = request(ids, int(rng.integers(1, 9)), session_id=f"{number}", seed=turn)
                answer = await engine.generate(one)
                asked.append(one)  # noqa: B023
                answers.append(answer)  # noqa: B023
                ids += [*answer.token_ids, *rng.integers(0, VOCABULARY, 3).tolist()]
                if number % 4 == 0:
                    await asyncio.sleep(0.003)  # a slow environment

        async def run() -> None:
            await asyncio.gather(*(talk(number) for number in range(12)))

        asyncio.run(run())
        assert len(answers) == 48
        assert largest_error(model, asked, answers) < 1e-5


def test_two_turns_of_one_session_at_once_do_not_mix(engine: TransformersEngine) -> None:
    requests = [request([1, 2, 3], 9, session_id="a", seed=s) for s in (1, 2, 3)]
    answers = sample_all(engine, requests)
    again = sample_all(engine, requests)
    assert [a.token_ids for a in answers] == [a.token_ids for a in again]


def test_equal_prompts_are_prefilled_once(model: Qwen3ForCausalLM) -> None:
    engine = TransformersEngine(model)
    sizes: list[tuple[int, ...]] = []
    hook = model.model.register_forward_pre_hook(
        lambda module, args, kwargs: sizes.append(tuple(kwargs["input_ids"].shape)),
        with_kwargs=True,
    )
    prompts = [[9] * 20 + [1], [9] * 20 + [2], [8] * 7]
    requests = [request(prompt, 2, seed=s) for prompt in prompts for s in range(8)]
    answers = sample_all(engine, requests)
    hook.remove()
    assert sizes == [(2, 20), (24, 1), (24, 1)]
    assert largest_error(model, requests, answers) < 1e-5


def test_rows_and_positions_grow_only_as_far_as_needed(model: Qwen3ForCausalLM) -> None:
    batch = SlotBatch(
        model,
        stop_token_ids=(),
        vocabulary_size=VOCABULARY,
        max_batch_size=256,
        max_model_length=POSITIONS,
    )
    for round_number in range(20):  # 60 sessions, three at a time
        asked = [slot_request([1, 2], f"{round_number}-{i}") for i in range(3)]
        batch.step(asked)
        batch.step([])
    assert batch.num_active == 0
    assert batch._cache.num_rows == 8
    assert batch._cache.num_positions == 64


def slot_request(prompt: list[int], session_id: str) -> SlotRequest:
    return SlotRequest(
        prompt_ids=np.array(prompt),
        sampling=SamplingParams(),
        max_tokens=2,
        session_id=session_id,
        random=np.random.default_rng(0),
    )
