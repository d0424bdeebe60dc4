"""The slot batcher against plain forward passes of the same model."""

from __future__ import annotations

import asyncio
import copy
import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import nn
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedModel,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from rllm_agents.errors import EngineError, UserError
from rllm_agents.rollout_engines.slot_batch import SlotBatch
from rllm_agents.rollout_engines.slot_records import SlotRequest
from rllm_agents.rollout_engines.token_sampling import SamplingPlan, draw_tokens
from rllm_agents.rollout_engines.transformers import TransformersEngine
from rllm_agents.types import Completion, GenerationRequest, SamplingParams

VOCABULARY = 50
POSITIONS = 256


def make_model(seed: int = 0, **settings: object) -> Qwen3ForCausalLM:
    """A random Qwen3 whose distributions are far from uniform."""
    torch.manual_seed(seed)
    config = Qwen3Config(
        **{
            "vocab_size": VOCABULARY,
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 8,
            "intermediate_size": 48,
            "max_position_embeddings": POSITIONS,
            "tie_word_embeddings": True,
            "initializer_range": 0.3,
            "eos_token_id": None,
            "bos_token_id": None,
            **settings,
        }
    )
    return Qwen3ForCausalLM(config).eval()


@pytest.fixture(scope="module")
def model() -> Qwen3ForCausalLM:
    return make_model()


@pytest.fixture
def engine(model: Qwen3ForCausalLM):
    engine = TransformersEngine(model)
    yield engine
    engine.close()


def request(
    prompt: Sequence[int], max_tokens: int | None = 12, *, session_id: str = "", **sampling: float
) -> GenerationRequest:
    return GenerationRequest(
        messages=(),
        prompt_ids=tuple(prompt),
        sampling=SamplingParams(max_tokens=max_tokens, **sampling),  # type: ignore[arg-type]
        session_id=session_id,
    )


def random_prompts(count: int, shortest: int = 1, longest: int = 60) -> list[list[int]]:
    rng = np.random.default_rng(7)
    return [
        rng.integers(0, VOCABULARY, rng.integers(shortest, longest + 1)).tolist()
        for _ in range(count)
    ]


def sample_all(
    engine: TransformersEngine, requests: Sequence[GenerationRequest]
) -> list[Completion]:
    async def run() -> list[Completion]:
        return await asyncio.gather(*(engine.generate(r) for r in requests))

    return asyncio.run(run())


