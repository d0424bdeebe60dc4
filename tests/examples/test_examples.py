"""The examples run as their first lines say, and do what they claim."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from rllm_learn.tracking import read_metrics

QUICK = ["tasks_per_step=4", "algorithm.group_size=4", "eval.num_tasks=8"]
QUICK_PPO = ["tasks_per_step=4", "algorithm.rollouts_per_task=4", "eval.num_tasks=8"]


def run(command: list[str], directory: Path, **environment: str) -> str:
    """Run a Python script in a directory and return what it printed."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=directory,
        env={**os.environ, "RLLM_HOME": str(directory / "home"), **environment},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_project_outside_the_workspace_trains_its_own_agent(
    repository: Path, tmp_path: Path
) -> None:
    project = tmp_path / "own_project"
    shutil.copytree(repository / "examples" / "own_project", project)
    output = run(["train.py", "num_steps=2", *QUICK, "run_dir=run"], project)
    assert "step 2/2" in output
    rows = [row for row in read_metrics(project / "run" / "metrics.jsonl") if "train/reward" in row]
    # Some first answers are wrong, so that agents were asked to review them.
    assert len(rows) == 2 and all(1.0 < row["train/turns"] <= 2.0 for row in rows)
    episode = json.loads((project / "run" / "episodes" / "train.jsonl").open().readline())
    assert episode


@pytest.mark.slow
def test_the_project_outside_learns(repository: Path, tmp_path: Path) -> None:
    project = tmp_path / "own_project"
    shutil.copytree(repository / "examples" / "own_project", project)
    before, _, after = run(["train.py"], project).splitlines()[-1].split()
    assert float(after) > float(before) + 0.2


def test_the_search_script_makes_three_steps_on_real_questions(
    repository: Path, tmp_path: Path, data_dir: Path
) -> None:
    script = str(repository / "examples" / "search_agent.py")
    lengths = ["rollout.max_prompt_length=900", "rollout.max_response_length=60"]
    output = run(
        [script, "num_steps=3", *QUICK_PPO, *lengths, "eval.greedy=false", "run_dir=run"],
        tmp_path,
        RLLM_DATA_DIR=str(data_dir),
    )
    assert "step 3/3" in output
    rows = [r for r in read_metrics(tmp_path / "run" / "metrics.jsonl") if "train/episodes" in r]
    assert [row["train/failed_episodes"] for row in rows] == [0.0, 0.0, 0.0]
    # PPO, as the script's users have it: its critic learns whatever the rewards are.
    assert all(row["learner/value_loss"] >= 0.0 for row in rows)


def test_the_search_script_says_where_it_looks_for_questions(
    repository: Path, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, str(repository / "examples" / "search_agent.py")],
        cwd=tmp_path,
        env={k: v for k, v in os.environ.items() if k != "RLLM_DATA_DIR"}
        | {"RLLM_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0 and "set RLLM_DATA_DIR" in done.stderr


@pytest.mark.slow
def test_the_quick_start_runs_as_typed_against_a_real_server(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("vllm", reason="vLLM is not installed")
    monkeypatch.syspath_prepend(str(repository / "tests" / "agents"))
    from stand_in import build_stand_in, vllm_server

    model = tmp_path / "model"
    problems = [f"What is the remainder of {i} divided by seven?" for i in range(100)]
    build_stand_in(model, problems)
    data = tmp_path / "problems.jsonl"
    data.write_text(
        "\n".join(
            json.dumps({"problem": p, "answer": str(i % 7)}) for i, p in enumerate(problems[:3])
        )
    )
    with vllm_server(model, 30117, tmp_path / "server.log") as url:
        output = run(
            [
                str(repository / "examples" / "quick_start.py"),
                *("--model", str(model), "--base-url", url, "--data", str(data)),
            ],
            tmp_path,
        )
    assert "24 episodes of 3 tasks" in output and "pass@8" in output


def test_a_loss_and_an_advantage_of_ones_own_are_chosen_on_the_command_line(
    repository: Path, tmp_path: Path
) -> None:
    shutil.copy(repository / "examples" / "own_loss.py", tmp_path)
    main = "import sys; sys.path.remove(''); from rllm_agents.cli import main; main()"
    names = ["algorithm.advantage=own_loss:best_of_group", "algorithm.loss=own_loss:dual_clip"]
    quick = [*QUICK, "num_steps=1", "run_dir=run", "tracking.to=[]", "eval.greedy=false"]
    output = run(["-c", main, "train", *names, *quick], tmp_path)
    assert "step 1/1" in output
    lines = (tmp_path / "run" / "episodes" / "train.jsonl").read_text("utf-8").splitlines()
    assert lines
    metrics = read_metrics(tmp_path / "run" / "metrics.jsonl")
    # GRPO's own advantages of a group have the mean 0; these have another.
    assert any("learner/loss" in row and abs(row["learner/loss"]) > 1e-3 for row in metrics)


def test_the_example_losses_by_hand(repository: Path, monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(repository / "examples"))
    own_loss = importlib.import_module("own_loss")
    assert own_loss.best_of_group([1.0, 0.0, 0.5, 2.0, 2.0], "aaabb") == [1.0, -0.25, -0.25, 0, 0]
    # Ratios 1, 5 and 5 with advantages -1, -1 and 1: -A rho is 1, 5 and -5; bounds make 1, 3, -1.2.
    ratio = torch.tensor([[1.0, 5.0, 5.0]]).log()
    advantages = torch.tensor([[-1.0, -1.0, 1.0]])
    found = own_loss.dual_clip(ratio, ratio, advantages, torch.ones(1, 3, dtype=torch.bool))
    assert found.values.tolist()[0] == pytest.approx([1.0, 3.0, -1.2])
