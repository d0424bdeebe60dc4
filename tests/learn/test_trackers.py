from __future__ import annotations

import math
import sys
from types import SimpleNamespace

import pytest

from rllm_learn.config import TrackingConfig
from rllm_learn.errors import ConfigError
from rllm_learn.trackers import MLflowTracker, WandbTracker, open_trackers, require_trackers

SETTINGS = {"seed": 3, "model": {"path": "tiny", "lora_rank": 8}, "env": {"kwargs": {}}}


class FakeWandb:
    """Keeps what `wandb.init` and its run are told."""

    def __init__(self):
        self.started, self.defined, self.logged, self.exit_codes = [], [], [], []
        self.id = "abc"

    def init(self, **arguments):
        self.started.append(arguments)
        return self

    def define_metric(self, name, step_metric=None):
        self.defined.append((name, step_metric))

    def log(self, metrics):
        self.logged.append(metrics)

    def finish(self, exit_code):
        self.exit_codes.append(exit_code)


class FakeMLflow:
    """A tracking store in memory with the part of `mlflow` that is used."""

    def __init__(self):
        self.experiments, self.runs = {}, {}
        self.uri = None
        self.entities = SimpleNamespace(
            Param=lambda key, value: (key, value),
            Metric=lambda key, value, timestamp, step: (key, value, step),
        )

    def MlflowClient(self, tracking_uri):
        self.uri = tracking_uri
        return self

    def get_experiment_by_name(self, name):
        known = self.experiments.get(name)
        return known and SimpleNamespace(experiment_id=known)

    def create_experiment(self, name):
        self.experiments[name] = str(len(self.experiments))
        return self.experiments[name]

    def create_run(self, experiment_id, run_name):
        identity = f"run-{len(self.runs)}"
        self.runs[identity] = {
            "experiment": experiment_id,
            "name": run_name,
            "metrics": [],
            "params": [],
            "status": "RUNNING",
        }
        return SimpleNamespace(info=SimpleNamespace(run_id=identity))

    def log_batch(self, run_id, metrics=(), params=()):
        assert len(params) <= 100, "MLflow refuses more"
        self.runs[run_id]["metrics"] += metrics
        self.runs[run_id]["params"] += params

    def update_run(self, run_id, status):
        self.runs[run_id]["status"] = status

    def set_terminated(self, run_id, status):
        self.runs[run_id]["status"] = status


def test_wandb_gets_project_name_settings_and_steps_as_numbers(tmp_path):
    library = FakeWandb()
    config = TrackingConfig(to=["wandb"], project="sums", run_name="first")
    tracker = WandbTracker(library, tmp_path, config, SETTINGS)
    tracker.log(4, {"train/reward": 0.5})
    tracker.log(4, {"eval/pass_at_1": 0.25})
    tracker.close(finished=True)
    (started,) = library.started
    assert (started["project"], started["name"], started["config"]) == ("sums", "first", SETTINGS)
    assert (started["dir"], started["id"]) == (str(tmp_path), None)
    assert ("*", "step") in library.defined
    assert library.logged == [
        {"train/reward": 0.5, "step": 4},
        {"eval/pass_at_1": 0.25, "step": 4},
    ]
    assert library.exit_codes == [0]


def test_a_resumed_run_goes_on_in_wandb_under_its_id(tmp_path):
    config = TrackingConfig(to=["wandb"])
    WandbTracker(FakeWandb(), tmp_path, config, SETTINGS).close(finished=False)
    again = FakeWandb()
    WandbTracker(again, tmp_path, config, SETTINGS).close(finished=False)
    assert again.started[0]["id"] == "abc"
    assert again.started[0]["resume"] == "allow"
    assert (again.started[0]["project"], again.started[0]["name"]) == ("rllm", tmp_path.name)
    assert again.exit_codes == [1]


def test_mlflow_gets_parameters_and_finite_metrics(tmp_path):
    library = FakeMLflow()
    config = TrackingConfig(to=["mlflow"], project="sums", mlflow_uri="sqlite:///x.db")
    tracker = MLflowTracker(library, tmp_path, config, {**SETTINGS, "text": "x" * 9000})
    tracker.log(2, {"train/reward": 0.5, "bad": math.nan, "odd=name": 1})
    tracker.close(finished=True)
    (run,) = library.runs.values()
    assert library.uri == "sqlite:///x.db"
    assert run["experiment"] == library.experiments["sums"]
    assert run["name"] == tmp_path.name
    assert dict(run["params"]) == {
        "seed": "3",
        "model.path": "tiny",
        "model.lora_rank": "8",
        "env.kwargs": "{}",
        "text": "x" * 500,
    }
    assert run["metrics"] == [("train/reward", 0.5, 2), ("odd_name", 1.0, 2)]
    assert run["status"] == "FINISHED"


def test_a_resumed_run_goes_on_in_mlflow_under_its_id(tmp_path):
    library = FakeMLflow()
    config = TrackingConfig(to=["mlflow"])
    first = MLflowTracker(library, tmp_path, config, {f"key{i}": i for i in range(250)})
    first.log(1, {"x": 1.0})
    first.close(finished=False)
    assert library.runs["run-0"]["status"] == "FAILED"
    assert len(library.runs["run-0"]["params"]) == 250
    second = MLflowTracker(library, tmp_path, config, SETTINGS)
    assert library.runs["run-0"]["status"] == "RUNNING"
    second.log(2, {"x": 2.0})
    assert library.runs["run-0"]["metrics"] == [("x", 1.0, 1), ("x", 2.0, 2)]
    assert list(library.runs) == ["run-0"]


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_a_tracker_that_is_not_installed_is_named_with_its_extra(name, tmp_path, monkeypatch):
    # A directory of that name, as W&B leaves in the working directory, is not the library.
    for module in [m for m in sys.modules if m.partition(".")[0] == name]:
        monkeypatch.delitem(sys.modules, module)
    (tmp_path / name).mkdir()
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    with pytest.raises(ConfigError, match=rf"{name}, which is not installed.*rllm-learn\[{name}\]"):
        require_trackers(TrackingConfig(to=[name]))


def test_the_default_opens_tensorboard_alone(tmp_path):
    opened = open_trackers(TrackingConfig(), tmp_path, SETTINGS)
    assert list(opened) == ["tensorboard"]
    opened["tensorboard"].close(finished=True)
    assert list((tmp_path / "tensorboard").iterdir())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"to": ["tensorbord"]}, "tracking.to must be of tensorboard, wandb, mlflow"),
        ({"to": ["wandb", "wandb"]}, "without repetition"),
        ({"project": "p"}, "tracking.project must be null unless"),
        ({"run_name": "p"}, "tracking.run_name must be null unless"),
        ({"to": ["wandb"], "mlflow_uri": "x"}, "tracking.mlflow_uri must be null unless"),
        ({"to": ["wandb"], "project": ""}, "tracking.project must be a name"),
    ],
)
def test_names_that_are_unknown_and_settings_without_effect_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        TrackingConfig(**settings)
