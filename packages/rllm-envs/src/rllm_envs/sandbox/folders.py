"""Measure and remove a folder that a stranger's program has written into."""

import contextlib
import os
import secrets
import stat

_BLOCK_BYTES = 512
_GONE = (FileNotFoundError, NotADirectoryError)


def holds_more_than(folder: str, *, entries: int, size: int) -> bool:
    """Return whether a folder holds more files and folders, or more bytes on the disk.

    What cannot be listed (a folder without the right to, a path that is too long) counts as more:
    a program must not hide what it writes.

    Args:
        folder: Where to look; links are not followed.
        entries: Files and folders allowed.
        size: Bytes allowed, in blocks of the disk, because a file with holes is small there.
    """
    places = [folder]
    found, total = 0, 0
    while places:
        try:
            with os.scandir(places.pop()) as listed:
                for entry in listed:
                    found += 1
                    if found > entries:
                        return True
                    if entry.is_dir(follow_symlinks=False):
                        places.append(entry.path)
                        continue
                    with contextlib.suppress(*_GONE):
                        total += entry.stat(follow_symlinks=False).st_blocks * _BLOCK_BYTES
        except _GONE:
            continue
        except OSError:
            return True
    return total > size


def deleted_bytes(pid: int, folder: str) -> int:
    """Return the bytes on the disk of files that a process has open and that have no name.

    Only files of the disk that the folder is on count; 0 where the system does not show them.
    """
    total = 0
    with contextlib.suppress(OSError):
        disk, opened = os.stat(folder).st_dev, f"/proc/{pid}/fd"
        sizes: dict[int, int] = {}
        for number in os.listdir(opened):
            with contextlib.suppress(OSError):
                file = os.stat(f"{opened}/{number}")
                if stat.S_ISREG(file.st_mode) and not file.st_nlink and file.st_dev == disk:
                    sizes[file.st_ino] = file.st_blocks * _BLOCK_BYTES
        total = sum(sizes.values())
    return total


def remove_folder(folder: str) -> None:
    """Remove a folder and all in it, however deep and with whatever rights; links stay links.

    Call it when the program has ended. What the system does not let go of is left.
    """
    with contextlib.suppress(OSError):
        root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            _empty(root)
        finally:
            os.close(root)
        os.rmdir(folder)


def _empty(root: int) -> None:
    """Remove all in an open folder.

    What is in a folder in it is first moved up, so that neither paths nor calls get deep.
    """
    prefix, moved = secrets.token_hex(8), 0
    while names := os.listdir(root):
        for name in names:
            if not _made_readable(name, root):
                os.unlink(name, dir_fd=root)
                continue
            place = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=root)
            try:
                for inner in os.listdir(place):
                    _made_readable(inner, place)  # or it could not be moved
                    os.rename(inner, f"{prefix}-{moved}", src_dir_fd=place, dst_dir_fd=root)
                    moved += 1
            finally:
                os.close(place)
            os.rmdir(name, dir_fd=root)


def _made_readable(name: str, place: int) -> bool:
    """Return whether a name is a folder, which then may be listed and changed."""
    mode = os.stat(name, dir_fd=place, follow_symlinks=False).st_mode
    if not stat.S_ISDIR(mode):
        return False
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        os.chmod(name, stat.S_IRWXU, dir_fd=place)
    return True
