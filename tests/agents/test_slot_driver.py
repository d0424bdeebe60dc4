"""Many callers, one batch: waiting, cancelling, crashing, closing."""

from __future__ import annotations

import asyncio
import copy
import time
from typing import Any, cast

import pytest
import torch
from tiny_models import (
    VOCABULARY,
    largest_error,
    make_model,
    plain_logprobs,
    random_prompts,
    record_batch_sizes,
    request,
    sample_all,
)
from transformers import (
    Qwen3ForCausalLM,
)

from rllm_agents import AgentExecutionEngine, ChatAgent
from rllm_agents.errors import EngineError
from rllm_agents.loop_share import LoopShare
from rllm_agents.rollout_engines.slot_batch import SlotBatch
from rllm_agents.rollout_engines.slot_driver import SlotDriver
from rllm_agents.rollout_engines.slot_records import SlotRequest, SlotResult
from rllm_agents.rollout_engines.transformers import TransformersEngine
from rllm_agents.types import (
    Completion,
    GenerationRequest,
    Message,
    SamplingParams,
    VersionSpan,
)
from rllm_envs import BaseEnv


@pytest.fixture(scope="module")
def model() -> Qwen3ForCausalLM:
    return make_model()


@pytest.fixture
def engine(model: Qwen3ForCausalLM):
    engine = TransformersEngine(model)
    yield engine
    engine.close()


async def play_inline(engine: TransformersEngine, first: list[int], seed: int) -> list[int]:
    """A dialogue of four turns with an environment that answers at once."""
    ids = list(first)
    for turn in range(4):
        answer = await engine.generate(
            request(ids, 3 + (seed + turn) % 9, seed=10 * seed + turn, session_id=str(seed))
        )
        ids += [*answer.token_ids, turn, 7]
    return ids


def test_inline_dialogues_have_equal_tokens_and_equal_batches_in_every_run() -> None:
    runs = []
    for _ in range(3):
        engine = TransformersEngine(make_model(), max_batch_size=16)
        sizes = record_batch_sizes(engine)

        async def run(engine: TransformersEngine = engine) -> list[list[int]]:
            prompts = enumerate(random_prompts(24))
            return await asyncio.gather(*(play_inline(engine, p, seed) for seed, p in prompts))

        runs.append((asyncio.run(run()), sizes))
        engine.close()
    assert runs[0] == runs[1] == runs[2]


class WholeBatch:
    """Answers whatever is admitted in one step, and notes how much that was."""

    def __init__(self, step_seconds: float) -> None:
        self.sizes: list[int] = []
        self.num_rounds = 0
        self.admitted_after: list[int] = []
        self._step_seconds = step_seconds

    @property
    def num_free(self) -> int:
        """As many as there may be; how many rounds went by before it was asked is noted."""
        self.admitted_after.append(self.num_rounds)
        return 4096

    def step(self, admitted: list[Any], cancelled: list[Any]) -> list[Any]:
        self.sizes.append(len(admitted))
        time.sleep(self._step_seconds)
        return [SlotResult(request, [1], [0.0], "stop", is_finite=True) for request in admitted]

    def reset(self) -> None:
        """Hold nothing that would have to go."""


class WholeBatchEngine:
    """A rollout engine of nothing but a driver and a `WholeBatch`."""

    weights_version = 0

    def __init__(self, step_seconds: float) -> None:
        self.batch = WholeBatch(step_seconds)
        self.driver = SlotDriver(cast(SlotBatch, self.batch))

    async def generate(self, request: GenerationRequest) -> Completion:
        await self.driver.sample(cast(SlotRequest, object()))
        return Completion("x", "stop")


class ThreeTurns(BaseEnv):
    """Asks the number of its task three times."""

    blocking = False

    def __init__(self, number: int) -> None:
        self._number, self._turn = number, 0

    @staticmethod
    def from_dict(info: dict[str, Any]) -> ThreeTurns:
        return ThreeTurns(info["number"])

    def reset(self) -> tuple[str, dict[str, Any]]:
        return str(self._number), {}

    def step(self, action: Any) -> tuple[str, float, bool, dict[str, Any]]:
        self._turn += 1
        return "again", 0.0, self._turn == 3, {}


class GivesUp(ChatAgent):
    """Raises on its second turn where the number is in [20, 420), as a full context would."""

    @property
    def chat_completions(self) -> list[Message]:
        messages = super().chat_completions
        if len(messages) == 3 and 20 <= int(messages[0]["content"]) < 420:
            raise ValueError("full")
        return messages


@pytest.mark.parametrize("step_seconds", [0.0, 0.02])
def test_batches_do_not_depend_on_how_long_a_step_takes(step_seconds: float) -> None:
    rollout_engine: Any = WholeBatchEngine(step_seconds)
    with AgentExecutionEngine(
        agent_class=GivesUp,
        env_class=ThreeTurns,
        rollout_engine=rollout_engine,
        n_parallel_agents=512,
    ) as engine:
        episodes = asyncio.run(engine.execute_tasks([{"number": n} for n in range(512)]))
    rollout_engine.driver.close()
    assert sum(episode.failed for episode in episodes) == 400
    assert rollout_engine.batch.sizes == [512, 112, 112]