def plain_logprobs(model: PreTrainedModel, prompt: Sequence[int], ids: Sequence[int]) -> Tensor:
    """Logprob of each id after those before it, from one forward pass without a cache."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([[*prompt, *ids]])).logits[0].float()
    table = logits.log_softmax(-1)[len(prompt) - 1 : -1]
    return table.gather(1, torch.tensor(ids).unsqueeze(1)).squeeze(1)


Tensor = torch.Tensor


def largest_error(
    model: PreTrainedModel, requests: Sequence[GenerationRequest], answers: Sequence[Completion]
) -> float:
    return max(
        float(
            (plain_logprobs(model, r.prompt_ids or (), a.token_ids) - torch.tensor(a.logprobs))
            .abs()
            .max()
        )
        for r, a in zip(requests, answers, strict=True)
    )


# Exactness


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_logprobs_equal_a_plain_forward_pass_for_mixed_lengths(attention: str) -> None:
    model = make_model(attn_implementation=attention)
    engine = TransformersEngine(model, max_batch_size=16)
    requests = [
        request(prompt, 1 + 5 * index % 90, seed=index)
        for index, prompt in enumerate(random_prompts(60))
    ]
    answers = sample_all(engine, requests)
    assert [len(a.token_ids) for a in answers] == [1 + 5 * i % 90 for i in range(60)]
    assert {a.finish_reason for a in answers} == {"length"}
    assert largest_error(model, requests, answers) < 1e-5


@pytest.mark.parametrize(
    "other",
    [
        GPT2LMHeadModel(
            GPT2Config(
                vocab_size=VOCABULARY,
                n_embd=16,
                n_layer=2,
                n_head=2,
                n_positions=POSITIONS,
                eos_token_id=None,
                bos_token_id=None,
                initializer_range=0.3,
            )
        ),
        MistralForCausalLM(
            MistralConfig(
                vocab_size=VOCABULARY,
                hidden_size=16,
                num_hidden_layers=2,
                num_attention_heads=2,
                num_key_value_heads=1,
                intermediate_size=24,
                max_position_embeddings=POSITIONS,
                sliding_window=None,
                eos_token_id=None,
                bos_token_id=None,
                initializer_range=0.3,
            )
        ),
    ],
    ids=["learned positions", "grouped queries"],
)
def test_other_architectures_are_sampled_exactly(other: PreTrainedModel) -> None:
    requests = [request(prompt, 20, seed=i) for i, prompt in enumerate(random_prompts(9))]
    answers = sample_all(TransformersEngine(other), requests)
    assert largest_error(other.eval(), requests, answers) < 1e-5


def test_half_precision_weights_are_sampled_near_to_a_plain_forward_pass() -> None:
    model = make_model().to(torch.bfloat16)
    requests = [request(prompt, 20, seed=i) for i, prompt in enumerate(random_prompts(9))]
    answers = sample_all(TransformersEngine(model), requests)
    assert largest_error(model, requests, answers) < 0.5


def test_greedy_takes_the_argmax_and_reports_its_logprob_at_temperature_one(
    model: Qwen3ForCausalLM, engine: TransformersEngine
) -> None:
    prompt = random_prompts(1)[0]
    asked = request(prompt, 10, temperature=0.0)
    (answer,) = sample_all(engine, [asked])
    ids = list(prompt)
    for token in answer.token_ids:
        with torch.no_grad():
            assert token == int(model(input_ids=torch.tensor([ids])).logits[0, -1].argmax())
        ids.append(token)
    assert largest_error(model, [asked], [answer]) < 1e-5


def test_truncated_and_untruncated_requests_share_a_batch_and_report_what_they_sample_from(
    model: Qwen3ForCausalLM, engine: TransformersEngine
) -> None:
    prompt = random_prompts(1)[0]
    kinds = [{}, {"temperature": 0.7}, {"top_k": 3}, {"top_p": 0.6}]
    kinds.append({"temperature": 1.3, "top_k": 5, "top_p": 0.8})
    requests = [request(prompt, 1, seed=s, **kind) for kind in kinds for s in range(40)]
    answers = sample_all(engine, requests)
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([prompt])).logits[0, -1].double()
    for index, kind in enumerate(kinds):
        allowed = reference_distribution(logits.numpy(), **kind)
        for answer in answers[40 * index : 40 * index + 40]:
            assert answer.logprobs[0] == pytest.approx(
                math.log(allowed[answer.token_ids[0]]), abs=1e-5
            )


def reference_distribution(
    logits: np.ndarray, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0
) -> np.ndarray:
    """One row, done plainly: temperature, the k best, of these the fewest with mass top_p."""
    weights = np.exp((logits - logits.max()) / temperature)
    best_first = np.argsort(-weights, kind="stable")
    if top_k:
        weights[best_first[top_k:]] = 0.0
    weights /= weights.sum()
    mass = 0.0
    for token in best_first:
        if mass >= top_p:
            weights[token] = 0.0
        mass += weights[token]
    return weights / weights.sum()


def test_first_tokens_occur_as_often_as_their_probability_says(
    model: Qwen3ForCausalLM, engine: TransformersEngine
) -> None:
    prompt = [3, 1, 4]
    count = 4000
    answers = sample_all(engine, [request(prompt, 1, seed=s) for s in range(count)])
    observed = np.bincount([a.token_ids[0] for a in answers], minlength=VOCABULARY)
    with torch.no_grad():
        expected = model(input_ids=torch.tensor([prompt])).logits[0, -1].softmax(-1).numpy() * count
    likely = expected >= 5
    chi_squared = ((observed - expected) ** 2 / expected)[likely].sum()
    # 49 degrees of freedom at most: the 99.9 % point is 85.4; the seeds are fixed.
    assert likely.sum() >= 10
    assert chi_squared < 85.4


def test_a_known_uniform_number_picks_the_token_that_the_cumulative_sum_says() -> None:
    logits = torch.tensor([[0.1, 0.2, 0.3, 0.4]]).log().repeat(6, 1)
    logits[5, 3] = -torch.inf  # what is left: 1/6, 2/6, 3/6
    uniforms = torch.tensor([0.0, 0.0999, 0.1001, 0.5999, 0.9999999999999999, 0.9999999999999999])
    plan = SamplingPlan(temperature=None, greedy=None, top_k=None, top_p=None)
    ids, logprobs = draw_tokens(logits, uniforms.double(), plan)
    assert ids.tolist() == [0, 0, 1, 2, 3, 2]
    expected = np.log([0.1, 0.1, 0.2, 0.3, 0.4, 0.5])
    np.testing.assert_allclose(logprobs, expected, atol=1e-6)


# Randomness


def test_a_completion_does_not_depend_on_who_shares_its_batch(engine: TransformersEngine) -> None:
    prompts = random_prompts(30)
    together = sample_all(engine, [request(p, 25, seed=i) for i, p in enumerate(prompts)])
    for index in (0, 13, 29):
        (alone,) = sample_all(engine, [request(prompts[index], 25, seed=index)])
        assert alone.token_ids == together[index].token_ids
        np.testing.assert_allclose(alone.logprobs, together[index].logprobs, atol=1e-5)


def test_long_completions_use_a_stream_without_repetition(engine: TransformersEngine) -> None:
    (long,) = sample_all(engine, [request([1], 200, seed=5)])
    (short,) = sample_all(engine, [request([1], 150, seed=5)])
    assert long.token_ids[:150] == short.token_ids
    assert long.token_ids[:64] != long.token_ids[64:128]


def test_requests_without_a_seed_differ(engine: TransformersEngine) -> None:
    first, second = sample_all(engine, [request([1], 40), request([1], 40)])
    assert first.token_ids != second.token_ids


def test_negative_and_huge_seeds_are_seeds(engine: TransformersEngine) -> None:
    seeds = (-1, 2**200, -1)
    answers = sample_all(engine, [request([1], 20, seed=seed) for seed in seeds])
    assert answers[0].token_ids == answers[2].token_ids != answers[1].token_ids


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


def record_batch_sizes(engine: TransformersEngine) -> list[int]:
    """List that grows by the number of rows of each forward pass."""
    sizes: list[int] = []
    engine._model.register_forward_pre_hook(
        lambda module, args, kwargs: sizes.append(len(kwargs["input_ids"])), with_kwargs=True
    )
    return sizes


# Stops and limits


def test_a_stop_token_ends_the_completion_and_is_its_last_id(model: Qwen3ForCausalLM) -> None:
    engine = TransformersEngine(model, stop_token_ids=range(0, VOCABULARY, 2))
    answers = sample_all(engine, [request([1], 40, seed=s) for s in range(20)])
    for answer in answers:
        assert answer.finish_reason == "stop"
        assert answer.token_ids[-1] % 2 == 0
        assert all(token % 2 for token in answer.token_ids[:-1])
    assert len({len(a.token_ids) for a in answers}) > 1


def test_by_default_the_stop_token_is_the_models(model: Qwen3ForCausalLM) -> None:
    assert TransformersEngine(model).stop_token_ids == frozenset()
    assert TransformersEngine(make_model(eos_token_id=[4, 9])).stop_token_ids == {4, 9}


def test_without_max_tokens_a_completion_takes_what_is_left(model: Qwen3ForCausalLM) -> None:
    engine = TransformersEngine(model, max_model_length=30)
    (answer,) = sample_all(engine, [request(range(22), None, seed=0)])
    assert (len(answer.token_ids), answer.finish_reason) == (8, "length")


@pytest.mark.parametrize(
    ("prompt", "max_tokens", "words"),
    [
        ([1] * 250, 7, ["250 tokens", "max_tokens=7", "256 positions"]),
        ([1] * 256, None, ["256 tokens", "256 positions"]),
        ([], 5, ["at least one id"]),
        ([1, VOCABULARY], 5, ["[0, 50)", "1 to 50"]),
        ([-1], 5, ["[0, 50)"]),
    ],
)
def test_a_request_that_cannot_be_served_says_why_and_harms_no_other(
    engine: TransformersEngine, prompt: list[int], max_tokens: int | None, words: list[str]
) -> None:
    async def run() -> list[Completion | BaseException]:
        return await asyncio.gather(
            engine.generate(request([1, 2], 5)),
            engine.generate(request(prompt, max_tokens)),
            return_exceptions=True,
        )

    good, bad = asyncio.run(run())
    assert isinstance(good, Completion)
    assert isinstance(bad, EngineError)
    assert all(word in str(bad) for word in words)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"max_batch_size": 0}, "max_batch_size"),
        ({"max_model_length": 257}, "[2, 256]"),
        ({"stop_token_ids": [50]}, "[0, 50)"),
        ({"device": "cpu"}, "model.to"),
    ],
)
def test_wrong_settings_are_refused(
    model: Qwen3ForCausalLM, arguments: dict[str, int], word: str
) -> None:
    with pytest.raises(UserError, match=word.replace("[", r"\[").replace(")", r"\)")):
        TransformersEngine(model, **arguments)  # type: ignore[arg-type]


def test_windowed_attention_is_refused_unless_lengths_stay_within_the_window() -> None:
    windowed = make_model(
        use_sliding_window=True, sliding_window=32, layer_types=["sliding_attention"] * 2
    )
    with pytest.raises(EngineError, match="windows of 32 tokens"):
        TransformersEngine(windowed)
    engine = TransformersEngine(windowed, max_model_length=32)
    requests = [request([1, 2, 3], 29, seed=0)]
    assert largest_error(windowed, requests, sample_all(engine, requests)) < 1e-5


def test_a_model_whose_attention_ignores_masks_is_refused_at_once() -> None:
    class Leaky(Qwen3ForCausalLM):
        """Adds the batch's mean to every row: sequences see each other."""

        def forward(self, *args: object, **kwargs: object):  # type: ignore[override]
            output = super().forward(*args, **kwargs)  # type: ignore[arg-type]
            output.logits = output.logits + output.logits.roll(1, 0)
            return output

    with pytest.raises(EngineError, match="differs from a plain forward pass"):
        TransformersEngine(Leaky(make_model().config))


