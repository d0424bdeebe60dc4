"""Supervised fine-tuning: imitate the assistant's turns of given conversations."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rllm_agents import Renderer
from rllm_agents.models import resolve_model_path
from rllm_learn import tiny_model
from rllm_learn.config import SFTConfig
from rllm_learn.conversations import conversation_sequences, read_conversations
from rllm_learn.core.batch import SampledSequence, TokenBatch, TokenSequence
from rllm_learn.core.learner import Learner
from rllm_learn.core.logprobs import PolicyOutput
from rllm_learn.core.losses import LossSum, cross_entropy_loss
from rllm_learn.errors import ConfigError
from rllm_learn.offline import check_length, run_updates, shuffled_for_ever, unused_run_dir
from rllm_learn.settings import (
    apply_torch_threads,
    load_policy_of,
    load_tokenizer,
    policy_spec,
    update_rule,
)

FIGURES = {"loss": "sft/loss", "entropy": "sft/entropy", "gradient norm": "sft/grad_norm"}
UNTRAINED = "tiny-untrained"
"""`model.path` of the tiny model with random weights."""


def train_supervised(config: SFTConfig) -> dict[str, Any]:
    """Fine-tune a model and write it, with its metrics, to the run directory.

    The result is under `model/`: the whole model, with adapters merged, as `from_pretrained`
    reads it; with LoRA the adapters alone are under `adapter/` too.

    Returns:
        The summary that is also written to `summary.json`.

    Raises:
        ConfigError: A setting is wrong, or a row of the data.
    """
    if config.data is None:
        raise ConfigError("data is not set: name a JSONL file with `messages` in each row")
    apply_torch_threads(config.torch_threads, config.model.path)
    path = unused_run_dir(config, "sft")
    with TemporaryDirectory() as temporary:
        model_path = _model_path(config, Path(temporary))
        tokenizer = load_tokenizer(model_path)
        batches = _batches(config, tokenizer)
        policy = load_policy_of(policy_spec(config.model, model_path, seed=config.seed))
    rule = update_rule(config.learner, config.model, config.num_updates, seed=config.seed)
    learner = Learner(policy, rule)

    def update() -> dict[str, float]:
        metrics = learner.update(next(batches), imitation_loss).metrics
        # There is no sampler here whose logprobs could be compared.
        return {f"sft/{k}": v for k, v in metrics.items() if "sampler_gap" not in k}

    return run_updates(config, path, learner, update, tokenizer=tokenizer, figures=FIGURES)


def imitation_loss(output: PolicyOutput, batch: TokenBatch) -> LossSum:
    """Cross entropy over the assistant's tokens."""
    return cross_entropy_loss(output.logprobs, batch.action_mask)


def _model_path(config: SFTConfig, temporary: Path) -> Path:
    """Return the model's directory; the untrained tiny model is built in a temporary one.

    Its tokenizer is made for the texts that it is to learn.
    """
    if config.model.path != UNTRAINED:
        return resolve_model_path(config.model.path)
    own = None if config.data == "tiny" else read_conversations(Path(str(config.data)))
    tiny_model.build_untrained(temporary, seed=config.seed, conversations=own)
    return temporary


def _batches(config: SFTConfig, tokenizer: Any) -> Iterator[list[TokenSequence]]:
    """Return an endless iterator of batches; a wrong row of a file is refused before it starts."""
    renderer = Renderer(tokenizer)
    sampled: Iterator[SampledSequence]
    if config.data == "tiny":
        stream = tiny_model.demonstrations(config.seed)
        sampled = (s for messages in stream for s in conversation_sequences(renderer, messages))
    else:
        rows = [
            _checked(conversation_sequences(renderer, messages), number, config)
            for number, messages in enumerate(read_conversations(Path(str(config.data))), start=1)
        ]
        sampled = (s for row in shuffled_for_ever(rows, config.seed) for s in row)
    sequences = (TokenSequence(s, advantages=(0.0,) * len(s.token_ids)) for s in sampled)
    return iter(lambda: list(itertools.islice(sequences, config.batch_sequences)), [])


def _checked(
    sequences: Sequence[SampledSequence], number: int, config: SFTConfig
) -> Sequence[SampledSequence]:
    check_length(max(len(s.token_ids) for s in sequences), number, config)
    return sequences