def test_others_who_never_leave_the_loop_alone_hold_no_step_up_for_long() -> None:
    engine = WholeBatchEngine(0.0)

    async def play_on() -> None:
        while True:
            await LoopShare.of_this_loop().pause()

    async def count_rounds() -> None:
        while True:
            engine.batch.num_rounds += 1
            await asyncio.sleep(0)

    async def run() -> None:
        others = [asyncio.create_task(play_on()) for _ in range(100)]
        others.append(asyncio.create_task(count_rounds()))
        for _ in range(3):
            engine.batch.num_rounds = 0
            await engine.generate(GenerationRequest((), (1,), SamplingParams()))
        for other in others:
            other.cancel()

    asyncio.run(asyncio.wait_for(run(), 60.0))
    engine.driver.close()
    assert engine.batch.sizes == [1, 1, 1]
    # Twice eight rounds without a request, and four for a hundred in line.
    assert all(16 <= rounds < 30 for rounds in engine.batch.admitted_after)


def test_more_requests_than_slots_wait_their_turn(model: Qwen3ForCausalLM) -> None:
    engine = TransformersEngine(model, max_batch_size=3)
    sizes = record_batch_sizes(engine)
    requests = [request(p, 4 + i % 5, seed=i) for i, p in enumerate(random_prompts(11))]
    answers = sample_all(engine, requests)
    assert largest_error(model, requests, answers) < 1e-5
    assert max(sizes) == 3


def test_the_loop_stays_responsive_while_a_long_completion_is_sampled(
    engine: TransformersEngine,
) -> None:
    async def run() -> int:
        ticks = 0
        task = asyncio.create_task(engine.generate(request([1], 60)))
        while not task.done():
            await asyncio.sleep(0)
            ticks += 1
        return ticks

    assert asyncio.run(run()) > 60


def test_an_engine_serves_several_event_loops_one_after_another(
    engine: TransformersEngine,
) -> None:
    answers = [sample_all(engine, [request([1, 2], 8, seed=3)])[0] for _ in range(3)]
    assert answers[0].token_ids == answers[1].token_ids == answers[2].token_ids


def test_a_cancelled_request_frees_its_slot(model: Qwen3ForCausalLM) -> None:
    engine = TransformersEngine(model, max_batch_size=1)

    async def run() -> Completion:
        endless = asyncio.create_task(engine.generate(request([1], 250)))
        waiting = asyncio.create_task(engine.generate(request([1], 250)))
        await asyncio.sleep(0.02)
        endless.cancel()
        waiting.cancel()
        return await asyncio.wait_for(engine.generate(request([2], 3, seed=0)), 5)

    answer = asyncio.run(run())
    assert len(answer.token_ids) == 3
    assert engine._batch.num_active == 0


def test_a_loop_that_ends_in_the_middle_leaves_the_engine_usable(
    engine: TransformersEngine,
) -> None:
    async def give_up() -> None:
        asyncio.create_task(engine.generate(request([1], 250)))  # noqa: RUF006
        await asyncio.sleep(0.02)

    asyncio.run(give_up())
    assert len(sample_all(engine, [request([1, 2], 4)])[0].token_ids) == 4


class FailingModel(Qwen3ForCausalLM):
    """Fails in the forward passes that are still owed."""

    failures_left = 0

    def forward(self, *args: object, **kwargs: object):  # type: ignore[override]
        if self.failures_left:
            self.failures_left -= 1
            raise RuntimeError("out of memory")
        return super().forward(*args, **kwargs)  # type: ignore[arg-type]


def test_a_crash_fails_the_active_requests_and_leaves_the_engine_usable() -> None:
    model = FailingModel(make_model().config).eval()
    engine = TransformersEngine(model, max_batch_size=2)
    model.failures_left = 1

    async def run() -> list[Completion | BaseException]:
        asked = (engine.generate(request([1, 2], 5, seed=i)) for i in range(3))
        return await asyncio.gather(*asked, return_exceptions=True)

    first, second, third = asyncio.run(run())
    for failure in (first, second):
        assert isinstance(failure, EngineError)
        assert "step of 2 requests failed: RuntimeError: out of memory" in str(failure)
    assert isinstance(third, Completion)  # it had waited for a slot
    assert len(sample_all(engine, [request([1], 4)])[0].token_ids) == 4


def test_close_may_be_repeated_and_fails_what_waits(model: Qwen3ForCausalLM) -> None:
    engine = TransformersEngine(model)

    async def run() -> None:
        task = asyncio.create_task(engine.generate(request([1], 250)))
        await asyncio.sleep(0.02)
        engine.close()
        engine.close()
        with pytest.raises(EngineError, match="was closed"):
            await task
        with pytest.raises(EngineError, match="make a new one"):
            await engine.generate(request([1], 2))

    asyncio.run(run())


