"""`rllm eval` with a policy that another process serves."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import click

from rllm_agents.cli.eval_settings import EvalSettings
from rllm_agents.errors import UserError
from rllm_agents.models import resolve_model_path
from rllm_agents.renderer import ChatTokenizer


def check_server_settings(settings: EvalSettings, *, is_remote: bool) -> None:
    """Refuse settings that the chosen engine would not heed.

    Raises:
        UserError: With the setting, and what to do.
    """
    name, engine = settings.engine.name, settings.engine
    of_servers = {
        "engine.base_url": engine.base_url,
        "engine.model": engine.model,
        "engine.api_key_env": engine.api_key_env,
    }
    of_loaded_models = {
        "engine.max_batch_size": engine.max_batch_size,
        "engine.num_engines": engine.num_engines,
        "model.dtype": settings.model.dtype,
        "model.device": settings.model.device,
        "torch_threads": settings.torch_threads,
    }
    for key, value in (of_loaded_models if is_remote else of_servers).items():
        if value is not None:
            decides = "the server decides it" if is_remote else "it is for engine=openai"
            raise UserError(f"{key}={value} does nothing with engine.name={name!r}: {decides}")
    if not is_remote:
        return
    if engine.base_url is None:
        raise UserError(
            f"engine.name={name!r} needs engine.base_url=ADDRESS of a server, such as "
            "http://localhost:8000/v1"
        )
    if engine.api_key_env is not None and not os.environ.get(engine.api_key_env):
        raise UserError(
            f"engine.api_key_env={engine.api_key_env!r}: no such environment variable is set"
        )


def server_arguments(
    settings: EvalSettings,
) -> tuple[dict[str, Any], ChatTokenizer | None, int | None]:
    """Ask the server what it serves, before the first episode.

    Returns:
        Arguments of the engine; the tokenizer, where the model's is on this machine, so that
        tokens are counted and recorded; and the most tokens of prompt and response together, None
        where the server does not say.

    Raises:
        UserError: The tokenizer is broken, or a setting does nothing without one.
        EngineError: The server cannot be reached, or it is not clear which of its models plays.
    """
    from rllm_agents.rollout_engines.openai import OpenAIEngine  # aiohttp: other engines need none

    engine = settings.engine
    arguments: dict[str, Any] = {
        "base_url": engine.base_url,
        "model": engine.model or settings.model.path,
        "api_key": os.environ[engine.api_key_env] if engine.api_key_env else None,
    }
    server = OpenAIEngine(**arguments)
    try:
        asyncio.run(server.prepare())
    finally:
        server.close()
    tokenizer = _local_tokenizer(settings.model.path)
    if tokenizer is None:
        if settings.max_prompt_length is not None:
            raise UserError(
                "max_prompt_length counts tokens, for which there is no tokenizer here; name a "
                "model directory as model.path, or leave it out"
            )
        click.echo(
            "no tokenizer here: the server renders conversations, and tokens are neither counted "
            "nor recorded (model.path=DIRECTORY of the model would do both)",
            err=True,
        )
    return arguments, tokenizer, server.max_model_length


def _local_tokenizer(name: str | None) -> ChatTokenizer | None:
    """Load a model's tokenizer from a directory or the local cache; None where neither has it."""
    if name is None:
        return None
    is_here = name == "tiny" or Path(name).expanduser().exists()
    source = str(resolve_model_path(name)) if is_here else name
    from transformers import AutoTokenizer  # slow to import, and only needed here

    try:
        return AutoTokenizer.from_pretrained(source, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        if not is_here:
            return None
        raise UserError(f"model.path={name!r}: its tokenizer cannot be loaded: {error}") from error
