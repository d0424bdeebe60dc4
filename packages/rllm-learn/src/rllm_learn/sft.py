"""Supervised fine-tuning: imitate the assistant's turns of given conversations."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from rllm_agents import Completion, Renderer
from rllm_agents.models import resolve_model_path
from rllm_agents.types import Message
from rllm_envs import Dataset
from rllm_learn import run_dir, tiny_model
from rllm_learn.config import SFTConfig
from rllm_learn.core.batch import TokenBatch, TokenSequence
from rllm_learn.core.learner import Learner
from rllm_learn.core.logprobs import PolicyOutput
from rllm_learn.core.losses import LossSum, cross_entropy_loss
from rllm_learn.display import Display
from rllm_learn.errors import ConfigError
from rllm_learn.records import to_sampled_sequence
from rllm_learn.resources import Stopwatch
from rllm_learn.settings import (
    apply_torch_threads,
    load_policy_of,
    load_tokenizer,
    policy_spec,
    update_rule,
)
from rllm_learn.trackers import open_trackers, require_trackers
from rllm_learn.tracking import MetricsWriter

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
    path = Path(config.run_dir) if config.run_dir else run_dir.default_run_dir("sft")
    run_dir.check_unused(path)
    require_trackers(config.tracking)
    with TemporaryDirectory() as temporary:
        model_path = _model_path(config, Path(temporary))
        tokenizer = load_tokenizer(model_path)
        batches = _batches(config, tokenizer)
        policy = load_policy_of(policy_spec(config.model, model_path, seed=config.seed))
    rule = update_rule(config.learner, config.model, config.num_updates, seed=config.seed)
    learner = Learner(policy, rule)
    with run_dir.locked(path):
        run_dir.start(path, config)
        loss = _imitate(learner, batches, path, config)
        _save(learner, path, tokenizer)
        summary = {
            "updates": config.num_updates,
            "final_loss": loss,
            "seed": config.seed,
            **Stopwatch().elapsed(),
            "model": str(path / "model"),
        }
        run_dir.write_json(path / "summary.json", summary)
    return summary


def _model_path(config: SFTConfig, temporary: Path) -> Path:
    """Return the model's directory; the untrained tiny model is built in a temporary one."""
    if config.model.path != UNTRAINED:
        return resolve_model_path(config.model.path)
    tiny_model.build_untrained(temporary, seed=config.seed)
    return temporary


def _imitate(
    learner: Learner, batches: Iterator[list[TokenSequence]], path: Path, config: SFTConfig
) -> float:
    """Take all updates and return the loss of the last."""
    loss, update = float("nan"), 0
    with Display(config.num_updates, unit="update", figures=FIGURES) as display:
        trackers = open_trackers(config.tracking, path, asdict(config))
        writer = MetricsWriter(path, trackers, warn=display.line)
        try:
            for update in range(1, config.num_updates + 1):
                report = learner.update(next(batches), imitation_loss)
                loss = report.metrics["loss"]
                # There is no sampler here whose logprobs could be compared.
                metrics = {k: v for k, v in report.metrics.items() if "sampler_gap" not in k}
                writer.write(update, {f"sft/{k}": v for k, v in metrics.items()})
                display.step(update, writer.rows)
        finally:
            writer.close(finished=update == config.num_updates)
    return loss


def imitation_loss(output: PolicyOutput, batch: TokenBatch) -> LossSum:
    """Cross entropy over the assistant's tokens."""
    return cross_entropy_loss(output.logprobs, batch.action_mask)


def conversation_sequences(renderer: Renderer, messages: Sequence[Message]) -> list[TokenSequence]:
    """Tokenise a conversation exactly as a rollout would have produced it.

    Each assistant message is taken as a completion that ended with the stop token, so prompts,
    stop tokens and the messages between have the very ids that sampling sees.
    """
    transcript = renderer.transcript()
    for index, message in enumerate(messages):
        if message["role"] == "assistant":
            transcript.prompt_ids(messages[:index])
            text = renderer.cover(message["content"])
            ids = (*renderer.encode(text), renderer.stop_token_ids[0])
            transcript.add(
                Completion(
                    text=message["content"],
                    finish_reason="stop",
                    token_ids=ids,
                    logprobs=(0.0,) * len(ids),
                )
            )
    return [
        TokenSequence(sampled, advantages=(0.0,) * len(sampled.token_ids))
        for sampled in map(to_sampled_sequence, transcript.token_records())
    ]


def read_conversations(path: Path) -> list[list[Message]]:
    """Read the `messages` of each row of a JSONL file.

    Raises:
        ConfigError: A row has no messages, none of the assistant's, or a message without a role
            of system, user, assistant or tool, or without text; the row is named.
    """
    conversations = []
    for number, row in enumerate(Dataset.from_file(path), start=1):
        messages = row.get("messages")
        problem = _problem(messages)
        if problem is not None:
            excerpt = json.dumps(row)[:80]
            raise ConfigError(f"{path}, row {number}: {problem}: {excerpt}")
        conversations.append(messages)
    return conversations


def _problem(messages: Any) -> str | None:
    if not isinstance(messages, list) or not messages:
        return "`messages` must be a list of messages"
    for message in messages:
        if not isinstance(message, dict) or not isinstance(message.get("content"), str):
            return "each message must be an object with `role` and a string `content`"
        if message.get("role") not in ("system", "user", "assistant", "tool"):
            return f"role must be system, user, assistant or tool, got {message.get('role')!r}"
    if not any(m["role"] == "assistant" for m in messages):
        return "there is no assistant message to imitate"
    return None


def _batches(config: SFTConfig, tokenizer: Any) -> Iterator[list[TokenSequence]]:
    """Return an endless iterator of batches; a wrong row of a file is refused before it starts."""
    renderer = Renderer(tokenizer)
    if config.data == "tiny":
        stream = tiny_model.demonstrations(config.seed)
        sequences = (s for messages in stream for s in conversation_sequences(renderer, messages))
    else:
        rows = [
            _checked(conversation_sequences(renderer, messages), number, config)
            for number, messages in enumerate(read_conversations(Path(str(config.data))), start=1)
        ]
        sequences = (s for row in _shuffled_for_ever(rows, config.seed) for s in row)
    return iter(lambda: list(itertools.islice(sequences, config.batch_sequences)), [])


def _checked(sequences: list[TokenSequence], number: int, config: SFTConfig) -> list[TokenSequence]:
    longest = max(len(s) for s in sequences)
    if longest > config.max_length:
        raise ConfigError(
            f"{config.data}, row {number}: {longest} tokens are more than "
            f"max_length={config.max_length}"
        )
    return sequences


def _shuffled_for_ever(rows: list[list[TokenSequence]], seed: int) -> Iterator[list[TokenSequence]]:
    for epoch in itertools.count():
        for index in np.random.default_rng([seed, epoch]).permutation(len(rows)):
            yield rows[int(index)]


def _save(learner: Learner, path: Path, tokenizer: Any) -> None:
    """Write the whole model, and with LoRA the adapters too."""
    policy: Any = learner.policy
    if hasattr(policy, "merge_and_unload"):
        policy.save_pretrained(path / "adapter")
        policy = policy.merge_and_unload()
    policy.save_pretrained(path / "model")
    tokenizer.save_pretrained(path / "model")
