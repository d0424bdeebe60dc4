import io
import subprocess
import sys

import pytest

from rllm_envs.__main__ import main


def test_without_a_command_it_lists_the_environments(capsys):
    assert main([]) == 0
    out = capsys.readouterr().out
    assert "rllm/Math-v0" in out
    assert "play ID" in out


def test_show_prints_the_documentation_and_an_example(capsys):
    assert main(["show", "rllm/Calculator-v0"]) == 0
    out = capsys.readouterr().out
    assert "## Rewards" in out
    assert "> <calc>" in out


@pytest.mark.parametrize(
    ("typed", "ending"),
    [
        ("<calc>2 * 3</calc>\n\\boxed{1}\n", "\nReward 0\n"),
        ("hm\n", "> \n"),
    ],
)
def test_play_reads_actions_until_the_end_of_the_episode_or_of_the_input(
    capsys, monkeypatch, typed, ending
):
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    assert main(["play", "rllm/Calculator-v0", "--seed", "2"]) == 0
    out = capsys.readouterr().out
    assert "What is 85 * 33?" in out
    assert out.endswith(ending)


def test_an_unknown_id_is_one_line_and_exit_code_two():
    done = subprocess.run(
        [sys.executable, "-m", "rllm_envs", "show", "rllm/Maths-v0"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: no environment is registered as 'rllm/Maths-v0'")
    assert done.stdout == ""
