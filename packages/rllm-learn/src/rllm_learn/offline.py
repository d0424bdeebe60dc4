"""Learning from given data: what supervised fine-tuning and DPO on a file share."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from rllm_learn import run_dir
from rllm_learn.config import DPOFileConfig, SFTConfig
from rllm_learn.core.learner import Learner
from rllm_learn.display import Display
from rllm_learn.errors import ConfigError
from rllm_learn.resources import Stopwatch
from rllm_learn.trackers import open_trackers, require_trackers
from rllm_learn.tracking import MetricsWriter

Row = TypeVar("Row")


def unused_run_dir(config: SFTConfig | DPOFileConfig, name: str) -> Path:
    """Return where a run goes, after looking at what is cheap to get wrong.

    Raises:
        ConfigError: There is a run already, or a tracker is not installed.
    """
    path = Path(config.run_dir) if config.run_dir else run_dir.default_run_dir(name)
    run_dir.check_unused(path)
    require_trackers(config.tracking)
    return path


def run_updates(
    config: SFTConfig | DPOFileConfig,
    path: Path,
    learner: Learner,
    update: Callable[[], Mapping[str, float]],
    *,
    tokenizer: Any,
    figures: Mapping[str, str],
) -> dict[str, Any]:
    """Take all updates, then write the model, its metrics and a summary to the run directory.

    Args:
        config: Checked settings.
        path: The run directory.
        learner: Holds the policy.
        update: Makes one update and returns its metrics.
        tokenizer: Saved beside the model.
        figures: What the display shows, label -> metric.

    Returns:
        The summary, with the last update's metrics under `final_<name>`.
    """
    with run_dir.locked(path):
        run_dir.start(path, config)
        last: dict[str, float] = {}
        done = 0
        with Display(config.num_updates, unit="update", figures=figures) as display:
            trackers = open_trackers(config.tracking, path, asdict(config))
            writer = MetricsWriter(path, trackers, warn=display.line)
            try:
                for done in range(1, config.num_updates + 1):
                    last = dict(update())
                    writer.write(done, last)
                    display.step(done, writer.rows)
            finally:
                writer.close(finished=done == config.num_updates)
        _save(learner, path, tokenizer)
        summary = {
            "updates": config.num_updates,
            **{f"final_{name.rpartition('/')[2]}": value for name, value in last.items()},
            "seed": config.seed,
            **Stopwatch().elapsed(),
            "model": str(path / "model"),
        }
        run_dir.write_json(path / "summary.json", summary)
    return summary


def shuffled_for_ever(rows: Sequence[Row], seed: int) -> Iterator[Row]:
    """Yield every row once an epoch, in an order of its own each epoch, without end."""
    for epoch in itertools.count():
        for index in np.random.default_rng([seed, epoch]).permutation(len(rows)):
            yield rows[int(index)]


def check_length(length: int, number: int, config: SFTConfig | DPOFileConfig) -> None:
    """Refuse a row that is too long.

    Raises:
        ConfigError: Naming the row.
    """
    if length > config.max_length:
        raise ConfigError(
            f"{config.data}, row {number}: {length} tokens are more than "
            f"max_length={config.max_length}"
        )


def _save(learner: Learner, path: Path, tokenizer: Any) -> None:
    """Write the whole model, and with LoRA the adapters too."""
    policy: Any = learner.policy
    if hasattr(policy, "merge_and_unload"):
        policy.save_pretrained(path / "adapter")
        policy = policy.merge_and_unload()
    policy.save_pretrained(path / "model")
    tokenizer.save_pretrained(path / "model")
