"""`rllm eval --resume`: what a stopped run leaves is kept, and nothing else is changed."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rllm_agents.cli import main
from rllm_agents.evaluation import read_episodes, to_verl_batch

START = "from rllm_agents.cli import main; main()"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["eval", *arguments])


def summary(run_dir: Path) -> dict[str, Any]:
    return json.loads((run_dir / "summary.json").read_text("utf-8"))


def oracle_run(run_dir: Path) -> None:
    arguments = ("policy=oracle", "num_tasks=3", "samples_per_task=2", f"run_dir={run_dir}")
    result = run(*arguments)
    assert result.exit_code == 0, result.output


def test_a_run_goes_on_with_its_settings_and_its_episodes(tmp_path: Path) -> None:
    oracle_run(tmp_path / "run")
    episodes = tmp_path / "run" / "episodes.jsonl"
    whole = episodes.read_bytes()
    episodes.write_bytes(b"".join(whole.splitlines(keepends=True)[:2]))
    result = run("--resume", f"run_dir={tmp_path / 'run'}", "n_parallel_agents=2")
    assert result.exit_code == 0, result.output
    assert episodes.read_bytes() == whole
    figures = summary(tmp_path / "run")
    assert (figures["num_played"], figures["num_episodes"]) == (4, 6)
    assert list(figures["pass_at_k"]) == ["1", "2"]
    with (tmp_path / "run" / "tasks.csv").open(newline="") as file:
        assert [row["correct"] for row in csv.DictReader(file)] == ["2", "2", "2"]
    assert "6 episodes" in result.output and "by pass@1" in result.output


def test_more_tasks_and_samples_are_added(tmp_path: Path) -> None:
    oracle_run(tmp_path / "run")
    for more, num_played, num_episodes in (("samples_per_task=3", 3, 9), ("num_tasks=5", 4, 10)):
        result = run("--resume", f"run_dir={tmp_path / 'run'}", more)
        if more == "num_tasks=5":
            # Changes are not kept: the run's own two samples are fewer than the three there are.
            assert (result.exit_code, "may grow, not shrink" in result.output) == (2, True)
            result = run("--resume", f"run_dir={tmp_path / 'run'}", more, "samples_per_task=3")
            num_played, num_episodes = 6, 15
        assert result.exit_code == 0, result.output
        figures = summary(tmp_path / "run")
        assert (figures["num_played"], figures["num_episodes"]) == (num_played, num_episodes)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["seed=1"], "seed was 0, is 1; only these may change: num_tasks, "),
        (["env.kwargs.max_turns=2"], "env.kwargs.max_turns was None, is 2"),
        (["sampling.temperature=0"], "sampling.temperature was 1.0, is 0.0"),
        (["num_tasks=1"], "the numbers of tasks and samples may grow, not shrink"),
        (["samples_per_task=1"], "'0-1', which is not among the 3 asked for"),
    ],
)
def test_settings_that_make_other_episodes_are_refused(
    tmp_path: Path, arguments: list[str], words: str
) -> None:
    oracle_run(tmp_path / "run")
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    result = run("--resume", f"run_dir={tmp_path / 'run'}", *arguments)
    assert (result.exit_code, result.output.count("\n")) == (2, 1)
    assert words in result.output
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before


def test_there_must_be_a_run_and_without_resume_none(tmp_path: Path) -> None:
    for arguments, words in (
        ([], "--resume needs run_dir=DIRECTORY"),
        ([f"run_dir={tmp_path}"], "holds no run to resume: no settings.json"),
    ):
        result = run("--resume", *arguments)
        assert (result.exit_code, words in result.output) == (2, True)
    oracle_run(tmp_path / "run")
    result = run("policy=oracle", f"run_dir={tmp_path / 'run'}")
    assert (result.exit_code, "rllm eval --resume run_dir=" in result.output) == (2, True)
    (tmp_path / "run" / "settings.json").write_text("[]")
    result = run("--resume", f"run_dir={tmp_path / 'run'}")
    assert (result.exit_code, "does not say what a run was told" in result.output) == (2, True)


def test_a_killed_run_is_the_same_in_the_end_as_one_in_one_piece(tmp_path: Path) -> None:
    def arguments(name: str) -> list[str]:
        return [
            f"run_dir={tmp_path / name}", "num_tasks=24", "n_parallel_agents=1",
            "engine.max_batch_size=1", "episodes_with_tokens=null", "max_response_length=60",
        ]  # fmt: skip

    process = subprocess.Popen(
        [sys.executable, "-c", START, "eval", *arguments("killed")],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
    )
    file = tmp_path / "killed" / "episodes.jsonl"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not (file.exists() and file.stat().st_size):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    num_before = len(file.read_bytes().splitlines())
    assert run("--resume", f"run_dir={tmp_path / 'killed'}").exit_code == 0
    figures = summary(tmp_path / "killed")
    assert figures["num_episodes"] == 24
    assert 24 - num_before <= figures["num_played"] <= 25 - num_before
    assert run(*arguments("whole")).exit_code == 0
    whole = tmp_path / "whole" / "episodes.jsonl"
    assert [e.trajectory.token_records for e in read_episodes(file)] == [
        e.trajectory.token_records for e in read_episodes(whole)
    ]
    expected = summary(tmp_path / "whole")
    for key in ("pass_at_1", "mean_reward", "mean_response_tokens", "mean_turns", "terminations"):
        assert figures[key] == expected[key], key
    # What was saved can be trained on elsewhere.
    batch = to_verl_batch(read_episodes(file), pad_token_id=0)
    assert len(batch) == 24
    sampled = batch.tensors["response_mask"].sum() / 24
    assert sampled == pytest.approx(figures["mean_response_tokens"])
