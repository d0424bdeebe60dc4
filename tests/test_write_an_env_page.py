"""The environments of docs/write-an-env.md, saved as the page says, keep the contract."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from test_docs import blocks

PAGE = (Path(__file__).parent.parent / "docs" / "write-an-env.md").read_text("utf-8")
FILES = {"change": "me/Change-v0", "lock": "me/Lock-v0"}


def source(name: str) -> str:
    """The block that registers the id of a file."""
    found = [code for code in blocks(PAGE, "python run") if f'register("{FILES[name]}"' in code]
    assert len(found) == 1
    return found[0]


def run_in(folder: Path, *arguments: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rllm_envs", *arguments],
        cwd=folder,
        input=typed,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("name", FILES)
def test_an_env_of_the_page_is_short_and_passes_check(name: str, tmp_path: Path) -> None:
    code = source(name)
    assert len(code.splitlines()) < 60
    assert f"Save it as `{name}.py`." in PAGE
    (tmp_path / f"{name}.py").write_text(code, "utf-8")
    done = run_in(tmp_path, "check", f"{name}.py:{FILES[name]}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("\n11 rules kept, 0 broken\n")


def test_the_page_shows_what_check_prints(tmp_path: Path) -> None:
    (shown,) = blocks(PAGE, "text")
    command, _, output = shown.partition("\n")
    program, arguments = "$ python -m rllm_envs ", "check lock.py:me/Lock-v0"
    assert command == program + arguments
    (tmp_path / "lock.py").write_text(source("lock"), "utf-8")
    assert run_in(tmp_path, *arguments.split()).stdout == output


def test_the_env_can_be_played_by_module_and_id(tmp_path: Path) -> None:
    (tmp_path / "lock.py").write_text(source("lock"), "utf-8")
    assert "play lock:me/Lock-v0`" in PAGE
    done = run_in(tmp_path, "play", "lock:me/Lock-v0", "--seed", "0", typed="/hint\n/quit\n")
    assert (done.returncode, done.stderr) == (0, "")
    # Half of the way from 0 to 9.
    assert "[turn 1 of 5] > /hint\n\\boxed{4444}\n" in done.stdout
