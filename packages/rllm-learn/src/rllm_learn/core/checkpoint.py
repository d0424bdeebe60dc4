"""Checkpoints that are whole or absent, whenever the process dies.

A checkpoint is written to a temporary directory, every file is flushed to disk, a manifest with
sizes and SHA-256 sums is added, and the directory is renamed. Which one is the newest is derived
from the directories, never stored, and one whose manifest does not verify is passed over. One
process at a time writes to a directory of checkpoints.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

MANIFEST = "manifest.json"
_NAME = re.compile(r"step-(\d{8})(\.replaced)?")
_WRITING = ".writing-"
_REPLACED = ".replaced"
"""Ends the name of a checkpoint while the one that takes its place is renamed: it counts as long as
there is no other of its step that verifies."""


class CheckpointError(RuntimeError):
    """A checkpoint cannot be written, or none can be read."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A verified checkpoint on disk. Made by `save_checkpoint` and `latest_checkpoint`."""

    step: int
    """Training steps that were complete when it was written."""
    path: Path


def save_checkpoint(
    root: Path, step: int, write: Callable[[Path], None], *, keep: int
) -> Checkpoint:
    """Write one checkpoint, then delete the oldest beyond `keep`.

    Those of later steps are deleted too: a run that writes this step has passed them over.

    Args:
        root: The directory of checkpoints; made if absent.
        step: Complete training steps, at least 0. One that exists already is replaced.
        write: Writes all files under the directory it is given.
        keep: Newest checkpoints that stay, at least 1.

    Raises:
        CheckpointError: Writing failed, for example because the disk is full; the checkpoints
            that were there are untouched.
    """
    final = root / f"step-{step:08d}"
    temporary = root / f"{_WRITING}{final.name}"
    try:
        _remove_unfinished(root)
        temporary.mkdir(parents=True)
        write(temporary)
        files = _files(temporary)
        manifest = {name: _fingerprint(temporary / name) for name in files}
        (temporary / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
        for path in [*temporary.rglob("*"), temporary]:
            flush_to_disk(path)
        replaced = final.with_name(final.name + _REPLACED)
        if final.exists():
            shutil.rmtree(replaced, ignore_errors=True)
            final.rename(replaced)
        temporary.rename(final)
        flush_to_disk(root)
        flush_to_disk(root.parent)
    except (OSError, RuntimeError) as error:  # torch reports a full disk as a RuntimeError
        _remove_unfinished(root)
        raise CheckpointError(
            f"checkpoint of step {step} could not be written to {root}: {in_one_line(error)}; "
            "earlier checkpoints are untouched"
        ) from error
    stale = [name for name in _names(root) if _step_of(name) > step or name.endswith(_REPLACED)]
    oldest = [name for name in _names(root) if name not in stale][:-keep]
    for name in stale + oldest:
        shutil.rmtree(root / name, ignore_errors=True)
    return Checkpoint(step, final)


def latest_checkpoint(root: Path) -> tuple[Checkpoint | None, list[str]]:
    """Find the newest checkpoint that verifies.

    Returns:
        The checkpoint, or None when there is none; and for each newer one that was passed over a
        line that names the damaged file.
    """
    rejected = []
    for name in reversed(_names(root)):
        problem = _verify(root / name)
        if problem is None:
            return Checkpoint(_step_of(name), root / name), rejected
        rejected.append(f"{name} is passed over: {problem}")
    return None, rejected


def flush_to_disk(path: Path) -> None:
    """Make a file's or a directory's content survive a loss of power."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def in_one_line(error: BaseException) -> str:
    """Return what an error says, or its cause where it is a disk's; torch says it in many lines."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OSError):
        cause = cause.__cause__ or cause.__context__
    said = str(cause or error).strip() or type(error).__name__
    return said.splitlines()[0]


def _names(root: Path) -> list[str]:
    """Return the directories of checkpoints, oldest first; of a step's two, the replaced first."""
    found = [p.name for p in root.iterdir() if _NAME.fullmatch(p.name)] if root.is_dir() else []
    return sorted(found, key=lambda name: (_step_of(name), not name.endswith(_REPLACED)))


def _step_of(name: str) -> int:
    return int(name.removesuffix(_REPLACED).removeprefix("step-"))


def _remove_unfinished(root: Path) -> None:
    """Delete what a process that was killed in the middle of writing has left."""
    for path in root.glob(f"{_WRITING}*"):
        shutil.rmtree(path, ignore_errors=True)


def _files(directory: Path) -> list[str]:
    return sorted(str(p.relative_to(directory)) for p in directory.rglob("*") if p.is_file())


def _fingerprint(path: Path) -> dict[str, int | str]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"bytes": path.stat().st_size, "sha256": digest}


def _verify(directory: Path) -> str | None:
    """Return what is wrong with a checkpoint directory, None if nothing is."""
    try:
        manifest = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
        if not manifest:
            return f"{MANIFEST} names no file"
        for name, expected in manifest.items():
            if _fingerprint(directory / name) != expected:
                return f"{name} is not what its manifest says"
    except (OSError, ValueError, AttributeError) as error:
        return f"{MANIFEST} or a file that it names cannot be read ({error})"
    return None
