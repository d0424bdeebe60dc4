"""The transformers engine against plain forward passes of the same model."""

from __future__ import annotations

import asyncio

import pytest
import torch
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
    GPT2Config,
    GPT2LMHeadModel,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedModel,
    Qwen3ForCausalLM,
)

from rllm_agents.errors import EngineError, UserError
from rllm_agents.rollout_engines.transformers import TransformersEngine
from rllm_agents.types import Completion


@pytest.fixture(scope="module")
def model() -> Qwen3ForCausalLM:
    return make_model()


@pytest.fixture
def engine(model: Qwen3ForCausalLM):
    engine = TransformersEngine(model)
    yield engine
    engine.close()


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


def test_global_settings_of_torch_stay_as_they_are(engine: TransformersEngine) -> None:
    before = (torch.get_num_threads(), torch.is_grad_enabled(), torch.get_rng_state().tolist())
    sample_all(engine, [request([1], 3)])
    after = (torch.get_num_threads(), torch.is_grad_enabled(), torch.get_rng_state().tolist())
    assert before == after
