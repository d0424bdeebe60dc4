"""Rollout engines: what turns a prompt into a completion, by name."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rllm_agents.errors import UserError
from rllm_agents.rollout_engines.base import RolloutEngine
from rllm_agents.rollout_engines.scripted import ScriptedEngine

__all__ = [
    "ROLLOUT_ENGINES",
    "RolloutEngine",
    "ScriptedEngine",
    "build_rollout_engine",
    "find_engine",
]


@dataclass(frozen=True, slots=True)
class EngineEntry:
    """Where an engine's class is found, and what it needs to be installed."""

    module: str
    class_name: str
    requires: str | None = None
    """Module that must be importable; None: nothing beyond this package."""
    install: str = ""
    """How to install it."""
    takes_model: bool = False
    """Whether its class takes `model`, `tokenizer` and `stop_token_ids`."""
    is_remote: bool = False
    """Whether `model` is a name on a server: it may be left out, and no tokenizer is beside it."""


ROLLOUT_ENGINES: dict[str, EngineEntry] = {
    "openai": EngineEntry(
        "rllm_agents.rollout_engines.openai", "OpenAIEngine", takes_model=True, is_remote=True
    ),
    "pool": EngineEntry(
        "rllm_agents.rollout_engines.pool",
        "EnginePool",
        requires="ray",
        install="pip install 'rllm-agents[pool]'",
        takes_model=True,
    ),
    "scripted": EngineEntry("rllm_agents.rollout_engines.scripted", "ScriptedEngine"),
    "transformers": EngineEntry(
        "rllm_agents.rollout_engines.transformers",
        "TransformersEngine",
        requires="torch",
        install="pip install 'rllm-agents[torch]'",
        takes_model=True,
    ),
    "vllm": EngineEntry(
        "rllm_agents.rollout_engines.vllm",
        "VLLMEngine",
        requires="vllm",
        install="pip install 'rllm-agents[gpu]', or 'rllm-agents[cpu]' where there is no GPU",
        takes_model=True,
    ),
}


def find_engine(name: str) -> EngineEntry:
    """Look up an engine that can be made here.

    Raises:
        UserError: When the name is not known, or what it needs is not installed.
    """
    entry = ROLLOUT_ENGINES.get(name)
    if entry is None:
        raise UserError(
            f"engine_name must be one of {', '.join(sorted(ROLLOUT_ENGINES))}; got {name!r}"
        )
    if entry.requires is not None and importlib.util.find_spec(entry.requires) is None:
        raise UserError(
            f"engine_name={name!r} needs {entry.requires}, which is not installed: {entry.install}"
        )
    return entry


def build_rollout_engine(name: str, arguments: Mapping[str, Any] | None = None) -> RolloutEngine:
    """Make a rollout engine from its name and keyword arguments.

    Args:
        name: A key of `ROLLOUT_ENGINES`.
        arguments: Keyword arguments of the engine's class.

    Raises:
        UserError: When there is no such engine here, or the arguments are not its.
    """
    entry = find_engine(name)
    engine_class = getattr(importlib.import_module(entry.module), entry.class_name)
    signature = inspect.signature(engine_class)
    try:
        bound = signature.bind(**(arguments or {}))
    except TypeError as error:
        raise UserError(
            f"rollout_engine_args of engine_name={name!r}: {error}; it takes "
            f"{', '.join(signature.parameters)}"
        ) from error
    return engine_class(*bound.args, **bound.kwargs)
