"""The directory of one `rllm eval`: its settings, its episodes, its figures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from rllm_agents.cli.eval_settings import EvalSettings
from rllm_agents.cli.overrides import expand_shorthands, parse_settings
from rllm_agents.errors import UserError

SETTINGS, EPISODES, SUMMARY, TASKS = "settings.json", "episodes.jsonl", "summary.json", "tasks.csv"

CHANGEABLE = (
    "num_tasks",
    "samples_per_task",
    "run_dir",
    "n_parallel_agents",
    "n_processes",
    "isolation",
    "step_timeout",
    "call_timeout",
    "trajectory_timeout",
    "retry_limit",
    "torch_threads",
    "engine.max_batch_size",
    "engine.kv_cache_gib",
    "engine.base_url",
    "engine.api_key_env",
)
"""Settings that a resumed run may change: they leave what each episode is as it is."""


def free_run_dir(settings: EvalSettings) -> Path:
    """Return the directory of a new run, which holds nothing and need not exist.

    Raises:
        UserError: It holds something, or is no directory.
    """
    named = settings.run_dir or f"runs/eval-{datetime.now():%Y%m%d-%H%M%S}"
    path = Path(named).expanduser()
    try:
        if (path / SETTINGS).exists():
            raise UserError(
                f"run_dir={named!r} holds a run already; continue it with "
                f"`rllm eval --resume run_dir={named}`, or choose another one"
            )
        if path.exists() and any(path.iterdir()):
            raise UserError(f"run_dir={named!r} is not empty; choose another one")
    except OSError as error:
        raise UserError(f"run_dir={named!r}: {error.strerror}") from error
    return path


def start(path: Path, settings: EvalSettings, arguments: Sequence[str]) -> None:
    """Make the directory and write what the run was told.

    Raises:
        UserError: It cannot be written to.
    """
    content = {"arguments": expand_shorthands(arguments), "settings": asdict(settings)}
    try:
        path.mkdir(parents=True, exist_ok=True)
        (path / SETTINGS).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise UserError(f"run_dir={str(path)!r}: {error.strerror}") from error


def resumed_settings(arguments: Sequence[str]) -> EvalSettings:
    """Return the settings of a run that goes on: those that it began with, and changes to them.

    Args:
        arguments: `run_dir=`, and perhaps some of `CHANGEABLE`.

    Raises:
        UserError: There is no run, or a setting is changed that may not be.
    """
    given = parse_settings(EvalSettings, arguments)
    if given.run_dir is None:
        raise UserError("--resume needs run_dir=DIRECTORY of the run that goes on")
    path = Path(given.run_dir).expanduser()
    try:
        saved = json.loads((path / SETTINGS).read_text("utf-8"))
        began, before = saved["arguments"], saved["settings"]
    except OSError as error:
        raise UserError(
            f"run_dir={given.run_dir!r} holds no run to resume: no {SETTINGS}"
        ) from error
    except (ValueError, TypeError, KeyError) as error:
        raise UserError(f"{path / SETTINGS} does not say what a run was told: {error!r}") from error
    settings = parse_settings(EvalSettings, [*began, *arguments])
    old, new = _flat(before), _flat(json.loads(json.dumps(asdict(settings))))
    changed = [
        f"{key} was {old.get(key)!r}, is {new.get(key)!r}"
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key) and key not in CHANGEABLE
    ]
    if changed:
        raise UserError(
            f"a resumed run keeps its settings, but {'; '.join(changed)}; only these may change: "
            f"{', '.join(CHANGEABLE)}"
        )
    return settings


def _flat(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings by dotted key."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, dict) and value:
            flat |= {f"{key}.{inner}": item for inner, item in _flat(value).items()}
        else:
            flat[key] = value
    return flat
