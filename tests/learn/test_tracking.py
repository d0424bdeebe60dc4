from __future__ import annotations

import json
import math

from rllm_learn.trackers import TensorBoardTracker
from rllm_learn.tracking import MetricsWriter, plot_curve, read_metrics


class Remembering:
    """A tracker in memory that fails at one step."""

    def __init__(self, fails_at=None):
        self.fails_at = fails_at
        self.seen = []
        self.closed = []

    def log(self, step, metrics):
        if step == self.fails_at:
            raise ConnectionError("the server is away\nand more lines")
        self.seen.append((step, dict(metrics)))

    def close(self, *, finished):
        self.closed.append(finished)


def test_each_row_is_on_disk_when_it_is_written(tmp_path):
    writer = MetricsWriter(tmp_path)
    writer.write(1, {"reward": 0.5, "bad": math.nan})
    assert read_metrics(tmp_path / "metrics.jsonl") == [{"step": 1, "reward": 0.5, "bad": None}]
    writer.close()
    writer.close()


def test_a_resumed_run_drops_the_rows_that_will_be_made_again(tmp_path):
    path = tmp_path / "metrics.jsonl"
    rows = [json.dumps({"step": step}) for step in range(5)]
    path.write_text("\n".join(rows) + '\n{"step": 5, "rew')  # cut by a kill
    writer = MetricsWriter(tmp_path, resume_step=2)
    writer.write(3, {"x": 1.0})
    writer.close()
    assert [row["step"] for row in read_metrics(path)] == [0, 1, 2, 3]


def test_every_tracker_gets_the_same_numbers_and_is_closed_once(tmp_path):
    trackers = {"a": Remembering(), "b": Remembering()}
    writer = MetricsWriter(tmp_path, trackers)
    writer.write(1, {"x": 1.0})
    writer.close(finished=False)
    writer.close(finished=True)
    for tracker in trackers.values():
        assert tracker.seen == [(1, {"x": 1.0})]
        assert tracker.closed == [False]


def test_a_tracker_that_fails_costs_neither_the_run_nor_the_others(tmp_path):
    failing, other, warnings = Remembering(fails_at=2), Remembering(), []
    writer = MetricsWriter(tmp_path, {"far": failing, "near": other}, warn=warnings.append)
    for step in (1, 2, 3):
        writer.write(step, {"x": float(step)})
    writer.close()
    assert [step for step, _ in failing.seen] == [1]
    assert [step for step, _ in other.seen] == [1, 2, 3]
    assert [row["step"] for row in read_metrics(tmp_path / "metrics.jsonl")] == [1, 2, 3]
    assert warnings == [
        "far failed and gets no further metrics (ConnectionError: the server is away); "
        "metrics.jsonl has all of them"
    ]


def test_events_hold_the_same_numbers(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    writer = MetricsWriter(tmp_path, {"tensorboard": TensorBoardTracker(tmp_path)})
    for step, value in enumerate([0.25, 0.5]):
        writer.write(step, {"train/reward": value})
    writer.close()
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [(e.step, e.value) for e in events.Scalars("train/reward")] == [(0, 0.25), (1, 0.5)]


def test_the_curve_is_a_png(tmp_path):
    rows = [{"step": 0, "eval/pass_at_1": 0.1}, {"step": 1, "train/reward": 0.2}]
    plot_curve(tmp_path / "curve.png", rows, title="t")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
