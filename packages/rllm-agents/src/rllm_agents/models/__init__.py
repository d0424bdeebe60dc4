"""Models that ship with the package, and where a model's name leads."""

from __future__ import annotations

import re
from pathlib import Path

from rllm_agents.errors import UserError

TINY = Path(__file__).parent / "tiny"
"""Qwen3 architecture, 0.16 M parameters, warmed up on small tasks; see docs/tiny-model.md."""


def resolve_model_path(name: str, setting: str = "model.path") -> Path:
    """Return the directory of a model.

    Args:
        name: `tiny`; a directory that holds a `config.json`; or a hub name (`org/name`), which is
            taken from the local Hugging Face cache, or else downloaded into it.
        setting: What the user named it under, for errors.

    Raises:
        UserError: No model is there, or the hub cannot be reached.
    """
    if name == "tiny":
        return TINY
    path = Path(name).expanduser()
    if (path / "config.json").is_file():
        return path
    if path.exists():
        raise UserError(f"{setting}={name!r} is no model directory: it has no config.json")
    if re.fullmatch(r"[A-Za-z0-9][\w.-]*/[\w.-]+", name):
        return _from_hub(name, setting)
    raise UserError(
        f"{setting}={name!r} does not exist: give a model directory, `tiny`, or a hub name such "
        "as Qwen/Qwen3-0.6B"
    )


def _from_hub(name: str, setting: str) -> Path:
    """Return the snapshot of a hub model, from the cache where it is there."""
    import huggingface_hub  # slow to import, and only needed here

    patterns = ["*.json", "*.safetensors", "*.jinja", "*.model", "*.txt"]
    for cached_only in (True, False):
        try:
            snapshot = huggingface_hub.snapshot_download(
                name, allow_patterns=patterns, local_files_only=cached_only
            )
        except Exception as error:  # the hub client's errors have no common base
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        else:
            return Path(snapshot)
    raise UserError(
        f"{setting}={name!r} is neither a directory, nor in the local Hugging Face cache, nor "
        f"can it be had from the hub: {reason}"
    )
