from __future__ import annotations

import subprocess
import sys

import pytest

from rllm_learn import run_dir
from rllm_learn.config import TrainerConfig, load_config, to_settings
from rllm_learn.errors import ConfigError


def settings(*overrides):
    return to_settings(
        load_config("grpo_trainer", overrides), TrainerConfig, config_name="grpo_trainer"
    )


def test_a_directory_that_holds_a_run_is_not_overwritten(tmp_path):
    run_dir.start(tmp_path, settings("seed=1"))
    with pytest.raises(ConfigError, match="--resume"):
        run_dir.start(tmp_path, settings("seed=2"))
    assert run_dir.saved_config(tmp_path).seed == 1


def test_a_resumed_run_keeps_what_is_learned_and_may_change_the_rest(tmp_path):
    run_dir.start(tmp_path, settings("seed=1", "env.kwargs.digits=2"))
    run_dir.check_resumable(
        tmp_path, settings("seed=1", "env.kwargs.digits=2", "num_steps=9", "eval.every_steps=1")
    )
    with pytest.raises(ConfigError, match=r"env\.kwargs\.digits was 2, is 3") as caught:
        run_dir.check_resumable(tmp_path, settings("seed=2", "env.kwargs.digits=3"))
    assert "seed was 1, is 2" in str(caught.value)


def test_resuming_where_there_is_no_run_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="no run to resume"):
        run_dir.saved_config(tmp_path)


def test_a_second_process_is_refused_and_the_lock_ends_with_the_first(tmp_path):
    program = (
        "import sys; from pathlib import Path; from rllm_learn import run_dir\n"
        "with run_dir.locked(Path(sys.argv[1])): pass"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    with run_dir.locked(tmp_path):
        second = subprocess.run(command, capture_output=True, text=True, check=False)
    assert second.returncode != 0
    assert "in use by another process" in second.stderr
    assert subprocess.run(command, check=False).returncode == 0


def test_a_directory_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(ConfigError, match="cannot be written to"),
        run_dir.locked(tmp_path / "file" / "run"),
    ):
        pass


def test_json_is_whole_or_absent(tmp_path):
    target = tmp_path / "summary.json"
    run_dir.write_json(target, {"a": 1})
    with pytest.raises(TypeError):
        run_dir.write_json(target, {"a": object()})
    assert run_dir.read_json(target) == {"a": 1}
