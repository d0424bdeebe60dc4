"""Where a run's numbers go beside `metrics.jsonl`: TensorBoard, Weights & Biases, MLflow.

Each tracker takes its library as an argument, so that it can be driven without one; `open_trackers`
imports those that a run names.
"""

from __future__ import annotations

import importlib
import math
import re
import time
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from torch.utils.tensorboard import SummaryWriter

from rllm_learn.config import TRACKERS, TrackingConfig
from rllm_learn.errors import ConfigError
from rllm_learn.run_dir import write_text

_MLFLOW_PARAMS_OF_A_CALL = 100
"""MLflow refuses more in one batch."""
_MLFLOW_LENGTH = 500
"""Characters of a parameter that every MLflow store takes."""


class Tracker(Protocol):
    """One place that keeps metrics."""

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Keep the numbers of a step; the same step may be given several times, for other names."""
        ...

    def close(self, *, finished: bool) -> None:
        """Say that the run has ended, as planned or not, and let go of it."""
        ...


class TensorBoardTracker:
    """Writes TensorBoard events to `tensorboard/` of the run directory."""

    def __init__(self, run_dir: Path, *, resume_step: int = 0):
        """Open the events; those of steps after `resume_step` are marked as superseded."""
        self._events = SummaryWriter(str(run_dir / "tensorboard"), purge_step=resume_step + 1)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Keep the numbers of a step."""
        for name, value in metrics.items():
            self._events.add_scalar(name, value, step)

    def close(self, *, finished: bool) -> None:
        """Flush and close."""
        self._events.close()


class WandbTracker:
    """Logs to Weights & Biases; a resumed run goes on under its id.

    Where it goes is the library's own choice: `WANDB_MODE=offline` writes to `wandb/` of the run
    directory, for `wandb sync` to upload, `WANDB_BASE_URL` and `WANDB_API_KEY` name a server.
    """

    def __init__(
        self,
        library: Any,
        run_dir: Path,
        config: TrackingConfig,
        settings: Mapping[str, Any],
    ):
        """Start the run, or go on with it.

        Args:
            library: The module `wandb`, or what has its `init`.
            run_dir: Exists; its file `wandb_id` keeps the run's id.
            config: Project and name.
            settings: What the run was started with, shown beside its curves.
        """
        saved = run_dir / "wandb_id"
        self._run = library.init(
            project=config.project or "rllm",
            name=config.run_name or run_dir.name,
            dir=str(run_dir),
            config=dict(settings),
            id=saved.read_text(encoding="utf-8") if saved.exists() else None,
            resume="allow",
        )
        write_text(saved, self._run.id)
        # W&B's own step only rises; ours is logged as a number, so that an evaluation may follow
        # its step and a resumed run may make a step again.
        self._run.define_metric("step")
        self._run.define_metric("*", step_metric="step")

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Keep the numbers of a step."""
        self._run.log({**metrics, "step": step})

    def close(self, *, finished: bool) -> None:
        """Finish the run; an exit code of 1 marks it as failed."""
        self._run.finish(exit_code=0 if finished else 1)


class MLflowTracker:
    """Logs to an MLflow tracking store; a resumed run goes on under its id."""

    def __init__(
        self,
        library: Any,
        run_dir: Path,
        config: TrackingConfig,
        settings: Mapping[str, Any],
    ):
        """Start the run, or go on with it.

        Args:
            library: The module `mlflow`, or what has its `MlflowClient` and `entities`.
            run_dir: Exists; its file `mlflow_id` keeps the run's id.
            config: Experiment, name and store.
            settings: What the run was started with, shown as parameters.
        """
        self._entities = library.entities
        self._client = library.MlflowClient(tracking_uri=config.mlflow_uri)
        saved = run_dir / "mlflow_id"
        if saved.exists():
            self._run_id = saved.read_text(encoding="utf-8")
            self._client.update_run(self._run_id, status="RUNNING")
            return
        project = config.project or "rllm"
        experiment = self._client.get_experiment_by_name(project)
        identity = (
            self._client.create_experiment(project)
            if experiment is None
            else experiment.experiment_id
        )
        run = self._client.create_run(identity, run_name=config.run_name or run_dir.name)
        self._run_id = run.info.run_id
        write_text(saved, self._run_id)
        params = [
            self._entities.Param(name, str(value)[:_MLFLOW_LENGTH])
            for name, value in _leaves(settings).items()
        ]
        for start in range(0, len(params), _MLFLOW_PARAMS_OF_A_CALL):
            part = params[start : start + _MLFLOW_PARAMS_OF_A_CALL]
            self._client.log_batch(self._run_id, params=part)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Keep the finite numbers of a step; MLflow's stores disagree about others."""
        now = int(time.time() * 1000)
        self._client.log_batch(
            self._run_id,
            metrics=[
                # What MLflow does not allow in a name may stand in one of a user's environment.
                self._entities.Metric(re.sub(r"[^\w\-. /]", "_", name), float(value), now, step)
                for name, value in metrics.items()
                if math.isfinite(value)
            ],
        )

    def close(self, *, finished: bool) -> None:
        """Mark the run as finished or failed."""
        self._client.set_terminated(self._run_id, status="FINISHED" if finished else "FAILED")


def require_trackers(config: TrackingConfig) -> None:
    """Import the libraries of the trackers that a run names, before anything costly is loaded.

    Raises:
        ConfigError: One is not installed; the message says how to install it.
    """
    for name in config.to:
        if name != "tensorboard":
            _library(name)


def open_trackers(
    config: TrackingConfig, run_dir: Path, settings: Mapping[str, Any], *, resume_step: int = 0
) -> dict[str, Tracker]:
    """Open the trackers that a run names.

    Args:
        config: Which, and under which names.
        run_dir: Exists.
        settings: The run's own, shown beside its curves.
        resume_step: Steps that are complete; 0 for a new run.

    Returns:
        By name, in the order of the configuration.

    Raises:
        ConfigError: One is not installed or cannot be opened.
    """
    opened: dict[str, Tracker] = {}
    for name in config.to:
        if name == "tensorboard":
            opened[name] = TensorBoardTracker(run_dir, resume_step=resume_step)
            continue
        library = _library(name)
        kind = WandbTracker if name == "wandb" else MLflowTracker
        try:
            opened[name] = kind(library, run_dir, config, settings)
        except Exception as error:  # the clients' errors have no common base
            for tracker in opened.values():
                tracker.close(finished=False)
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            raise ConfigError(
                f"tracking.to names {name}, which cannot be opened: {reason}; leave it out"
                + (", or set WANDB_MODE=offline" if name == "wandb" else "")
            ) from error
    return opened


def _library(name: str) -> ModuleType:
    try:
        library = importlib.import_module(name)
    except ImportError as error:
        raise _not_installed(name) from error
    # A directory `wandb/`, such as W&B itself writes, imports as a package without anything in it.
    if not hasattr(library, TRACKERS[name]):
        raise _not_installed(name)
    return library


def _not_installed(name: str) -> ConfigError:
    return ConfigError(
        f"tracking.to names {name}, which is not installed: pip install 'rllm-learn[{name}]', or "
        "leave it out; metrics.jsonl is written in any case"
    )


def _leaves(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return values by dotted key."""
    found: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            found |= _leaves(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = value
    return found
