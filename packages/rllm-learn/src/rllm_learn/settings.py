"""From settings to the core's own inputs: values that follow from others are worked out here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import nn
from transformers import AutoTokenizer

from rllm_agents.errors import UserError
from rllm_agents.models import resolve_model_path
from rllm_learn.algorithms import AlgorithmConfig, CriticSettings
from rllm_learn.config.schema import LearnerConfig, ModelConfig
from rllm_learn.core.critic import CriticRule
from rllm_learn.core.learner import UpdateRule
from rllm_learn.core.model import PolicySpec, load_policy
from rllm_learn.core.optimizer import LearningRate
from rllm_learn.errors import ConfigError


def apply_torch_threads(threads: int | None, model_path: str) -> None:
    """Set the threads of one torch operation; None is 1 for the tiny model, else torch's choice.

    For a model this small the threads' meeting costs more than the arithmetic they share.
    """
    if threads is None and model_path.startswith("tiny"):
        threads = 1
    if threads is not None:
        torch.set_num_threads(threads)


@contextmanager
def deterministic_torch(is_on: bool) -> Iterator[None]:
    """Let torch take deterministic kernels inside the block, where it is on.

    Where a GPU has none for an operation, torch warns with the operation's name.
    """
    if not is_on:
        yield
        return
    # What cuBLAS wants to be told before its first use.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    before = torch.are_deterministic_algorithms_enabled()
    warned = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warned)


def policy_spec(model: ModelConfig, path: Path, *, seed: int) -> PolicySpec:
    """Return what to load, with the device chosen.

    Raises:
        ConfigError: The device is not one of torch's, or is not on this machine.
    """
    device = model.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        first = str(error).splitlines()[0]
        raise ConfigError(f"model.device={device!r} cannot be used here: {first}") from error
    return PolicySpec(
        path=path,
        lora_rank=model.lora_rank,
        lora_alpha=model.lora_alpha,
        dtype=model.dtype,
        device=device,
        gradient_checkpointing=model.gradient_checkpointing,
        seed=seed,
    )


def load_tokenizer(path: Path) -> Any:
    """Load the tokenizer beside a model.

    Raises:
        ConfigError: There is none, or its files are damaged.
    """
    with _read_from(path):
        # Long prompts are refused with the limit that they exceed; no warning is needed.
        return AutoTokenizer.from_pretrained(path, verbose=False)


def load_policy_of(spec: PolicySpec) -> nn.Module:
    """Load the policy.

    Raises:
        ConfigError: The directory holds no causal language model, or its files are damaged.
    """
    with _read_from(spec.path):
        return load_policy(spec)


def teacher_spec(algorithm: AlgorithmConfig, student: PolicySpec) -> PolicySpec | None:
    """Return which model an algorithm's teacher is, on the student's device; None for none.

    Raises:
        ConfigError: There is no such model, or it does not have the student's vocabulary.
    """
    name = algorithm.teacher_path
    if name is None:
        return None
    path = Path(name)
    if not (path / "adapter_config.json").is_file():
        try:
            path = resolve_model_path(name)
        except UserError as error:
            reason = str(error).replace("model.path", "algorithm.teacher")
            raise ConfigError(reason) from error
    if load_tokenizer(path).get_vocab() != load_tokenizer(student.path).get_vocab():
        raise ConfigError(
            f"algorithm.teacher={name!r} has another vocabulary than the student, so that it "
            "cannot judge the student's tokens: take a teacher with the same tokenizer"
        )
    return PolicySpec(path=path, lora_rank=0, dtype=student.dtype, device=student.device)


def load_teacher(spec: PolicySpec | None) -> nn.Module | None:
    """Load the teacher, adapters included; None where there is none.

    Raises:
        ConfigError: Its files are damaged.
    """
    return None if spec is None else load_policy_of(spec)


@contextmanager
def _read_from(path: Path) -> Iterator[None]:
    """Turn what transformers and safetensors raise for bad files into one line."""
    try:
        yield
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise ConfigError(f"the model in {str(path)!r} cannot be loaded: {reason}") from error


def learning_rate(learner: LearnerConfig, model: ModelConfig) -> float:
    """Return the peak rate: the one that is set, or the default that suits the model."""
    if learner.learning_rate is not None:
        return learner.learning_rate
    if model.path.startswith("tiny"):
        return 3e-3 if model.lora_rank else 1e-3
    return 1e-5 if model.lora_rank else 1e-6


def critic_learning_rate(critic: CriticSettings, model: ModelConfig) -> float:
    """Return the critic's peak rate: the one that is set, or the default that suits the model."""
    if critic.learning_rate is not None:
        return critic.learning_rate
    if model.path.startswith("tiny"):
        return 3e-3
    return 1e-4 if model.lora_rank or critic.shares_trunk else 1e-5


def update_rule(
    learner: LearnerConfig,
    model: ModelConfig,
    total_updates: int,
    *,
    seed: int,
    temperature: float = 1.0,
    critic: CriticSettings | None = None,
) -> UpdateRule:
    """Return how the learner turns batches into updates, the policy's and a critic's.

    Raises:
        ConfigError: Muon is asked for together with LoRA.
    """
    if learner.muon_learning_rate is not None and model.lora_rank:
        raise ConfigError(
            "learner.muon_learning_rate is for whole matrices: set model.lora_rank=0, "
            "or leave it null"
        )
    rate = LearningRate(
        peak=learning_rate(learner, model),
        warmup_updates=learner.warmup_updates,
        decay="cosine" if learner.decay == "cosine" else "constant",
        total_updates=total_updates,
    )
    critic_rule = None
    if critic is not None:
        own = replace(rate, peak=critic_learning_rate(critic, model))
        critic_rule = CriticRule(shares_trunk=critic.shares_trunk, learning_rate=own)
    return UpdateRule(
        learning_rate=rate,
        betas=(learner.betas[0], learner.betas[1]),
        weight_decay=learner.weight_decay,
        muon_learning_rate=learner.muon_learning_rate,
        max_grad_norm=learner.max_grad_norm,
        micro_tokens=learner.micro_tokens,
        num_epochs=learner.num_epochs,
        minibatch_sequences=learner.minibatch_sequences,
        temperature=temperature,
        seed=seed,
        critic=critic_rule,
    )