def test_a_path_is_loaded_with_its_tokenizer_and_a_missing_one_is_a_users_mistake(
    tmp_path, model: Qwen3ForCausalLM
) -> None:
    model.save_pretrained(tmp_path / "saved")
    engine = TransformersEngine(str(tmp_path / "saved"), dtype="float32", device="cpu")
    requests = [request([5, 6], 10, seed=1)]
    assert largest_error(model, requests, sample_all(engine, requests)) < 1e-5
    with pytest.raises(UserError, match="does not exist"):
        TransformersEngine(str(tmp_path / "nothing"))
    (tmp_path / "saved" / "config.json").write_text("{}")
    with pytest.raises(UserError, match="cannot load"):
        TransformersEngine(str(tmp_path / "saved"))
    with pytest.raises(UserError, match="dtype"):
        TransformersEngine(str(tmp_path / "saved"), dtype="int4")


# Concurrency


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
        task = asyncio.create_task(engine.generate(request([1], 200)))
        while not task.done():
            await asyncio.sleep(0)
            ticks += 1
        return ticks

    assert asyncio.run(run()) > 200


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


def test_broken_weights_give_an_error_and_do_not_spoil_later_requests() -> None:
    model = make_model()
    engine = TransformersEngine(model, max_batch_size=1)
    name = "model.norm.weight"
    good = {name: model.state_dict()[name].clone()}

    async def run() -> Completion:
        await engine.load_weights({name: torch.full_like(good[name], math.nan)}, version=1)
        with pytest.raises(EngineError, match="not finite"):
            await engine.generate(request([1, 2, 3], 5))
        await engine.load_weights(good, version=2)
        return await engine.generate(request([1, 2], 5, seed=0))

    answer = asyncio.run(run())
    assert largest_error(model, [request([1, 2])], [answer]) < 1e-5


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