async def being_sampled(engine: TransformersEngine) -> None:
    """Wait until a step has been taken."""
    while not engine._batch._rows["cached"].any():
        await asyncio.sleep(0)


def test_new_weights_wait_for_what_is_being_sampled_and_new_requests_wait_for_them() -> None:
    model = make_model()
    engine = TransformersEngine(model)
    old = copy.deepcopy(model)
    new = {"model.embed_tokens.weight": torch.randn(VOCABULARY, 32)}
    asked = request([1, 2, 3], 30, seed=0)

    async def run() -> tuple[Completion, Completion]:
        running = asyncio.create_task(engine.generate(asked))
        await being_sampled(engine)
        loading = asyncio.create_task(engine.load_weights(new, version=7))
        await asyncio.sleep(0)
        late = await engine.generate(asked)
        await loading
        return await running, late

    first, late = asyncio.run(run())
    assert (first.weights_version, late.weights_version) == (0, 7)
    assert largest_error(old, [asked], [first]) < 1e-5
    assert largest_error(model, [asked], [late]) < 1e-5


def test_weights_exchanged_in_flight_sample_what_follows_and_each_id_says_by_which() -> None:
    torch.manual_seed(3)
    model = make_model()
    engine = TransformersEngine(model, max_batch_size=4)
    models = {0: copy.deepcopy(model)}
    # A fifth request waits for a place; one prompt of a single id has nothing stored.
    prompts = [[1], [1, 2, 3], [4, 5], [1, 2, 3], [6, 7, 8, 9]]
    asked = [request(p, 40, seed=i) for i, p in enumerate(prompts)]

    async def run() -> list[Completion]:
        running = [asyncio.create_task(engine.generate(r)) for r in asked]
        for version in (5, 6):
            lengths = engine._batch._rows["length"]
            wanted = lengths.max() + 7
            while lengths.max() < wanted:
                await asyncio.sleep(0)
            new = {"model.embed_tokens.weight": torch.randn(VOCABULARY, 32) * 0.3}
            await engine.load_weights(new, version=version, in_flight=True)
            models[version] = copy.deepcopy(model)
        return await asyncio.gather(*running)

    answers = asyncio.run(run())
    for answer, sampled_by in zip(answers, [[0, 5, 6]] * 4 + [[6]], strict=True):
        spans = answer.version_spans
        assert [s.weights_version for s in spans] == (sampled_by if len(sampled_by) > 1 else [])
        assert answer.weights_version == sampled_by[0]
    for asked_for, answer in zip(asked, answers, strict=True):
        for span in answer.version_spans or (VersionSpan(0, len(answer.token_ids), 6),):
            # The keys and values of all that stands before are the new weights' too.
            expected = plain_logprobs(
                models[span.weights_version], asked_for.prompt_ids or (), answer.token_ids
            )
            got = torch.tensor(answer.logprobs)
            cut = slice(span.start, span.stop)
            assert (got - expected)[cut].abs().max() < 1e-5
        assert sum(s.stop - s.start for s in answer.version_spans) in (0, 40)
    assert engine.weights_version == 6


def test_a_turn_after_an_exchange_in_flight_is_computed_from_its_beginning() -> None:
    model = make_model()
    engine = TransformersEngine(model, max_batch_size=4)
    first = request([1, 2, 3], 8, seed=0, session_id="one")
    long = request([4, 5], 60, seed=1)

    async def run() -> tuple[GenerationRequest, Completion]:
        running = asyncio.create_task(engine.generate(long))
        answer = await engine.generate(first)
        new = {"model.embed_tokens.weight": torch.randn(VOCABULARY, 32) * 0.3}
        await engine.load_weights(new, version=1, in_flight=True)
        second = request([1, 2, 3, *answer.token_ids, 9], 8, seed=2, session_id="one")
        reply = await engine.generate(second)
        assert [s.weights_version for s in (await running).version_spans] == [0, 1]
        return second, reply

    second, reply = asyncio.run(run())
    assert (reply.weights_version, reply.version_spans) == (1, ())
    assert largest_error(model, [second], [reply]) < 1e-5


def test_weights_that_do_not_fit_leave_what_is_in_flight_alone() -> None:
    model = make_model()
    engine = TransformersEngine(model)
    asked = request([1, 2], 30, seed=0)

    async def run() -> Completion:
        running = asyncio.create_task(engine.generate(asked))
        await being_sampled(engine)
        with pytest.raises(EngineError, match="no weight 'nose'"):
            await engine.load_weights({"nose": torch.zeros(1)}, version=1, in_flight=True)
        return await running

    answer = asyncio.run(run())
    assert (answer.weights_version, answer.version_spans) == (0, ())
    assert largest_error(model, [asked], [answer]) < 1e-5
