from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from rllm_learn.core.checkpoint import CheckpointError, latest_checkpoint, save_checkpoint


def write_number(number):
    def write(directory):
        (directory / "weights.bin").write_bytes(bytes([number]) * 1000)
        (directory / "nested").mkdir()
        (directory / "nested" / "state.json").write_text(f'{{"n": {number}}}')

    return write


def test_the_newest_is_found_and_the_oldest_are_deleted(tmp_path):
    for step in (1, 2, 10):
        save_checkpoint(tmp_path, step, write_number(step), keep=2)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["step-00000002", "step-00000010"]
    newest, rejected = latest_checkpoint(tmp_path)
    assert newest is not None
    assert newest.step == 10
    assert (newest.path / "weights.bin").read_bytes() == bytes([10]) * 1000
    assert rejected == []


def test_none_is_found_where_there_is_none(tmp_path):
    assert latest_checkpoint(tmp_path / "absent") == (None, [])


@pytest.mark.parametrize("name", ["weights.bin", "nested/state.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "delete"])
def test_a_damaged_checkpoint_is_passed_over_and_its_file_named(tmp_path, name, damage):
    save_checkpoint(tmp_path, 1, write_number(1), keep=3)
    broken = save_checkpoint(tmp_path, 2, write_number(2), keep=3).path / name
    content = broken.read_bytes()
    if damage == "flip":
        broken.write_bytes(bytes([content[0] ^ 255]) + content[1:])
    elif damage == "cut":
        broken.write_bytes(content[:-1])
    else:
        broken.unlink()
    newest, rejected = latest_checkpoint(tmp_path)
    assert newest is not None
    assert newest.step == 1
    assert len(rejected) == 1
    assert name.split("/")[-1] in rejected[0]


def test_a_failed_write_leaves_the_earlier_checkpoint_and_no_rubbish(tmp_path):
    save_checkpoint(tmp_path, 1, write_number(1), keep=1)

    def fail(directory):
        (directory / "half").write_bytes(b"x")
        raise OSError(28, "No space left on device")

    with pytest.raises(CheckpointError, match=r"step 2 .* No space left"):
        save_checkpoint(tmp_path, 2, fail, keep=1)
    assert [p.name for p in tmp_path.iterdir()] == ["step-00000001"]


def test_a_process_killed_at_any_moment_leaves_a_checkpoint_that_loads(tmp_path):
    # A child saves for ever; it is killed at moments that fall anywhere in a save.
    program = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        from rllm_learn.core.checkpoint import save_checkpoint
        root = Path(sys.argv[1])
        first = int(sys.argv[2])
        for step in range(first, first + 100_000):
            save_checkpoint(
                root, step, lambda d: (d / "w.bin").write_bytes(bytes(200_000)), keep=2
            )
            print(step, flush=True)
        """
    )
    complete = 0
    for round_number in range(8):
        child = subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path), str(complete + 1)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(0.003 * round_number)
        os.kill(child.pid, signal.SIGKILL)
        lines = child.stdout.read().split()
        child.wait()
        newest, _ = latest_checkpoint(tmp_path)
        assert newest is not None
        last_reported = int(lines[-1]) if lines else complete + 1
        assert newest.step >= last_reported
        complete = newest.step
