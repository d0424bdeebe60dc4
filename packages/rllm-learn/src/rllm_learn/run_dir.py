"""A run's directory: one process at a time, its resolved configuration, what may change later."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from rllm_learn.errors import ConfigError

CONFIG = "config.yaml"

CHANGEABLE = (
    "num_steps",
    "run_dir",
    "torch_threads",
    "eval",
    "checkpoint",
    "tracking",
    "learner.micro_tokens",
    "engine.max_batch_size",
    "rollout.n_parallel_agents",
)
"""Settings that a resumed run may change: they leave what is learned at each step as it is."""


def default_run_dir(name: str) -> Path:
    """Return `runs/<name>-<date>-<time>` under the working directory."""
    return Path("runs") / f"{name}-{datetime.now():%Y%m%d-%H%M%S}"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a run directory for this process.

    Raises:
        ConfigError: The directory cannot be made, or another process holds it.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        handle = os.open(path / ".lock", os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise ConfigError(f"run_dir {str(path)!r} cannot be written to: {error}") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ConfigError(
                f"run_dir {str(path)!r} is in use by another process; choose another run_dir"
            ) from error
        yield
    finally:
        os.close(handle)


def check_unused(path: Path) -> None:
    """Refuse a directory that holds a run; nothing is written.

    Raises:
        ConfigError: Naming what to do instead.
    """
    if (path / CONFIG).exists():
        raise ConfigError(
            f"run_dir {str(path)!r} holds a run already; continue it with "
            f"`rllm train --resume run_dir={path}`, or choose another run_dir"
        )


def start(path: Path, config: object) -> None:
    """Write a new run's resolved configuration.

    Raises:
        ConfigError: The directory holds a run already.
    """
    check_unused(path)
    text = OmegaConf.to_yaml(OmegaConf.structured(config))
    write_text(path / CONFIG, text)


def saved_config(path: Path) -> DictConfig:
    """Read the configuration that a run was started with.

    Raises:
        ConfigError: There is no run in the directory.
    """
    source = path / CONFIG
    if not source.exists():
        raise ConfigError(f"run_dir {str(path)!r} holds no run to resume: no {source.name}")
    config = OmegaConf.load(source)
    if not isinstance(config, DictConfig):
        raise ConfigError(f"{source} holds no settings")
    return config


def check_resumable(path: Path, config: object) -> None:
    """Refuse to go on with settings under which other things would have been learned.

    Raises:
        ConfigError: Naming the settings that differ and both values.
    """
    before, now = _flat(saved_config(path)), _flat(OmegaConf.structured(config))
    changed = [
        f"{key} was {before.get(key)!r}, is {now.get(key)!r}"
        for key in sorted(before.keys() | now.keys())
        if before.get(key) != now.get(key)
        and not any(key == c or key.startswith(f"{c}.") for c in CHANGEABLE)
    ]
    if changed:
        raise ConfigError(
            f"a resumed run keeps its settings, but {'; '.join(changed)}; "
            f"only these may change: {', '.join(CHANGEABLE)}"
        )


def write_text(path: Path, text: str) -> None:
    """Write a file that is whole, or as it was before."""
    temporary = path.with_name(f".{path.name}.writing")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file that is whole, or as it was before."""
    write_text(path, json.dumps(content, indent=2) + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """Read what `write_json` wrote."""
    return json.loads(path.read_text(encoding="utf-8"))


def _flat(config: DictConfig) -> dict[str, Any]:
    """Return leaf values by dotted key."""
    flat: dict[str, Any] = {}

    def visit(node: Any, prefix: str) -> None:
        if isinstance(node, dict) and node:
            for key, value in node.items():
                visit(value, f"{prefix}.{key}" if prefix else str(key))
        else:
            flat[prefix] = node

    visit(OmegaConf.to_container(config), "")
    return flat
