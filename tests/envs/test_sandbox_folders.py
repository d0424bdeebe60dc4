import os
import tempfile

import pytest

from rllm_envs.sandbox.folders import holds_more_than, remove_folder


@pytest.fixture
def folder():
    made = tempfile.mkdtemp()
    os.chmod(made, 0o755)
    yield made
    remove_folder(made)


def _deep(folder, depth):
    """Make folders in each other, and return where the innermost is, which no path reaches."""
    place = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d" * 200, dir_fd=place)
        inner = os.open("d" * 200, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
    return place


def _is_over(folder, entries=100, size=2**20):
    return holds_more_than(folder, entries=entries, size=size)


def test_entries_and_blocks_are_counted(folder):
    os.mkdir(f"{folder}/a")
    for number in range(4):
        with open(f"{folder}/a/{number}", "wb") as file:
            file.write(b"x" * 10_000)
            file.flush()
            os.fsync(file.fileno())  # blocks are known when they are on the disk
    assert not _is_over(folder, entries=5)
    assert _is_over(folder, entries=4)
    assert not _is_over(folder, size=60_000)
    assert _is_over(folder, size=39_000)


def test_a_hole_takes_no_room_and_a_link_is_not_followed(folder):
    with open(f"{folder}/hole", "wb") as file:
        file.truncate(2**40)
    os.symlink("/usr/lib", f"{folder}/link")
    assert not _is_over(folder)


def test_what_no_path_reaches_counts_as_too_much(folder):
    os.close(_deep(folder, 30))
    assert _is_over(folder)


def test_a_folder_is_removed_however_deep(folder):
    place = _deep(folder, 40)
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=place))
    os.close(place)
    path = f"{folder}/n"
    os.mkdir(path)
    place = os.open(path, os.O_RDONLY)
    for _ in range(1100):  # more than calls may be nested
        os.mkdir("d", dir_fd=place)
        inner = os.open("d", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
    os.close(place)
    remove_folder(folder)
    assert not os.path.exists(folder)


def test_links_are_removed_and_not_what_they_lead_to(folder, tmp_path):
    (tmp_path / "kept").write_text("x")
    os.symlink(tmp_path, f"{folder}/link")
    os.mkdir(f"{folder}/in")
    os.symlink(tmp_path, f"{folder}/in/link")
    remove_folder(folder)
    assert not os.path.exists(folder)
    assert (tmp_path / "kept").read_text() == "x"


def test_a_folder_without_rights_hides_nothing_and_is_removed():
    """For root there is no such folder, so this is done as another user."""
    was = os.geteuid()
    if was == 0:
        os.seteuid(65534)
    try:
        folder = tempfile.mkdtemp(dir="/tmp")
        os.makedirs(f"{folder}/hidden/inner")
        with open(f"{folder}/hidden/file", "w") as file:
            file.write("x")
        os.chmod(f"{folder}/hidden/inner", 0)
        os.chmod(f"{folder}/hidden", 0o300)
        assert _is_over(folder)
        remove_folder(folder)
        assert not os.path.exists(folder)
    finally:
        os.seteuid(was)