# Weights


@pytest.mark.parametrize("tied", [True, False])
def test_every_kind_of_parameter_can_be_replaced(tied: bool) -> None:
    model = make_model(tie_word_embeddings=tied)
    engine = TransformersEngine(model)
    twin = copy.deepcopy(model)
    kinds = {name.split(".")[-2]: name for name, _ in twin.named_parameters()}
    assert len(kinds) == (13 if tied else 14)
    asked = request([3, 1, 4, 1, 5], 12, seed=1)

    async def sample() -> Completion:
        return await engine.generate(asked)

    before = asyncio.run(sample())
    for version, name in enumerate(kinds.values(), start=1):
        parameter = dict(twin.named_parameters())[name]
        with torch.no_grad():
            parameter.add_(0.3 * torch.randn_like(parameter))

        async def update(name: str = name, new: Tensor = parameter, v: int = version) -> Completion:
            await engine.load_weights({name: new.detach().clone()}, version=v)
            return await engine.generate(asked)

        answer = asyncio.run(update())
        assert answer.weights_version == version == engine.weights_version
        assert largest_error(twin, [asked], [answer]) < 1e-5, name
        assert answer.logprobs != before.logprobs, name
        before = answer


def test_a_tied_head_follows_the_embedding_under_either_name() -> None:
    model = make_model()
    engine = TransformersEngine(model)
    new = torch.randn(VOCABULARY, 32)

    async def run() -> None:
        await engine.load_weights({"lm_head.weight": new}, version=1)
        assert torch.equal(model.model.embed_tokens.weight, new)
        both = {"lm_head.weight": 2 * new, "model.embed_tokens.weight": 2 * new}
        await engine.load_weights(both, version=2)
        assert torch.equal(model.lm_head.weight, 2 * new)
        both["lm_head.weight"] = new
        with pytest.raises(EngineError, match="values differ"):
            await engine.load_weights(both, version=3)

    asyncio.run(run())
    assert engine.weights_version == 2


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("model.layers.0.self_attn.q_prox.weight", torch.zeros(1), "q_proj"),
        ("model.norm.weight", torch.zeros(31), r"\(32,\), got \(31,\)"),
        ("model.norm.weight", [1.0], "must be a tensor"),
    ],
)
def test_wrong_weights_are_refused_and_nothing_is_changed(
    name: str, value: object, words: str
) -> None:
    model = make_model()
    engine = TransformersEngine(model)
    before = copy.deepcopy(model.state_dict())
    tensors = {"model.embed_tokens.weight": torch.zeros(VOCABULARY, 32), name: value}
    with pytest.raises(EngineError, match=words):
        asyncio.run(engine.load_weights(tensors, version=1))  # type: ignore[arg-type]
    after = model.state_dict()
    assert all(torch.equal(before[key], after[key]) for key in before)
    assert engine.weights_version == 0


