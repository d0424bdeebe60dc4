"""Load a transformers model for sampling and find out what it can do."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging as transformers_logging

from rllm_agents.errors import EngineError, UserError
from rllm_agents.models import resolve_model_path
from rllm_agents.rollout_engines.slot_batch import SlotBatch
from rllm_agents.rollout_engines.slot_records import SlotRequest
from rllm_agents.types import SamplingParams


def load_model(
    model: str | Path | PreTrainedModel,
    *,
    device: str | torch.device | None,
    dtype: str | torch.dtype | None,
) -> PreTrainedModel:
    """Return a model in evaluation mode: the given one, or one loaded from a directory.

    Args:
        model: A model, a directory, or a name that `resolve_model_path` knows.
        device: For a path: by default a GPU if there is one, else the CPU.
        dtype: For a path: by default as the weights are stored.

    Raises:
        UserError: There is no such path or device, or it holds no causal language model.
    """
    if isinstance(model, PreTrainedModel):
        if device is not None or dtype is not None:
            raise UserError(
                "device and dtype apply to a model path; move a loaded model with model.to(...)"
            )
        return model.eval()
    path = resolve_model_path(str(model))
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        loaded = AutoModelForCausalLM.from_pretrained(path, dtype=_dtype(dtype))
        # Called on the class: transformers wraps the method, and type checkers lose its self.
        torch.nn.Module.to(loaded, torch.device(device))
        return loaded.eval()
    except (OSError, ValueError, RuntimeError) as error:
        raise UserError(
            f"cannot load a causal language model from {path}: {_first_line(error)}"
        ) from error
    finally:
        if bars:
            transformers_logging.enable_progress_bar()


def load_tokenizer(model: str | Path | PreTrainedModel) -> PreTrainedTokenizerBase | None:
    """Return the tokenizer beside a model's weights; None for a loaded model or where none is."""
    if isinstance(model, PreTrainedModel):
        return None
    path = resolve_model_path(str(model))
    if not (path / "tokenizer_config.json").is_file():
        return None
    try:
        return AutoTokenizer.from_pretrained(path)
    except (OSError, ValueError) as error:
        raise UserError(f"cannot load the tokenizer in {path}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    """Return the first line of an error's message."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _dtype(dtype: str | torch.dtype | None) -> str | torch.dtype:
    """Return what `from_pretrained` takes for a dtype or its name."""
    if dtype is None:
        return "auto"
    named = getattr(torch, dtype, None) if isinstance(dtype, str) else dtype
    if not isinstance(named, torch.dtype) or not named.is_floating_point:
        raise UserError(f"dtype must be float32, bfloat16 or float16, got {dtype!r}")
    return named


def max_positions(model: PreTrainedModel, wanted: int | None) -> int:
    """Return how many tokens a prompt and its completion may have together.

    Args:
        model: Its configuration sets the limit; its values are not looked at.
        wanted: A lower limit, or None.

    Raises:
        UserError: `wanted` is out of range, or needed because the model states no limit.
    """
    limit = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if wanted is None and limit is None:
        raise UserError("the model's config has no max_position_embeddings; set max_model_length")
    if wanted is not None and not 2 <= wanted <= (limit or wanted):
        raise UserError(f"max_model_length must be in [2, {limit}], got {wanted}")
    return int(wanted or limit or 0)


def check_full_attention(model: PreTrainedModel, length: int) -> None:
    """Refuse a model whose layers do not all see `length` positions: rows cannot hold it.

    Raises:
        EngineError: It attends through a shorter window, or has layers without attention.
    """
    config = model.config.get_text_config()
    layers = getattr(config, "layer_types", None) or []
    window = getattr(config, "sliding_window", None)
    if any(layer != "full_attention" for layer in layers) and (window or 0) < length:
        raise EngineError(
            f"the model attends through windows of {window} tokens or without attention "
            f"({', '.join(sorted(set(layers)))}), which rows cannot hold; "
            f"set max_model_length to at most the window, or use another engine"
        )


def stop_ids_of(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase | None,
    given: Iterable[int] | None,
) -> frozenset[int]:
    """Return the ids that end a completion: those given, else all that model and tokenizer name.

    Raises:
        UserError: A given id is no id of the model.
    """
    if given is None:
        named = [
            getattr(model.generation_config, "eos_token_id", None),
            model.config.get_text_config().eos_token_id,
            tokenizer.eos_token_id if tokenizer is not None else None,
        ]
        given = [
            int(token)
            for entry in named
            if entry is not None
            for token in (entry if isinstance(entry, list) else [entry])
        ]
    stops = frozenset(given)
    size = num_embeddings(model)
    outside = sorted(token for token in stops if not 0 <= token < size)
    if outside:
        raise UserError(f"stop_token_ids must be in [0, {size}), got {outside}")
    return stops


def num_embeddings(model: PreTrainedModel) -> int:
    """Return how many ids the model's embedding knows."""
    weight = model.get_input_embeddings().weight
    assert isinstance(weight, torch.Tensor)
    return weight.shape[0]


@torch.inference_mode()
def check_slot_forward(model: PreTrainedModel, max_model_length: int) -> int:
    """Sample a few tokens in rows, compare with plain forward passes, return the logits' width.

    Attention that rows cannot serve (biases by distance, recurrent states, kernels without masks)
    shows here and not as wrong logprobs later.

    Raises:
        EngineError: The two disagree, or the model does not run at all.
    """
    tolerance = 2e-3 if model.dtype in (torch.float32, torch.float64) else 0.5
    longest = min(6, max_model_length - 2)
    prompts = [np.arange(n) % num_embeddings(model) for n in {1, longest // 2 + 1, longest}]
    try:
        width = model(input_ids=torch.zeros(1, 1, dtype=torch.int64, device=model.device)).logits
        batch = SlotBatch(
            model,
            stop_token_ids=(),
            vocabulary_size=width.shape[-1],
            max_batch_size=len(prompts),
            max_model_length=max_model_length,
        )
        requests = [_greedy_request(prompt) for prompt in prompts]
        results = [*batch.step(requests), *batch.step([])]
        errors = []
        for result in results:
            ids = [*result.request.prompt_ids.tolist(), *result.token_ids]
            logits = model(input_ids=torch.tensor([ids], device=model.device)).logits[0]
            plain = logits.float().log_softmax(-1)
            start = len(ids) - len(result.token_ids)
            errors += [
                abs(float(plain[start + i - 1, token]) - logprob)
                for i, (token, logprob) in enumerate(
                    zip(result.token_ids, result.logprobs, strict=True)
                )
            ]
    except Exception as error:
        raise EngineError(
            f"{type(model).__name__} cannot be sampled in rows: {type(error).__name__}: {error}"
        ) from error
    if not max(errors) <= tolerance:
        raise EngineError(
            f"{type(model).__name__} sampled in rows differs from a plain forward pass by "
            f"{max(errors):.2g} in logprob; its attention is of a kind this engine cannot serve "
            f"(attn_implementation is {model.config._attn_implementation!r}; try 'sdpa')"
        )
    return width.shape[-1]


def _greedy_request(prompt_ids: np.ndarray) -> SlotRequest:
    """Return a request for two greedy tokens."""
    return SlotRequest(
        prompt_ids=prompt_ids,
        sampling=SamplingParams(temperature=0.0),
        max_tokens=2,
        session_id="",
        random=np.random.default_rng(0),
    )
