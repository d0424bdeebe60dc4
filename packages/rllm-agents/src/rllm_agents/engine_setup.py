"""The rollout engine and the renderer that names and arguments stand for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rllm_agents.errors import RendererError, UserError
from rllm_agents.limits import RolloutLimits
from rllm_agents.models import resolve_model_path
from rllm_agents.renderer import ChatTokenizer, Renderer
from rllm_agents.rollout_engines import build_rollout_engine, find_engine
from rllm_agents.rollout_engines.base import RolloutEngine

# Prompts of more characters per allowed token than this are too long without being tokenised.
_MAX_CHARACTERS_PER_TOKEN = 16


def make_engine_and_renderer(
    engine: RolloutEngine | str,
    arguments: Mapping[str, Any] | None,
    model: Any,
    tokenizer: ChatTokenizer | None,
    limits: RolloutLimits,
    renderer_args: Mapping[str, Any] | None = None,
) -> tuple[RolloutEngine, Renderer | None]:
    """Make what is not there yet: the tokenizer of the model, the renderer, the engine.

    Args:
        engine: A ready one, or the name of one to make.
        arguments: Of the engine to make.
        model: Of the engine to make, where `arguments` has none.
        tokenizer: Of the model; None loads the one beside a local engine's model.
        limits: How long a prompt may become.
        renderer_args: `thinking` and `template_arguments` of the Renderer.

    Returns:
        The engine, and the renderer, which is None where the engine works on text.

    Raises:
        UserError: Something named is not there or does not fit.
    """
    arguments = dict(arguments or {})
    entry = find_engine(engine) if isinstance(engine, str) else None
    takes_model = entry is not None and entry.takes_model
    is_remote = entry is not None and entry.is_remote
    if takes_model:
        if model is not None:
            arguments.setdefault("model", model)
        tokenizer = tokenizer or arguments.get("tokenizer")
        if tokenizer is None and not is_remote:
            tokenizer = _load_tokenizer(arguments)
        arguments["tokenizer"] = tokenizer
    renderer = None
    if tokenizer is None and renderer_args:
        raise UserError("renderer_args have no effect without a tokenizer; give `tokenizer` too")
    if tokenizer is not None:
        renderer = _make_renderer(tokenizer, limits, renderer_args or {})
        # The template may end a turn with a token that the model's config does not name.
        if takes_model and (is_remote or len(renderer.stop_token_ids) > 1):
            arguments.setdefault("stop_token_ids", renderer.stop_token_ids)
    if isinstance(engine, str):
        engine = build_rollout_engine(engine, arguments)
    return engine, renderer


def _make_renderer(
    tokenizer: ChatTokenizer, limits: RolloutLimits, arguments: Mapping[str, Any]
) -> Renderer:
    allowed = ("thinking", "template_arguments")
    for name in arguments:
        if name not in allowed:
            raise UserError(f"renderer_args may hold {' and '.join(allowed)}; got {name!r:.80}")
    max_characters = _MAX_CHARACTERS_PER_TOKEN * limits.max_context_length
    try:
        return Renderer(tokenizer, max_prompt_characters=max_characters, **arguments)
    except RendererError as error:
        raise UserError(f"the tokenizer cannot be used: {error}") from error


def _load_tokenizer(arguments: Mapping[str, Any]) -> ChatTokenizer:
    """Load the tokenizer that lies beside the model."""
    model = arguments.get("model")
    if not isinstance(model, str | Path):
        raise UserError(
            'the engine needs a model path, rollout_engine_args={"model": "tiny"} '
            "for example, or a loaded model and tokenizer="
        )
    path = resolve_model_path(str(model))
    from transformers import AutoTokenizer  # slow to import, and only needed here

    try:
        return AutoTokenizer.from_pretrained(path)
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"cannot load a tokenizer from {path}: {error}") from error