def test_new_weights_wait_for_what_is_being_sampled_and_new_requests_wait_for_them() -> None:
    model = make_model()
    engine = TransformersEngine(model)
    old = copy.deepcopy(model)
    new = {"model.embed_tokens.weight": torch.randn(VOCABULARY, 32)}
    asked = request([1, 2, 3], 30, seed=0)

    async def run() -> tuple[Completion, Completion]:
        running = asyncio.create_task(engine.generate(asked))
        await asyncio.sleep(0.01)
        loading = asyncio.create_task(engine.load_weights(new, version=7))
        await asyncio.sleep(0)
        late = await engine.generate(asked)
        await loading
        return await running, late

    first, late = asyncio.run(run())
    assert (first.weights_version, late.weights_version) == (0, 7)
    assert largest_error(old, [asked], [first]) < 1e-5
    assert largest_error(model, [asked], [late]) < 1e-5


# Rows


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
    for slots in (1, 2, 5, 16):
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


def test_global_settings_of_torch_stay_as_they_are(engine: TransformersEngine) -> None:
    before = (torch.get_num_threads(), torch.is_grad_enabled(), torch.get_rng_state().tolist())
    sample_all(engine, [request([1], 3)])
    after = (torch.get_num_threads(), torch.is_grad_enabled(), torch.get_rng_state().tolist())
    assert before == after


def test_sampled_weights_can_still_be_trained(model: Qwen3ForCausalLM) -> None:
    engine = TransformersEngine(model)
    sample_all(engine, [request([1, 2], 3)])
    loss = nn.functional.cross_entropy(
        model(input_ids=torch.tensor([[1, 2]])).logits[0], torch.tensor([3, 4])
    )
    loss.backward()
    assert model.model.norm.weight.grad is not None
    model.zero_grad()
