from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import textwrap
import time

import pytest
import torch

from rllm_learn.core.checkpoint import CheckpointError, latest_checkpoint, save_checkpoint

FILE_OPERATIONS = ("open", "os.", "shutil.", "pathlib.")


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


def test_a_full_disk_is_named_though_torch_says_something_else(tmp_path):
    save_checkpoint(tmp_path, 1, write_number(1), keep=1)

    def write(directory):
        with (directory / "learner.pt").open("wb") as file:
            torch.save({"weights": torch.zeros(100_000)}, file)

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        with pytest.raises(CheckpointError, match=r"step 2 could not be written .* File too large"):
            save_checkpoint(tmp_path, 2, write, keep=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [p.name for p in tmp_path.iterdir()] == ["step-00000001"]
    assert save_checkpoint(tmp_path, 2, write, keep=1).step == 2


def test_what_was_passed_over_never_takes_the_place_of_what_is_good(tmp_path):
    for step in (1, 2, 3):
        save_checkpoint(tmp_path, step, write_number(step), keep=3)
    for step in (2, 3):
        (tmp_path / f"step-{step:08d}" / "weights.bin").write_bytes(b"damaged")
    newest, rejected = latest_checkpoint(tmp_path)
    assert newest is not None and newest.step == 1 and len(rejected) == 2
    # The run goes on from step 1; by number alone, keep=1 would keep step 3.
    save_checkpoint(tmp_path, 2, write_number(2), keep=1)
    assert [p.name for p in tmp_path.iterdir()] == ["step-00000002"]
    assert latest_checkpoint(tmp_path)[0] is not None


def test_a_manifest_that_names_nothing_proves_nothing(tmp_path):
    broken = save_checkpoint(tmp_path, 1, write_number(1), keep=1)
    (broken.path / "manifest.json").write_text("{}")
    assert latest_checkpoint(tmp_path)[0] is None


def killed_before_operation(number, save):
    """Fork, and kill the child before its file operation of this number; False once it is done."""
    child = os.fork()
    if child == 0:
        left = iter(range(number))

        def count(event, _):
            if event == "os.kill" or not event.startswith(FILE_OPERATIONS):
                return
            if next(left, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)

        code = 1
        try:
            sys.addaudithook(count)
            save()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, -signal.SIGKILL)
    return code != 0


@pytest.mark.parametrize("step", [2, 3], ids=["replaces the newest", "is a further one"])
def test_a_save_killed_before_any_of_its_file_operations_loses_nothing(tmp_path, step):
    number = 0
    while True:
        root = tmp_path / str(number)
        for before in (1, 2):
            save_checkpoint(root, before, write_number(before), keep=2)

        def save(root=root):
            save_checkpoint(root, step, write_number(9), keep=2)

        was_killed = killed_before_operation(number, save)
        newest, rejected = latest_checkpoint(root)
        assert newest is not None and rejected == []
        weights = (newest.path / "weights.bin").read_bytes()
        assert (newest.step, weights[0]) in {(2, 2), (step, 9)}
        if not was_killed:
            break
        # Whoever goes on cleans up.
        save_checkpoint(root, step + 1, write_number(7), keep=1)
        assert [p.name for p in root.iterdir()] == [f"step-{step + 1:08d}"]
        number += 1
    assert weights[0] == 9
    assert number > 20


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
