"""Runs that are interrupted, damaged or out of disk go on as if nothing had been."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from trainer_runs import adapter_weights, trainer

from rllm_learn.core.checkpoint import latest_checkpoint
from rllm_learn.errors import TrainingError
from rllm_learn.tracking import read_metrics


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("finished") / "run"
    trainer(path).train()
    return path


def test_a_resumed_run_ends_exactly_where_an_uninterrupted_one_does(finished, tmp_path):
    path = tmp_path / "run"
    trainer(path, num_steps=2).train()
    trainer(path, resume=True).train()
    first, resumed = adapter_weights(finished), adapter_weights(path)
    assert all(torch.equal(first[name], resumed[name]) for name in first)
    before = [r for r in read_metrics(finished / "metrics.jsonl") if "train/reward" in r]
    after = [r for r in read_metrics(path / "metrics.jsonl") if "train/reward" in r]
    keys = [k for k in before[0] if not k.startswith("time/")]
    assert [[r.get(k) for k in keys] for r in before] == [[r.get(k) for k in keys] for r in after]


@pytest.mark.parametrize(
    "algorithm",
    [
        {"name": "reinforce", "rollouts_per_task": 4, "baseline": "running"},
        {"name": "dapo", "group_size": 4, "kl_coefficient": 0.1},
        {"name": "ppo", "rollouts_per_task": 4},
        {"name": "ppo", "rollouts_per_task": 4, "vf_share_layers": True, "gae_over": "turns"},
    ],
    ids=["what it remembers", "how many tasks it played", "its critic", "its value head"],
)
def test_a_resumed_run_knows_what_the_algorithm_did_before(tmp_path, algorithm):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    trainer(whole, algorithm=algorithm).train()
    trainer(cut, algorithm=algorithm, num_steps=2).train()
    trainer(cut, algorithm=algorithm, resume=True).train()
    first, resumed = adapter_weights(whole), adapter_weights(cut)
    assert all(torch.equal(first[name], resumed[name]) for name in first)


def test_a_damaged_newest_checkpoint_costs_only_the_steps_after_the_one_before(
    finished, tmp_path, capsys
):
    path = tmp_path / "run"
    trainer(path).train()
    newest, _ = latest_checkpoint(path / "checkpoints")
    assert newest is not None
    (newest.path / "learner.pt").write_bytes(b"damaged")
    trainer(path, resume=True).train()
    printed = capsys.readouterr().out
    assert "learner.pt is not what its manifest says" in printed
    assert "resumed at step 2" in printed
    first, resumed = adapter_weights(finished), adapter_weights(path)
    assert all(torch.equal(first[name], resumed[name]) for name in first)


def test_a_full_disk_is_one_error_and_costs_only_the_steps_after_the_save(finished, tmp_path):
    path = tmp_path / "run"
    trainer(path, num_steps=2).train()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Room for the rows of a step, not for the weights.
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file(path) - 1, hard))
    try:
        with pytest.raises(TrainingError, match=r"step 4 .*File too large.*--resume") as caught:
            trainer(path, resume=True).train()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "\n" not in str(caught.value)
    newest, rejected = latest_checkpoint(path / "checkpoints")
    assert newest is not None and (newest.step, rejected) == (2, [])
    trainer(path, resume=True).train()
    assert_equal_runs(finished, path)


def largest_file(path: Path) -> int:
    return max(file.stat().st_size for file in (path / "checkpoints").rglob("*.pt"))


def assert_equal_runs(one: Path, other: Path) -> None:
    """Weights bit for bit; all figures but those of the clock; the same evaluations."""
    first, second = adapter_weights(one), adapter_weights(other)
    assert all(torch.equal(first[name], second[name]) for name in first)
    rows = [
        [
            {k: v for k, v in row.items() if not k.startswith("time/")}
            for row in read_metrics(path / "metrics.jsonl")
        ]
        for path in (one, other)
    ]
    assert rows[0] == rows[1]


def test_an_evaluation_that_was_interrupted_is_made_when_the_run_goes_on(finished, tmp_path):
    path = tmp_path / "run"
    trainer(path, num_steps=2).train()
    metrics = path / "metrics.jsonl"
    lines = metrics.read_text().splitlines(keepends=True)
    assert "eval/pass_at_1" in lines[-1]
    # As an interrupt leaves it: step 2 is complete and saved, not yet judged; a line half written.
    metrics.write_text("".join(lines[:-1]) + lines[-1][:40])
    trainer(path, resume=True).train()
    assert_equal_runs(finished, path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "delay_seconds"),
    [(signal.SIGINT, 0.0), (signal.SIGINT, 0.4), (signal.SIGTERM, 0.2)],
)
def test_an_interrupt_keeps_a_checkpoint_and_leaves_no_process(tmp_path, number, delay_seconds):
    path = tmp_path / "run"
    command = [str(Path(sys.executable).with_name("rllm")), "train", f"run_dir={path}"]
    small = ["num_steps=500", "tasks_per_step=8", "eval.num_tasks=8", "eval.every_steps=500"]
    process = subprocess.Popen(
        [*command, *small], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    metrics = path / "metrics.jsonl"
    deadline = time.monotonic() + 120
    while not (metrics.exists() and len(metrics.read_text().splitlines()) > 3):
        assert time.monotonic() < deadline, process.stdout
        time.sleep(0.05)
    time.sleep(delay_seconds)
    os.kill(process.pid, number)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 130, output
    assert "Traceback" not in output
    assert "--resume" in output
    newest, rejected = latest_checkpoint(path / "checkpoints")
    assert newest is not None
    assert rejected == []
    again = subprocess.run(
        [*command, "--resume", f"num_steps={newest.step + 1}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode == 0, again.stderr
    assert f"resumed at step {newest.step}" in again.stdout
