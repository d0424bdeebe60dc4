"""Whole episodes over a real model: renderer, transformers engine and execution engine together."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from agents_fakes import CountingEnv, EchoAgent

from rllm_agents import AgentExecutionEngine, RolloutRequest, SamplingParams, TerminationReason
from rllm_agents.types import TokenRecord

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


@pytest.fixture(scope="module")
def model_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Qwen3 over bytes, with its tokenizer, as a directory."""
    import torch
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

    path = tmp_path_factory.mktemp("model")
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    bpe = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(letters)}, merges=[]))
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    names = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    bpe.add_special_tokens([AddedToken(name, special=True) for name in names])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token="<|endoftext|>")
    tokenizer.chat_template = CHATML
    tokenizer.save_pretrained(path)
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        intermediate_size=48,
        max_position_embeddings=512,
        initializer_range=0.3,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    Qwen3ForCausalLM(config).save_pretrained(path)
    return path


def make_engine(model_path: Path, **arguments: Any) -> AgentExecutionEngine:
    return AgentExecutionEngine(
        agent_class=EchoAgent,
        env_class=CountingEnv,
        rollout_engine_args={"model": str(model_path)},
        **arguments,
    )


def records(episodes: list) -> list[TokenRecord]:
    return [record for episode in episodes for record in episode.trajectory.token_records]


def test_the_logprobs_of_whole_episodes_are_those_of_a_forward_pass(model_path: Path) -> None:
    import torch
    from transformers import Qwen3ForCausalLM

    tasks = [{"question": f"q{i}", "rewards": [0.0, 0.0, 1.0]} for i in range(12)]
    with make_engine(model_path, sampling_params={"seed": 1, "max_tokens": 24}) as engine:
        episodes = asyncio.run(engine.execute_tasks(tasks))
    assert {e.termination_reason for e in episodes} <= {
        TerminationReason.ENV_DONE,
        TerminationReason.MAX_RESPONSE_LENGTH_EXCEEDED,
    }
    model = Qwen3ForCausalLM.from_pretrained(model_path).eval()
    num_sampled = 0
    for record in records(episodes):
        with torch.inference_mode():
            logits = model(torch.tensor([record.token_ids])).logits[0].float()
        expected = logits.log_softmax(-1)
        for span in record.turns:
            for position in range(span.start, span.stop):
                token = record.token_ids[position]
                num_sampled += 1
                assert record.logprobs[position] == pytest.approx(
                    float(expected[position - 1, token]), abs=1e-3
                )
    assert num_sampled > 100


def test_the_turn_ends_at_the_token_of_the_template_though_the_model_names_another(
    model_path: Path,
) -> None:
    with make_engine(model_path) as engine:
        assert engine.renderer is not None
        stops = engine.renderer.stop_token_ids
        assert len(stops) == 2
        assert set(stops) <= set(engine.rollout_engine.stop_token_ids)  # type: ignore[attr-defined]


def test_equal_seeds_give_equal_episodes_and_other_seeds_others(model_path: Path) -> None:
    def run(seed: int) -> list[TokenRecord]:
        requests = [
            RolloutRequest({"question": "q"}, str(i), SamplingParams(seed=seed + i, max_tokens=16))
            for i in range(8)
        ]
        with make_engine(model_path) as engine:
            return records(asyncio.run(engine.execute_requests(requests)))

    first = run(0)
    assert first == run(0)
    assert first != run(100)
    assert len({record.token_ids for record in first}) > 4


def test_a_context_that_the_model_cannot_hold_is_too_long_not_a_failure(model_path: Path) -> None:
    tasks = [{"question": "x" * 600}, {"question": "x" * 440}]
    with make_engine(model_path, max_prompt_length=4096) as engine:
        long, fitting = asyncio.run(engine.execute_tasks(tasks))
    assert long.termination_reason is TerminationReason.MAX_PROMPT_LENGTH_EXCEEDED
    assert not fitting.failed
    assert len(fitting.trajectory.token_records[0].token_ids) <= 512
