"""`rllm view` as a command: what it refuses, and that it serves until it is told to end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner

from rllm_agents.cli import main

CODE = "import sys; from rllm_agents.cli import main; sys.argv[0] = 'rllm'; main()"


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_is_served_until_a_signal(tmp_path: Path, signal_number: int) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "train/reward": 0.5}\n')
    command = [sys.executable, "-c", CODE, "view", str(tmp_path), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        url = line.split(" at ")[1].split()[0]
        with urllib.request.urlopen(f"{url}api/metrics") as answer:
            assert json.load(answer)["rows"] == [{"step": 1, "train/reward": 0.5}]
        process.send_signal(signal_number)
        assert process.wait(30) == 0


@pytest.mark.parametrize(
    ("make", "problem"),
    [(False, "does not exist; name a run directory"), (True, "holds no run")],
)
def test_what_is_no_run_is_one_line(tmp_path: Path, make: bool, problem: str) -> None:
    path = tmp_path / "run"
    if make:
        path.mkdir()
    result = CliRunner().invoke(main, ["view", str(path), "--no-browser"])
    assert result.exit_code == 2
    assert problem in result.output
    assert result.output.count("\n") == 1


def test_the_page_cannot_be_put_on_other_addresses(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["view", str(tmp_path), "--host", "0.0.0.0"])
    assert result.exit_code == 2
    assert "No such option" in result.output
